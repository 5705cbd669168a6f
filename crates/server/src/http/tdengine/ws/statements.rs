//! The prepared statements of a connection, of both kinds. Values are bound as text: INSERT becomes INSERT of
//! literals, and a query the same query with literals.

use super::bound_fields::{BIND_COLUMN, BIND_TAG, described, fields_of, has_tbname};
use crate::admission::{AdmissionControl, MemoryPermit};
use crate::http::tdengine::asked::{TaosAnswer, TaosRows, run};
use crate::http::tdengine::error::TaosFailure;
use crate::http::tdengine::insert_texts::{InsertTexts, json_value};
use crate::listener::ServerState;
use axum::body::Bytes;
use marigram_service::{InlinePolicy, Session, run_inline_if};
use marigram_tdengine::{
    BoundColumn, BoundValue, PreparedInsert, PreparedSql, Stmt2Bind, TaosCode, TaosError,
    TaosResult, filled_text, read_raw_block,
};
use serde_json::Value;
use std::collections::HashMap;

/// Prepared statements that a connection may have.
const STATEMENTS_MAX: usize = 256;

/// Bytes of bound values that become text on the thread that serves the connection.
const BYTES_INLINE: usize = InlinePolicy::DEFAULT.body_inline_bytes;

/// A prepared statement.
pub(super) struct HeldStatement {
    /// Whether it is of the second kind.
    pub(super) is_second: bool,
    sql: Option<PreparedSql>,
    table: Option<String>,
    tags: Vec<BoundValue<'static>>,
    texts: InsertTexts,
    /// The query with its values.
    query: Option<String>,
    rows: Option<TaosRows>,
}

/// The prepared statements of a connection.
pub(super) struct HeldStatements {
    statements: HashMap<u64, HeldStatement>,
    last_id: u64,
    gate: AdmissionControl,
}

impl HeldStatements {
    pub(super) fn new(gate: AdmissionControl) -> Self {
        Self {
            statements: HashMap::new(),
            last_id: 0,
            gate,
        }
    }

    /// Makes a statement; returns its id.
    ///
    /// # Errors
    /// If there are too many.
    pub(super) fn init(&mut self, is_second: bool) -> Result<u64, TaosFailure> {
        if self.statements.len() >= STATEMENTS_MAX {
            let message = format!("a connection may have {STATEMENTS_MAX} prepared statements");
            return Err(TaosError::with_message(TaosCode::OutOfMemory, message).into());
        }
        self.last_id += 1;
        let statement = HeldStatement {
            is_second,
            sql: None,
            table: None,
            tags: Vec::new(),
            texts: InsertTexts::new(self.gate.lease()),
            query: None,
            rows: None,
        };
        self.statements.insert(self.last_id, statement);
        Ok(self.last_id)
    }

    /// The statement with an id.
    ///
    /// # Errors
    /// If there is none of this kind.
    pub(super) fn get(
        &mut self,
        id: u64,
        is_second: bool,
    ) -> Result<&mut HeldStatement, TaosFailure> {
        let found = self.statements.get_mut(&id);
        found
            .filter(|statement| statement.is_second == is_second)
            .ok_or_else(|| TaosFailure::other("stmt is nil"))
    }

    /// Forgets a statement.
    ///
    /// # Errors
    /// If there is none of this kind.
    pub(super) fn close(&mut self, id: u64, is_second: bool) -> Result<(), TaosFailure> {
        self.get(id, is_second)?;
        self.statements.remove(&id);
        Ok(())
    }
}

impl HeldStatement {
    fn prepared(&self) -> Result<&PreparedSql, TaosFailure> {
        let sql = self.sql.as_ref();
        sql.ok_or_else(|| TaosFailure::other("stmt is not prepared"))
    }

    fn insert(&self) -> Result<&PreparedInsert, TaosFailure> {
        match self.prepared()? {
            PreparedSql::Insert(insert) => Ok(insert),
            PreparedSql::Other(_) => Err(TaosFailure::other("stmt is not an INSERT")),
        }
    }

