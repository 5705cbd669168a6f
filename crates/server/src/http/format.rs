//! The formats of rows in an answer: JSON, CSV, Arrow IPC stream, Parquet.
//!
//! A [`Formatter`] takes batches one after another and returns bytes as they become ready, so that
//! it never holds a whole answer. CPU-bound.

use crate::http::error::HttpError;
use crate::http::json;
use arrow::array::{ArrayRef, StringArray};
use arrow::csv::WriterBuilder;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use arrow::json::LineDelimitedWriter;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow::util::pretty::pretty_format_batches_with_schema;
use axum::http::{HeaderMap, StatusCode, header};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of a Parquet row group after which it is written.
const ROW_GROUP_BYTES: usize = 32 << 20;

/// Format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseFormat {
    /// An object with `columns`, `rows`, `row_count`, `elapsed_ms`.
    Json,
    /// RFC 4180 with a header line; null is empty.
    Csv,
    /// Arrow IPC stream.
    Arrow,
    /// Parquet.
    Parquet,
    /// An array of objects; nulls are left out.
    Objects,
    /// An object a line; nulls are left out.
    ObjectLines,
    /// A table for people, drawn with lines. It is held whole.
    Pretty,
}

impl ResponseFormat {
    /// The first known format in `Accept`; JSON if it accepts everything.
    ///
    /// # Errors
    /// 406 if it names none.
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Self, HttpError> {
        if !headers.contains_key(header::ACCEPT) {
            return Ok(Self::Json);
        }
        for list in headers.get_all(header::ACCEPT) {
            for item in list.to_str().unwrap_or("").split(',') {
                let kind = item
                    .split(';')
                    .next()
                    .unwrap_or("")
                    .trim()
                    .to_ascii_lowercase();
                match kind.as_str() {
                    "*/*" | "application/*" | "application/json" | "" => return Ok(Self::Json),
                    "text/csv" | "text/*" => return Ok(Self::Csv),
                    "application/vnd.apache.arrow.stream" => return Ok(Self::Arrow),
                    "application/vnd.apache.parquet" => return Ok(Self::Parquet),
                    _ => {}
                }
            }
        }
        let forms = [Self::Json, Self::Csv, Self::Arrow, Self::Parquet].map(Self::content_type);
        let message = format!(
            "no format in Accept is supported; there are {}",
            forms.join(", ")
        );
        Err(HttpError::new(
            StatusCode::NOT_ACCEPTABLE,
            "invalid",
            message,
        ))
    }

    /// Its media type.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Json | Self::Objects => "application/json",
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::Arrow => "application/vnd.apache.arrow.stream",
            Self::Parquet => "application/vnd.apache.parquet",
            Self::ObjectLines => "application/jsonl",
            Self::Pretty => "text/plain; charset=utf-8",
        }
    }
}

/// Turns batches into bytes of a format.
pub(super) struct Formatter {
    state: FormatterState,
    rows: u64,
    begin: Instant,
}

enum FormatterState {
    Json(SchemaRef),
    Csv(SchemaRef),
    Arrow(Box<StreamWriter<Vec<u8>>>),
    Parquet(Box<ArrowWriter<Vec<u8>>>),
    /// Objects between brackets; whether there is one yet.
    Objects(bool),
    ObjectLines,
    Pretty(SchemaRef, Vec<RecordBatch>),
}

