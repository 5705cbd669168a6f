//! A test database in memory that takes Flux and shows tables as text.

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampNanosecondType, UInt64Type};
use arrow::record_batch::RecordBatch;
use futures::StreamExt;
use marigram_engine::{Durability, Engine, EngineOptions, WriteOptions};
use marigram_env::Env;
use marigram_flux_interpreter::FluxLanguage;
use marigram_protocol::lines::{LineLimits, Precision, parse};
use marigram_service::{
    Answer, FLUX_GROUP_KEY, FLUX_RESULT_KEY, FLUX_TABLE_KEY, Identity, Language, LanguageQuery,
    LanguageRequest, Session,
};
use marigram_sql::{ReferenceStore, SqlOptions, SqlService};
use std::fmt::Write;
use std::sync::Arc;

/// A database and a client session.
pub(crate) struct FluxHarness {
    engine: Engine,
    sql: SqlService,
    session: Session,
    _dir: tempfile::TempDir,
}

impl FluxHarness {
    /// An empty database `d` with a limit of memory, bytes.
    pub(crate) fn new(memory_limit_bytes: usize) -> Self {
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
        let front_end = Arc::new(FluxLanguage::default());
        let reference = ReferenceStore::in_memory().expect("a store");
        let options = SqlOptions::default();
        let sql = SqlService::with_front_ends(engine.clone(), reference, options, vec![front_end])
            .expect("a service");
        Self {
            engine,
            sql,
            session: Session::new("main", Identity::owner("tester")),
            _dir: dir,
        }
    }

    /// Writes lines whose times are seconds.
    pub(crate) fn write(&self, lines: &str) {
        let limits = LineLimits {
            tagged_fields: true,
            ..LineLimits::default()
        };
        let parsed = parse(lines.as_bytes(), Precision::Seconds, 0, limits);
        assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
        for batch in &parsed.batches {
            let report = self
                .engine
                .write("d", batch, WriteOptions { grow: true })
                .expect("rows are stored");
            assert!(report.rejected.is_empty(), "{:?}", report.rejected);
        }
    }

    /// The tables of a script, or its error.
    pub(crate) async fn ask(&self, script: &str) -> String {
        let request = LanguageRequest {
            prelude: "option now = () => 1970-01-01T01:00:00Z".to_owned(),
            ..LanguageRequest::new(Language::Flux, script)
        };
        match self.tables(request).await {
            Ok(text) => text,
            Err(error) => format!("! {error}\n"),
        }
    }

    async fn tables(&self, request: LanguageRequest) -> marigram_service::Result<String> {
        let mut answers = self.sql.run(&self.session, request).await?;
        let mut text = String::new();
        while let Some(answer) = answers.next().await {
            let Answer::Rows(mut rows) = answer.answer? else {
                panic!("a script answers rows");
            };
            let mut last = String::new();
            while let Some(batch) = rows.batches.next().await.transpose()? {
                show(&mut text, &mut last, &batch);
            }
        }
        Ok(text)
    }
}

/// Adds the rows of a batch: before those of a table a line with the result, the columns and their
/// types; a star marks the group key.
fn show(text: &mut String, last: &mut String, batch: &RecordBatch) {
    let schema = batch.schema();
    let metadata = |key: &str| schema.metadata().get(key).cloned();
    let result = metadata(FLUX_RESULT_KEY).unwrap_or_default();
    let Some(number) = metadata(FLUX_TABLE_KEY) else {
        last.clear();
        return;
    };
    let table = format!("{result} {number}");
    if *last != table {
        let columns = schema.fields().iter().map(|field| {
            let star = if field.metadata().contains_key(FLUX_GROUP_KEY) {
                "*"
            } else {
                ""
            };
            let kind = match field.data_type() {
                DataType::Boolean => "bool",
                DataType::Int64 => "int",
                DataType::UInt64 => "uint",
                DataType::Float64 => "float",
                DataType::Utf8 => "string",
                _ => "time",
            };
            format!("{}{star}:{kind}", field.name())
        });
        let _ = writeln!(text, "{table} {}", columns.collect::<Vec<_>>().join(" "));
        *last = table;
    }
    for row in 0..batch.num_rows() {
        let values = batch
            .columns()
            .iter()
            .map(|column| value(column.as_ref(), row));
        let _ = writeln!(text, "  {}", values.collect::<Vec<_>>().join(" "));
    }
}

/// A value; times as seconds.
fn value(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "-".to_owned();
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Float64 => format!("{:?}", array.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        _ => {
            let ns = array.as_primitive::<TimestampNanosecondType>().value(row);
            format!("{}s", ns as f64 / 1e9)
        }
    }
}
