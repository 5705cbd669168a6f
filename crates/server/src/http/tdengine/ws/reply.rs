//! What a message is answered with.

use crate::admission::MemoryPermit;
use crate::http::tdengine::error::TaosFailure;
use serde_json::{Map, Value, json};
use std::time::Instant;

/// An answer.
pub(super) enum Reply {
    /// None: some messages have no answer.
    None,
    /// JSON.
    Text(String),
    /// Bytes, and the memory that they take until they are sent.
    Binary(Vec<u8>, Option<MemoryPermit>),
}

/// What an answer repeats of its request.
#[derive(Clone, Debug)]
pub(super) struct ReplyHead {
    /// The action.
    pub(super) action: String,
    /// The id of the request.
    pub(super) req_id: u64,
    /// The id of the prepared statement that it is about.
    pub(super) stmt_id: Option<u64>,
    /// When it came.
    pub(super) begin: Instant,
}

impl ReplyHead {
    /// The head of answers to a request that comes now.
    pub(super) fn new(action: &str, req_id: u64) -> Self {
        Self {
            action: action.to_owned(),
            req_id,
            stmt_id: None,
            begin: Instant::now(),
        }
    }

    /// Nanoseconds since the request came.
    pub(super) fn timing_ns(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The answer with these fields; `null` stands for none.
    pub(super) fn done(&self, fields: Value) -> Reply {
        self.reply((0, ""), fields)
    }

    /// The answer that the request failed.
    pub(super) fn failed(&self, failure: &TaosFailure) -> Reply {
        self.reply((failure.code, &failure.message), Value::Null)
    }

    fn reply(&self, (code, message): (u16, &str), fields: Value) -> Reply {
        let mut all = Map::new();
        all.insert("code".to_owned(), code.into());
        all.insert("message".to_owned(), message.into());
        all.insert("action".to_owned(), self.action.clone().into());
        all.insert("req_id".to_owned(), self.req_id.into());
        all.insert("timing".to_owned(), self.timing_ns().into());
        if let Some(id) = self.stmt_id {
            all.insert("stmt_id".to_owned(), id.into());
        }
        if let Value::Object(fields) = fields {
            all.extend(fields);
        }
        Reply::Text(Value::Object(all).to_string())
    }
}

/// The fields of the answer to a statement without rows.
pub(super) fn update_fields(rows: u64) -> Value {
    json!({
        "id": 0, "is_update": true, "affected_rows": rows, "fields_count": 0,
        "fields_names": null, "fields_types": null, "fields_lengths": null, "precision": 0,
        "fields_precisions": null, "fields_scales": null,
    })
}
