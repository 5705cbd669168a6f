//! SQL logic tests: runs every `testing/slt/*.slt` in an embedded database of its own.
//!
//! Each file starts with an empty data directory on the real disk, and its statements go through
//! `SqlService` like those of every client. `MARIGRAM_BLESS=1` writes the actual answers into the
//! files, for a person to review before they are committed. An expected error is a regular
//! expression over `SQLSTATE [@position]: message`.
#![allow(
    clippy::disallowed_methods,
    reason = "a test runner reads its cases from disk and may use what the machine has"
)]

#[path = "slt/asof.rs"]
mod asof;
#[path = "slt/column_names.rs"]
mod column_names;
#[path = "slt/copy.rs"]
mod copy;
#[path = "slt/gaps.rs"]
mod gaps;
#[path = "slt/guide.rs"]
mod guide;
#[path = "slt/inline.rs"]
mod inline;
#[path = "slt/lateral.rs"]
mod lateral;
#[path = "slt/model.rs"]
mod model;
#[path = "slt/notices.rs"]
mod notices;
#[path = "slt/parameters.rs"]
mod parameters;
#[path = "slt/prepared.rs"]
mod prepared;
#[path = "slt/random.rs"]
mod random;
#[path = "slt/service.rs"]
mod service;
#[path = "slt/views.rs"]
mod views;
#[path = "slt/wrong.rs"]
mod wrong;
#[path = "slt/zones.rs"]
mod zones;

use arrow::array::Array;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::StreamExt;
use marigram_engine::{Durability, Engine, EngineOptions};
use marigram_env::Env;
use marigram_service::{Answer, Identity, Query, ServiceError, Session};
use marigram_sql::{SqlOptions, SqlService};
use sqllogictest::{
    AsyncDB, DBOutput, DefaultColumnType, Runner, default_column_validator, default_normalizer,
    default_validator,
};
use std::path::{Path, PathBuf};

/// A session of a database in a directory that is removed with it.
struct Database {
    sql: SqlService,
    session: Session,
    _dir: tempfile::TempDir,
}

#[derive(Debug)]
struct Failure(ServiceError);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.sqlstate())?;
        if let Some(position) = self.0.position() {
            write!(f, " @{position}")?;
        }
        write!(f, ": {}", self.0)
    }
}

impl std::error::Error for Failure {}

impl Database {
    async fn open() -> Result<Self, Failure> {
        Self::open_with(256 << 20).await
    }

    async fn open_with(memory_limit_bytes: usize) -> Result<Self, Failure> {
        // Several partitions, however few rows there are.
        let sql = SqlOptions {
            partition_rows: 1,
            ..SqlOptions::default()
        };
        Self::open_as(memory_limit_bytes, sql).await
    }

    async fn open_as(memory_limit_bytes: usize, sql: SqlOptions) -> Result<Self, Failure> {
        let internal = |error: String| Failure(ServiceError::Internal(error));
        let dir = tempfile::tempdir().map_err(|error| internal(error.to_string()))?;
        let options = EngineOptions {
            shards: 2,
            durability: Durability::Os,
            memory_limit_bytes,
            flush_bytes_max: 16 << 20,
            flush_age_max: None,
            background_threads: 0,
            ..EngineOptions::default()
        };
        let engine = Engine::open(Env::real(), &dir.path().join("data"), options)
            .map_err(|error| internal(error.to_string()))?;
        let sql = SqlService::new(engine, sql).map_err(Failure)?;
        let session = sql
            .session(None, &Identity::owner("tester"))
            .await
            .map_err(Failure)?;
        Ok(Self {
            sql,
            session,
            _dir: dir,
        })
    }
}

#[async_trait::async_trait]
impl AsyncDB for Database {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let answer = self
            .sql
            .execute(&mut self.session, sql)
            .await
            .map_err(Failure)?;
        let mut rows = match answer {
            Answer::Done { rows, .. } => return Ok(DBOutput::StatementComplete(rows)),
            Answer::Rows(rows) => rows,
        };
        let fields = rows.schema.fields();
        let types = fields
            .iter()
            .map(|field| column_type(field.data_type()))
            .collect();
        let mut texts = Vec::new();
        while let Some(batch) = rows.batches.next().await {
            texts.extend(to_texts(&batch.map_err(Failure)?));
        }
        Ok(DBOutput::Rows { types, rows: texts })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &'static str {
        "marigram"
    }
}

fn column_type(data_type: &DataType) -> DefaultColumnType {
    match data_type {
        _ if data_type.is_integer() => DefaultColumnType::Integer,
        _ if data_type.is_floating() => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

fn to_texts(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column, &options).expect("every type has a text"))
        .collect();
    let text = |column: usize, row: usize| {
        if batch.column(column).is_null(row) {
            return "NULL".to_owned();
        }
        // A value takes one line of a case.
        let text = columns[column]
            .value(row)
            .to_string()
            .trim_end()
            .replace('\n', "\\n");
        if text.is_empty() {
            "(empty)".to_owned()
        } else {
            text
        }
    };
    (0..batch.num_rows())
        .map(|row| (0..columns.len()).map(|column| text(column, row)).collect())
        .collect()
}

fn cases() -> Vec<PathBuf> {
    let dir = marigram_fixtures::root().join("testing/slt");
    let entries = std::fs::read_dir(dir).expect("the folder of the cases can be listed");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .collect();
    paths.sort();
    paths
}

#[test]
fn statements_answer_as_written() {
    let only = std::env::var("MARIGRAM_SLT").unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    let (mut failures, mut run) = (Vec::new(), 0);
    for path in cases()
        .into_iter()
        .filter(|path| path.to_string_lossy().contains(&only))
    {
        run += 1;
        let runner = Runner::new(Database::open);
        let result = runtime.block_on(check(runner, &path));
        if let Err(error) = result {
            failures.push(format!("{}:\n{error}", path.display()));
        }
    }
    assert!(run > 0, "there are cases");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

async fn check<M>(mut runner: Runner<Database, M>, path: &Path) -> Result<(), String>
where
    M: sqllogictest::MakeConnection<Conn = Database>,
{
    if marigram_fixtures::is_blessing() {
        return runner
            .update_test_file(
                path,
                " ",
                default_validator,
                default_normalizer,
                default_column_validator,
            )
            .await
            .map_err(|error| error.to_string());
    }
    runner
        .run_file_async(path)
        .await
        .map_err(|error| error.to_string())
}
