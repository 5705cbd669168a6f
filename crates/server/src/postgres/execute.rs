//! Running statements: rows out, COPY in and out.

use crate::admission::RequestPermit;
use crate::audit::{AuditEvent, AuditOutcome, AuditedAction, ClientAddress};
use crate::postgres::announced::with_announced_types;
use crate::postgres::connection::{PostgresConnection, TransactionState};
use crate::postgres::copy::input::CopyIn;
use crate::postgres::copy::output;
use crate::postgres::copy::syntax::{CopyDataFormat, CopyOptions, CopyStatement};
use crate::postgres::encode::{RowWriter, encodable};
use crate::postgres::error::PgError;
use crate::postgres::io::{HaltWatch, StatementHalt};
use crate::postgres::messages::{BackendMessages, FrontendMessage, RowDescriptionColumn};
use crate::postgres::portal::{Portal, PortalProgress, PortalRows, ROWS_PART};
use crate::postgres::setting_scope::{SessionSettings, SettingScope, setting_scope};
use crate::slow_log::PEER;
use crate::statement_text::loggable;
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use marigram_access::DatabasePrivileges;
use marigram_service::{Answer, InlinePolicy, ServiceError, run_blocking};

/// What is encoded on the thread that serves the connection.
const POLICY: InlinePolicy = InlinePolicy::DEFAULT;