    /// Whether it is an INSERT.
    pub(super) fn is_insert(&self) -> bool {
        matches!(self.sql, Some(PreparedSql::Insert(_)))
    }

    /// Prepares a statement; returns what is bound, if it is asked for.
    pub(super) async fn prepare(
        &mut self,
        (server, session): (&ServerState, &Session),
        sql: &str,
        asks_fields: bool,
    ) -> Result<(Value, usize), TaosFailure> {
        let mut prepared = PreparedSql::parse(sql)?;
        let mut count = prepared.places();
        let mut fields = Value::Null;
        if let PreparedSql::Insert(insert) = &mut prepared {
            let names_tbname = insert.using.is_none() && has_tbname(insert);
            if asks_fields || names_tbname {
                let columns = described(insert, (server, session)).await?;
                if asks_fields {
                    let all = fields_of(insert, &columns)?;
                    count = all.len();
                    fields = Value::Array(all);
                }
                let is_tag = |name: &str| columns.named(name).is_some_and(|column| column.is_tag);
                *insert = insert.clone().with_using(&is_tag);
            }
        }
        let gate = &server.gate;
        *self = Self {
            is_second: self.is_second,
            sql: Some(prepared),
            table: None,
            tags: Vec::new(),
            texts: InsertTexts::new(gate.lease()),
            query: None,
            rows: None,
        };
        Ok((fields, count))
    }

    /// The tags, or the other columns, that are bound.
    pub(super) async fn fields(
        &mut self,
        asking: (&ServerState, &Session),
        tags: bool,
    ) -> Result<Vec<Value>, TaosFailure> {
        let insert = self.insert()?;
        let columns = described(insert, asking).await?;
        let fields = fields_of(insert, &columns)?.into_iter();
        let kind = if tags { BIND_TAG } else { BIND_COLUMN };
        Ok(fields
            .filter(|field| field.get("bind_type") == Some(&kind.into()))
            .collect())
    }

    /// The number of values that are bound.
    pub(super) fn places(&self) -> Result<usize, TaosFailure> {
        Ok(self.prepared()?.places())
    }

    /// Names the table of the next rows.
    pub(super) fn set_table(&mut self, name: &str) {
        self.table = Some(name.to_owned());
    }

    /// Sets the tags of the next rows.
    pub(super) fn set_json_tags(&mut self, tags: &[Value]) -> Result<(), TaosFailure> {
        let tags = tags.iter().map(json_value);
        let tags = tags.collect::<TaosResult<Vec<_>>>()?;
        self.tags = tags.into_iter().map(BoundValue::into_owned).collect();
        Ok(())
    }

    /// Sets the tags of the next rows to the row of a block.
    pub(super) fn set_block_tags(&mut self, block: &[u8]) -> Result<(), TaosFailure> {
        let columns = read_raw_block(block)?;
        if columns.iter().any(|column| column.rows() != 1) {
            return Err(TaosFailure::other("rows not equal 1"));
        }
        self.tags = row_of(columns)?;
        Ok(())
    }

    /// Binds columns of JSON.
    pub(super) fn bind_json(&mut self, columns: &[Value]) -> Result<(), TaosFailure> {
        if let PreparedSql::Other(pieces) = self.prepared()? {
            let values = columns.iter().map(|column| match column {
                Value::Array(values) => values.first().map_or(Ok(BoundValue::Null), json_value),
                value => json_value(value),
            });
            let values = values.collect::<TaosResult<Vec<_>>>()?;
            self.query = Some(filled_text(pieces, &values)?);
            return Ok(());
        }
        let insert = self.insert()?.clone();
        let table = (self.table.as_deref(), &self.tags[..]);
        self.texts.json_columns(&insert, table, columns)
    }

