//! `COPY t FROM 'file'`: reads CSV, Parquet or TsFile into an existing table.
//!
//! Columns are matched by name. A value that does not fit its column's type fails the statement;
//! rows before it are stored. `marigram import` would report and skip only the row.

use super::{FileUse, file_url, resolve};
use crate::SqlOptions;
use crate::dialect::statement::{CopyFileFormat, CopyFrom};
use crate::dialect::types::arrow_schema;
use crate::error::{SqlError, SqlResult};
use crate::planning::zones::times_of_integers;
use crate::statements::tsfile::{DEVICE_TAG, TsFileRows};
use crate::tables::sink::TableSink;
use arrow::array::{ArrayRef, Datum, RecordBatch, new_null_array};
use arrow::compute::kernels::cmp::distinct;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::util::display::array_value_to_string;
use datafusion::common::DataFusionError;
use datafusion::datasource::sink::DataSink;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{CsvReadOptions, ParquetReadOptions, SessionContext};
use futures::StreamExt;
use marigram_engine::Engine;
use marigram_model::TableSchema;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Stores the rows of the file; returns their number.
///
/// # Errors
/// If the file may not be read, is damaged, or does not match the table.
pub(crate) async fn run_from(
    copy: &CopyFrom,
    engine: &Engine,
    options: &SqlOptions,
    state: SessionState,
    table: Arc<TableSchema>,
) -> SqlResult<u64> {
    let path = resolve(options, &copy.path, FileUse::Read)?;
    let arrow = arrow_schema(&table);
    let rows = rows_of(copy, options, &path, &state, Arc::clone(&arrow)).await?;
    let fitted = {
        let (table, arrow) = (Arc::clone(&table), Arc::clone(&arrow));
        let has_names = copy.has_header;
        rows.map(move |batch| {
            let batch = batch?;
            let batch = if has_names {
                batch
            } else {
                by_place(batch, &arrow)?
            };
            fit(&batch, &table, &arrow)
        })
    };
    let fitted = RecordBatchStreamAdapter::new(Arc::clone(&arrow), fitted);
    let sink = TableSink::new(engine.clone(), table, arrow);
    Ok(sink.write_all(Box::pin(fitted), &state.task_ctx()).await?)
}

async fn rows_of(
    copy: &CopyFrom,
    options: &SqlOptions,
    path: &Path,
    state: &SessionState,
    arrow: SchemaRef,
) -> SqlResult<SendableRecordBatchStream> {
    let context = SessionContext::new_with_state(state.clone());
    let text = if options.allow_files && copy.path.contains("://") {
        copy.path.clone()
    } else {
        file_url(path)?
    };
    // The extension selects files in a directory, but this is a single file.
    let extension = "";
    let frame = match copy.form {
        CopyFileFormat::Csv => {
            // Read every column as text, so that the table determines its type.
            let csv = CsvReadOptions::new()
                .has_header(copy.has_header)
                .delimiter(copy.delimiter)
                .schema_infer_max_records(0)
                .file_extension(extension);
            context.read_csv(text, csv).await?
        }
        CopyFileFormat::Parquet => {
            let parquet = ParquetReadOptions {
                file_extension: extension,
                ..ParquetReadOptions::default()
            };
            context.read_parquet(text, parquet).await?
        }
        CopyFileFormat::TsFile => return tsfile_rows(path, copy.unit_ns, arrow),
    };
    Ok(frame.execute_stream().await?)
}

fn tsfile_rows(
    path: &Path,
    unit_ns: i64,
    arrow: SchemaRef,
) -> SqlResult<SendableRecordBatchStream> {
    let mut rows = TsFileRows::open(open(path)?, unit_ns)?;
    // After an error, the reader returns nothing more.
    let next = move || match rows.next_rows() {
        Ok(Some(found)) => Some(Ok(found.rows)),
        Ok(None) => None,
        Err(error) => Some(Err(DataFusionError::External(Box::new(error)))),
    };
    let stream = futures::stream::iter(std::iter::from_fn(next));
    Ok(Box::pin(RecordBatchStreamAdapter::new(arrow, stream)))
}

