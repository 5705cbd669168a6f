//! A database in memory, and a client's session that sends statements of TDengine.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]
#![allow(dead_code, reason = "each test uses a part")]

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimestampNanosecondType, UInt64Type};
use futures::StreamExt;
use marigram_engine::{Durability, Engine, EngineOptions};
use marigram_env::Env;
use marigram_service::{
    Answer, Identity, Language, LanguageQuery, LanguageRequest, Result, ServiceError, Session,
};
use marigram_sql::{ReferenceStore, SqlOptions, SqlService};
use marigram_tdengine::{PRECISION_KEY, TYPE_KEY, TaosCode, TaosPrecision};
use marigram_tdengine_planner::TDengineStatements;
use std::path::Path;
use std::sync::Arc;

/// The database and the session.
pub(crate) struct Harness {
    pub(crate) engine: Engine,
    pub(crate) sql: SqlService,
    pub(crate) session: Session,
    dir: tempfile::TempDir,
}

/// An answer: names and types of columns, and rows as texts.
pub(crate) struct Rows {
    pub(crate) columns: Vec<(String, String)>,
    pub(crate) rows: Vec<Vec<String>>,
}

fn open(dir: &Path) -> (Engine, SqlService) {
    let options = EngineOptions {
        shards: 2,
        durability: Durability::Os,
        memory_limit_bytes: 512 << 20,
        background_threads: 0,
        flush_age_max: None,
        ..EngineOptions::default()
    };
    let engine = Engine::open(Env::real(), &dir.join("data"), options).unwrap();
    let front_ends = vec![Arc::new(TDengineStatements::default()) as _];
    let reference = ReferenceStore::in_memory().unwrap();
    let options = SqlOptions::default();
    let sql = SqlService::with_front_ends(engine.clone(), reference, options, front_ends).unwrap();
    (engine, sql)
}

impl Harness {
    /// A server without databases.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (engine, sql) = open(dir.path());
        Self {
            engine,
            sql,
            session: Session::new("", Identity::owner("root")),
            dir,
        }
    }

    /// A server with the database `d` as the session's.
    pub(crate) async fn with_database() -> Self {
        let mut new = Self::new();
        new.done("CREATE DATABASE d").await;
        new.done("USE d").await;
        "d".clone_into(&mut new.session.database);
        new
    }

    /// Closes and opens the server again.
    pub(crate) fn reopen(self) -> Self {
        let Self {
            engine,
            sql,
            session,
            dir,
        } = self;
        drop(sql);
        engine.close().unwrap();
        drop(engine);
        let (engine, sql) = open(dir.path());
        Self {
            engine,
            sql,
            session,
            dir,
        }
    }

    async fn ask(&self, text: &str) -> Result<Answer> {
        let request = LanguageRequest::new(Language::TDengine, text);
        let mut answers = self.sql.run(&self.session, request).await?;
        answers.next().await.expect("one answer").answer
    }

    /// Runs a statement without rows; returns how many rows it changed.
    pub(crate) async fn done(&self, text: &str) -> u64 {
        match self.ask(text).await {
            Ok(Answer::Done { rows, .. }) => rows,
            Ok(Answer::Rows(_)) => panic!("{text}: an answer without rows was expected"),
            Err(error) => panic!("{text}: {error}"),
        }
    }

    /// Runs a query.
    pub(crate) async fn query(&self, text: &str) -> Rows {
        self.try_query(text)
            .await
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The rows of a query, each as one text.
    pub(crate) async fn rows(&self, text: &str) -> Vec<String> {
        let rows = self.query(text).await.rows;
        rows.into_iter().map(|row| row.join(" ")).collect()
    }

    /// The only value of a query.
    pub(crate) async fn value(&self, text: &str) -> String {
        let rows = self.rows(text).await;
        assert_eq!(rows.len(), 1, "{text}: {rows:?}");
        rows[0].clone()
    }

    /// The number of the error of a statement.
    pub(crate) async fn code(&self, text: &str) -> u16 {
        match self.try_query(text).await {
            Ok(_) => panic!("{text}: an error was expected"),
            Err(ServiceError::Invalid {
                sqlstate, message, ..
            }) => TaosCode::number_of_sqlstate(sqlstate)
                .unwrap_or_else(|| panic!("{text}: {message}")),
            Err(error) => panic!("{text}: {error:?}"),
        }
    }

    pub(crate) async fn try_query(&self, text: &str) -> Result<Rows> {
        let mut answer = match self.ask(text).await? {
            Answer::Rows(rows) => rows,
            Answer::Done { .. } => {
                return Ok(Rows {
                    columns: Vec::new(),
                    rows: Vec::new(),
                });
            }
        };
        let fields = answer.schema.fields().iter();
        let columns =
            fields.map(|field| (field.name().clone(), field.metadata()[TYPE_KEY].clone()));
        let columns = columns.collect();
        let precision = TaosPrecision::from_name(&answer.schema.metadata()[PRECISION_KEY]).unwrap();
        let mut rows = Vec::new();
        while let Some(batch) = answer.batches.next().await {
            let batch = batch?;
            for row in 0..batch.num_rows() {
                let values = batch.columns().iter();
                rows.push(values.map(|column| shown(column, row, precision)).collect());
            }
        }
        Ok(Rows { columns, rows })
    }
}

fn shown(column: &ArrayRef, row: usize, precision: TaosPrecision) -> String {
    if column.is_null(row) {
        return "NULL".to_owned();
    }
    match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Timestamp(..) => {
            let ns = column.as_primitive::<TimestampNanosecondType>().value(row);
            precision.ticks(ns).to_string()
        }
        DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
        DataType::Binary => format!("{:?}", column.as_binary::<i32>().value(row)),
        other => panic!("a column of type {other}"),
    }
}
