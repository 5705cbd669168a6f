//! A connection to QuestDB.

use super::question::statement;
use super::schema::Wire;
use super::{Exec, path};
use anyhow::{Context, Result, bail, ensure};
use marigram_lab::data::{Rows, Table};
use marigram_lab::line_protocol;
use marigram_lab::question::{Answer, Cell, Question};
use marigram_lab::target::{Payload, Reply, Session};
use marigram_lab_drivers::cells::{self, CellKind};
use marigram_lab_drivers::http::Http;
use marigram_lab_drivers::sql;
use serde_json::Value;
use std::sync::Arc;

/// A connection.
pub(super) struct QuestDbSession {
    http: Http,
    tables: Arc<[Table]>,
    wires: Vec<Option<Wire>>,
}

impl QuestDbSession {
    /// A connection to the server at `base`.
    pub(super) fn new(base: &str, tables: &Arc<[Table]>) -> Self {
        Self {
            http: Http::new(base),
            tables: Arc::clone(tables),
            wires: tables.iter().map(Wire::new).collect(),
        }
    }
}

fn cell(value: Value, kind: CellKind) -> Result<Cell> {
    Ok(match value {
        Value::Null => Cell::Null,
        Value::String(text) => cells::parse(&text, kind)?,
        Value::Number(number) => match kind {
            CellKind::Text => Cell::Text(number.to_string()),
            CellKind::Number => Cell::Number(number.as_f64().context("a number")?),
            CellKind::Time => bail!("{number} where a time should be"),
        },
        Value::Bool(value) => Cell::Number(f64::from(u8::from(value))),
        other => bail!("{other} in an answer"),
    })
}

impl Session for QuestDbSession {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        let text = match &self.wires[rows.table] {
            Some(wire) => line_protocol::encode(&wire.table, &wire.rows(rows), 1),
            None => line_protocol::encode(&self.tables[rows.table], rows, 1),
        };
        Ok(Payload::from_bytes(rows, text))
    }

    fn write(&mut self, payload: &Payload) -> Result<()> {
        let path = "/write?precision=n";
        self.http.post(path, &[], payload.bytes()?)?;
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Reply> {
        let select = sql::select(question)?;
        let statement = statement(&self.tables[select.table], select);
        let answer = self
            .http
            .get(&path(&statement))
            .with_context(|| statement)?;
        Ok(Reply::Bytes(answer))
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        let select = sql::select(question)?;
        let kinds = cells::kinds(&self.tables[select.table], select);
        let exec: Exec =
            serde_json::from_slice(&reply.into_bytes()?).context("the answer's JSON")?;
        let row = |row: Vec<Value>| {
            ensure!(row.len() == kinds.len(), "{} columns", row.len());
            let cells = row.into_iter().zip(&kinds);
            cells.map(|(value, kind)| cell(value, *kind)).collect()
        };
        let rows = exec.dataset.into_iter().map(row).collect::<Result<_>>()?;
        Ok(Answer { rows })
    }
}
