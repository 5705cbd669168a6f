//! The functions of TimescaleDB that describe tables: those that return rows, and those that return one
//! value.

use super::timescaledb::{failed, number, table_of, text};
use crate::access::check_database;
use crate::dialect::timescale::arguments::CallArguments;
use crate::dialect::timescale::calls::target_of_text;
use crate::dialect::timescale::readings::{
    CHUNK_COMPRESSION, CHUNK_SIZES, ROW_COUNT, SHOW_CHUNKS, TABLE_COMPRESSION, TABLE_SIZE,
    TABLE_SIZES,
};
use crate::error::{SqlError, SqlResult};
use crate::planning::moments::called_moment;
use crate::planning::zones::SessionZone;
use crate::tables::table_partitions::{
    PARTITION_SCHEMA, TablePartition, chosen, clock, partitions,
};
use datafusion::arrow::array::{Array, Int64Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::cast::as_string_array;
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use marigram_access::{AccessRights, DatabasePrivileges};
use marigram_engine::Engine;
use marigram_model::TableSchema;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The tables that functions describe, as a client sees them.
#[derive(Clone, Debug)]
pub(crate) struct DescribedTables {
    /// The engine.
    pub engine: Engine,
    /// The session's database.
    pub database: String,
    /// What the client may do.
    pub rights: Arc<AccessRights>,
}

impl DescribedTables {
    /// The table of a name.
    fn table(&self, name: &str) -> SqlResult<Arc<TableSchema>> {
        let target = target_of_text(name)?;
        let database = target.database.as_ref().unwrap_or(&self.database);
        check_database(&self.rights, database, DatabasePrivileges::READ)?;
        Ok(self.engine.table(database, &target.table)?)
    }

    fn partitions(&self, table: &TableSchema) -> SqlResult<Vec<TablePartition>> {
        partitions(&self.engine, table)
    }

    /// The bytes of a table's segments.
    fn bytes(&self, name: &str) -> SqlResult<u64> {
        let table = self.table(name)?;
        let partitions = self.partitions(&table)?;
        Ok(partitions.iter().map(|partition| partition.bytes).sum())
    }

    /// The most rows that a table can have, by what is known without reading them.
    fn rows(&self, name: &str) -> SqlResult<u64> {
        let table = self.table(name)?;
        let snapshot = self.engine.snapshot(&table.database, &table.name)?;
        Ok(snapshot.estimate().0)
    }
}

/// Registers the functions with a session.
///
/// # Errors
/// If the registry refuses one.
pub(crate) fn register(state: &mut SessionState, tables: &DescribedTables) -> Result<()> {
    let functions = [SHOW_CHUNKS, TABLE_SIZES, CHUNK_SIZES];
    let statistics = TABLE_COMPRESSION.into_iter().chain(CHUNK_COMPRESSION);
    for name in functions.into_iter().chain(statistics) {
        let tables = tables.clone();
        state.register_udtf(name, Arc::new(TableDescription { name, tables }));
    }
    for name in TABLE_SIZE.into_iter().chain([ROW_COUNT]) {
        let tables = tables.clone();
        let signature = Signature::any(1, Volatility::Volatile);
        let figure = TableFigure {
            name,
            tables,
            signature,
        };
        state.register_udf(Arc::new(ScalarUDF::from(figure)))?;
    }
    Ok(())
}

/// A function that returns rows.
#[derive(Debug)]
struct TableDescription {
    name: &'static str,
    tables: DescribedTables,
}

impl TableFunctionImpl for TableDescription {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let zone = SessionZone::name(args.session().config_options());
        let values = args.exprs().iter().map(|expr| match expr {
            Expr::Literal(value, _) => Ok(value.clone()),
            other => called_moment(other, zone).unwrap_or_else(|| {
                Err(failed(SqlError::named(
                    "0A000",
                    self.name,
                    format!("{}: {other} is not a constant", self.name),
                )))
            }),
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let (columns, rows) = self.rows(&values, zone).map_err(failed)?;
        table_of(columns, &rows)
    }
}

type DescribedRows = (&'static str, Vec<Vec<ScalarValue>>);

impl TableDescription {
    fn rows(&self, values: &[ScalarValue], zone: &str) -> SqlResult<DescribedRows> {
        let name = values
            .first()
            .and_then(|value| value.try_as_str().flatten());
        let Some(name) = name else {
            let message = format!("{} takes the name of a table, as in 't'", self.name);
            return Err(SqlError::named("22023", self.name, message));
        };
        let table = self.tables.table(name)?;
        let all = self.tables.partitions(&table)?;
        let bytes: u64 = all.iter().map(|partition| partition.bytes).sum();
        let zero = || number(0);
        let null = || ScalarValue::Null;
        Ok(match self.name {
            SHOW_CHUNKS => {
                let names = [
                    "older_than",
                    "newer_than",
                    "created_before",
                    "created_after",
                ];
                let given = names.into_iter().zip(values[1..].iter().cloned());
                let arguments = CallArguments(given.collect());
                let now_ns = self.tables.engine.now_ns();
                let clock = clock(&table, now_ns, zone)?;
                let chosen = chosen(all, &arguments, &clock, false)?;
                let rows = chosen
                    .iter()
                    .map(|partition| vec![text(partition.qualified())]);
                ("show_chunks", rows.collect())
            }
            TABLE_SIZES => (
                "table_bytes## index_bytes## toast_bytes## total_bytes## node_name",
                vec![vec![number(bytes), zero(), zero(), number(bytes), null()]],
            ),
            CHUNK_SIZES => {
                let rows = all.iter().map(|partition| {
                    let bytes = number(partition.bytes);
                    let (schema, name) = (text(PARTITION_SCHEMA), text(&partition.name));
                    vec![schema, name, bytes.clone(), zero(), zero(), bytes, null()]
                });
                (
                    "chunk_schema chunk_name table_bytes## index_bytes## toast_bytes## \
                     total_bytes## node_name",
                    rows.collect(),
                )
            }
            name if TABLE_COMPRESSION.contains(&name) => {
                let stored = all.iter().filter(|partition| partition.is_stored).count();
                let mut row = vec![number(all.len() as u64), number(stored as u64)];
                row.extend([null(), null(), null(), null()]);
                row.extend([number(bytes), zero(), zero(), number(bytes), null()]);
                (
                    "total_chunks## number_compressed_chunks## before_compression_table_bytes## \
                     before_compression_index_bytes## before_compression_toast_bytes## \
                     before_compression_total_bytes## after_compression_table_bytes## \
                     after_compression_index_bytes## after_compression_toast_bytes## \
                     after_compression_total_bytes## node_name",
                    vec![row],
                )
            }
            _ => {
                let rows = all.iter().map(|partition| {
                    let status = if partition.is_stored {
                        "Compressed"
                    } else {
                        "Uncompressed"
                    };
                    let bytes = number(partition.bytes);
                    let mut row = vec![text(PARTITION_SCHEMA), text(&partition.name), text(status)];
                    row.extend([null(), null(), null(), null()]);
                    row.extend([bytes.clone(), zero(), zero(), bytes, null()]);
                    row
                });
                (
                    "chunk_schema chunk_name compression_status before_compression_table_bytes## \
                     before_compression_index_bytes## before_compression_toast_bytes## \
                     before_compression_total_bytes## after_compression_table_bytes## \
                     after_compression_index_bytes## after_compression_toast_bytes## \
                     after_compression_total_bytes## node_name",
                    rows.collect(),
                )
            }
        })
    }
}

/// A function that returns a figure of a table.
#[derive(Debug)]
struct TableFigure {
    name: &'static str,
    tables: DescribedTables,
    signature: Signature,
}

impl PartialEq for TableFigure {
    fn eq(&self, other: &Self) -> bool {
        let database = |figure: &Self| figure.tables.database.clone();
        self.name == other.name && database(self) == database(other)
    }
}

impl Eq for TableFigure {}

impl Hash for TableFigure {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.tables.database.hash(state);
    }
}

impl ScalarUDFImpl for TableFigure {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let names = arrow::compute::cast(&arrays[0], &DataType::Utf8)?;
        let names = as_string_array(&names)?;
        let figure = |name: &str| {
            let figure = if self.name == ROW_COUNT {
                self.tables.rows(name)
            } else {
                self.tables.bytes(name)
            };
            figure.map(|figure| i64::try_from(figure).unwrap_or(i64::MAX))
        };
        let figures = names.iter().map(|name| name.map(figure).transpose());
        let figures: Int64Array = figures.collect::<SqlResult<_>>().map_err(failed)?;
        debug_assert_eq!(figures.len(), names.len());
        Ok(ColumnarValue::Array(Arc::new(figures)))
    }
}
