//! A database that understands a few statements of TDengine, and remembers those that it gets.

use crate::fake::{Fake, services};
use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray, UInt64Array,
};
use arrow::datatypes::{Field, Schema};
use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{BoxStream, iter, pending, repeat_with};
use marigram_access::{AccessRights, PasswordVerifiers};
use marigram_server::{RunningServers, ServedDatabase, ServerConfig, start};
use marigram_service::{
    Answer, Authentication, Identity, Language, LanguageQuery, LanguageRequest, OpenAccess, Result,
    RowStream, ServiceError, Session, StatementAnswer, StatementAnswers,
};
use marigram_tdengine::{PRECISION_KEY, TYPE_KEY};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The database.
#[derive(Default)]
pub(crate) struct FakeTaos {
    /// The statements, each behind its database and a colon.
    pub(crate) statements: Mutex<Vec<String>>,
    /// Streams of rows that are open.
    pub(crate) alive: Arc<AtomicUsize>,
    /// Whether the table of lines was created.
    created: Mutex<bool>,
}

/// Serves it on a free port.
pub(crate) async fn serve_taos(
    access: Arc<dyn Authentication>,
    change: impl FnOnce(&mut ServerConfig),
) -> (RunningServers, Arc<FakeTaos>) {
    let fake = Arc::new(FakeTaos::default());
    let services = ServedDatabase {
        languages: fake.clone(),
        access,
        ..services(&Arc::new(Fake::default()))
    };
    let mut config = ServerConfig {
        http: None,
        postgres: None,
        tdengine: Some("127.0.0.1:0".parse().unwrap()),
        ..ServerConfig::default()
    };
    change(&mut config);
    (start(config, services).await.unwrap(), fake)
}

/// The address of the listener.
pub(crate) fn address(running: &RunningServers) -> SocketAddr {
    running.address("tdengine").unwrap()
}

/// A column with its type.
fn field(name: &str, kind: &str, array: &ArrayRef) -> Field {
    let metadata = HashMap::from([(TYPE_KEY.to_owned(), kind.to_owned())]);
    Field::new(name, array.data_type().clone(), true).with_metadata(metadata)
}

fn batch(precision: &str, columns: Vec<(&str, &str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<_> = columns
        .iter()
        .map(|(name, kind, array)| field(name, kind, array))
        .collect();
    let metadata = HashMap::from([(PRECISION_KEY.to_owned(), precision.to_owned())]);
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    let arrays = columns.into_iter().map(|(.., array)| array).collect();
    RecordBatch::try_new(schema, arrays).unwrap()
}

/// Two rows of many types, the second one of NULL.
fn types() -> RecordBatch {
    let columns: Vec<(&str, &str, ArrayRef)> = vec![
        (
            "ts",
            "TIMESTAMP",
            Arc::new(TimestampNanosecondArray::from(vec![
                1_500_000_000,
                1_501_000_000,
            ])),
        ),
        (
            "b",
            "BOOL",
            Arc::new(BooleanArray::from(vec![Some(true), None])),
        ),
        ("i", "INT", Arc::new(Int64Array::from(vec![Some(-3), None]))),
        (
            "u",
            "BIGINT UNSIGNED",
            Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])),
        ),
        (
            "f",
            "FLOAT",
            Arc::new(Float64Array::from(vec![Some(0.5), None])),
        ),
        (
            "n",
            "NCHAR(8)",
            Arc::new(StringArray::from(vec![Some("日本"), None])),
        ),
        (
            "v",
            "VARBINARY(4)",
            Arc::new(BinaryArray::from_opt_vec(vec![Some(&[1, 255]), None])),
        ),
        (
            "j",
            "JSON",
            Arc::new(StringArray::from(vec![Some("{\"a\":1}"), None])),
        ),
    ];
    batch("ms", columns)
}

fn numbers(from: i64, to: i64) -> RecordBatch {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
    batch("ms", vec![("n", "BIGINT", values)])
}

/// What DESCRIBE tells of a column: name, type, length and note.
type DescribedColumn = (&'static str, &'static str, i64, &'static str);

fn described(rows: &[DescribedColumn]) -> RecordBatch {
    let texts = |of: fn(&DescribedColumn) -> &'static str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
    };
    let lengths = Int64Array::from_iter_values(rows.iter().map(|row| row.2));
    batch(
        "us",
        vec![
            ("field", "VARCHAR(64)", texts(|row| row.0)),
            ("type", "VARCHAR(32)", texts(|row| row.1)),
            ("length", "INT", Arc::new(lengths)),
            ("note", "VARCHAR(12)", texts(|row| row.3)),
        ],
    )
}

