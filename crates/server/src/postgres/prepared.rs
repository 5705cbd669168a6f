//! The extended protocol: prepared statements and portals.

use crate::postgres::connection::PostgresConnection;
use crate::postgres::error::PgError;
use crate::postgres::io::StatementHalt;
use crate::postgres::messages::BindMessage;
use crate::postgres::parameters;
use crate::postgres::portal::{
    NamedStatement, PREPARED_BYTES_MAX, PREPARED_MAX, Portal, PortalLifetime, PortalProgress,
    StatementKind, classify,
};
use crate::postgres::session_syntax::SessionStatement;
use crate::postgres::setting_scope::setting_scope;
use crate::postgres::types::{PgType, arrow_type, columns};
use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use std::sync::Arc;

impl PostgresConnection<'_> {
    /// Prepares a statement.
    pub(super) async fn parse(
        &mut self,
        name: String,
        sql: String,
        types: Vec<u32>,
    ) -> Result<(), StatementHalt> {
        self.keep(name, &sql, types).await?;
        self.io.out.bare(b'1');
        Ok(())
    }

    /// Stores a statement under a name. `types` are the OIDs of its first parameters, 0 for those
    /// that the client leaves open.
    pub(super) async fn keep(
        &mut self,
        name: String,
        sql: &str,
        types: Vec<u32>,
    ) -> Result<(), StatementHalt> {
        if !name.is_empty() && self.statements.contains_key(&name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(PgError::new("42P05", message).into());
        }
        if self.statements.len() >= PREPARED_MAX {
            let message = format!(
                "a connection may hold {PREPARED_MAX} prepared statements; deallocate some"
            );
            return Err(PgError::new("53400", message).into());
        }
        let kind = classify(sql)?;
        self.check_block(&kind)?;
        let planned = match &kind {
            StatementKind::Query => Some(sql),
            // The parameters are those of its query.
            StatementKind::Session(SessionStatement::Declare { inner, .. }) => Some(&*inner.sql),
            _ => None,
        };
        let (prepared, oids) = if let Some(sql) = planned {
            let watch = self.watch();
            let query = &self.shared.server.services.query;
            let named: Vec<_> = types.iter().map(|oid| named_type(*oid)).collect();
            let work = query.prepare_typed(&self.session, sql, &named);
            let prepared = self.io.guard(&watch, work).await?;
            let wanted = prepared.parameters().iter().enumerate();
            let oids = wanted
                .map(|(at, kind)| {
                    let pg_type = prepared.parameter_pg_type(at);
                    parameters::oid(types.get(at).copied(), kind, pg_type)
                })
                .collect();
            (Some(prepared), oids)
        } else {
            (None, Vec::new())
        };
        let statement = NamedStatement {
            kind,
            prepared,
            oids,
            scope: setting_scope(sql),
        };
        let others = self.statements.iter().filter(|(known, _)| **known != name);
        let bytes: usize = others.map(|(_, statement)| statement.bytes()).sum();
        if bytes + statement.bytes() > PREPARED_BYTES_MAX && bytes > 0 {
            let message = format!(
                "the prepared statements of a connection may have {} MiB of text; deallocate some",
                PREPARED_BYTES_MAX >> 20
            );
            return Err(PgError::new("53400", message).into());
        }
        self.statements.insert(name, Arc::new(statement));
        Ok(())
    }

    /// Creates a portal.
    pub(super) fn bind(&mut self, bind: BindMessage) -> Result<(), StatementHalt> {
        let statement = self.statement(&bind.statement)?.clone();
        self.check_block(&statement.kind)?;
        if !bind.portal.is_empty() && self.portals.contains_key(&bind.portal) {
            let message = format!("portal \"{}\" already exists", bind.portal);
            return Err(PgError::new("42P03", message).into());
        }
        if self.portals.len() >= PREPARED_MAX {
            let message = format!("a connection may hold {PREPARED_MAX} portals; close some");
            return Err(PgError::new("53400", message).into());
        }
        let types = statement.parameter_types();
        let zone = &self.session.time_zone;
        let parameters = parameters::arrays(&bind, &statement.oids, &types, zone)?;
        let portal = Portal {
            statement,
            parameters,
            formats: bind.results,
            progress: PortalProgress::Ready,
            life: PortalLifetime::Block,
        };
        self.portals.insert(bind.portal, portal);
        self.io.out.bare(b'2');
        Ok(())
    }

    /// Describes the columns (and parameters) of a statement (`S`) or portal (`P`).
    pub(super) fn describe(&mut self, kind: u8, name: &str) -> Result<(), StatementHalt> {
        let (statement, formats) = match kind {
            b'S' => {
                let statement = self.statement(name)?.clone();
                self.io.out.parameter_description(&statement.oids);
                (statement, Vec::new())
            }
            b'P' => {
                let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
                (portal.statement.clone(), portal.formats.clone())
            }
            other => return Err(bad_kind(other)),
        };
        if let StatementKind::Session(session) = &statement.kind {
            match self.session_columns(session, &formats)? {
                Some(columns) => self.io.out.row_description(&columns),
                None => self.io.out.bare(b'n'),
            }
            return Ok(());
        }
        match statement
            .prepared
            .as_ref()
            .and_then(|prepared| prepared.schema())
        {
            Some(schema) => self.io.out.row_description(&columns(&schema, &formats)),
            None => self.io.out.bare(b'n'),
        }
        Ok(())
    }

    /// Drops a statement (`S`) or portal (`P`).
    pub(super) fn close(&mut self, kind: u8, name: &str) -> Result<(), StatementHalt> {
        match kind {
            b'S' => drop(self.statements.remove(name)),
            b'P' => drop(self.portals.remove(name)),
            other => return Err(bad_kind(other)),
        }
        self.io.out.bare(b'3');
        Ok(())
    }

    /// Runs or continues a portal, for at most `rows_max` rows (0 for all).
    pub(super) async fn execute(
        &mut self,
        name: &str,
        rows_max: usize,
    ) -> Result<(), StatementHalt> {
        // Remove it while it runs: after an error it is gone, as the protocol requires.
        let (key, mut portal) = self
            .portals
            .remove_entry(name)
            .ok_or_else(|| no_portal(name))?;
        self.check_block(&portal.statement.kind)?;
        let statement = portal.statement.clone();
        match &statement.kind {
            StatementKind::Empty => self.io.out.bare(b'I'),
            StatementKind::Control(control) => self.control(control).await?,
            StatementKind::Copy(copy) => self.copy(copy).await?,
            StatementKind::Session(session) => {
                // Executed in part before: it continues in its current state.
                if matches!(portal.progress, PortalProgress::Ready) {
                    self.session_statement(session, &mut portal, false, rows_max)
                        .await?;
                    // Keep the kind that it was bound with.
                    if matches!(portal.progress, PortalProgress::Ready) {
                        portal.progress = PortalProgress::Done;
                    }
                } else {
                    self.advance(&mut portal, rows_max).await?;
                }
            }
            StatementKind::Query => self.advance(&mut portal, rows_max).await?,
        }
        self.portals.insert(key, portal);
        Ok(())
    }

    pub(super) fn statement(&self, name: &str) -> Result<&Arc<NamedStatement>, PgError> {
        self.statements.get(name).ok_or_else(|| {
            PgError::new(
                "26000",
                format!("prepared statement \"{name}\" does not exist"),
            )
        })
    }
}

/// The type that a client named for a parameter; Null if it left the type open or sent text, which
/// drivers use for types that they do not know.
fn named_type(oid: u32) -> DataType {
    match PgType::from_oid(oid) {
        Some(PgType::Text | PgType::Varchar) => DataType::Null,
        Some(PgType::Interval) => DataType::Interval(IntervalUnit::MonthDayNano),
        Some(PgType::Numeric) => DataType::Decimal128(38, 18),
        Some(PgType::Time) => DataType::Time64(TimeUnit::Microsecond),
        Some(PgType::Timestamptz) => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        _ => arrow_type(oid).unwrap_or(DataType::Null),
    }
}

fn no_portal(name: &str) -> StatementHalt {
    PgError::new("34000", format!("portal \"{name}\" does not exist")).into()
}

fn bad_kind(kind: u8) -> StatementHalt {
    let message = format!("unknown kind of object '{}'", kind.escape_ascii());
    PgError::new("08P01", message).into()
}
