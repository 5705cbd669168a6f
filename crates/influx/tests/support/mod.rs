//! A test database in memory that takes InfluxQL and answers in the JSON of `/query`.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampNanosecondType, UInt64Type};
use arrow::record_batch::RecordBatch;
use futures::StreamExt;
use marigram_engine::{Durability, Engine, EngineOptions, WriteOptions};
use marigram_env::Env;
use marigram_influx::InfluxQl;
use marigram_protocol::lines::{LineLimits, Precision, parse};
use marigram_service::{
    Answer, Identity, Language, LanguageQuery, LanguageRequest, ROLE_KEY, RowStream, Session,
};
use marigram_sql::{ReferenceStore, SqlOptions, SqlService};
use std::fmt::Write;
use std::sync::Arc;

/// A database and a client session.
pub(crate) struct Harness {
    engine: Engine,
    sql: SqlService,
    /// The same database, where every SELECT reads all rows.
    plain: SqlService,
    session: Session,
    _dir: tempfile::TempDir,
}

impl Harness {
    /// An empty database `d`.
    pub(crate) fn new() -> Self {
        Self::with_memory(512 << 20)
    }

    /// An empty database `d` with a limit of memory, bytes.
    pub(crate) fn with_memory(memory_limit_bytes: usize) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let options = EngineOptions {
            shards: 2,
            durability: Durability::Os,
            memory_limit_bytes,
            background_threads: 0,
            flush_age_max: None,
            ..EngineOptions::default()
        };
        let engine =
            Engine::open(Env::real(), &dir.path().join("data"), options).expect("an engine");
        engine.create_database("d", true).expect("a database");
        let service = |front_end: InfluxQl| {
            let (options, front_ends) = (SqlOptions::default(), vec![Arc::new(front_end) as _]);
            let reference = ReferenceStore::in_memory().expect("a store");
            SqlService::with_front_ends(engine.clone(), reference, options, front_ends)
                .expect("a service")
        };
        let sql = service(InfluxQl::default());
        let plain = service(InfluxQl::default().without_fast_paths());
        Self {
            engine,
            sql,
            plain,
            session: Session::new("d", Identity::owner("tester")),
            _dir: dir,
        }
    }

    /// Writes lines.
    pub(crate) fn write(&self, lines: &str) {
        let parsed = parse(
            lines.as_bytes(),
            Precision::Nanoseconds,
            0,
            LineLimits {
                tagged_fields: true,
                ..LineLimits::default()
            },
        );
        assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
        for batch in &parsed.batches {
            let report = self
                .engine
                .write("d", batch, WriteOptions { grow: true })
                .expect("rows are stored");
            assert!(report.rejected.is_empty(), "{:?}", report.rejected);
        }
    }

    /// Writes what is in memory to segments.
    #[allow(dead_code, reason = "not every test needs segments")]
    pub(crate) fn flush(&self) {
        self.engine.flush().expect("rows are flushed");
    }

    /// The answer to a request, in the form of `/query?epoch=ns`.
    pub(crate) async fn ask(&self, text: &str) -> String {
        self.ask_of(&self.sql, text).await
    }

    /// The answer to the same request, where every SELECT reads all rows.
    #[allow(dead_code, reason = "one test compares the two")]
    pub(crate) async fn ask_plainly(&self, text: &str) -> String {
        self.ask_of(&self.plain, text).await
    }

    async fn ask_of(&self, service: &SqlService, text: &str) -> String {
        let request = LanguageRequest::new(Language::InfluxQl, text);
        let mut answers = match service.run(&self.session, request).await {
            Ok(answers) => answers,
            Err(error) => return format!("{{\"error\":{}}}", quoted(&error.to_string())),
        };
        let mut results = Vec::new();
        while let Some(answer) = answers.next().await {
            let id = answer.statement_id;
            let content = match answer.answer {
                Ok(Answer::Rows(rows)) => series(rows).await,
                Ok(Answer::Done { .. }) => Ok(String::new()),
                Err(error) => Err(error.to_string()),
            };
            results.push(match content {
                Ok(series) => format!("{{\"statement_id\":{id}{series}}}"),
                Err(error) => {
                    format!("{{\"statement_id\":{id},\"error\":{}}}", quoted(&error))
                }
            });
        }
        format!("{{\"results\":[{}]}}", results.join(","))
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for ch in text.chars() {
        match ch {
            '"' | '\\' => quoted.extend(['\\', ch]),
            '\n' => quoted.push_str("\\n"),
            ch if ch < ' ' => _ = write!(quoted, "\\u{:04x}", u32::from(ch)),
            ch => quoted.push(ch),
        }
    }
    quoted.push('"');
    quoted
}

/// Rows of one series, as JSON.
struct Open {
    head: String,
    rows: Vec<String>,
}

async fn series(rows: RowStream) -> Result<String, String> {
    let mut batches = rows.batches;
    let mut all: Vec<Open> = Vec::new();
    while let Some(batch) = batches.next().await {
        let batch = batch.map_err(|error| error.to_string())?;
        for row in 0..batch.num_rows() {
            let (head, row) = cut(&batch, row);
            match all.last_mut() {
                Some(open) if open.head == head => open.rows.push(row),
                _ => all.push(Open {
                    head,
                    rows: vec![row],
                }),
            }
        }
    }
    if all.is_empty() {
        return Ok(String::new());
    }
    let all = all.iter();
    let all: Vec<String> = all
        .map(|open| format!("{{{},\"values\":[{}]}}", open.head, open.rows.join(",")))
        .collect();
    Ok(format!(",\"series\":[{}]", all.join(",")))
}

/// The series of a row, and its values.
fn cut(batch: &RecordBatch, row: usize) -> (String, String) {
    let (mut head, mut tags) = (String::new(), Vec::new());
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        let role = field.metadata().get(ROLE_KEY).map(String::as_str);
        match role {
            Some("measurement") if !array.is_null(row) => {
                let name = quoted(array.as_string::<i32>().value(row));
                _ = write!(head, "\"name\":{name},");
            }
            Some("measurement") => {}
            Some("tag") => {
                let value = quoted(array.as_string::<i32>().value(row));
                tags.push(format!("{}:{value}", quoted(field.name())));
            }
            _ => {
                columns.push(quoted(field.name()));
                values.push(value(array.as_ref(), row));
            }
        }
    }
    if !tags.is_empty() {
        _ = write!(head, "\"tags\":{{{}}},", tags.join(","));
    }
    _ = write!(head, "\"columns\":[{}]", columns.join(","));
    (head, format!("[{}]", values.join(",")))
}

fn value(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "null".to_owned();
    }
    match array.data_type() {
        DataType::Null => "null".to_owned(),
        DataType::Float64 => {
            let value = array.as_primitive::<Float64Type>().value(row);
            if value != 0.0 && (value.abs() < 1e-6 || value.abs() >= 1e21) {
                format!("{value:e}").replace('e', if value.abs() < 1.0 { "e" } else { "e+" })
            } else {
                format!("{value}")
            }
        }
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Timestamp(..) => {
            let times = array.as_primitive::<TimestampNanosecondType>();
            times.value(row).to_string()
        }
        DataType::Utf8 => quoted(array.as_string::<i32>().value(row)),
        other => format!("\"? {other}\""),
    }
}
