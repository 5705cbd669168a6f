//! The schema `timescaledb_information`: tables, their partitions and their settings under the names of
//! TimescaleDB. Every table is a hypertable.

use super::external;
use crate::access::check_database;
use crate::error::{SqlError, SqlResult};
use crate::tables::hypertable_jobs::list_jobs;
use crate::tables::table_partitions::{PARTITION_SCHEMA, partitions};
use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, Schema};
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use marigram_access::{AccessRights, DatabasePrivileges};
use marigram_engine::Engine;
use marigram_functions::zoned::zoned_type;
use marigram_model::{ColdCodec, ColumnId, TableSchema};
use std::sync::Arc;

/// The schemas that TimescaleDB adds to a database.
pub(super) const SCHEMAS: [&str; 2] = ["timescaledb_information", "timescaledb_experimental"];

/// The views of each database.
const VIEWS: [&str; 9] = [
    "hypertables",
    "chunks",
    "dimensions",
    "continuous_aggregates",
    "compression_settings",
    "hypertable_compression_settings",
    "hypertable_columnstore_settings",
    "jobs",
    "job_stats",
];

/// See the module documentation.
#[derive(Debug)]
pub(super) struct TimescaleInformation {
    /// The engine.
    pub engine: Engine,
    /// The database that it describes.
    pub database: String,
    /// What the client may do.
    pub rights: Arc<AccessRights>,
}

/// The type of a column: a text, unless its name ends in one of these signs.
///
/// `name#` is an integer, `name##` a BIGINT, `name?` a boolean, `name@` a time, `name~` an interval.
fn field(written: &str) -> Field {
    let kinds: [(&str, DataType); 5] = [
        ("##", DataType::Int64),
        ("#", DataType::Int32),
        ("?", DataType::Boolean),
        ("@", zoned_type()),
        ("~", DataType::Interval(IntervalUnit::MonthDayNano)),
    ];
    for (sign, kind) in kinds {
        if let Some(name) = written.strip_suffix(sign) {
            return Field::new(name, kind, true);
        }
    }
    Field::new(written, DataType::Utf8, true)
}

