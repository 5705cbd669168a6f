//! `COPY t FROM STDIN` into a reference table: each row becomes an INSERT, so defaults, constraints and
//! conversions are those of INSERT.
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
use arrow::array::Array;
use arrow::datatypes::{DataType, Field};
use marigram_model::quoted;
use marigram_service::{Prepared, TransactionStep};
use std::sync::Arc;

/// The rows of a COPY on their way into a table.
struct ReferenceRows {
    /// The INSERT of one row.
    insert: Arc<dyn Prepared>,
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
        let fields = columns.iter();
        let fields = fields.map(|name| Field::new(name, DataType::Utf8, true));
        let rows = CopyRows::new(fields.collect());
        let mut copy = ReferenceRows {
            insert,
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
}
