//! PostgreSQL's wire protocol, for all databases that speak it: binary COPY in, binary rows out.
//!
//! Each connection has a runtime of its own on its client's thread, so that clients share nothing.

mod cell;
mod copy;
mod query;

use crate::cells::{as_tag, leading_tags};
use crate::sql::{self, Dialect};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use marigram_lab::data::{Rows, Table};
use marigram_lab::question::{Answer, Cell, Question};
use marigram_lab::target::{Payload, Reply, Session};
use query::QueryConnection;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, NoTls, Row, Statement};

/// The longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_mins(10);

/// A connection.
pub struct Connection {
    config: String,
    client: Client,
    runtime: Runtime,
}

impl Connection {
    /// Connects by `config`, `host=… port=… user=… dbname=…` or a `postgresql://` address.
    pub fn open(config: &str) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(config, NoTls).await?;
            // The next request returns its error.
            tokio::spawn(connection);
            anyhow::Ok(client)
        })?;
        Ok(Self {
            config: config.to_owned(),
            client,
            runtime,
        })
    }

    fn wait<T, E>(&self, answer: impl Future<Output = Result<T, E>>) -> Result<T>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let timed = async { tokio::time::timeout(ANSWER_MAX, answer).await };
        let answer = self.runtime.block_on(timed).context("no answer in time")?;
        answer.map_err(|error| {
            // The driver's own text is "db error"; its source is the server's message.
            let said = std::error::Error::source(&error).map(ToString::to_string);
            let error = anyhow::Error::new(error);
            said.map_or_else(|| error.context("PostgreSQL"), |said| anyhow::anyhow!(said))
        })
    }

    /// Runs statements that return no rows.
    pub fn run(&self, script: &str) -> Result<()> {
        self.wait(self.client.batch_execute(script))
            .with_context(|| script.chars().take(200).collect::<String>())
    }

    /// Runs a query, and returns the first value of its answer. Fails without rows, or on another
    /// type.
    pub fn value<T: for<'a> FromSql<'a>>(&self, statement: &str) -> Result<T> {
        let rows = self.rows(statement)?;
        let row = rows.first().context("an answer without rows")?;
        Ok(row.try_get(0)?)
    }

    /// Whether each of `tables` shows a row.
    pub fn have_rows(&self, tables: &[Table]) -> Result<Vec<bool>> {
        let has_rows = |table: &Table| {
            let probe = format!("SELECT time FROM {} LIMIT 1", table.name);
            Ok(!self.rows(&probe)?.is_empty())
        };
        tables.iter().map(has_rows).collect()
    }

    /// Runs a query, and returns all rows.
    pub fn rows(&self, statement: &str) -> Result<Vec<Row>> {
        self.wait(self.client.query_typed(statement, &[]))
            .with_context(|| statement.chars().take(200).collect::<String>())
    }
}

/// A client's connection.
pub struct PgSession {
    connection: Connection,
    tables: Arc<[Table]>,
    dialect: &'static Dialect,
    /// The prepared COPY of each table that was written.
    copies: HashMap<usize, Statement>,
    /// Opened by the first question.
    queries: Option<QueryConnection>,
}

/// A batch in COPY's binary form.
struct CopyBatch {
    table: usize,
    bytes: Bytes,
}

impl PgSession {
    /// A session for clients of `tables`, whose questions are written in `dialect`.
    pub fn new(connection: Connection, tables: &Arc<[Table]>, dialect: &'static Dialect) -> Self {
        Self {
            connection,
            tables: Arc::clone(tables),
            dialect,
            copies: HashMap::new(),
            queries: None,
        }
    }
}

impl Session for PgSession {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        let table = self.tables.get(rows.table).context("no such table")?;
        if !self.copies.contains_key(&rows.table) {
            let statement = copy::statement(table);
            let copy = self.connection.client.prepare(&statement);
            let copy = self.connection.wait(copy).context("preparing COPY")?;
            self.copies.insert(rows.table, copy);
        }
        let batch = CopyBatch {
            table: rows.table,
            bytes: copy::encode(table, rows)?.into(),
        };
        Ok(Payload::from_value(rows, batch))
    }

    fn write(&mut self, payload: &Payload) -> Result<()> {
        let batch: &CopyBatch = payload.value()?;
        let statement = self.copies.get(&batch.table);
        let statement = statement.context("a COPY that is not prepared")?;
        let client = &self.connection.client;
        let stored = self.connection.wait(async {
            let sink = client.copy_in(statement).await?;
            let mut sink = std::pin::pin!(sink);
            futures::SinkExt::send(&mut sink, batch.bytes.clone()).await?;
            sink.finish().await
        })?;
        ensure!(
            stored == payload.rows as u64,
            "{stored} rows taken of {}",
            payload.rows
        );
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Reply> {
        let statement = sql::question_statement(self.dialect, &self.tables, question)?;
        let queries = match &mut self.queries {
            Some(queries) => queries,
            None => {
                let opened = QueryConnection::open(&self.connection.config)?;
                self.queries.insert(opened)
            }
        };
        let answer = queries.ask(&statement);
        if answer.is_err() {
            // The rest of this answer must not be read as the next one.
            self.queries = None;
        }
        let answer = answer.with_context(|| statement.chars().take(200).collect::<String>())?;
        Ok(Reply::Bytes(answer))
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        let tags = leading_tags(question);
        let mut rows = query::rows(&reply.into_bytes()?)?;
        for cell in rows.iter_mut().flat_map(|row| row.iter_mut().take(tags)) {
            *cell = as_tag(std::mem::replace(cell, Cell::Null));
        }
        Ok(Answer { rows })
    }
}
