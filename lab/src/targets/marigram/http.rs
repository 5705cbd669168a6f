//! The HTTP face: line protocol in, JSON out.

use super::schema::DIALECT_OF_TEXT_TAGS;
use super::seconds::seconds;
use crate::data::{Rows, Table};
use crate::question::{Answer, Ask, Cell, Question};
use crate::target::{Body, Payload, Reply, Session};
use crate::targets::arrow::{as_tag, leading_tags};
use crate::targets::http::Http;
use crate::targets::line_protocol::{self, Style};
use crate::targets::sql::{self, parse_rfc3339};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// Where SQL is asked.
const ASK: &str = "/api/v1/sql?db=main";

/// Where rows are written.
const WRITE: &str = "/write?db=main&precision=ns";

/// Marigram's line protocol.
const STYLE: Style = Style {
    unit_ns: 1,
    integer_suffix: true,
};

/// An answer in JSON.
#[derive(Deserialize)]
pub struct Json {
    columns: Vec<JsonColumn>,
    /// Rows of values.
    pub rows: Vec<Vec<Value>>,
}

#[derive(Deserialize)]
struct JsonColumn {
    #[serde(rename = "type")]
    kind: String,
}

/// A connection over which SQL is asked.
pub struct Client(Http);

impl Client {
    /// A connection to the server at `address`.
    pub fn new(address: &str) -> Self {
        Self(Http::new(address))
    }

    /// Asks and takes the answer apart.
    pub fn ask(&self, statement: &str) -> Result<Json> {
        let bytes = self.0.post(ASK, &[], statement.as_bytes())?;
        serde_json::from_slice(&bytes).context("the answer's JSON")
    }

    /// What the server says that it is.
    pub fn version(&self) -> Result<String> {
        let answer = self.ask("SELECT version()")?;
        let version = answer.rows.first().and_then(|row| row.first());
        Ok(version
            .and_then(Value::as_str)
            .context("no version")?
            .to_owned())
    }
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
        let bytes = self.client.0.post(ASK, &[], statement.as_bytes());
        Ok(Reply::Bytes(bytes.with_context(|| statement)?))
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        let Reply::Bytes(bytes) = reply else {
            bail!("an answer that this session did not get");
        };
        let json: Json = serde_json::from_slice(&bytes).context("the answer's JSON")?;
        answer(question, json)
    }
}

fn answer(question: &Question, json: Json) -> Result<Answer> {
    let tags = leading_tags(question);
    let cells = |row: Vec<Value>| {
        let columns = json.columns.iter().zip(row).enumerate();
        columns
            .map(|(at, (column, value))| {
                let cell = cell(&column.kind, value)?;
                Ok(if at < tags { as_tag(cell) } else { cell })
            })
            .collect::<Result<Vec<_>>>()
    };
    let rows = json.rows.into_iter().map(cells).collect::<Result<_>>()?;
    Ok(Answer { rows })
}

/// A value of a column whose type the answer calls `kind`.
fn cell(kind: &str, value: Value) -> Result<Cell> {
    Ok(match value {
        Value::Null => Cell::Null,
        Value::Bool(value) => Cell::Number(f64::from(u8::from(value))),
        Value::Number(number) => Cell::Number(number.as_f64().context("a number")?),
        Value::String(text) => match kind {
            "string" => Cell::Text(text),
            "timestamp" => {
                Cell::Time(parse_rfc3339(&text).with_context(|| format!("time {text:?}"))?)
            }
            // What JSON has no number for, and decimals, stand as text.
            "double" | "float" => Cell::Number(text.parse()?),
            kind if kind.starts_with("Decimal") => Cell::Number(text.parse()?),
            kind if kind.starts_with("Interval") || kind.starts_with("Duration") => {
                Cell::Number(seconds(&text).with_context(|| format!("interval {text:?}"))?)
            }
            _ => Cell::Text(text),
        },
        other => bail!("{other} is in no answer"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::{Select, What};

    fn decoded(ask: Ask, json: &str) -> Answer {
        let question = Question {
            name: "q".to_owned(),
            ask,
        };
        answer(&question, serde_json::from_str(json).expect("JSON")).expect("known types")
    }

    #[test]
    fn every_type_of_an_answer_has_its_cell() {
        let json = r#"{"columns":[{"name":"a","type":"string"},{"name":"b","type":"timestamp"},
            {"name":"c","type":"double"},{"name":"d","type":"Duration(ns)"},
            {"name":"e","type":"boolean"},{"name":"f","type":"Decimal128(10, 2)"}],
            "rows":[["x","1970-01-01T00:00:01.000000002Z",1.5,"PT90S",true,"1.50"],
                    [null,null,"NaN",null,false,null]],"row_count":2}"#;
        let rows = decoded(Ask::Sql(String::new()), json).rows;
        let first = vec![
            Cell::Text("x".to_owned()),
            Cell::Time(1_000_000_002),
            Cell::Number(1.5),
            Cell::Number(90.0),
            Cell::Number(1.0),
            Cell::Number(1.5),
        ];
        assert_eq!(rows[0], first);
        assert!(matches!(rows[1][2], Cell::Number(number) if number.is_nan()));
        assert_eq!(rows[1][0], Cell::Null);
    }

    #[test]
    fn the_key_of_rows_is_text_though_it_is_a_number() {
        let json = r#"{"columns":[{"name":"id","type":"bigint"}],"rows":[[7]],"row_count":1}"#;
        let rows = decoded(Ask::Select(Select::all(0, What::Rows(Vec::new()))), json).rows;
        assert_eq!(rows, [[Cell::Text("7".to_owned())]]);
    }
}
