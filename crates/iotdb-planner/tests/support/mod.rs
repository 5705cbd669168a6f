//! A database in memory that statements of IoTDB are sent to.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]

use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::StreamExt;
use marigram_access::{AccessUser, DatabasePrivileges, PasswordVerifiers};
use marigram_engine::{Durability, Engine, EngineOptions};
use marigram_env::Env;
use marigram_iotdb::{IGNORES_TIME_KEY, IotDbFault, TIME_ANSWER, TYPE_KEY};
use marigram_iotdb_planner::IotDbStatements;
use marigram_service::{
    Answer, Identity, Language, LanguageQuery, LanguageRequest, Result, ServiceError, Session,
};
use marigram_sql::{ReferenceStore, SqlOptions, SqlService};
use std::sync::Arc;

pub(crate) struct Harness {
    pub(crate) engine: Engine,
    sql: SqlService,
    session: Session,
    _dir: tempfile::TempDir,
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with_memory(256 << 20)
    }

    pub(crate) fn with_memory(memory_limit_bytes: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = EngineOptions {
            shards: 2,
            durability: Durability::Os,
            memory_limit_bytes,
            background_threads: 0,
            flush_age_max: None,
            ..EngineOptions::default()
        };
        let engine = Engine::open(Env::real(), &dir.path().join("data"), options).unwrap();
        engine.create_database("main", true).unwrap();
        let front_ends = vec![Arc::new(IotDbStatements) as _];
        let reference = ReferenceStore::in_memory().unwrap();
        let options = SqlOptions::default();
        let sql =
            SqlService::with_front_ends(engine.clone(), reference, options, front_ends).unwrap();
        Self {
            engine,
            sql,
            session: Session::new("main", Identity::owner("tester")),
            _dir: dir,
        }
    }

    /// From here on, the client is a user who may do that in one database, and nothing else.
    pub(crate) fn restrict(&mut self, database: &str, privileges: DatabasePrivileges) {
        let access = self.sql.access();
        let user = AccessUser {
            number: 0,
            can_log_in: true,
            is_administrator: false,
            password: None,
            grants: [(database.to_owned(), privileges)].into(),
            roles: [].into(),
        };
        // Without an administrator, everyone may do everything.
        let administrator = AccessUser {
            is_administrator: true,
            password: Some(PasswordVerifiers::from_password("secret").unwrap()),
            grants: [].into(),
            ..user.clone()
        };
        access
            .change(|catalog| {
                catalog.create_user("root", administrator)?;
                catalog.create_user("ann", user)?;
                assert!(catalog.close());
                Ok(())
            })
            .unwrap();
        let identity = Identity::of_password("ann", access.user_number("ann"));
        self.session = Session::new("main", identity);
    }

    async fn ask(&self, statement: &str) -> Result<Option<String>> {
        let request = LanguageRequest::new(Language::IotDb, statement);
        let mut answers = self.sql.run(&self.session, request).await?;
        let mut text = None;
        while let Some(answer) = answers.next().await {
            let Answer::Rows(mut rows) = answer.answer? else {
                continue;
            };
            let schema = Arc::clone(&rows.schema);
            let columns: Vec<String> = schema
                .fields()
                .iter()
                .map(|field| format!("{} {}", field.name(), field.metadata()[TYPE_KEY]))
                .collect();
            let ignores_time = schema.metadata()[IGNORES_TIME_KEY] == "true";
            let begins_with_time = schema
                .fields()
                .first()
                .is_some_and(|it| it.name() == TIME_ANSWER);
            assert_ne!(ignores_time, begins_with_time, "{statement}");
            let mut out = columns.join(",") + "\n";
            while let Some(batch) = rows.batches.next().await {
                let batch = batch?;
                assert_eq!(batch.schema(), schema, "{statement}");
                let options = FormatOptions::default();
                let formatters: Vec<ArrayFormatter<'_>> = batch
                    .columns()
                    .iter()
                    .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
                    .collect();
                for row in 0..batch.num_rows() {
                    let values: Vec<String> = formatters
                        .iter()
                        .map(|it| it.value(row).to_string())
                        .collect();
                    out.push_str(&values.join(","));
                    out.push('\n');
                }
            }
            text = Some(out);
        }
        Ok(text)
    }

    /// The answer of a statement as text: the columns with their types, and the rows.
    pub(crate) async fn rows(&self, statement: &str) -> String {
        let answer = self.ask(statement).await;
        let answer = answer.unwrap_or_else(|error| panic!("{statement}: {error}"));
        answer.unwrap_or_else(|| panic!("{statement} has no rows"))
    }

    /// Runs a statement that has no rows.
    pub(crate) async fn done(&self, statement: &str) {
        let answer = self.ask(statement).await;
        let answer = answer.unwrap_or_else(|error| panic!("{statement}: {error}"));
        assert_eq!(answer, None, "{statement}");
    }

    pub(crate) async fn fault(&self, statement: &str) -> IotDbFault {
        let error: ServiceError = match self.ask(statement).await {
            Err(error) => error,
            Ok(answer) => panic!("{statement} succeeds: {answer:?}"),
        };
        IotDbFault::from_text(&error.to_string(), error.sqlstate())
    }

    /// Whether a statement fails with a code.
    pub(crate) async fn fails(&self, statement: &str, code: i32) -> bool {
        let fault = self.fault(statement).await;
        assert_eq!(fault.code.0, code, "{statement}: {fault}");
        true
    }
}
