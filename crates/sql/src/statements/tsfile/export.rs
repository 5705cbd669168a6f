//! Writes record batches to a TsFile.

use crate::error::{SqlError, SqlResult};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int32Type, Int64Type, Schema, TimeUnit,
    TimestampNanosecondType,
};
use marigram_tsfile::{
    ColumnCategory, ColumnSchema, ColumnValues, DataType as TsType, DeviceColumn,
    TsFileTableSchema, TsFileWriter,
};
use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::sync::Arc;

/// Values that do not fit are not converted.
const EXACT: CastOptions<'static> = CastOptions {
    safe: false,
    format_options: arrow::util::display::FormatOptions::new(),
};

/// A TsFile that is written from record batches.
pub struct TsFileExport<W, S> {
    writer: TsFileWriter<W, S>,
    time: usize,
    tags: Vec<usize>,
    fields: Vec<ExportField>,
    unit_ns: i64,
    rows: u64,
    /// The number of rows whose times are not whole units.
    inexact: u64,
}

/// A field: its index in the batches, and its type in the file.
struct ExportField {
    at: usize,
    name: Arc<str>,
    kind: TsType,
}

impl<W: Write, S: Read + Write + Seek> TsFileExport<W, S> {
    /// Begins a file with one table. `schema` is that of the batches; times are written in units of
    /// `unit_ns` nanoseconds; `scratch` is an empty file for data that must be written at the end.
    ///
    /// # Errors
    /// If a column is missing or of a type that a TsFile cannot hold.
    pub fn new(
        out: W,
        scratch: S,
        table: &str,
        schema: &Schema,
        (time, tags): (&str, &[String]),
        unit_ns: i64,
    ) -> SqlResult<Self> {
        let place = |name: &str| {
            let (at, _) = schema.column_with_name(name).ok_or_else(|| {
                let message = format!("there is no column '{name}' in the rows to be exported");
                SqlError::named("42703", name, message)
            })?;
            Ok::<usize, SqlError>(at)
        };
        let time = place(time)?;
        let tags = tags
            .iter()
            .map(|tag| place(tag))
            .collect::<SqlResult<Vec<_>>>()?;
        let mut columns = Vec::new();
        for at in &tags {
            columns.push(ColumnSchema {
                name: schema.field(*at).name().clone(),
                data_type: TsType::String,
                category: ColumnCategory::Tag,
            });
        }
        let mut fields = Vec::new();
        for (at, field) in schema.fields().iter().enumerate() {
            if at == time || tags.contains(&at) {
                continue;
            }
            let kind = file_type(field.data_type()).ok_or_else(|| {
                SqlError::unsupported(format!(
                    "column '{}' has the type {}, which a TsFile cannot hold; CAST it, or leave it \
                     out",
                    field.name(),
                    field.data_type()
                ))
            })?;
            columns.push(ColumnSchema {
                name: field.name().clone(),
                data_type: kind,
                category: ColumnCategory::Field,
            });
            fields.push(ExportField {
                at,
                name: field.name().as_str().into(),
                kind,
            });
        }
        let table = TsFileTableSchema {
            name: table.to_owned(),
            columns,
        };
        Ok(Self {
            writer: TsFileWriter::new(out, scratch, table)?,
            time,
            tags,
            fields,
            unit_ns,
            rows: 0,
            inexact: 0,
        })
    }

    /// The ORDER BY clause of a query whose rows must arrive in the order that a file needs: by
    /// tags as text, missing ones first, then by time.
    pub fn order_by(time: &str, tags: &[String]) -> String {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let tags = tags
            .iter()
            .map(|tag| format!("CAST({} AS VARCHAR) ASC NULLS FIRST, ", quoted(tag)));
        format!("ORDER BY {}{} ASC", tags.collect::<String>(), quoted(time))
    }

