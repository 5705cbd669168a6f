//! The null target: accepts rows and drops them. A run on it costs what the client costs.

use crate::data::{Rows, Table};
use crate::line_protocol;
use crate::question::{Answer, Question};
use crate::target::{Kind, Payload, Reply, Session, Settings, Target, TargetFacts, Tuning};
use anyhow::{Result, bail};
use std::path::Path;
use std::sync::Arc;

/// The kind.
pub const KIND: Kind = Kind {
    name: "null",
    about: "drops everything: the client's own cost",
    peer: false,
    make,
};

const WHY: &str = "it keeps nothing";

#[expect(clippy::unnecessary_wraps, reason = "the signature of target::Make")]
fn make(_settings: &Settings) -> Result<Box<dyn Target>> {
    Ok(Box::new(Null))
}

struct Null;

impl Target for Null {
    fn start(&mut self, _dir: &Path) -> Result<()> {
        Ok(())
    }

    fn facts(&self) -> TargetFacts {
        TargetFacts {
            version: "null".to_owned(),
            path: "line protocol, encoded and dropped".to_owned(),
            durability: "none: nothing is kept".to_owned(),
            notes: "Measures the laboratory, not a database.".to_owned(),
        }
    }

    fn refuses(&self, _tuning: &Tuning) -> Option<String> {
        None
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        Ok(Box::new(NullSession(Arc::clone(tables))))
    }

    fn settle(&self, _tables: &[Table]) -> Result<()> {
        Ok(())
    }

    fn disk_bytes(&self) -> Result<u64> {
        Ok(0)
    }

    fn cannot(&self, _tables: &[Table], _question: &Question) -> Option<String> {
        Some(WHY.to_owned())
    }
}

/// A session that sends nothing.
struct NullSession(Arc<[Table]>);

impl Session for NullSession {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        let text = line_protocol::encode(&self.0[rows.table], rows, 1);
        Ok(Payload::from_bytes(rows, text))
    }

    fn write(&mut self, _payload: &Payload) -> Result<()> {
        Ok(())
    }

    fn ask(&mut self, _question: &Question) -> Result<Reply> {
        bail!("nothing to ask: {WHY}")
    }

    fn decode(&mut self, _question: &Question, _reply: Reply) -> Result<Answer> {
        bail!("nothing to decode: {WHY}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Column, FieldKind, TagKind, Values};
    use crate::question::{Ask, Select, Selection};

    #[test]
    fn encodes_and_takes_everything_and_answers_nothing() {
        let table = Table::new(
            "t",
            &[("d", TagKind::Text)],
            0,
            &[("v", FieldKind::I64)],
            vec![vec![Some("a".to_owned())]],
        );
        let rows = Rows {
            table: 0,
            series: vec![0],
            times: vec![7],
            columns: vec![Column::full(Values::I64(vec![5]))],
        };
        let null = (KIND.make)(&Settings::default()).expect("null");
        let tables: Arc<[Table]> = Arc::new([table]);
        let mut session = null.connect(&tables).expect("a session");
        let payload = session.encode(&rows).expect("a payload");
        assert_eq!(payload.bytes().expect("text"), b"t,d=a v=5i 7\n");
        assert_eq!((payload.rows, payload.points), (1, 1));
        session.write(&payload).expect("taken");
        let question = Question {
            name: "Q".to_owned(),
            ask: Ask::Select(Select::all(0, Selection::Rows(vec![0]))),
        };
        assert!(null.cannot(&tables, &question).is_some());
        assert!(session.ask(&question).is_err());
    }
}
