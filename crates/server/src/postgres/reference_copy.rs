//! `COPY t FROM STDIN` into a reference table: rows become INSERTs, so defaults, constraints and conversions
//! are those of INSERT. One INSERT takes many rows, as arrays. If it fails, its rows are inserted one at a
//! time, so that the error names the line.
//!
//! Invariant: all rows are part of one transaction, that of the block or one of their own. Either all of them are
//! stored, or none.

use crate::postgres::connection::PostgresConnection;
use crate::postgres::copy::rows::CopyRows;
use crate::postgres::copy::syntax::{CopyDataFormat, CopyOptions};
use crate::postgres::copy::text::TextDecoder;
use crate::postgres::error::PgError;
use crate::postgres::io::{HaltWatch, StatementHalt};
use crate::postgres::parameters::argument;
use arrow::array::{Array, ArrayRef, ListArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{CastOptions, cast_with_options, concat};
use arrow::datatypes::{DataType, Field};
use arrow::record_batch::RecordBatch;
use marigram_model::quoted;
use marigram_service::{Prepared, TransactionStep};
use std::sync::Arc;

/// The savepoint before a statement of many rows. No client can name it.
const BATCH_SAVEPOINT: &str = "\u{1}copy";

/// The rows of a COPY on their way into a table.
struct ReferenceRows {
    /// The INSERT of one row.
    insert: Arc<dyn Prepared>,
    /// The INSERT of many rows, whose parameters are arrays; `None` if a column has no type of array.
    insert_many: Option<Arc<dyn Prepared>>,
    decoder: TextDecoder,
    rows: CopyRows,
    table: String,
    stored: u64,
}

impl PostgresConnection<'_> {
    /// Runs a COPY into a table that is none of series; an empty `columns` stands for all. `missing` is the error
    /// if there is no such table.
    pub(super) async fn copy_into_reference(
        &mut self,
        (database, table): (&str, &str),
        columns: &[String],
        options: CopyOptions,
        (watch, missing): (&HaltWatch, PgError),
    ) -> Result<(), StatementHalt> {
        let target = format!("{}.{}", quoted(database), quoted(table));
        let all = format!("SELECT * FROM {target}");
        let all = match self.prepare_copy(&all, watch).await {
            Err(StatementHalt::Error(error)) if error.sqlstate != "42501" => {
                return Err(missing.into());
            }
            other => other?.schema(),
        };
        if options.form == CopyDataFormat::Binary {
            let message = "COPY into a reference table takes text and CSV, not the binary format";
            return Err(PgError::new("0A000", message).into());
        }
        let columns: Vec<String> = if columns.is_empty() {
            let fields = all.iter().flat_map(|schema| schema.fields().iter());
            fields.map(|field| field.name().clone()).collect()
        } else {
            columns.to_vec()
        };
        let names: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
        let places = (1..=names.len()).map(|at| format!("${at}"));
        let insert = format!(
            "INSERT INTO {target} ({}) VALUES ({})",
            names.join(", "),
            places.collect::<Vec<_>>().join(", ")
        );
        let insert = self.prepare_copy(&insert, watch).await?;
        if columns.is_empty() || insert.parameters().len() != columns.len() {
            return Err(missing.into());
        }
        let insert_many = match array_insert(&target, &names, insert.parameters()) {
            Some(sql) => self.prepare_copy(&sql, watch).await.ok(),
            None => None,
        };
        let fields = columns.iter();
        let fields = fields.map(|name| Field::new(name, DataType::Utf8, true));
        let rows = CopyRows::new(fields.collect());
        let mut copy = ReferenceRows {
            insert,
            insert_many,
            decoder: TextDecoder::new(table, options),
            rows: rows.map_err(|message| PgError::new("0A000", message))?,
            table: table.to_owned(),
            stored: 0,
        };
        let is_own = self.session.transaction.is_none();
        if is_own {
            self.step(TransactionStep::Begin {
                is_serializable: None,
            })
            .await?;
        }
        let mut done = self.receive_rows(&mut copy, columns.len(), watch).await;
        if is_own {
            let end = match done {
                Ok(()) => TransactionStep::Commit,
                Err(_) => TransactionStep::RollBack,
            };
            let ended = self.step(end).await;
            done = done.and(ended);
        }
        done?;
        let telemetry = &self.shared.server.telemetry;
        telemetry.rows("postgres copy", copy.stored);
        self.io.out.complete(&format!("COPY {}", copy.stored));
        Ok(())
    }

    async fn prepare_copy(
        &mut self,
        sql: &str,
        watch: &HaltWatch,
    ) -> Result<Arc<dyn Prepared>, StatementHalt> {
        let query = &self.shared.server.services.query;
        let work = query.prepare(&self.session, sql);
        self.io.guard(watch, work).await
    }

    /// Receives the data to its end, and inserts its rows.
    async fn receive_rows(
        &mut self,
        copy: &mut ReferenceRows,
        width: usize,
        watch: &HaltWatch,
    ) -> Result<(), StatementHalt> {
        self.io.out.copy_response(b'G', width, false);
        self.io.flush().await?;
        let bytes_max = self.shared.server.config.body_limit;
        while let Some(data) = self.next_copy_data(watch).await? {
            copy.decoder.push(&data);
            loop {
                let is_full = copy.decoder.decode(&mut copy.rows)?;
                self.insert_rows(copy, watch).await?;
                if !is_full {
                    break;
                }
            }
            if copy.decoder.waiting() > bytes_max {
                let message = format!("a row is larger than the limit of {bytes_max} bytes");
                return Err(PgError::new("54000", message).into());
            }
        }
        copy.decoder.finish(&mut copy.rows)?;
        self.insert_rows(copy, watch).await
    }

    /// Inserts the rows that are decoded.
    async fn insert_rows(
        &mut self,
        copy: &mut ReferenceRows,
        watch: &HaltWatch,
    ) -> Result<(), StatementHalt> {
        let lines = copy.decoder.take_lines();
        let batch = copy.rows.finish().map_err(PgError::from)?;
        if batch.num_rows() > 1 && self.insert_arrays(copy, &batch, watch).await? {
            return Ok(());
        }
        let types = copy.insert.parameters().to_vec();
        for row in 0..batch.num_rows() {
            let line = lines.get(row).copied().unwrap_or_default();
            let place = || format!("COPY {}, line {line}", copy.table);
            let values = batch.columns().iter().zip(&types).map(|(column, kind)| {
                argument(&column.slice(row, 1), kind, &self.session.time_zone)
                    .map_err(|message| PgError::new("22P02", message).with_context(place()))
            });
            let values = values.collect::<Result<Vec<_>, _>>()?;
            let query = &self.shared.server.services.query;
            let insert = copy.insert.as_ref();
            let work = query.execute_prepared(&mut self.session, insert, values);
            match self.io.guard(watch, work).await {
                Ok(_) => copy.stored += 1,
                Err(StatementHalt::Error(error)) => {
                    return Err(error.with_context(place()).into());
                }
                Err(gone) => return Err(gone),
            }
        }
        Ok(())
    }

    /// Inserts a batch with one statement. Returns whether its rows are stored; nothing has changed if not.
    async fn insert_arrays(
        &mut self,
        copy: &mut ReferenceRows,
        batch: &RecordBatch,
        watch: &HaltWatch,
    ) -> Result<bool, StatementHalt> {
        let Some(insert) = &copy.insert_many else {
            return Ok(false);
        };
        let types = copy.insert.parameters().iter();
        let columns = batch.columns().iter().zip(types);
        let lists = columns
            .map(|(texts, kind)| Some(one_list(&arguments(texts, kind, &self.session.time_zone)?)));
        let Some(lists) = lists.collect::<Option<Vec<_>>>() else {
            return Ok(false);
        };
        let name = || BATCH_SAVEPOINT.to_owned();
        self.step(TransactionStep::Savepoint(name())).await?;
        let query = &self.shared.server.services.query;
        let work = query.execute_prepared(&mut self.session, insert.as_ref(), lists);
        match self.io.guard(watch, work).await {
            Ok(_) => copy.stored += batch.num_rows() as u64,
            Err(StatementHalt::Error(_)) => {
                self.step(TransactionStep::RollBackTo(name())).await?;
                self.step(TransactionStep::Release(name())).await?;
                return Ok(false);
            }
            Err(gone) => return Err(gone),
        }
        self.step(TransactionStep::Release(name())).await?;
        Ok(true)
    }
}