    /// Binds the rows of a block.
    pub(super) async fn bind_block(
        &mut self,
        message: Bytes,
        from: usize,
    ) -> Result<(), TaosFailure> {
        if let PreparedSql::Other(pieces) = self.prepared()? {
            let block = message.get(from..).unwrap_or_default();
            let values = row_of(read_raw_block(block)?)?;
            self.query = Some(filled_text(pieces, &values)?);
            return Ok(());
        }
        let insert = self.insert()?.clone();
        let (table, tags) = (self.table.clone(), self.tags.clone());
        self.write_texts(message.len(), move |texts| {
            let columns = read_raw_block(message.get(from..).unwrap_or_default())?;
            texts.columns(&insert, (table.as_deref(), &tags), columns)
        })
        .await
    }

    /// Binds the tables of a message.
    pub(super) async fn bind_tables(
        &mut self,
        message: Bytes,
        from: usize,
    ) -> Result<(), TaosFailure> {
        if let PreparedSql::Other(pieces) = self.prepared()? {
            let mut bind = Stmt2Bind::parse(message.get(from..).unwrap_or_default())?;
            let table = bind.next_table()?;
            let columns = table.map(|table| table.columns).unwrap_or_default();
            self.query = Some(filled_text(pieces, &row_of(columns)?)?);
            return Ok(());
        }
        let insert = self.insert()?.clone();
        self.write_texts(message.len(), move |texts| {
            let bind = Stmt2Bind::parse(message.get(from..).unwrap_or_default())?;
            texts.tables(&insert, bind)
        })
        .await
    }

    /// Writes texts, on another thread if there is much to write. If that fails, nothing is bound any more.
    async fn write_texts(
        &mut self,
        bytes: usize,
        write: impl FnOnce(&mut InsertTexts) -> Result<(), TaosFailure> + Send + 'static,
    ) -> Result<(), TaosFailure> {
        let empty = self.texts.renewed();
        let mut texts = std::mem::replace(&mut self.texts, empty);
        let work = move || write(&mut texts).map(|()| texts);
        let written = run_inline_if(bytes <= BYTES_INLINE, work).await?;
        self.texts = written?;
        Ok(())
    }

    /// Runs the statement; returns the number of rows that it changed.
    pub(super) async fn exec(
        &mut self,
        server: &ServerState,
        session: &Session,
    ) -> Result<u64, TaosFailure> {
        self.rows = None;
        let (texts, _held) = self.take_texts()?;
        let mut changed = 0;
        for text in texts {
            match run(server, session, &text).await? {
                TaosAnswer::Done(rows) => changed += rows,
                TaosAnswer::Rows(rows) => self.rows = Some(rows),
            }
        }
        Ok(changed)
    }

    /// The statements to run, and what holds their memory.
    fn take_texts(&mut self) -> Result<(Vec<String>, Option<MemoryPermit>), TaosFailure> {
        let unprepared = || TaosFailure::other("stmt is not prepared");
        match self.sql.as_ref().ok_or_else(unprepared)? {
            PreparedSql::Insert(insert) => {
                if self.texts.are_empty() && insert.places().is_empty() {
                    let insert = insert.clone();
                    self.texts.columns(&insert, (None, &[]), Vec::new())?;
                }
                let empty = self.texts.renewed();
                let (texts, held) = std::mem::replace(&mut self.texts, empty).into_parts();
                Ok((texts, Some(held)))
            }
            PreparedSql::Other(pieces) => {
                let text = match self.query.take() {
                    Some(query) => query,
                    None => filled_text(pieces, &[])?,
                };
                Ok((vec![text], None))
            }
        }
    }

    /// The rows that the statement gave.
    pub(super) fn take_rows(&mut self) -> Result<TaosRows, TaosFailure> {
        let rows = self.rows.take();
        rows.ok_or_else(|| TaosFailure::other("stmt has no result"))
    }
}

/// The only row of columns.
fn row_of(mut columns: Vec<BoundColumn<'_>>) -> TaosResult<Vec<BoundValue<'static>>> {
    let values = columns.iter_mut().map(BoundColumn::next_value);
    values
        .map(|value| value.map(BoundValue::into_owned))
        .collect()
}
