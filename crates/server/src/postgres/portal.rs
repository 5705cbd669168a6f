//! State that the extended protocol keeps between messages: statements, portals, and rows to be
//! sent.

use crate::admission::RequestPermit;
use crate::outgoing::{PART_BYTES, rows_within};
use crate::postgres::control::{self, ControlStatement};
use crate::postgres::copy::syntax::{self, CopyStatement};
use crate::postgres::error::PgError;
use crate::postgres::io::{HaltWatch, PostgresSocket, StatementHalt};
use crate::postgres::messages::RowDescriptionColumn;
use crate::postgres::session_syntax::{self, SessionStatement};
use crate::postgres::setting_scope::SettingScope;
use crate::postgres::types::{arrow_type, columns};
use crate::postgres::zones;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use futures::StreamExt;
use marigram_pgtext::{StatementLexer, Token};
use marigram_service::{Prepared, RowStream};
use std::sync::Arc;

/// Rows to encode at once; it is small so that little waits to be sent.
pub(super) const ROWS_PART: usize = 8192;
/// Most prepared statements, and most portals, of a connection.
pub(super) const PREPARED_MAX: usize = 10_000;
/// Most open cursors of a connection: each counts as a running statement of the server.
pub(super) const CURSORS_MAX: usize = 16;
/// Largest total size of the texts of a connection's prepared statements, in bytes.
pub(super) const PREPARED_BYTES_MAX: usize = 16 << 20;

/// The first word of the command tag if the statement only reads.
const SELECTED: &str = "SELECT";

/// The kind of a statement, from the view of the protocol.
pub(super) enum StatementKind {
    /// Nothing but blanks and comments.
    Empty,
    /// Answered by the protocol layer.
    Control(ControlStatement),
    /// Data follows, in or out.
    Copy(CopyStatement),
    /// About statements and cursors of the connection.
    Session(SessionStatement),
    /// For the database.
    Query,
}

/// Classifies `sql`.
///
/// # Errors
/// If it is a COPY or a statement about the connection's state that cannot be parsed.
pub(super) fn classify(sql: &str) -> Result<StatementKind, PgError> {
    let mut tokens = StatementLexer::new(sql).map(|(_, token)| token);
    let Some(first) = tokens.find(|token| *token != Token::Sign(';')) else {
        return Ok(StatementKind::Empty);
    };
    if first.is_keyword("copy") {
        // The database itself executes or refuses a COPY that names a file.
        return if copies_a_file(sql) {
            Ok(StatementKind::Query)
        } else {
            Ok(StatementKind::Copy(syntax::parse(sql)?))
        };
    }
    if let Some(control) = control::recognize(sql) {
        return Ok(StatementKind::Control(control));
    }
    Ok(session_syntax::recognize(sql)?.map_or(StatementKind::Query, StatementKind::Session))
}

/// Whether a COPY has TO or FROM and a quoted text after its table or query.
fn copies_a_file(sql: &str) -> bool {
    let mut lexer = StatementLexer::new(sql);
    let mut is_end = false;
    while let Some((_, token)) = lexer.next() {
        if is_end {
            return matches!(token, Token::Text(_));
        }
        if token == Token::Sign('(') && lexer.parenthesized().is_none() {
            return false;
        }
        is_end = token.is_keyword("to") || token.is_keyword("from");
    }
    false
}

/// A prepared statement.
pub(super) struct NamedStatement {
    /// Its kind.
    pub kind: StatementKind,
    /// The database's prepared statement, for [`StatementKind::Query`].
    pub prepared: Option<Arc<dyn Prepared>>,
    /// OIDs of its parameters, as the client sees them.
    pub oids: Vec<u32>,
    /// What it means for settings.
    pub scope: SettingScope,
}