/// The INSERT whose parameters are arrays of values of `types`, which stand side by side; `None` if a type
/// has no array.
fn array_insert(target: &str, names: &[String], types: &[DataType]) -> Option<String> {
    let arrays = types.iter().enumerate();
    let arrays = arrays.map(|(at, kind)| Some(format!("unnest(${}::{}[])", at + 1, word(kind)?)));
    let arrays = arrays.collect::<Option<Vec<_>>>()?.join(", ");
    Some(format!(
        "INSERT INTO {target} ({}) SELECT {arrays}",
        names.join(", ")
    ))
}

/// The name of a type whose arrays a statement can name.
fn word(kind: &DataType) -> Option<&'static str> {
    Some(match kind {
        DataType::Boolean => "boolean",
        DataType::Int16 => "smallint",
        DataType::Int32 => "integer",
        DataType::Int64 => "bigint",
        DataType::Float32 => "real",
        DataType::Float64 => "double precision",
        DataType::Utf8 => "text",
        DataType::Binary => "bytea",
        DataType::Date32 => "date",
        _ => return None,
    })
}

/// A column of texts as values of a type; `None` if one of them is no such value.
fn arguments(texts: &ArrayRef, kind: &DataType, zone: &str) -> Option<ArrayRef> {
    if texts.data_type() == kind {
        return Some(Arc::clone(texts));
    }
    if kind.is_numeric() {
        let options = CastOptions {
            safe: false,
            ..CastOptions::default()
        };
        return cast_with_options(texts, kind, &options).ok();
    }
    let values = (0..texts.len()).map(|row| argument(&texts.slice(row, 1), kind, zone).ok());
    let values = values.collect::<Option<Vec<_>>>()?;
    let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
    concat(&values).ok()
}

/// An array of one list.
fn one_list(values: &ArrayRef) -> ArrayRef {
    let field = Field::new_list_field(values.data_type().clone(), true);
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    Arc::new(ListArray::new(
        Arc::new(field),
        offsets,
        Arc::clone(values),
        None,
    ))
}
