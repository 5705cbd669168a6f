//! Marigram's HTTP interface: line protocol in, Arrow streams out.

use super::schema::TEXT_TAG_DIALECT;
use crate::arrow;
use crate::http::Http;
use crate::sql;
use anyhow::{Context, Result};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_ipc::reader::StreamReader;
use marigram_lab::data::{Rows, Table};
use marigram_lab::line_protocol;
use marigram_lab::question::{Answer, Question};
use marigram_lab::target::{Payload, Reply, Session};
use std::sync::Arc;

/// The path for SQL.
const ASK: &str = "/api/v1/sql?db=main";

/// The format of the answers; it costs neither side a conversion to text.
const ACCEPT: (&str, &str) = ("Accept", "application/vnd.apache.arrow.stream");

/// The path for rows.
const WRITE: &str = "/write?db=main&precision=ns";

/// A connection for SQL.
pub(super) struct HttpClient(Http);

impl HttpClient {
    /// A connection to the server at `address`.
    pub(super) fn new(address: &str) -> Self {
        Self(Http::new(address))
    }

    fn fetch(&self, statement: &str) -> Result<Vec<u8>> {
        self.0.post(ASK, &[ACCEPT], statement.as_bytes())
    }

    /// Runs a statement, and decodes its answer.
    pub(super) fn ask(&self, statement: &str) -> Result<Vec<RecordBatch>> {
        batches(&self.fetch(statement)?)
    }

    /// The server's metrics, in the text format of `OpenMetrics`.
    pub(super) fn metrics(&self) -> Result<String> {
        String::from_utf8(self.0.get("/metrics")?).context("the metrics are not text")
    }

    /// The server's answer to `SELECT version()`.
    pub(super) fn version(&self) -> Result<String> {
        let answer = self.ask("SELECT version()")?;
        let version = answer.first().context("no version")?.column(0);
        let text = version.as_string_opt::<i32>().map(|text| text.value(0));
        let text = text.or_else(|| version.as_string_view_opt().map(|text| text.value(0)));
        Ok(text.context("the version is not text")?.to_owned())
    }
}

/// The batches of an Arrow stream; no batches for an empty body.
fn batches(stream: &[u8]) -> Result<Vec<RecordBatch>> {
    if stream.is_empty() {
        return Ok(Vec::new());
    }
    let reader = StreamReader::try_new(stream, None).context("the answer's Arrow stream")?;
    reader
        .map(|batch| batch.context("a batch of the answer"))
        .collect()
}

/// A client's connection.
pub(super) struct HttpSession {
    client: HttpClient,
    tables: Arc<[Table]>,
}

impl HttpSession {
    /// A session for clients of `tables`.
    pub(super) fn new(client: HttpClient, tables: &Arc<[Table]>) -> Self {
        Self {
            client,
            tables: Arc::clone(tables),
        }
    }
}

impl Session for HttpSession {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        let table = self.tables.get(rows.table).context("no such table")?;
        let text = line_protocol::encode(table, rows, 1);
        Ok(Payload::from_bytes(rows, text))
    }

    fn write(&mut self, payload: &Payload) -> Result<()> {
        // If any line is refused, the status is 400.
        self.client.0.post(WRITE, &[], payload.bytes()?)?;
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Reply> {
        let statement = sql::question_statement(&TEXT_TAG_DIALECT, &self.tables, question)?;
        let bytes = self.client.fetch(&statement);
        Ok(Reply::Bytes(bytes.with_context(|| statement)?))
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        arrow::answer(question, &batches(&reply.into_bytes()?)?)
    }
}