/// A table of these columns and rows.
///
/// # Errors
/// If a row has other columns.
pub(super) fn table_of(columns: &str, rows: &[Vec<ScalarValue>]) -> Result<Arc<dyn TableProvider>> {
    let fields: Vec<Field> = columns.split_whitespace().map(field).collect();
    let schema = Arc::new(Schema::new(fields));
    let batches = if rows.is_empty() {
        Vec::new()
    } else {
        let columns = schema.fields().iter().enumerate().map(|(at, field)| {
            let values = rows.iter().map(|row| {
                let value = row.get(at).unwrap_or(&ScalarValue::Null);
                value.cast_to(field.data_type())
            });
            ScalarValue::iter_to_array(values.collect::<Result<Vec<_>>>()?)
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        vec![RecordBatch::try_new(Arc::clone(&schema), columns)?]
    };
    Ok(Arc::new(MemTable::try_new(schema, vec![batches])?))
}

/// A text.
pub(super) fn text(value: impl Into<String>) -> ScalarValue {
    ScalarValue::Utf8(Some(value.into()))
}

/// A whole number.
pub(super) fn number(value: u64) -> ScalarValue {
    ScalarValue::Int64(i64::try_from(value).ok())
}

fn time(ns: i64) -> ScalarValue {
    ScalarValue::TimestampNanosecond(Some(ns), None)
}

fn interval(ns: i64) -> ScalarValue {
    let days = i32::try_from(ns / marigram_model::DAY_NS).unwrap_or(i32::MAX);
    let rest = ns - i64::from(days) * marigram_model::DAY_NS;
    ScalarValue::new_interval_mdn(0, days, rest)
}

/// The type of the time column in PostgreSQL.
fn time_type(table: &TableSchema) -> &'static str {
    if table.options.zoned.contains(&ColumnId::TIME) {
        "timestamp with time zone"
    } else {
        "timestamp without time zone"
    }
}

impl TimescaleInformation {
    /// The tables of the database that are no plain views.
    fn tables(&self) -> SqlResult<Vec<Arc<TableSchema>>> {
        let mut tables = self.engine.tables(&self.database)?;
        tables.retain(|table| table.view.is_none());
        Ok(tables)
    }

    /// The tables that are no materialized views either.
    fn hypertables(&self) -> SqlResult<Vec<Arc<TableSchema>>> {
        let mut tables = self.tables()?;
        tables.retain(|table| table.rollup.is_none());
        Ok(tables)
    }

    fn hypertable_rows(&self) -> SqlResult<Vec<Vec<ScalarValue>>> {
        let mut rows = Vec::new();
        for table in self.hypertables()? {
            let chunks = partitions(&self.engine, &table)?.len();
            rows.push(vec![
                text("public"),
                text(&table.name),
                text("marigram"),
                ScalarValue::Int32(Some(1)),
                number(chunks as u64),
                ScalarValue::Boolean(Some(true)),
                ScalarValue::Null,
                text(&table.time_name),
                text(time_type(&table)),
            ]);
        }
        Ok(rows)
    }

    fn chunk_rows(&self) -> SqlResult<Vec<Vec<ScalarValue>>> {
        let mut rows = Vec::new();
        for table in self.tables()? {
            for partition in partitions(&self.engine, &table)? {
                rows.push(vec![
                    text("public"),
                    text(&table.name),
                    text(PARTITION_SCHEMA),
                    text(&partition.name),
                    text(&table.time_name),
                    text(time_type(&table)),
                    time(partition.start_ns),
                    time(partition.end_ns),
                    ScalarValue::Null,
                    ScalarValue::Null,
                    ScalarValue::Boolean(Some(partition.is_stored)),
                    ScalarValue::Null,
                    time(partition.start_ns),
                ]);
            }
        }
        Ok(rows)
    }

    fn dimension_rows(&self) -> SqlResult<Vec<Vec<ScalarValue>>> {
        let rows = self.tables()?.into_iter().map(|table| {
            vec![
                text("public"),
                text(&table.name),
                number(1),
                text(&table.time_name),
                text(time_type(&table)),
                text("Time"),
                interval(table.options.partition_ns),
                ScalarValue::Null,
                ScalarValue::Null,
                ScalarValue::Null,
            ]
        });
        Ok(rows.collect())
    }

    fn view_rows(&self) -> SqlResult<Vec<Vec<ScalarValue>>> {
        let mut rows = Vec::new();
        for view in self.tables()? {
            let Some(rollup) = &view.rollup else {
                continue;
            };
            let source = self.engine.table_by_id(rollup.source);
            rows.push(vec![
                text("public"),
                source.map_or(ScalarValue::Null, |table| text(&table.name)),
                text("public"),
                text(&view.name),
                text("marigram"),
                ScalarValue::Boolean(Some(false)),
                ScalarValue::Boolean(Some(view.options.cold_codec == ColdCodec::Auto)),
                text("public"),
                text(&view.name),
                text(&rollup.query),
                ScalarValue::Boolean(Some(true)),
            ]);
        }
        Ok(rows)
    }

    /// The tags of each table, by which rows are sorted first, and the time, by which they are then.
    fn sorting_rows(&self) -> SqlResult<Vec<Vec<ScalarValue>>> {
        let mut rows = Vec::new();
        for table in self.hypertables()? {
            for (position, tag) in (1..).zip(&table.tags) {
                rows.push(vec![
                    text("public"),
                    text(&table.name),
                    text(&tag.name),
                    ScalarValue::Int32(Some(position)),
                ]);
            }
            rows.push(vec![
                text("public"),
                text(&table.name),
                text(&table.time_name),
                ScalarValue::Null,
                ScalarValue::Int32(Some(1)),
                ScalarValue::Boolean(Some(true)),
                ScalarValue::Boolean(Some(false)),
            ]);
        }
        Ok(rows)
    }

    /// The same, one row for each table.
    fn setting_rows(&self) -> SqlResult<Vec<Vec<ScalarValue>>> {
        let rows = self.hypertables()?.into_iter().map(|table| {
            let tags = table.tags.iter().map(|tag| tag.name.as_str());
            vec![
                text(&table.name),
                text(tags.collect::<Vec<_>>().join(",")),
                text(&table.time_name),
                ScalarValue::Null,
            ]
        });
        Ok(rows.collect())
    }

    fn job_rows(&self) -> SqlResult<Vec<Vec<ScalarValue>>> {
        let found = list_jobs(&self.engine, &self.database)?.into_iter();
        let rows = found.map(|job| {
            vec![
                ScalarValue::Int32(Some(job.id)),
                text(format!("{} [{}]", job.kind.application(), job.id)),
                job.schedule().map_or(ScalarValue::Null, text),
                ScalarValue::Null,
                ScalarValue::Null,
                ScalarValue::Null,
                text("_timescaledb_functions"),
                text(job.kind.procedure()),
                text("marigram"),
                ScalarValue::Boolean(Some(true)),
                ScalarValue::Boolean(Some(false)),
                text(job.config()),
                ScalarValue::Null,
                ScalarValue::Null,
                text("public"),
                text(&job.table.name),
                ScalarValue::Null,
                ScalarValue::Null,
            ]
        });
        Ok(rows.collect())
    }

    fn job_stat_rows(&self) -> SqlResult<Vec<Vec<ScalarValue>>> {
        let found = list_jobs(&self.engine, &self.database)?.into_iter();
        let rows = found.map(|job| {
            let mut row = vec![
                text("public"),
                text(&job.table.name),
                ScalarValue::Int32(Some(job.id)),
            ];
            row.extend([ScalarValue::Null, ScalarValue::Null, ScalarValue::Null]);
            row.push(text("Scheduled"));
            row
        });
        Ok(rows.collect())
    }

    fn view(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        check_database(&self.rights, &self.database, DatabasePrivileges::READ)
            .map_err(|error| failed(error.into()))?;
        let settings = "hypertable segmentby orderby index";
        let (columns, rows) = match name {
            "hypertables" => (
                "hypertable_schema hypertable_name owner num_dimensions# num_chunks## \
                 compression_enabled? tablespaces primary_dimension primary_dimension_type",
                self.hypertable_rows(),
            ),
            "chunks" => (
                "hypertable_schema hypertable_name chunk_schema chunk_name primary_dimension \
                 primary_dimension_type range_start@ range_end@ range_start_integer## \
                 range_end_integer## is_compressed? chunk_tablespace chunk_creation_time@",
                self.chunk_rows(),
            ),
            "dimensions" => (
                "hypertable_schema hypertable_name dimension_number## column_name column_type \
                 dimension_type time_interval~ integer_interval## integer_now_func num_partitions#",
                self.dimension_rows(),
            ),
            "continuous_aggregates" => (
                "hypertable_schema hypertable_name view_schema view_name view_owner \
                 materialized_only? compression_enabled? materialization_hypertable_schema \
                 materialization_hypertable_name view_definition finalized?",
                self.view_rows(),
            ),
            "compression_settings" => (
                "hypertable_schema hypertable_name attname segmentby_column_index# \
                 orderby_column_index# orderby_asc? orderby_nullsfirst?",
                self.sorting_rows(),
            ),
            "hypertable_compression_settings" | "hypertable_columnstore_settings" => {
                (settings, self.setting_rows())
            }
            "jobs" => (
                "job_id# application_name schedule_interval max_runtime max_retries# retry_period \
                 proc_schema proc_name owner scheduled? fixed_schedule? config next_start@ \
                 initial_start@ hypertable_schema hypertable_name check_schema check_name",
                self.job_rows(),
            ),
            "job_stats" => (
                "hypertable_schema hypertable_name job_id# last_run_started_at@ \
                 last_successful_finish@ last_run_status job_status last_run_duration~ next_start@ \
                 total_runs## total_successes## total_failures##",
                self.job_stat_rows(),
            ),
            _ => return Ok(None),
        };
        let rows = rows.map_err(failed)?;
        table_of(columns, &rows).map(Some)
    }
}

/// An error among DataFusion's errors.
pub(super) fn failed(error: SqlError) -> DataFusionError {
    match error {
        SqlError::Engine(error) => external(error),
        other => DataFusionError::External(Box::new(other)),
    }
}

#[async_trait]
impl SchemaProvider for TimescaleInformation {
    fn table_names(&self) -> Vec<String> {
        VIEWS.map(str::to_owned).to_vec()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.view(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        VIEWS.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_types_that_their_signs_say() {
        let kinds =
            ["a", "b#", "c##", "d?", "e~"].map(|written| field(written).data_type().clone());
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        let expected = [
            DataType::Utf8,
            DataType::Int32,
            DataType::Int64,
            DataType::Boolean,
            interval,
        ];
        assert_eq!(kinds, expected);
        assert_eq!(field("c##").name(), "c");
    }
}