impl NamedStatement {
    /// Types of its parameters. A parameter for which the database has no type gets the one that
    /// the client named.
    pub(super) fn parameter_types(&self) -> Vec<DataType> {
        let prepared = self.prepared.as_ref();
        let types = prepared.map_or(&[][..], |prepared| prepared.parameters());
        let known = |(kind, oid): (&DataType, &u32)| match kind {
            DataType::Null => arrow_type(*oid).unwrap_or(DataType::Utf8),
            other => other.clone(),
        };
        types.iter().zip(&self.oids).map(known).collect()
    }

    /// Size of its text, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.prepared.as_ref().map_or(0, |own| own.sql().len())
    }
}

/// How long a portal lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PortalLifetime {
    /// Until its transaction ends.
    Block,
    /// The same if that is rolled back; otherwise until its session ends.
    SessionOnceCommitted,
    /// Until its session ends.
    Session,
}

/// A statement with values, ready to run or running.
pub(super) struct Portal {
    /// The statement.
    pub statement: Arc<NamedStatement>,
    /// Its values.
    pub parameters: Vec<ArrayRef>,
    /// Formats of its columns.
    pub formats: Vec<i16>,
    /// Its progress.
    pub progress: PortalProgress,
    /// Its lifetime.
    pub life: PortalLifetime,
}

/// The progress of a portal.
pub(super) enum PortalProgress {
    /// Not started.
    Ready,
    /// It is streaming rows; it is between two of them.
    Rows(Box<(PortalRows, RequestPermit)>),
    /// It had no rows; its command tag has not been sent yet.
    Answered(String),
    /// All rows were sent.
    Done,
}

/// Rows that stream to a client.
pub(super) struct PortalRows {
    pub rows: RowStream,
    pub columns: Arc<[RowDescriptionColumn]>,
    /// Rows that were fetched and not sent yet.
    pub ahead: Option<RecordBatch>,
    pub sent: u64,
    /// What the command tag begins with, before the number of rows.
    pub verb: &'static str,
    /// The zone in which zoned times are shown, as types name it.
    zone: String,
}

impl PortalRows {
    pub(super) fn new(rows: RowStream, formats: &[i16], zone: &str) -> Self {
        let columns = columns(&rows.schema, formats).into();
        Self {
            rows,
            columns,
            ahead: None,
            sent: 0,
            verb: SELECTED,
            zone: zones::label(zone),
        }
    }

    /// The same as the answer of this statement, which may have changed the rows that it answers with.
    pub(super) fn answering(self, sql: &str) -> Self {
        let mut tokens = StatementLexer::new(sql).map(|(_, token)| token);
        let first = tokens.find(|token| *token != Token::Sign(';'));
        let verbs = [
            ("insert", "INSERT 0"),
            ("update", "UPDATE"),
            ("delete", "DELETE"),
        ];
        let verb = first.and_then(|first| verbs.iter().find(|(word, _)| first.is_keyword(word)));
        let verb = verb.map_or(SELECTED, |(_, verb)| *verb);
        Self { verb, ..self }
    }

    /// Whether the statement changed the rows: it has done so before the first one is sent.
    pub(super) fn are_changed(&self) -> bool {
        self.verb != SELECTED
    }

    /// The next rows to send, up to `rows_max`; `None` at the end.
    pub(super) async fn next(
        &mut self,
        io: &mut PostgresSocket,
        watch: &HaltWatch,
        rows_max: usize,
    ) -> Result<Option<RecordBatch>, StatementHalt> {
        let batch = match self.ahead.take() {
            Some(batch) => batch,
            None => loop {
                let batches = &mut self.rows.batches;
                let next = io
                    .guard(watch, async { batches.next().await.transpose() })
                    .await?;
                match next {
                    None => return Ok(None),
                    Some(batch) if batch.num_rows() > 0 => {
                        break zones::shown_in(batch, &self.zone).map_err(PgError::from)?;
                    }
                    Some(_) => {}
                }
            },
        };
        let part = rows_within(&batch, PART_BYTES).min(rows_max).min(ROWS_PART);
        if part < batch.num_rows() {
            self.ahead = Some(batch.slice(part, batch.num_rows() - part));
        }
        Ok(Some(batch.slice(0, part)))
    }
}