/// Counts a stream while it is open.
struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl FakeTaos {
    fn rows(
        &self,
        batches: BoxStream<'static, Result<RecordBatch>>,
        schema: &RecordBatch,
    ) -> Answer {
        self.alive.fetch_add(1, Ordering::SeqCst);
        let alive = Alive(self.alive.clone());
        let batches = batches.map(move |batch| {
            let _ = &alive;
            batch
        });
        Answer::Rows(RowStream::new(schema.schema(), batches.boxed()))
    }

    fn one(&self, batch: RecordBatch) -> Answer {
        let schema = batch.clone();
        self.rows(iter([Ok(batch)]).boxed(), &schema)
    }

    fn answer(&self, text: &str) -> Result<Answer> {
        let failed = |message: &str, sqlstate| {
            Err(ServiceError::Invalid {
                message: message.to_owned(),
                position: None,
                sqlstate,
            })
        };
        let done = |rows| Answer::Done {
            tag: String::new(),
            rows,
            notices: Vec::new(),
        };
        Ok(match text {
            "select types" => self.one(types()),
            "select many" => {
                let batches = (0..300).map(|at| Ok(numbers(at * 1000, at * 1000 + 1000)));
                self.rows(iter(batches.collect::<Vec<_>>()).boxed(), &numbers(0, 0))
            }
            "select endless" => self.rows(pending().boxed(), &numbers(0, 0)),
            "select flood" => {
                let rows = repeat_with(|| Ok(numbers(0, 100_000)));
                self.rows(rows.boxed(), &numbers(0, 0))
            }
            "select broken" => {
                let broken = Err(ServiceError::Internal("page 7 is damaged".to_owned()));
                self.rows(iter([Ok(numbers(0, 1)), broken]).boxed(), &numbers(0, 0))
            }
            "select broken far away" => {
                let broken = Err(ServiceError::Internal("page 7 is damaged".to_owned()));
                let rows = (0..300).map(|at| Ok(numbers(at * 1000, at * 1000 + 1000)));
                let rows: Vec<_> = rows.chain([broken]).collect();
                self.rows(iter(rows).boxed(), &numbers(0, 0))
            }
            "select nothing" => return failed("[0x2603] Table does not exist: nothing", "42P01"),
            "DESCRIBE st" | "DESCRIBE `st`" => self.one(described(&[
                ("ts", "TIMESTAMP", 8, ""),
                ("v", "INT", 4, ""),
                ("note", "VARCHAR", 16, ""),
                ("place", "NCHAR", 8, "TAG"),
            ])),
            "DESCRIBE `cpu`" if *self.created.lock().unwrap() => self.one(described(&[
                ("_ts", "TIMESTAMP", 8, ""),
                ("idle", "DOUBLE", 8, ""),
                ("host", "NCHAR", 16, "TAG"),
            ])),
            text if text.starts_with("DESCRIBE") => {
                return failed("[0x2603] Table does not exist", "42P01");
            }
            text if text.starts_with("CREATE STABLE") => {
                *self.created.lock().unwrap() = true;
                done(0)
            }
            text if text.starts_with("ALTER STABLE") => done(0),
            text if text.starts_with("INSERT INTO") => done(text.matches('(').count() as u64),
            "USE `power`" | "use power" => done(0),
            text if text.starts_with("USE") || text.starts_with("use") => {
                return failed("[0x0388] Database not exist", "3D000");
            }
            _ => return failed("[0x2600] syntax error near \"x\"", "42601"),
        })
    }
}

#[async_trait]
impl LanguageQuery for FakeTaos {
    async fn run(&self, session: &Session, request: LanguageRequest) -> Result<StatementAnswers> {
        assert_eq!(request.language, Language::TDengine);
        let text = request.text;
        let answer = self.answer(&text);
        let noted = format!("{}:{text}", session.database);
        self.statements.lock().unwrap().push(noted);
        let answer = StatementAnswer {
            statement_id: 0,
            answer,
            messages: Vec::new(),
        };
        Ok(iter([answer]).boxed())
    }
}

/// A server with users: anybody whose password is `right`.
pub(crate) struct WithUsers;

#[async_trait]
impl Authentication for WithUsers {
    fn is_open(&self) -> bool {
        false
    }

    fn rights(&self, identity: &Identity) -> Result<Arc<AccessRights>> {
        OpenAccess.rights(identity)
    }

    async fn check_password(&self, user: &str, password: &str) -> Result<Identity> {
        if password == "right" {
            return Ok(Identity::of_password(user, 1));
        }
        Err(marigram_service::wrong_password())
    }

    fn check_token(&self, token: &str) -> Option<Identity> {
        (token == "mgt_right").then(|| Identity::of_password("ann", 1))
    }

    fn user_number(&self, user: &str) -> u64 {
        OpenAccess.user_number(user)
    }

    fn verifiers(&self, user: &str) -> PasswordVerifiers {
        OpenAccess.verifiers(user)
    }
}
