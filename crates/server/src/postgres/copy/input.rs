//! `COPY t FROM STDIN` in progress: bytes in, batches to the database.
//!
//! While one batch is being stored, the next is decoded. Decoding runs on blocking threads.

use crate::postgres::copy::binary::BinaryDecoder;
use crate::postgres::copy::rows::CopyRows;
use crate::postgres::copy::syntax::{CopyDataFormat, CopyOptions};
use crate::postgres::copy::text::TextDecoder;
use crate::postgres::error::PgError;
use arrow::datatypes::{Field, SchemaRef};
use arrow::record_batch::RecordBatch;
use bytes::{Bytes, BytesMut};
use marigram_service::{Ingest, run_blocking};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Bytes of data collected before they are decoded.
const GATHER_BYTES: usize = 256 << 10;

/// The destination of the rows.
#[derive(Clone)]
struct CopyTarget {
    ingest: Arc<dyn Ingest>,
    database: String,
    table: String,
}

/// A COPY into a table.
pub(crate) struct CopyIn {
    target: CopyTarget,
    machine: Option<Box<CopyDecoder>>,
    gathered: BytesMut,
    storing: Option<JoinHandle<(u64, Result<(), PgError>)>>,
    stored: u64,
    /// Number of columns.
    pub width: usize,
    /// Whether the data is binary.
    pub binary: bool,
}

/// The decoding state; moves to a blocking thread and back.
struct CopyDecoder {
    decoder: FormatDecoder,
    rows: CopyRows,
    row_bytes_max: usize,
    /// Rows before those in `rows`.
    before: u64,
}

enum FormatDecoder {
    Text(TextDecoder),
    Binary(BinaryDecoder),
}

/// Rows ready to be stored.
struct CopyBatch {
    rows: RecordBatch,
    places: RowPositions,
}

/// Positions in the data of the rows of a batch.
enum RowPositions {
    /// The first row's number, from 1.
    Row(u64),
    /// Each row's line, from 1.
    Lines(Vec<u64>),
}

impl CopyIn {
    /// Begins a COPY of `columns` (all if empty) into a table with `schema`. `timestamptz` texts
    /// without a zone are in `zone`.
    ///
    /// # Errors
    /// If the table does not have a column, or a column is named twice.
    pub(crate) fn new(
        ingest: Arc<dyn Ingest>,
        (database, table): (&str, &str),
        (schema, zone): (&SchemaRef, &str),
        columns: &[String],
        options: CopyOptions,
        row_bytes_max: usize,
    ) -> Result<Self, PgError> {
        let fields = choose(schema, columns, table)?;
        let rows = CopyRows::new(fields).map_err(|message| PgError::new("0A000", message))?;
        let rows = rows.in_zone(zone);
        let binary = options.form == CopyDataFormat::Binary;
        let width = rows.width();
        let decoder = if binary {
            FormatDecoder::Binary(BinaryDecoder::new(table))
        } else {
            FormatDecoder::Text(TextDecoder::new(table, options))
        };
        let machine = CopyDecoder {
            decoder,
            rows,
            row_bytes_max,
            before: 0,
        };
        Ok(Self {
            target: CopyTarget {
                ingest,
                database: database.to_owned(),
                table: table.to_owned(),
            },
            machine: Some(Box::new(machine)),
            gathered: BytesMut::new(),
            storing: None,
            stored: 0,
            width,
            binary,
        })
    }

    /// Takes data.
    ///
    /// # Errors
    /// The first error in it, or why rows were not stored.
    pub(crate) async fn push(&mut self, data: &Bytes) -> Result<(), PgError> {
        self.gathered.extend_from_slice(data);
        if self.gathered.len() >= GATHER_BYTES {
            self.work(false).await
        } else {
            Ok(())
        }
    }

    /// Ends the data; returns the number of rows stored.
    ///
    /// # Errors
    /// As [`CopyIn::push`].
    pub(crate) async fn finish(&mut self) -> Result<u64, PgError> {
        self.work(true).await?;
        self.settle().await?;
        Ok(self.stored)
    }

    /// The error that ends the COPY, with the number of rows that are stored nevertheless.
    pub(crate) async fn ended_by(mut self, error: PgError) -> PgError {
        let settled = self.settle().await;
        if let Err(second) = settled {
            tracing::debug!(message = second.message, "a COPY ended with a second error");
        }
        let detail = match self.stored {
            0 => return error,
            1 => "1 row is stored.".to_owned(),
            stored => format!("{stored} rows are stored."),
        };
        PgError {
            detail: Some(detail),
            ..error
        }
    }

    /// Decodes the collected data, and stores full batches (all batches at the `end`).
    async fn work(&mut self, end: bool) -> Result<(), PgError> {
        let mut machine = self.machine.take().ok_or_else(|| {
            PgError::new("XX000", "the COPY ended with an error before this data")
        })?;
        let data = self.gathered.split().freeze();
        let decode = move || {
            let batches = machine.decode(&data, end);
            (machine, batches)
        };
        let (machine, batches) = run_blocking(decode).await?;
        // A malformed row ends the statement; complete batches before it are stored.
        let (batches, error) = batches;
        for batch in batches {
            self.settle().await?;
            self.storing = Some(tokio::spawn(self.target.clone().store(batch)));
        }
        if let Some(error) = error {
            self.settle().await?;
            return Err(error);
        }
        self.machine = Some(machine);
        Ok(())
    }