#[expect(
    clippy::disallowed_methods,
    reason = "files that a user names belong to the machine, not to the storage"
)]
fn open(path: &Path) -> SqlResult<File> {
    File::open(path).map_err(|error| {
        SqlError::invalid(
            "58030",
            format!("cannot read '{}': {error}", path.display()),
        )
    })
}

/// Rows without names: their columns are the table's, in order.
fn by_place(rows: RecordBatch, arrow: &SchemaRef) -> Result<RecordBatch, DataFusionError> {
    let (found, most) = (rows.num_columns(), arrow.fields().len());
    if found > most {
        let message = format!("the file has {found} columns, the table {most}");
        let error = SqlError::invalid("22P04", message);
        return Err(DataFusionError::External(Box::new(error)));
    }
    let names = arrow.fields().iter().zip(rows.columns());
    let fields: Vec<Field> = names
        .map(|(field, values)| Field::new(field.name(), values.data_type().clone(), true))
        .collect();
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        rows.columns().to_vec(),
    )?)
}

/// Converts rows of a file to rows of the table: columns by name, without loss, null for columns
/// that the file lacks.
fn fit(
    rows: &RecordBatch,
    table: &TableSchema,
    arrow: &SchemaRef,
) -> Result<RecordBatch, DataFusionError> {
    let fail = |sqlstate, message: String| {
        DataFusionError::External(Box::new(SqlError::invalid(sqlstate, message)))
    };
    let known = |name: &str| arrow.column_with_name(name).is_some();
    let fields = rows.schema_ref().fields();
    let lacking = fields.iter().enumerate().find(|(at, field)| {
        // A column without values loses nothing.
        !known(field.name()) && rows.column(*at).null_count() < rows.num_rows()
    });
    if let Some((_, lacking)) = lacking {
        let (name, table) = (lacking.name(), &table.name);
        let device = if name == DEVICE_TAG {
            " (the path of each device)"
        } else {
            ""
        };
        let message = format!(
            "table '{table}' has no column '{name}'{device}, which the file has; add it with ALTER \
             TABLE, or use marigram import"
        );
        return Err(fail("42703", message));
    }
    let columns = arrow
        .fields()
        .iter()
        .map(|field| -> Result<ArrayRef, DataFusionError> {
            match rows.column_by_name(field.name()) {
                Some(values)
                    if values.data_type().is_integer()
                        && matches!(field.data_type(), DataType::Timestamp(..)) =>
                {
                    times_of_integers(values, field.data_type())
                }
                Some(values) => exact_cast(values, field.data_type())
                    .map_err(|error| fail("22000", format!("column '{}': {error}", field.name()))),
                None => Ok(new_null_array(field.data_type(), rows.num_rows())),
            }
        });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    // The sink refuses a row without a time, with a better message than Arrow's.
    let loose = arrow
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_nullable(true));
    let loose = Arc::new(Schema::new(loose.collect::<Vec<_>>()));
    Ok(RecordBatch::try_new(loose, columns)?)
}

/// Converts values without loss: Arrow itself cuts the fraction of 5.5, and rounds a whole number beyond 2^53.
fn exact_cast(values: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let cast = cast_with_options(values, to, &options)?;
    let from = values.data_type();
    let may_round =
        (from.is_floating() && to.is_integer()) || (from.is_integer() && to.is_floating());
    if !may_round {
        return Ok(cast);
    }
    let back = cast_with_options(&cast, from, &options)?;
    let differs = distinct(&back as &dyn Datum, values as &dyn Datum)?;
    for row in differs.values().set_indices() {
        let value = array_value_to_string(values, row)?;
        // The comparison tells the two zeros apart.
        if value != "-0.0" {
            return Err(ArrowError::CastError(format!(
                "{value} is no {to} without being rounded"
            )));
        }
    }
    Ok(cast)
}