    /// Appends rows.
    ///
    /// # Errors
    /// If a row has no time, a value does not fit its type in the file, or rows are out of order.
    pub fn write(&mut self, batch: &RecordBatch) -> SqlResult<()> {
        let exact = |at: usize, kind: &DataType| {
            cast_with_options(batch.column(at), kind, &EXACT).map_err(|error| {
                let name = batch.schema_ref().field(at).name();
                SqlError::invalid("22003", format!("column '{name}': {error}"))
            })
        };
        let nanoseconds = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let times = exact(self.time, &nanoseconds)?;
        if times.null_count() > 0 {
            return Err(SqlError::invalid(
                "23502",
                "a row to be exported has no time",
            ));
        }
        let mut fields = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            fields.push(exact(field.at, &array_type(field.kind))?);
        }
        self.count_inexact(&times, &fields);
        self.rows += batch.num_rows() as u64;
        if self.inexact > 0 {
            // The file cannot be completed; the remaining rows are only counted.
            return Ok(());
        }
        let tags = self.tags.iter().map(|at| exact(*at, &DataType::Utf8));
        let tags = tags.collect::<SqlResult<Vec<_>>>()?;
        let tags: Vec<&StringArray> = tags.iter().map(AsArray::as_string::<i32>).collect();
        let times = times.as_primitive::<TimestampNanosecondType>().values();
        for rows in runs(&tags, batch.num_rows()) {
            let of_run: Vec<Option<&str>> = tags
                .iter()
                .map(|tag| tag.is_valid(rows.start).then(|| tag.value(rows.start)))
                .collect();
            let units: Vec<i64> = times[rows.clone()]
                .iter()
                .map(|ns| ns / self.unit_ns)
                .collect();
            let columns = self.fields.iter().zip(&fields).map(|(field, values)| {
                column(field, &values.slice(rows.start, rows.len()), self.unit_ns)
            });
            let columns: Vec<DeviceColumn> = columns.collect();
            self.writer.write(&of_run, &units, &columns)?;
        }
        Ok(())
    }

    fn count_inexact(&mut self, times: &ArrayRef, fields: &[ArrayRef]) {
        if self.unit_ns == 1 {
            return;
        }
        let is_time = |field: &&ArrayRef| matches!(field.data_type(), DataType::Timestamp(_, _));
        let all: Vec<_> = std::iter::once(times)
            .chain(fields.iter().filter(is_time))
            .map(AsArray::as_primitive::<TimestampNanosecondType>)
            .collect();
        let is_inexact = |row: &usize| {
            let mut at_row = all.iter().filter(|column| column.is_valid(*row));
            at_row.any(|column| column.value(*row) % self.unit_ns != 0)
        };
        self.inexact += (0..times.len()).filter(is_inexact).count() as u64;
    }

    /// Completes the file; returns its output and the number of its rows.
    ///
    /// # Errors
    /// If times are not whole units: they are not truncated.
    pub fn finish(self) -> SqlResult<(W, u64)> {
        if self.inexact > 0 {
            let (unit, finer) = match self.unit_ns {
                1_000 => ("microseconds", "ns"),
                1_000_000 => ("milliseconds", "us or ns"),
                _ => ("seconds", "ms, us or ns"),
            };
            return Err(SqlError::invalid(
                "22008",
                format!(
                    "{} of {} rows have times that are not whole {unit}, and a TsFile would lose \
                     the rest; export with the precision {finer}",
                    self.inexact, self.rows
                ),
            ));
        }
        Ok((self.writer.finish()?, self.rows))
    }
}

/// The type in which a TsFile holds values exactly.
fn file_type(kind: &DataType) -> Option<TsType> {
    Some(match kind {
        DataType::Boolean => TsType::Boolean,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => {
            TsType::Int32
        }
        // There is no unsigned type; a value that is too large is refused.
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => TsType::Int64,
        DataType::Float16 | DataType::Float32 => TsType::Float,
        DataType::Float64 => TsType::Double,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => TsType::String,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => TsType::Blob,
        DataType::Timestamp(_, _) | DataType::Date32 | DataType::Date64 => TsType::Timestamp,
        DataType::Dictionary(_, values) => return file_type(values),
        _ => return None,
    })
}

/// The Arrow type for a column of the file.
fn array_type(kind: TsType) -> DataType {
    match kind {
        TsType::Boolean => DataType::Boolean,
        TsType::Int32 | TsType::Date => DataType::Int32,
        TsType::Int64 => DataType::Int64,
        TsType::Float => DataType::Float32,
        TsType::Double => DataType::Float64,
        TsType::Text | TsType::String => DataType::Utf8,
        TsType::Blob => DataType::Binary,
        TsType::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, None),
    }
}

/// Consecutive rows that have the same tags.
fn runs(tags: &[&StringArray], rows: usize) -> Vec<Range<usize>> {
    let differs = |row: usize| {
        tags.iter().any(|tag| {
            let value = |row: usize| tag.is_valid(row).then(|| tag.value(row));
            value(row) != value(row - 1)
        })
    };
    let mut runs = Vec::new();
    let mut begin = 0;
    for row in 1..rows {
        if differs(row) {
            runs.push(begin..row);
            begin = row;
        }
    }
    if begin < rows {
        runs.push(begin..rows);
    }
    runs
}

fn column(field: &ExportField, array: &ArrayRef, unit_ns: i64) -> DeviceColumn {
    let values = match field.kind {
        TsType::Boolean => ColumnValues::Bool(array.as_boolean().values().iter().collect()),
        TsType::Int32 | TsType::Date => {
            ColumnValues::I32(array.as_primitive::<Int32Type>().values().to_vec())
        }
        TsType::Int64 => ColumnValues::I64(array.as_primitive::<Int64Type>().values().to_vec()),
        TsType::Timestamp => {
            let times = array.as_primitive::<TimestampNanosecondType>().values();
            ColumnValues::I64(times.iter().map(|ns| ns / unit_ns).collect())
        }
        TsType::Float => ColumnValues::F32(array.as_primitive::<Float32Type>().values().to_vec()),
        TsType::Double => ColumnValues::F64(array.as_primitive::<Float64Type>().values().to_vec()),
        TsType::Text | TsType::String => {
            let texts = array.as_string::<i32>().iter();
            ColumnValues::Bytes(texts.map(Option::unwrap_or_default).collect())
        }
        TsType::Blob => {
            let all = array.as_binary::<i32>().iter();
            ColumnValues::Bytes(all.map(Option::unwrap_or_default).collect())
        }
    };
    let valid = array.nulls().filter(|nulls| nulls.null_count() > 0);
    DeviceColumn {
        name: field.name.clone(),
        data_type: field.kind,
        values,
        valid: valid.map(|nulls| nulls.iter().collect()),
    }
}
