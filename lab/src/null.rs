//! The null target: takes rows, and drops them. What a run on it costs is the client's own cost.

use super::line_protocol::{self, Style};
use crate::data::{Rows, Table};
use crate::question::{Answer, Question};
use crate::target::{Body, Facts, Kind, Payload, Reply, Session, Settings, Target, Tuning};
use anyhow::{Result, bail};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The kind.
pub const KIND: Kind = Kind {
    name: "null",
    about: "drops everything: the client's own cost",
    peer: false,
    make,
};

const WHY: &str = "it keeps nothing";

const STYLE: Style = Style {
    unit_ns: 1,
    integer_suffix: true,
};

#[expect(clippy::unnecessary_wraps, reason = "the signature of target::Make")]
fn make(_settings: &Settings) -> Result<Box<dyn Target>> {
    Ok(Box::new(Null))
}

struct Null;

impl Target for Null {
    fn start(&mut self, _dir: &Path) -> Result<()> {
        Ok(())
    }

    fn facts(&self) -> Facts {
        Facts {
            version: "null".to_owned(),
            path: "line protocol, encoded and dropped".to_owned(),
            durability: "none: nothing is kept".to_owned(),
            notes: "Measures the laboratory, not a database.".to_owned(),
        }
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn refuses(&self, _tuning: &Tuning) -> Option<String> {
        None
    }

    fn create(&self, _tables: &[Table]) -> Result<()> {
        Ok(())
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        Ok(Box::new(Nobody(Arc::clone(tables))))
    }

    fn settle(&self, _tables: &[Table]) -> Result<()> {
        Ok(())
    }

    fn disk_bytes(&self) -> Result<u64> {
        Ok(0)
    }

    fn restart(&mut self, _tables: &[Table]) -> Result<Option<Duration>> {
        Ok(None)
    }

    fn cannot(&self, _tables: &[Table], _question: &Question) -> Option<String> {
        Some(WHY.to_owned())
    }

    fn stop(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A connection to nobody.
struct Nobody(Arc<[Table]>);

impl Session for Nobody {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        Ok(Payload {
            rows: rows.len(),
            points: rows.points(),
            body: Body::Bytes(line_protocol::encode(&self.0[rows.table], rows, STYLE)),
        })
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
    use crate::data::{Column, Field, FieldKind, Tag, TagKind, Values};
    use crate::question::{Ask, Select, What};

    #[test]
    fn encodes_and_takes_everything_and_answers_nothing() {
        let table = Table {
            name: "t".to_owned(),
            tags: vec![Tag {
                name: "d".to_owned(),
                kind: TagKind::Text,
            }],
            key: 0,
            fields: vec![Field {
                name: "v".to_owned(),
                kind: FieldKind::I64,
            }],
            series: Arc::new(vec![vec![Some("a".to_owned())]]),
        };
        let rows = Rows {
            table: 0,
            series: vec![0],
            times: vec![7],
            columns: vec![Column {
                values: Values::I64(vec![5]),
                present: None,
            }],
        };
        let null = (KIND.make)(&Settings::default()).expect("null");
        let tables: Arc<[Table]> = Arc::new([table]);
        let mut session = null.connect(&tables).expect("a session");
        let payload = session.encode(&rows).expect("a payload");
        let Body::Bytes(text) = &payload.body else {
            panic!("no bytes");
        };
        assert_eq!(text, b"t,d=a v=5i 7\n");
        assert_eq!((payload.rows, payload.points), (1, 1));
        session.write(&payload).expect("taken");
        let question = Question {
            name: "Q".to_owned(),
            ask: Ask::Select(Select::all(0, What::Rows(vec![0]))),
        };
        assert!(null.cannot(&tables, &question).is_some());
        assert!(session.ask(&question).is_err());
    }
}
