//! SQL statements about a connection's prepared statements and cursors. The extended protocol
//! shares them: what one side prepares or declares, the other can run, describe and close.

use crate::postgres::connection::{PostgresConnection, TransactionState};
use crate::postgres::error::PgError;
use crate::postgres::io::StatementHalt;
use crate::postgres::messages::RowDescriptionColumn;
use crate::postgres::parameters;
use crate::postgres::portal::{
    CURSORS_MAX, NamedStatement, Portal, PortalLifetime, PortalProgress, PortalRows, StatementKind,
};
use crate::postgres::session_syntax::{InnerStatement, SessionStatement};
use crate::postgres::setting_scope::SettingScope;
use crate::postgres::types::{columns, oid_of_name};
use arrow::array::ArrayRef;
use futures::StreamExt;
use marigram_service::Answer;
use std::sync::Arc;

impl PostgresConnection<'_> {
    /// Executes a statement about the connection's state. `portal` has the bound values and the
    /// requested formats; if `describes`, a description precedes the rows.
    pub(super) async fn session_statement(
        &mut self,
        statement: &SessionStatement,
        portal: &mut Portal,
        describes: bool,
        rows_max: usize,
    ) -> Result<(), StatementHalt> {
        match statement {
            SessionStatement::Prepare { name, types, inner } => {
                let types = types.iter().map(|kind| oid_of_name(kind));
                let types = types.collect::<Result<Vec<u32>, _>>()?;
                let prepared = self.keep(name.clone(), &inner.sql, types).await;
                prepared.map_err(|halt| moved(halt, inner))?;
                self.io.out.complete("PREPARE");
            }
            SessionStatement::Execute { name, arguments } => {
                if matches!(portal.progress, PortalProgress::Ready) {
                    let statement = self.statement(name)?.clone();
                    portal.parameters = self.arguments(&statement, arguments).await?;
                    portal.statement = statement;
                }
                self.execute_kept(portal, describes, rows_max).await?;
            }
            SessionStatement::Declare {
                name,
                hold,
                binary,
                inner,
            } => {
                let declared = self.declare(portal, name, *hold, *binary, inner).await;
                declared.map_err(|halt| moved(halt, inner))?;
            }
            SessionStatement::Fetch {
                name,
                rows_max,
                is_move,
            } => {
                if describes && !is_move {
                    let columns = self.cursor_columns(name, &portal.formats)?;
                    self.io.out.row_description(&columns);
                }
                self.fetch(name, *rows_max, *is_move, &portal.formats)
                    .await?;
            }
            SessionStatement::Close(Some(name)) => {
                self.portals.remove(name).ok_or_else(|| no_cursor(name))?;
                self.io.out.complete("CLOSE CURSOR");
            }
            SessionStatement::Close(None) => {
                self.portals.clear();
                self.io.out.complete("CLOSE CURSOR ALL");
            }
            SessionStatement::DiscardAll => {
                if self.block != TransactionState::Idle {
                    let message = "DISCARD ALL cannot run inside a transaction block";
                    return Err(PgError::new("25001", message).into());
                }
                let zone = self.session.time_zone.clone();
                self.at_startup
                    .restore(&mut self.session, SettingScope::ResetAll);
                self.report_zone(&zone);
                self.statements.clear();
                self.portals.clear();
                self.io.out.complete("DISCARD ALL");
            }
        }
        Ok(())
    }

    /// The columns of the answer to a statement about the connection, if it has rows.
    pub(super) fn session_columns(
        &self,
        statement: &SessionStatement,
        formats: &[i16],
    ) -> Result<Option<Vec<RowDescriptionColumn>>, PgError> {
        match statement {
            SessionStatement::Fetch { name, is_move, .. } if !is_move => {
                self.cursor_columns(name, formats).map(Some)
            }
            SessionStatement::Execute { name, .. } => {
                let statement = self.statement(name)?;
                let prepared = statement.prepared.as_ref();
                let schema = prepared.and_then(|prepared| prepared.schema());
                Ok(schema.map(|schema| columns(&schema, formats)))
            }
            _ => Ok(None),
        }
    }

    fn cursor_columns(
        &self,
        name: &str,
        formats: &[i16],
    ) -> Result<Vec<RowDescriptionColumn>, PgError> {
        let cursor = self.portals.get(name).ok_or_else(|| no_cursor(name))?;
        let prepared = cursor.statement.prepared.as_ref();
        let schema = prepared.and_then(|prepared| prepared.schema());
        let formats = if formats.is_empty() {
            &cursor.formats
        } else {
            formats
        };
        Ok(schema.map_or_else(Vec::new, |schema| columns(&schema, formats)))
    }

    /// Runs a prepared statement with its values.
    async fn execute_kept(
        &mut self,
        portal: &mut Portal,
        describes: bool,
        rows_max: usize,
    ) -> Result<(), StatementHalt> {
        let statement = portal.statement.clone();
        match &statement.kind {
            StatementKind::Query => {
                if describes
                    && let Some(prepared) = &statement.prepared
                    && let Some(schema) = prepared.schema()
                {
                    self.io
                        .out
                        .row_description(&columns(&schema, &portal.formats));
                }
                self.advance(portal, rows_max).await
            }
            StatementKind::Control(control) => self.control(control).await,
            StatementKind::Empty => {
                self.io.out.bare(b'I');
                Ok(())
            }
            StatementKind::Copy(_) | StatementKind::Session(_) => {
                let message = "EXECUTE runs queries, INSERT and DELETE";
                Err(PgError::new("0A000", message).into())
            }
        }
    }

    /// The values of EXECUTE's arguments, in the types of the statement's parameters.
    async fn arguments(
        &mut self,
        statement: &NamedStatement,
        arguments: &[String],
    ) -> Result<Vec<ArrayRef>, StatementHalt> {
        let wanted = statement.parameter_types();
        if wanted.len() != arguments.len() {
            let message = format!(
                "the prepared statement has {} parameters, and EXECUTE gives {}",
                wanted.len(),
                arguments.len()
            );
            return Err(PgError::new("42601", message).into());
        }
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        // Each in parentheses, so that it can only be a single expression.
        let values: Vec<String> = arguments
            .iter()
            .map(|value| format!("({value}\n)"))
            .collect();
        let sql = format!("SELECT {}", values.join(", "));
        let watch = self.watch();
        let query = &self.shared.server.services.query;
        let work = query.execute(&mut self.session, &sql);
        let Answer::Rows(mut rows) = self.io.guard(&watch, work).await? else {
            let message = "the arguments of EXECUTE must be values";
            return Err(PgError::new("42601", message).into());
        };
        let mut values = None;
        let batches = &mut rows.batches;
        let next = async { batches.next().await.transpose() };
        if let Some(batch) = self.io.guard(&watch, next).await? {
            values = Some(batch);
        }
        let batch =
            values.filter(|batch| batch.num_rows() == 1 && batch.num_columns() == wanted.len());
        let batch = batch
            .ok_or_else(|| PgError::new("42601", "each argument of EXECUTE must be one value"))?;
        let pairs = batch.columns().iter().zip(&wanted).enumerate();
        let values = pairs.map(|(at, (value, kind))| {
            parameters::argument(value, kind, &self.session.time_zone).map_err(|message| {
                PgError::new(
                    "22P02",
                    format!("argument {} of EXECUTE: {message}", at + 1),
                )
            })
        });
        Ok(values.collect::<Result<_, _>>()?)
    }

    /// Starts the query of a cursor, which reads the data as they are now.
    async fn declare(
        &mut self,
        portal: &mut Portal,
        name: &str,
        hold: bool,
        binary: bool,
        inner: &InnerStatement,
    ) -> Result<(), StatementHalt> {
        if self.block == TransactionState::Idle && !hold {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            return Err(PgError::new("25P01", message).into());
        }
        if self.portals.contains_key(name) {
            let message = format!("cursor \"{name}\" already exists");
            return Err(PgError::new("42P03", message).into());
        }
        if self.portals.len() >= CURSORS_MAX {
            let message = format!("a connection may hold {CURSORS_MAX} cursors; close some");
            return Err(PgError::new("53400", message).into());
        }
        let ticket = self.enter()?;
        let watch = self.watch();
        let query = &self.shared.server.services.query;
        let prepared = match portal.statement.prepared.clone() {
            Some(prepared) => prepared,
            None => {
                let work = query.prepare(&self.session, &inner.sql);
                self.io.guard(&watch, work).await?
            }
        };
        if prepared.schema().is_none() || prepared.changes_rows() {
            let message = "DECLARE CURSOR takes a query";
            return Err(PgError::new("42601", message).into());
        }
        // Each FETCH has the timeout of a statement, rather than all of them together.
        let mut session = self.session.clone();
        session.statement_timeout = None;
        let parameters = std::mem::take(&mut portal.parameters);
        let work = query.execute_prepared(&mut session, prepared.as_ref(), parameters);
        let Answer::Rows(rows) = self.io.guard(&watch, work).await? else {
            let message = "DECLARE CURSOR takes a query";
            return Err(PgError::new("42601", message).into());
        };
        let formats = if binary { vec![1] } else { Vec::new() };
        let life = match (hold, self.block) {
            (false, _) => PortalLifetime::Block,
            (true, TransactionState::Idle) => PortalLifetime::Session,
            (true, _) => PortalLifetime::SessionOnceCommitted,
        };
        let cursor = Portal {
            progress: PortalProgress::Rows(Box::new((
                PortalRows::new(rows, &formats, &self.session.time_zone),
                ticket,
            ))),
            statement: Arc::new(NamedStatement {
                kind: StatementKind::Query,
                prepared: Some(prepared),
                oids: Vec::new(),
                scope: SettingScope::Other,
            }),
            parameters: Vec::new(),
            formats,
            life,
        };
        self.portals.insert(name.to_owned(), cursor);
        self.io.out.complete("DECLARE CURSOR");
        Ok(())
    }

    /// Sends the next rows of a cursor, or skips them.
    async fn fetch(
        &mut self,
        name: &str,
        rows_max: usize,
        is_move: bool,
        formats: &[i16],
    ) -> Result<(), StatementHalt> {
        // Remove it while it runs: after an error it is gone.
        let cursor = self.portals.remove_entry(name);
        let (key, mut cursor) = cursor.ok_or_else(|| no_cursor(name))?;
        let mut rows = 0;
        let watch = self.watch();
        if matches!(cursor.progress, PortalProgress::Ready) {
            // Bound through the protocol, and not executed yet.
            cursor.progress = self.begin(&mut cursor, &watch).await?;
        }
        if let PortalProgress::Rows(running) = &mut cursor.progress {
            let flow = &mut running.0;
            let schema = Arc::clone(&flow.rows.schema);
            let formats = if formats.is_empty() {
                &cursor.formats
            } else {
                formats
            };
            flow.columns = columns(&schema, formats).into();
            let mut is_over = false;
            if is_move {
                while rows < rows_max && !is_over {
                    match flow.next(&mut self.io, &watch, rows_max - rows).await? {
                        Some(batch) => rows += batch.num_rows(),
                        None => is_over = true,
                    }
                }
            } else {
                (rows, is_over) = self.pour(flow, &watch, rows_max).await?;
            }
            if is_over {
                cursor.progress = PortalProgress::Done;
            }
        }
        self.portals.insert(key, cursor);
        let verb = if is_move { "MOVE" } else { "FETCH" };
        self.io.out.complete(&format!("{verb} {rows}"));
        Ok(())
    }
}

fn no_cursor(name: &str) -> PgError {
    PgError::new("34000", format!("cursor \"{name}\" does not exist"))
}

/// Moves the position of an error in an inner statement to the outer one.
fn moved(halt: StatementHalt, inner: &InnerStatement) -> StatementHalt {
    match halt {
        StatementHalt::Error(error) => StatementHalt::Error(PgError {
            position: error.position.map(|position| position + inner.before),
            ..error
        }),
        gone @ StatementHalt::Gone(_) => gone,
    }
}
