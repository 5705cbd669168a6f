//! The HTTP face: line protocol in, Arrow streams out.

use super::schema::DIALECT_OF_TEXT_TAGS;
use crate::arrow;
use crate::http::Http;
use crate::sql;
use anyhow::{Context, Result, bail};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_ipc::reader::StreamReader;
use marigram_lab::data::{Rows, Table};
use marigram_lab::line_protocol::{self, Style};
use marigram_lab::question::{Answer, Ask, Question};
use marigram_lab::target::{Body, Payload, Reply, Session};
use std::sync::Arc;

/// Where SQL is asked.
const ASK: &str = "/api/v1/sql?db=main";

/// The form of the answers: the one that costs neither side a conversion to text.
const ACCEPT: (&str, &str) = ("Accept", "application/vnd.apache.arrow.stream");

/// Where rows are written.
const WRITE: &str = "/write?db=main&precision=ns";

/// Marigram's line protocol.
const STYLE: Style = Style {
    unit_ns: 1,
    integer_suffix: true,
};

/// A connection over which SQL is asked.
pub struct Client(Http);

impl Client {
    /// A connection to the server at `address`.
    pub fn new(address: &str) -> Self {
        Self(Http::new(address))
    }

    fn fetch(&self, statement: &str) -> Result<Vec<u8>> {
        self.0.post(ASK, &[ACCEPT], statement.as_bytes())
    }

    /// Asks and takes the answer apart.
    pub fn ask(&self, statement: &str) -> Result<Vec<RecordBatch>> {
        batches(&self.fetch(statement)?)
    }

    /// What the server tells about itself, in the text format of `OpenMetrics`.
    pub fn metrics(&self) -> Result<String> {
        String::from_utf8(self.0.get("/metrics")?).context("the metrics are no text")
    }

    /// What the server says that it is.
    pub fn version(&self) -> Result<String> {
        let answer = self.ask("SELECT version()")?;
        let version = answer.first().context("no version")?.column(0);
        let text = version.as_string_opt::<i32>().map(|text| text.value(0));
        let text = text.or_else(|| version.as_string_view_opt().map(|text| text.value(0)));
        Ok(text.context("a version that is no text")?.to_owned())
    }
}

/// The batches of an Arrow stream; none of an empty body.
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
pub struct HttpSession {
    client: Client,
    tables: Arc<[Table]>,
}

impl HttpSession {
    /// A session for clients of `tables`.
    pub fn new(client: Client, tables: &Arc<[Table]>) -> Self {
        Self {
            client,
            tables: Arc::clone(tables),
        }
    }
}

impl Session for HttpSession {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        let table = self.tables.get(rows.table).context("no such table")?;
        Ok(Payload {
            rows: rows.len(),
            points: rows.points(),
            body: Body::Bytes(line_protocol::encode(table, rows, STYLE)),
        })
    }

    fn write(&mut self, payload: &Payload) -> Result<()> {
        let Body::Bytes(bytes) = &payload.body else {
            bail!("a batch that this session did not encode");
        };
        // Any line that is refused makes the status 400.
        self.client.0.post(WRITE, &[], bytes)?;
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Reply> {
        let statement = match &question.ask {
            Ask::Sql(text) => text.clone(),
            Ask::Select(select) => {
                let table = self.tables.get(select.table).context("no such table")?;
                sql::statement(&DIALECT_OF_TEXT_TAGS, table, select)
            }
        };
        let bytes = self.client.fetch(&statement);
        Ok(Reply::Bytes(bytes.with_context(|| statement)?))
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        let Reply::Bytes(bytes) = reply else {
            bail!("an answer that this session did not get");
        };
        arrow::answer(question, &batches(&bytes)?)
    }
}
