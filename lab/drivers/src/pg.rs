//! PostgreSQL's wire protocol, for the databases that speak it: binary COPY in, binary rows out.
//!
//! A connection has a runtime of its own on its client's thread, so that clients share nothing.

mod asking;
mod cell;
mod copy;

use crate::arrow::{as_tag, leading_tags};
use crate::sql::{self, Dialect};
use anyhow::{Context, Result, bail, ensure};
use asking::Asking;
use bytes::Bytes;
use marigram_lab::data::{Field, Rows, Table};
use marigram_lab::question::{Aggregate, Answer, Ask, Cell, Question};
use marigram_lab::target::{Body, Payload, Reply, Session};
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, Row, Statement};

/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_mins(10);

/// A connection.
pub struct Connection {
    config: String,
    client: Client,
    runtime: Runtime,
}

/// A database's own way of saying the same.
#[derive(Clone, Copy)]
pub struct Manner {
    /// Its SQL.
    pub dialect: &'static Dialect,
    /// Its aggregates.
    pub aggregate: fn(Aggregate, &Field) -> String,
}

impl Connection {
    /// Connects by `config`, `host=… port=… user=… dbname=…` or a `postgresql://` address.
    pub fn open(config: &str) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(config, NoTls).await?;
            // Its error comes back from the request that meets it.
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
            // The driver's own text is "db error"; what the server said is below it.
            let said = std::error::Error::source(&error).map(ToString::to_string);
            let error = anyhow::Error::new(error);
            said.map_or_else(|| error.context("PostgreSQL"), |said| anyhow::anyhow!(said))
        })
    }

    /// Runs statements that answer nothing.
    pub fn run(&self, script: &str) -> Result<()> {
        self.wait(self.client.batch_execute(script))
            .with_context(|| script.chars().take(200).collect::<String>())
    }

    /// Asks, and takes all rows.
    pub fn rows(&self, statement: &str) -> Result<Vec<Row>> {
        self.wait(self.client.query_typed(statement, &[]))
            .with_context(|| statement.chars().take(200).collect::<String>())
    }
}

/// A client's connection.
pub struct PgSession {
    connection: Connection,
    tables: Arc<[Table]>,
    manner: Manner,
    /// The prepared COPY of each table that was written.
    copies: HashMap<usize, Statement>,
    /// Opened by the first question.
    asking: Option<Asking>,
}

/// A batch in COPY's binary form.
struct Copy {
    table: usize,
    bytes: Bytes,
}

impl PgSession {
    /// A session for clients of `tables`.
    pub fn new(connection: Connection, tables: &Arc<[Table]>, manner: Manner) -> Self {
        Self {
            connection,
            tables: Arc::clone(tables),
            manner,
            copies: HashMap::new(),
            asking: None,
        }
    }

    fn statement(&self, question: &Question) -> Result<String> {
        match &question.ask {
            Ask::Sql(text) => Ok(text.clone()),
            Ask::Select(select) => {
                let table = self.tables.get(select.table).context("no such table")?;
                let Manner { dialect, aggregate } = self.manner;
                Ok(sql::statement_with(dialect, table, select, aggregate))
            }
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
        Ok(Payload {
            rows: rows.len(),
            points: rows.points(),
            body: Body::Own(Box::new(Copy {
                table: rows.table,
                bytes: copy::encode(table, rows)?.into(),
            })),
        })
    }

    fn write(&mut self, payload: &Payload) -> Result<()> {
        let copy = match &payload.body {
            Body::Own(own) => own.downcast_ref::<Copy>(),
            Body::Bytes(_) => None,
        };
        let copy = copy.context("a batch that this session did not encode")?;
        let statement = self
            .copies
            .get(&copy.table)
            .context("a COPY not prepared")?;
        let client = &self.connection.client;
        let stored = self.connection.wait(async {
            let sink = client.copy_in(statement).await?;
            let mut sink = std::pin::pin!(sink);
            futures::SinkExt::send(&mut sink, copy.bytes.clone()).await?;
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
        let statement = self.statement(question)?;
        let asking = match &mut self.asking {
            Some(asking) => asking,
            None => self.asking.insert(Asking::open(&self.connection.config)?),
        };
        let answer = asking.ask(&statement);
        if answer.is_err() {
            // What the server still sends is no answer to the next question.
            self.asking = None;
        }
        let answer = answer.with_context(|| statement.chars().take(200).collect::<String>())?;
        Ok(Reply::Bytes(answer))
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        let Reply::Bytes(bytes) = reply else {
            bail!("an answer that this session did not get");
        };
        let tags = leading_tags(question);
        let mut rows = asking::rows(&bytes)?;
        for cell in rows.iter_mut().flat_map(|row| row.iter_mut().take(tags)) {
            *cell = as_tag(std::mem::replace(cell, Cell::Null));
        }
        Ok(Answer { rows })
    }
}