impl Formatter {
    /// A formatter for rows of `schema`. `begin` is when the statement began.
    ///
    /// # Errors
    /// If the format cannot hold a column's type.
    pub(super) fn new(
        form: ResponseFormat,
        schema: SchemaRef,
        begin: Instant,
    ) -> Result<Self, ArrowError> {
        let state = match form {
            ResponseFormat::Json => FormatterState::Json(schema),
            ResponseFormat::Csv => FormatterState::Csv(schema),
            ResponseFormat::Arrow => {
                FormatterState::Arrow(Box::new(StreamWriter::try_new(Vec::new(), &schema)?))
            }
            ResponseFormat::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .build();
                let writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
                FormatterState::Parquet(Box::new(writer))
            }
            ResponseFormat::Objects => FormatterState::Objects(false),
            ResponseFormat::ObjectLines => FormatterState::ObjectLines,
            ResponseFormat::Pretty => FormatterState::Pretty(schema, Vec::new()),
        };
        Ok(Self {
            state,
            rows: 0,
            begin,
        })
    }

    /// The bytes before the rows.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub(super) fn head(&mut self) -> Result<Vec<u8>, ArrowError> {
        match &mut self.state {
            FormatterState::Json(schema) => Ok(json_head(schema)),
            FormatterState::Csv(schema) => {
                let mut out = Vec::new();
                let none = RecordBatch::new_empty(flat_schema(schema));
                WriterBuilder::new()
                    .with_header(true)
                    .build(&mut out)
                    .write(&none)?;
                Ok(out)
            }
            FormatterState::Arrow(writer) => Ok(std::mem::take(writer.get_mut())),
            FormatterState::Parquet(writer) => Ok(std::mem::take(writer.inner_mut())),
            FormatterState::Objects(_) => Ok(b"[".to_vec()),
            FormatterState::ObjectLines | FormatterState::Pretty(..) => Ok(Vec::new()),
        }
    }

    /// The bytes of a batch; may be empty.
    ///
    /// # Errors
    /// If the format cannot hold a value.
    pub(super) fn rows(&mut self, batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        let first = self.rows == 0;
        self.rows += batch.num_rows() as u64;
        match &mut self.state {
            FormatterState::Json(_) => {
                let mut out = Vec::with_capacity(batch.num_rows() * 32);
                json::write_rows(batch, first, &mut out)?;
                Ok(out)
            }
            FormatterState::Csv(_) => {
                let mut out = Vec::with_capacity(batch.num_rows() * 32);
                let times = "%Y-%m-%dT%H:%M:%S%.9fZ";
                WriterBuilder::new()
                    .with_header(false)
                    .with_timestamp_format(times.to_owned())
                    .with_timestamp_tz_format(times.to_owned())
                    .build(&mut out)
                    .write(&flat(batch)?)?;
                Ok(out)
            }
            FormatterState::Arrow(writer) => {
                writer.write(batch)?;
                Ok(std::mem::take(writer.get_mut()))
            }
            FormatterState::Parquet(writer) => {
                writer.write(batch)?;
                if writer.in_progress_size() > ROW_GROUP_BYTES {
                    writer.flush()?;
                }
                Ok(std::mem::take(writer.inner_mut()))
            }
            FormatterState::Objects(begun) => {
                let mut out = Vec::new();
                // Line ends stand between objects only: those of texts are escaped.
                for line in object_lines(batch)?.split(|byte| *byte == b'\n') {
                    if line.is_empty() {
                        continue;
                    }
                    if std::mem::replace(begun, true) {
                        out.push(b',');
                    }
                    out.extend_from_slice(line);
                }
                Ok(out)
            }
            FormatterState::ObjectLines => object_lines(batch),
            FormatterState::Pretty(_, held) => {
                held.push(batch.clone());
                Ok(Vec::new())
            }
        }
    }

    /// Bytes of rows that it holds until they are ready.
    pub(super) fn held_bytes(&self) -> usize {
        match &self.state {
            FormatterState::Parquet(writer) => writer.memory_size(),
            // A drawn table takes some times the memory of its columns.
            FormatterState::Pretty(_, held) => {
                let bytes = held.iter().map(RecordBatch::get_array_memory_size);
                8 * bytes.sum::<usize>()
            }
            _ => 0,
        }
    }

    /// The bytes after the rows.
    ///
    /// # Errors
    /// If the format cannot hold the last rows.
    pub(super) fn tail(self) -> Result<Vec<u8>, ArrowError> {
        match self.state {
            FormatterState::Json(_) => Ok(json_tail(self.rows, self.begin).into_bytes()),
            FormatterState::Csv(_) | FormatterState::ObjectLines => Ok(Vec::new()),
            FormatterState::Arrow(mut writer) => {
                writer.finish()?;
                Ok(std::mem::take(writer.get_mut()))
            }
            FormatterState::Parquet(writer) => Ok(writer.into_inner()?),
            FormatterState::Objects(_) => Ok(b"]".to_vec()),
            FormatterState::Pretty(schema, held) => {
                let table = pretty_format_batches_with_schema(schema, &held)?;
                Ok(format!("{table}\n").into_bytes())
            }
        }
    }
}

/// The rows of a batch as JSON, an object a line.
fn object_lines(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let mut out = Vec::with_capacity(batch.num_rows() * 32);
    let mut writer = LineDelimitedWriter::new(&mut out);
    writer.write(batch)?;
    writer.finish()?;
    drop(writer);
    Ok(out)
}

fn json_head(schema: &Schema) -> Vec<u8> {
    let mut out = b"{\"columns\":[".to_vec();
    for (at, field) in schema.fields().iter().enumerate() {
        out.extend_from_slice(if at == 0 {
            b"{\"name\":"
        } else {
            b",{\"name\":"
        });
        json::write_text(&mut out, field.name());
        out.extend_from_slice(b",\"type\":");
        json::write_text(&mut out, &type_name(field.data_type()));
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"rows\":[");
    out
}

fn json_tail(rows: u64, begin: Instant) -> String {
    let elapsed_ms = begin.elapsed().as_secs_f64() * 1000.0;
    format!("\n],\"row_count\":{rows},\"elapsed_ms\":{elapsed_ms:.3}}}\n")
}

/// A column's type as JSON answers name it: its SQL name if it has one.
fn type_name(kind: &DataType) -> String {
    let name = match kind {
        DataType::Boolean => "boolean",
        DataType::Int8 | DataType::Int16 => "smallint",
        DataType::Int32 | DataType::UInt16 => "integer",
        DataType::Int64 | DataType::UInt32 => "bigint",
        DataType::UInt64 => "bigint unsigned",
        DataType::Float16 | DataType::Float32 => "real",
        DataType::Float64 => "double",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "bytes",
        DataType::Timestamp(..) => "timestamp",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Dictionary(_, values) => return type_name(values),
        other => return other.to_string(),
    };
    name.to_owned()
}

/// Converts nested columns to text, for a format without nesting.
fn flat(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    if !batch
        .schema()
        .fields()
        .iter()
        .any(|field| is_nested(field.data_type()))
    {
        return Ok(batch.clone());
    }
    let columns = batch
        .columns()
        .iter()
        .map(|column| -> Result<ArrayRef, ArrowError> {
            if !is_nested(column.data_type()) {
                return Ok(column.clone());
            }
            let format = ArrayFormatter::try_new(column.as_ref(), &FormatOptions::default())?;
            let texts = (0..column.len())
                .map(|row| (!column.is_null(row)).then(|| format.value(row).to_string()));
            Ok(Arc::new(texts.collect::<StringArray>()))
        });
    RecordBatch::try_new(
        flat_schema(&batch.schema()),
        columns.collect::<Result<_, _>>()?,
    )
}

fn flat_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let kind = field.data_type();
        let kind = if is_nested(kind) {
            DataType::Utf8
        } else {
            kind.clone()
        };
        Field::new(field.name(), kind, true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn is_nested(kind: &DataType) -> bool {
    kind.is_nested()
}