impl PostgresConnection<'_> {
    /// The right to run a statement.
    pub(super) fn enter(&self) -> Result<RequestPermit, PgError> {
        self.shared.server.gate.enter().ok_or_else(|| {
            PgError::new(
                "53300",
                "too many statements are running; send this one again later",
            )
        })
    }

    /// Runs a statement of a simple query; descriptions and rows are sent as text.
    pub(super) async fn query(&mut self, sql: &str) -> Result<(), StatementHalt> {
        let ticket = self.enter()?;
        let watch = self.watch();
        let zone = self.session.time_zone.clone();
        let scope = self.before_setting(setting_scope(sql));
        let before = SessionSettings::of_session(&self.session);
        let kept = self.session.kept_changes;
        let query = &self.shared.server.services.query;
        let answer = self
            .io
            .guard(&watch, query.execute(&mut self.session, sql))
            .await?;
        self.after_setting(scope, &before);
        self.report_zone(&zone);
        match answer {
            Answer::Done { tag, notices, .. } => {
                self.notify(&notices);
                self.note_change(&tag, kept);
                self.io.out.complete(&tag);
            }
            Answer::Rows(rows) => {
                self.notify(&rows.notices);
                let flow = PortalRows::new(rows, &[], &self.session.time_zone);
                let mut flow = flow.answering(sql);
                self.io.out.row_description(&flow.columns);
                self.send(&mut flow, &watch, usize::MAX).await?;
            }
        }
        drop(ticket);
        Ok(())
    }

    /// Runs a portal, or continues it.
    pub(super) async fn advance(
        &mut self,
        portal: &mut Portal,
        rows_max: usize,
    ) -> Result<(), StatementHalt> {
        let watch = self.watch();
        let rows_max = if rows_max == 0 { usize::MAX } else { rows_max };
        let progress = match std::mem::replace(&mut portal.progress, PortalProgress::Done) {
            PortalProgress::Ready => self.begin(portal, &watch).await?,
            going_on => going_on,
        };
        let mut running = match progress {
            PortalProgress::Rows(running) => running,
            PortalProgress::Done => {
                self.io.out.complete("SELECT 0");
                return Ok(());
            }
            PortalProgress::Answered(tag) => {
                self.io.out.complete(&tag);
                return Ok(());
            }
            PortalProgress::Ready => return Ok(()),
        };
        if self.send(&mut running.0, &watch, rows_max).await? {
            portal.progress = PortalProgress::Rows(running);
        }
        Ok(())
    }

    /// Starts the statement of a portal.
    pub(super) async fn begin(
        &mut self,
        portal: &mut Portal,
        watch: &HaltWatch,
    ) -> Result<PortalProgress, StatementHalt> {
        let ticket = self.enter()?;
        let prepared = portal.statement.prepared.clone().ok_or_else(|| {
            PgError::new(
                "XX000",
                "a statement for the database was not prepared there",
            )
        })?;
        let parameters = std::mem::take(&mut portal.parameters);
        let zone = self.session.time_zone.clone();
        let scope = self.before_setting(portal.statement.scope);
        let before = SessionSettings::of_session(&self.session);
        let kept = self.session.kept_changes;
        let query = &self.shared.server.services.query;
        let work = query.execute_prepared(&mut self.session, prepared.as_ref(), parameters);
        let answer = self.io.guard(watch, work).await?;
        self.after_setting(scope, &before);
        self.report_zone(&zone);
        Ok(match answer {
            Answer::Done { tag, notices, .. } => {
                self.notify(&notices);
                self.note_change(&tag, kept);
                PortalProgress::Answered(tag)
            }
            Answer::Rows(rows) => {
                self.notify(&rows.notices);
                let rows = with_announced_types(rows, prepared.schema());
                let zone = &self.session.time_zone;
                let flow = PortalRows::new(rows, &portal.formats, zone);
                PortalProgress::Rows(Box::new((flow.answering(prepared.sql()), ticket)))
            }
        })
    }

    /// Remembers that the transaction block changed something that ROLLBACK does not undo: the session counts
    /// more such changes than `before`.
    pub(super) fn note_change(&mut self, tag: &str, before: u64) {
        const CHANGES: [&str; 8] = [
            "INSERT", "UPDATE", "DELETE", "COPY", "CREATE", "DROP", "ALTER", "CALL",
        ];
        let verb = tag.split(' ').next().unwrap_or_default();
        let is_change = CHANGES.contains(&verb) || verb == "TRUNCATE";
        let is_kept = self.session.kept_changes != before;
        if self.block != TransactionState::Idle && is_change && is_kept && !tag.ends_with(" 0") {
            self.has_changed = true;
        }
    }

    /// Sends the client the notices about its answer.
    fn notify(&mut self, notices: &[String]) {
        for notice in notices {
            self.io.out.notice(notice);
        }
    }

    /// Sends up to `rows_max` rows, and the end of the statement; returns whether the client may
    /// ask for more.
    async fn send(
        &mut self,
        flow: &mut PortalRows,
        watch: &HaltWatch,
        rows_max: usize,
    ) -> Result<bool, StatementHalt> {
        let (rows, is_over) = self.pour(flow, watch, rows_max).await?;
        flow.sent += rows as u64;
        if is_over {
            let tag = format!("{} {}", flow.verb, flow.sent);
            self.io.out.complete(&tag);
            return Ok(false);
        }
        self.io.out.bare(b's');
        if !flow.are_changed() {
            // The tag of each part counts only the rows of that part.
            flow.sent = 0;
        }
        Ok(true)
    }

    /// Sends up to `rows_max` rows; returns how many there were, and whether they were the last.
    pub(super) async fn pour(
        &mut self,
        flow: &mut PortalRows,
        watch: &HaltWatch,
        rows_max: usize,
    ) -> Result<(usize, bool), StatementHalt> {
        let mut left = rows_max;
        let width = flow.columns.len().max(1);
        let mut inline = POLICY.answer_values_max;
        while left > 0 {
            let part = if inline > 0 {
                (POLICY.encoded_values_max / width).clamp(1, left)
            } else {
                left
            };
            let Some(batch) = flow.next(&mut self.io, watch, part).await? else {
                return Ok((rows_max - left, true));
            };
            left -= batch.num_rows();
            inline = inline.saturating_sub(batch.num_rows() * width);
            let columns = flow.columns.clone();
            self.encode(batch, move |batch, out| write_rows(&columns, batch, out))
                .await?;
            self.io.flush_if_much().await?;
        }
        Ok((rows_max, false))
    }

    /// Runs `write` for a batch: inline if it is small, otherwise on a blocking thread.
    async fn encode(
        &mut self,
        batch: RecordBatch,
        write: impl FnOnce(&RecordBatch, &mut BackendMessages) -> Result<(), PgError> + Send + 'static,
    ) -> Result<(), StatementHalt> {
        let values = batch.num_rows() * batch.num_columns();
        if values <= POLICY.encoded_values_max {
            write(&batch, &mut self.io.out)?;
            self.io.count_output().await?;
            if values > POLICY.encoded_values_max / 2 {
                // Let the other connections of this thread run first.
                tokio::task::yield_now().await;
            }
            return Ok(());
        }
        let mut out = std::mem::take(&mut self.io.out);
        let work = move || {
            let written = write(&batch, &mut out);
            (out, written)
        };
        let (out, written) = run_blocking(work).await.map_err(PgError::from)?;
        self.io.out = out;
        written?;
        Ok(self.io.count_output().await?)
    }

    /// What a statement means for settings. The first that holds for a transaction keeps those before it.
    fn before_setting(&mut self, scope: SettingScope) -> SettingScope {
        if scope == SettingScope::Local
            && self.block != TransactionState::Idle
            && self.at_set_local.is_none()
        {
            self.at_set_local = Some(SessionSettings::of_session(&self.session));
        }
        scope
    }

    /// Gives back settings that a statement does not change for good.
    fn after_setting(&mut self, scope: SettingScope, before: &SessionSettings) {
        match scope {
            SettingScope::Local if self.block == TransactionState::Idle => {
                before.restore(&mut self.session, scope);
                let notice = "SET LOCAL can only be used in transaction blocks";
                self.io.out.notice(notice);
            }
            SettingScope::Other | SettingScope::Local => {}
            _ => self.at_startup.restore(&mut self.session, scope),
        }
    }

    /// Reports the session's time zone to the client if it changed from `before`.
    pub(super) fn report_zone(&mut self, before: &str) {
        if self.session.time_zone != before {
            self.io
                .out
                .parameter_status("TimeZone", &self.session.time_zone);
        }
    }

    /// Runs a COPY.
    pub(super) async fn copy(&mut self, copy: &CopyStatement) -> Result<(), StatementHalt> {
        match copy {
            CopyStatement::In {
                database,
                table,
                columns,
                options,
            } => {
                let database = database
                    .clone()
                    .unwrap_or_else(|| self.session.database.clone());
                self.copy_in(&database, table, columns, options.clone())
                    .await
            }
            CopyStatement::Out { query, options } => self.copy_out(query, options).await,
        }
    }

    /// Tells the audit log of a COPY that the database did not see.
    fn note_refused_copy(&self, database: &str, table: &str) {
        let Ok(address) = PEER.try_with(|peer| *peer) else {
            return;
        };
        let client = ClientAddress {
            listener: "postgres",
            address,
        };
        let statement = format!("COPY {table} FROM STDIN");
        self.shared.server.audit.note(&AuditEvent {
            outcome: AuditOutcome::Refused,
            database: Some(database),
            statement: Some(&loggable(&statement)),
            ..AuditEvent::for_client(client, AuditedAction::Request, &self.session.identity.user)
        });
    }

    async fn copy_in(
        &mut self,
        database: &str,
        table: &str,
        columns: &[String],
        options: CopyOptions,
    ) -> Result<(), StatementHalt> {
        let _ticket = self.enter()?;
        let watch = self.watch();
        let access = &self.shared.server.services.access;
        let rights = access.rights(&self.session.identity)?;
        if !rights.allow(database, DatabasePrivileges::WRITE) {
            self.note_refused_copy(database, table);
            let message =
                format!("permission denied: this needs WRITE on the database '{database}'");
            return Err(ServiceError::Forbidden(message).into());
        }
        let ingest = self.shared.server.services.ingest.clone();
        let schema = self
            .io
            .guard(&watch, ingest.table_schema(database, table))
            .await;
        let schema = match schema {
            // The database itself knows reference tables, and says what does not exist.
            Err(StatementHalt::Error(error)) if error.sqlstate == "42P01" => {
                let target = (database, table);
                return self
                    .copy_into_reference(target, columns, options, (&watch, error))
                    .await;
            }
            other => other?,
        };
        let limit = self.shared.server.config.body_limit;
        let read = (&schema, self.session.time_zone.as_str());
        let mut copy = CopyIn::new(ingest, (database, table), read, columns, options, limit)?;
        self.io.out.copy_response(b'G', copy.width, copy.binary);
        self.io.flush().await?;
        let finished = match self.receive_copy(&watch, &mut copy).await {
            Ok(()) => copy.finish().await.map_err(StatementHalt::from),
            Err(halt) => Err(halt),
        };
        let stored = match finished {
            Ok(stored) => stored,
            Err(StatementHalt::Error(error)) => return Err(copy.ended_by(error).await.into()),
            Err(gone) => return Err(gone),
        };
        self.shared.server.telemetry.rows("postgres copy", stored);
        let tag = format!("COPY {stored}");
        let before = self.session.kept_changes;
        self.session.kept_changes += 1;
        self.note_change(&tag, before);
        self.io.out.complete(&tag);
        Ok(())
    }

    /// Receives the data of a COPY to its end.
    async fn receive_copy(
        &mut self,
        watch: &HaltWatch,
        copy: &mut CopyIn,
    ) -> Result<(), StatementHalt> {
        while let Some(data) = self.next_copy_data(watch).await? {
            copy.push(&data).await?;
        }
        Ok(())
    }

    /// The next data of a COPY; `None` at its end.
    pub(super) async fn next_copy_data(
        &mut self,
        watch: &HaltWatch,
    ) -> Result<Option<Bytes>, StatementHalt> {
        loop {
            // Whatever stops other statements also stops the wait for data.
            let message = tokio::select! {
                message = self.io.next() => message?,
                () = watch.kill.cancelled() => return Err(crate::postgres::io::ConnectionEnd::Stopping.into()),
                () = watch.flag.raised() => {
                    return Err(PgError::new("57014", "the COPY was cancelled by its client").into());
                }
            };
            match message {
                FrontendMessage::CopyData(data) => return Ok(Some(data)),
                FrontendMessage::CopyDone => return Ok(None),
                FrontendMessage::CopyFail(reason) => {
                    let message = format!("the client ended the COPY: {reason}");
                    return Err(PgError::new("57014", message).into());
                }
                // Drivers send these ahead; the protocol says to ignore them.
                FrontendMessage::Flush | FrontendMessage::Sync => {}
                _ => {
                    let message = "the client sent a message that is not allowed during COPY";
                    return Err(PgError::new("08P01", message).into());
                }
            }
        }
    }

    async fn copy_out(&mut self, sql: &str, options: &CopyOptions) -> Result<(), StatementHalt> {
        let _ticket = self.enter()?;
        let watch = self.watch();
        let query = &self.shared.server.services.query;
        // Before it runs: DELETE would have deleted the rows by then.
        let no_rows = || PgError::new("0A000", "COPY (…) TO STDOUT needs a query with rows");
        let prepare = query.prepare(&self.session, sql);
        let prepared = self.io.guard(&watch, prepare).await?;
        if prepared.schema().is_none() {
            return Err(no_rows().into());
        }
        let work = query.execute_prepared(&mut self.session, prepared.as_ref(), Vec::new());
        let Answer::Rows(rows) = self.io.guard(&watch, work).await? else {
            return Err(no_rows().into());
        };
        let schema = rows.schema.clone();
        let mut flow = PortalRows::new(rows, &[], &self.session.time_zone);
        // Fetch the first rows before the answer begins, so that most errors precede any output.
        let mut next = flow.next(&mut self.io, &watch, ROWS_PART).await?;
        let binary = options.form == CopyDataFormat::Binary;
        self.io
            .out
            .copy_response(b'H', schema.fields().len(), binary);
        let mut head = output::write_head(options, &schema, &mut self.io.out);
        let mut rows: u64 = 0;
        while let Some(batch) = next {
            rows += batch.num_rows() as u64;
            let (options, head) = (options.clone(), std::mem::take(&mut head));
            let write = move |batch: &RecordBatch, out: &mut BackendMessages| {
                output::write_rows(&options, &head, batch, out)
            };
            self.encode(batch, write).await?;
            self.io.flush_if_much().await?;
            next = flow.next(&mut self.io, &watch, ROWS_PART).await?;
        }
        output::write_tail(options, &head, &mut self.io.out);
        self.io.out.bare(b'c');
        self.io.out.complete(&format!("COPY {rows}"));
        Ok(())
    }
}

/// Appends a batch, one `DataRow` per row. CPU-bound.
fn write_rows(
    columns: &[RowDescriptionColumn],
    batch: &RecordBatch,
    out: &mut BackendMessages,
) -> Result<(), PgError> {
    let arrays = batch.columns().iter().zip(columns);
    let arrays = arrays.map(|(array, column)| encodable(array, column.oid, column.binary));
    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
    let arrays = arrays.iter();
    let arrays = arrays.zip(columns.iter().map(|column| column.binary));
    RowWriter::new(arrays, batch.num_rows())?.write(b'D', &[], &mut out.bytes);
    Ok(())
}