    /// Waits for the batch being stored.
    async fn settle(&mut self) -> Result<(), PgError> {
        if let Some(storing) = self.storing.take() {
            let (stored, result) = storing.await?;
            self.stored += stored;
            result?;
        }
        Ok(())
    }
}

impl CopyDecoder {
    fn decode(&mut self, data: &Bytes, end: bool) -> (Vec<CopyBatch>, Option<PgError>) {
        let mut batches = Vec::new();
        let error = self.decode_into(data, end, &mut batches).err();
        (batches, error)
    }

    fn decode_into(
        &mut self,
        data: &Bytes,
        end: bool,
        batches: &mut Vec<CopyBatch>,
    ) -> Result<(), PgError> {
        match &mut self.decoder {
            FormatDecoder::Text(decoder) => decoder.push(data),
            FormatDecoder::Binary(decoder) => decoder.push(data.clone()),
        }
        loop {
            let full = match &mut self.decoder {
                FormatDecoder::Text(decoder) => decoder.decode(&mut self.rows)?,
                FormatDecoder::Binary(decoder) => decoder.decode(&mut self.rows)?,
            };
            if !full {
                break;
            }
            batches.push(self.batch()?);
        }
        let waiting = match &self.decoder {
            FormatDecoder::Text(decoder) => decoder.waiting(),
            FormatDecoder::Binary(decoder) => decoder.waiting(),
        };
        if waiting > self.row_bytes_max {
            let message = format!(
                "a row is larger than the limit of {} bytes",
                self.row_bytes_max
            );
            return Err(PgError::new("54000", message));
        }
        if end {
            match &mut self.decoder {
                FormatDecoder::Text(decoder) => decoder.finish(&mut self.rows)?,
                FormatDecoder::Binary(decoder) => decoder.finish()?,
            }
            if self.rows.len() > 0 {
                batches.push(self.batch()?);
            }
        }
        Ok(())
    }

    fn batch(&mut self) -> Result<CopyBatch, PgError> {
        let first = self.before + 1;
        self.before += self.rows.len() as u64;
        let places = match &mut self.decoder {
            FormatDecoder::Text(decoder) => RowPositions::Lines(decoder.take_lines()),
            FormatDecoder::Binary(_) => RowPositions::Row(first),
        };
        Ok(CopyBatch {
            rows: self.rows.finish()?,
            places,
        })
    }
}

impl CopyTarget {
    /// Stores a batch; returns the number of rows stored, and why others are not.
    async fn store(self, batch: CopyBatch) -> (u64, Result<(), PgError>) {
        let written = self
            .ingest
            .write_arrow(&self.database, &self.table, batch.rows, None)
            .await;
        let report = match written {
            Ok(report) => report,
            Err(error) => return (0, Err(error.into())),
        };
        let stored = report.stored as u64;
        let Some(rejected) = report.rejected.first() else {
            return (stored, Ok(()));
        };
        let place = match &batch.places {
            RowPositions::Row(first) => format!("row {}", first + rejected.row as u64),
            RowPositions::Lines(lines) => {
                format!("line {}", lines.get(rejected.row).copied().unwrap_or(0))
            }
        };
        let others = match report.rejected.len() - 1 {
            0 => String::new(),
            others => format!(" (and {others} more rows of its batch)"),
        };
        let message = format!("a row was refused: {}{others}", rejected.reason);
        let place = format!("COPY {}, {place}", self.table);
        let error = PgError::new("22000", message).with_context(place);
        (stored, Err(error))
    }
}

/// The fields of `columns` in their order, all nullable: the database itself refuses a row without
/// a time, and names it.
fn choose(schema: &SchemaRef, columns: &[String], table: &str) -> Result<Vec<Field>, PgError> {
    if columns.is_empty() {
        return Ok(schema
            .fields()
            .iter()
            .map(|field| nullable(field))
            .collect());
    }
    let mut fields: Vec<Field> = Vec::with_capacity(columns.len());
    for name in columns {
        let found = schema.fields().iter().find(|field| field.name() == name);
        let field = found.ok_or_else(|| {
            let known: Vec<_> = schema
                .fields()
                .iter()
                .map(|field| field.name().as_str())
                .collect();
            let known = known.join(", ");
            PgError::new(
                "42703",
                format!("column \"{name}\" of table \"{table}\" does not exist; it has {known}"),
            )
        })?;
        if fields.iter().any(|known| known.name() == name) {
            return Err(PgError::new(
                "42701",
                format!("column \"{name}\" is named twice"),
            ));
        }
        fields.push(nullable(field));
    }
    Ok(fields)
}

fn nullable(field: &Field) -> Field {
    field.clone().with_nullable(true)
}
