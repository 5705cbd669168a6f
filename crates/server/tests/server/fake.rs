//! An in-memory database that answers a handful of statements with canned rows, and stores what is
//! written to it.

use arrow::array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, RecordBatch,
    StringArray, TimestampNanosecondArray, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit, UInt32Type};
use async_trait::async_trait;
use futures::StreamExt;
use marigram_model::WriteBatch;
use marigram_server::{RunningServers, ServedDatabase, ServerConfig, start};
use marigram_service::{
    Answer, ArrowRoles, Backup, BackupReport, CommitPoint, Identity, Ingest, LanguageQuery,
    LanguageRequest, Metric, Prepared, Query, ROLE_KEY, RejectedRow, Result, RowStream,
    ServiceError, Session, StatementAnswer, StatementAnswers, Status, WriteReport,
};
use std::any::Any;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The database.
#[derive(Default)]
pub(crate) struct Fake {
    /// Rows written as line protocol, by database.
    pub lines: Mutex<Vec<(String, WriteBatch)>>,
    /// Batches from COPY.
    pub copied: Mutex<Vec<RecordBatch>>,
    /// Roles of tables that were created.
    pub created: Mutex<Vec<ArrowRoles>>,
    /// Streams of rows that are still open.
    pub alive: Arc<AtomicUsize>,
    /// Batches of `select flood` that were requested.
    pub made: Arc<AtomicUsize>,
    /// Folders for which backups were requested, and how many to keep.
    pub backups: Mutex<Vec<(PathBuf, Option<usize>)>>,
    /// Number of statements that ran.
    pub statements: AtomicUsize,
    /// Whether writes are refused.
    pub read_only: AtomicBool,
    /// Whether there is no memory for requests.
    pub memory_full: AtomicBool,
    /// Bytes that requests hold.
    pub memory_taken: AtomicUsize,
    /// Limit of that; 0 means 64 MiB.
    pub memory_max: AtomicUsize,
}

/// A fake as what servers serve.
pub(crate) fn services(fake: &Arc<Fake>) -> ServedDatabase {
    ServedDatabase {
        ingest: fake.clone(),
        query: fake.clone(),
        languages: fake.clone(),
        access: Arc::new(marigram_service::OpenAccess),
        status: fake.clone(),
        backup: fake.clone(),
    }
}

/// Starts servers over a new fake on free ports.
pub(crate) async fn serve(change: impl FnOnce(&mut ServerConfig)) -> (RunningServers, Arc<Fake>) {
    let fake = Arc::new(Fake::default());
    let services = services(&fake);
    let any = Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0));
    let mut config = ServerConfig {
        http: any,
        postgres: any,
        flight: any,
        opentsdb: any,
        ..ServerConfig::default()
    };
    change(&mut config);
    (start(config, services).await.unwrap(), fake)
}

/// Columns of the table `readings`.
pub(crate) fn readings() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Nanosecond, None);
    Arc::new(Schema::new(vec![
        Field::new("time", time, false),
        Field::new("device", DataType::Utf8, true),
        Field::new("value", DataType::Float64, true),
        Field::new("count", DataType::Int64, true),
    ]))
}

/// Counts a stream as open while it exists.
struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn numbers(from: i64, to: i64) -> RecordBatch {
    let values: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
    RecordBatch::try_from_iter([("n", values)]).unwrap()
}

/// A batch of 8 MiB of text.
fn flood() -> RecordBatch {
    let text = "x".repeat(8 << 10);
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..1024).map(|_| &text)));
    RecordBatch::try_from_iter([("text", texts)]).unwrap()
}

fn types() -> RecordBatch {
    let tags: DictionaryArray<UInt32Type> = vec![Some("d_1"), None].into_iter().collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "time",
            Arc::new(TimestampNanosecondArray::from(vec![1_500_000_000, 0])),
        ),
        ("tag", Arc::new(tags)),
        ("f", Arc::new(Float64Array::from(vec![Some(1.5), None]))),
        ("big", Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN]))),
        ("huge", Arc::new(UInt64Array::from(vec![u64::MAX, 0]))),
        ("ok", Arc::new(BooleanArray::from(vec![true, false]))),
        ("text", Arc::new(StringArray::from(vec!["a,\"b\"\tc", ""]))),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

impl Fake {
    fn rows(&self, batches: Vec<Result<RecordBatch>>, endless: bool) -> Answer {
        let schema = match &batches[0] {
            Ok(batch) => batch.schema(),
            Err(_) => numbers(0, 0).schema(),
        };
        self.alive.fetch_add(1, Ordering::SeqCst);
        let alive = Alive(self.alive.clone());
        let rest = if endless {
            futures::stream::pending().boxed()
        } else {
            futures::stream::empty().boxed()
        };
        let batches = futures::stream::iter(batches)
            .chain(rest)
            .map(move |batch| {
                let _ = &alive;
                batch
            });
        Answer::Rows(RowStream::new(schema, batches.boxed()))
    }

    fn answer(&self, sql: &str) -> Result<Answer> {
        let broken = || {
            Err(ServiceError::Internal(
                "page 7 of segment 3 is damaged".to_owned(),
            ))
        };
        Ok(match sql.trim() {
            "select types" | "SELECT * FROM readings" => self.rows(vec![Ok(types())], false),
            "select many" => self.rows(
                (0..30)
                    .map(|at| Ok(numbers(at * 1000, at * 1000 + 1000)))
                    .collect(),
                false,
            ),
            // More rows than all buffers on the way can hold, and no end.
            "select flood" => {
                let schema = flood().schema();
                self.alive.fetch_add(1, Ordering::SeqCst);
                let alive = Alive(self.alive.clone());
                let made = self.made.clone();
                let batches = futures::stream::repeat_with(move || {
                    let _ = &alive;
                    made.fetch_add(1, Ordering::SeqCst);
                    Ok(flood())
                });
                let batches = batches.boxed();
                Answer::Rows(RowStream::new(schema, batches))
            }
            "select none" => self.rows(vec![Ok(numbers(0, 0))], false),
            "select endless" => self.rows(vec![Ok(numbers(0, 10))], true),
            "select broken" => self.rows(vec![Ok(numbers(0, 10)), broken()], false),
            "select broken far away" => {
                let rows = (0..30).map(|at| Ok(numbers(at * 1000, at * 1000 + 1000)));
                self.rows(rows.chain([broken()]).collect(), false)
            }
            "select broken at once" => self.rows(vec![broken()], false),
            "create table t" => Answer::Done {
                tag: "CREATE TABLE".to_owned(),
                rows: 0,
                notices: Vec::new(),
            },
            other => {
                let position = other.find("bad").map(|at| at + 1);
                let message = format!("this is not understood: {other}");
                return Err(ServiceError::Invalid {
                    message,
                    position,
                    sqlstate: "42601",
                });
            }
        })
    }
}

#[async_trait]
impl Ingest for Fake {
    async fn write(
        &self,
        database: &str,
        batches: Vec<WriteBatch>,
        _create_database: bool,
    ) -> Result<Vec<WriteReport>> {
        if self.read_only.load(Ordering::SeqCst) {
            return Err(ServiceError::ReadOnly("the disk is full".to_owned()));
        }
        let mut lines = self.lines.lock().unwrap();
        let reports = batches.iter().map(|batch| {
            // Rows with a negative time are refused, so that there are some.
            let bad = batch
                .times
                .iter()
                .enumerate()
                .filter(|(_, time)| **time < 0);
            let rejected: Vec<_> = bad
                .map(|(row, _)| RejectedRow {
                    row,
                    reason: "too old".to_owned(),
                })
                .collect();
            WriteReport {
                stored: batch.len() - rejected.len(),
                rejected,
                created: Vec::new(),
            }
        });
        let reports = reports.collect();
        lines.extend(
            batches
                .into_iter()
                .map(|batch| (database.to_owned(), batch)),
        );
        Ok(reports)
    }

    async fn write_measurements(
        &self,
        database: &str,
        retention_policy: Option<&str>,
        mut batches: Vec<WriteBatch>,
        create_database: bool,
    ) -> Result<Vec<WriteReport>> {
        if database == "nowhere" && !create_database {
            let message = "database 'nowhere' does not exist".to_owned();
            return Err(ServiceError::NotFound(message, "3D000"));
        }
        match retention_policy {
            None | Some("autogen") => {}
            Some("week") => {
                for batch in &mut batches {
                    batch.table.insert_str(0, "week.");
                }
            }
            Some(name) => {
                let message = format!("retention policy not found: {name}");
                return Err(ServiceError::NotFound(message, "42704"));
            }
        }
        self.write(database, batches, create_database).await
    }

    async fn table_schema(&self, _database: &str, table: &str) -> Result<SchemaRef> {
        if table != "readings" {
            let message = format!("table '{table}' does not exist");
            return Err(ServiceError::NotFound(message, "42P01"));
        }
        Ok(readings())
    }

    async fn write_arrow(
        &self,
        _database: &str,
        _table: &str,
        batch: RecordBatch,
        roles: Option<&ArrowRoles>,
    ) -> Result<WriteReport> {
        if let Some(roles) = roles {
            self.created.lock().unwrap().push(roles.clone());
        }
        let times = batch.column_by_name("time").unwrap();
        let rejected: Vec<_> = (0..batch.num_rows())
            .filter(|row| times.is_null(*row))
            .map(|row| RejectedRow {
                row,
                reason: "it has no time".to_owned(),
            })
            .collect();
        let stored = batch.num_rows() - rejected.len();
        self.copied.lock().unwrap().push(batch);
        Ok(WriteReport {
            stored,
            rejected,
            created: Vec::new(),
        })
    }
}

/// `select $1` and the like.
struct FakePrepared {
    sql: String,
    parameters: Vec<DataType>,
    schema: Option<SchemaRef>,
}

impl Prepared for FakePrepared {
    fn parameters(&self) -> &[DataType] {
        &self.parameters
    }

    fn schema(&self) -> Option<SchemaRef> {
        self.schema.clone()
    }

    fn sql(&self) -> &str {
        &self.sql
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Types of the parameters of `select echo`.
fn echoed() -> Vec<DataType> {
    vec![
        DataType::Int64,
        DataType::Float64,
        DataType::Utf8,
        DataType::Boolean,
        DataType::Timestamp(TimeUnit::Nanosecond, None),
        DataType::Binary,
    ]
}

#[async_trait]
impl Query for Fake {
    async fn session(&self, database: Option<&str>, identity: &Identity) -> Result<Session> {
        match database.unwrap_or("main") {
            name @ ("main" | "other") => Ok(Session::new(name, identity.clone())),
            name => {
                let message = format!("database '{name}' does not exist; there are main, other");
                Err(ServiceError::NotFound(message, "3D000"))
            }
        }
    }

    async fn execute(&self, session: &mut Session, statement: &str) -> Result<Answer> {
        let words: Vec<_> = statement.split_whitespace().collect();
        if session.read_only && words.first() == Some(&"SET") {
            return Err(ServiceError::ChangesRefused("it sets something".to_owned()));
        }
        if let [
            "SET",
            "TIME",
            "ZONE",
            "INTERVAL",
            zone,
            "HOUR",
            "TO",
            "MINUTE",
        ] = words.as_slice()
        {
            assert_eq!(*zone, "'+02:00'");
            return Ok(Answer::Done {
                tag: "SET".to_owned(),
                rows: 0,
                notices: Vec::new(),
            });
        }
        if let ["SET", "\"timezone\"", "=", zone] = words.as_slice() {
            if zone.contains("Nowhere") {
                return Err(ServiceError::Invalid {
                    message: format!("time zone {zone} does not exist"),
                    position: Some(1),
                    sqlstate: "22023",
                });
            }
            zone.trim_matches('\'').clone_into(&mut session.time_zone);
            return Ok(Answer::Done {
                tag: "SET".to_owned(),
                rows: 0,
                notices: Vec::new(),
            });
        }
        if session.read_only && words.first() != Some(&"select") {
            return Err(ServiceError::ChangesRefused(
                "it changes something".to_owned(),
            ));
        }
        self.statements.fetch_add(1, Ordering::SeqCst);
        if let ["set", "timeout", ms] = words.as_slice() {
            session.statement_timeout = Some(Duration::from_millis(ms.parse().unwrap()));
            return Ok(Answer::Done {
                tag: "SET".to_owned(),
                rows: 0,
                notices: Vec::new(),
            });
        }
        if words == ["write", "slowly"] {
            return write_slowly(1).await;
        }
        if words == ["write", "on", "and", "on"] {
            return write_slowly(usize::MAX).await;
        }
        if statement.starts_with("SET \"") {
            return Ok(Answer::Done {
                tag: "SET".to_owned(),
                rows: 0,
                notices: Vec::new(),
            });
        }
        self.answer(statement)
    }

    async fn prepare_typed(
        &self,
        _session: &Session,
        statement: &str,
        _types: &[DataType],
    ) -> Result<Arc<dyn Prepared>> {
        let mut parameters = Vec::new();
        let schema = if statement.starts_with("select echo") {
            parameters = echoed();
            let fields = parameters.iter().enumerate();
            let fields: Vec<_> = fields
                .map(|(at, kind)| Field::new(format!("c{at}"), kind.clone(), true))
                .collect();
            Some(Arc::new(Schema::new(fields)))
        } else {
            match self.answer(statement)? {
                Answer::Rows(rows) => Some(rows.schema),
                Answer::Done { .. } => None,
            }
        };
        Ok(Arc::new(FakePrepared {
            sql: statement.to_owned(),
            parameters,
            schema,
        }))
    }

    async fn execute_prepared(
        &self,
        session: &mut Session,
        prepared: &dyn Prepared,
        parameters: Vec<ArrayRef>,
    ) -> Result<Answer> {
        if parameters.is_empty() {
            return self.execute(session, prepared.sql()).await;
        }
        let batch = RecordBatch::try_new(prepared.schema().unwrap(), parameters).unwrap();
        Ok(self.rows(vec![Ok(batch)], false))
    }
}

/// Writes a row in each of many steps, which take longer than the timeouts of tests.
async fn write_slowly(steps: usize) -> Result<Answer> {
    let commit = CommitPoint::of_task();
    for step in 1..=steps {
        let begun = commit.begin_write(step == steps);
        let work = tokio::task::spawn_blocking(move || {
            let mut step = begun?;
            std::thread::sleep(Duration::from_millis(100));
            step.stored(1);
            Ok::<_, ServiceError>(())
        });
        work.await.unwrap()?;
    }
    Ok(Answer::Done {
        tag: format!("INSERT 0 {steps}"),
        rows: steps as u64,
        notices: Vec::new(),
    })
}

fn series_column(name: &str, role: &str, array: &ArrayRef) -> Field {
    let role = HashMap::from([(ROLE_KEY.to_owned(), role.to_owned())]);
    Field::new(name, array.data_type().clone(), true).with_metadata(role)
}

/// Rows `from..to` of two series of the measurement `cpu`; the second begins with row 5.
fn series_rows(from: i64, to: i64) -> RecordBatch {
    let numbers = || from..to;
    let name = StringArray::from_iter_values(numbers().map(|_| "cpu"));
    let host: DictionaryArray<UInt32Type> = numbers()
        .map(|n| if n < 5 { None } else { Some("b,c") })
        .collect();
    let times = TimestampNanosecondArray::from_iter_values(numbers().map(|n| n * 500_000_000));
    let floats = Float64Array::from_iter_values(numbers().map(|n| n as f64 / 2.0));
    let texts = numbers()
        .map(|n| (n % 2 == 0).then_some("<é>"))
        .collect::<StringArray>();
    let columns: Vec<(&str, &str, ArrayRef)> = vec![
        ("iox::measurement", "measurement", Arc::new(name)),
        ("host", "tag", Arc::new(host)),
        ("time", "time", Arc::new(times)),
        ("v", "field", Arc::new(floats)),
        ("s", "field", Arc::new(texts)),
    ];
    let fields: Vec<_> = columns
        .iter()
        .map(|(name, role, array)| series_column(name, role, array))
        .collect();
    let arrays = columns.into_iter().map(|(.., array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// `SHOW` of one series without a name; no rows where `names` is empty.
fn series_of_names(names: &[&str]) -> RecordBatch {
    let texts: ArrayRef = if names.is_empty() {
        Arc::new(StringArray::from(vec![None::<&str>]))
    } else {
        Arc::new(StringArray::from(names.to_vec()))
    };
    let field = series_column("name", "field", &texts);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![texts]).unwrap()
}

impl Fake {
    fn statement(&self, session: &Session, text: &str) -> Result<Answer> {
        self.statements.fetch_add(1, Ordering::SeqCst);
        let broken = || Err(ServiceError::Internal("page 7 is damaged".to_owned()));
        Ok(match text {
            "SELECT series" => {
                let batches = [(0, 3), (3, 7), (7, 8)];
                let batches = batches.map(|(from, to)| Ok(series_rows(from, to)));
                self.rows(batches.into(), false)
            }
            "SELECT many" => self.rows(
                (0..30)
                    .map(|at| Ok(series_rows(at * 1000, at * 1000 + 1000)))
                    .collect(),
                false,
            ),
            "SELECT none" => self.rows(vec![Ok(series_rows(0, 0))], false),
            "SELECT broken" => self.rows(vec![Ok(series_rows(0, 1)), broken()], false),
            "SELECT endless" => self.rows(vec![Ok(series_rows(0, 1))], true),
            "SHOW NAMES" => self.rows(vec![Ok(series_of_names(&["a", "b"]))], false),
            "SHOW NOTHING" => self.rows(vec![Ok(series_of_names(&[]))], false),
            "SHOW USER" => self.rows(vec![Ok(series_of_names(&[&session.identity.user]))], false),
            "CREATE DATABASE d" if session.read_only => {
                let message = "this changes something; use POST".to_owned();
                return Err(ServiceError::ChangesRefused(message));
            }
            "CREATE DATABASE d" => Answer::Done {
                tag: String::new(),
                rows: 0,
                notices: vec!["this is a notice".to_owned()],
            },
            other => {
                let message = format!("undefined function {other}()");
                return Err(ServiceError::Invalid {
                    message,
                    position: None,
                    sqlstate: "42883",
                });
            }
        })
    }
}

#[async_trait]
impl LanguageQuery for Fake {
    async fn run(&self, session: &Session, request: LanguageRequest) -> Result<StatementAnswers> {
        if request.text == "SELECT" {
            return Err(ServiceError::Invalid {
                message: "error parsing query: found EOF".to_owned(),
                position: None,
                sqlstate: "42601",
            });
        }
        let statements = request.text.split(';').map(str::trim);
        let mut answers = Vec::new();
        for (statement_id, text) in statements.filter(|text| !text.is_empty()).enumerate() {
            let answer = self.statement(session, text);
            let failed = answer.is_err();
            answers.push(StatementAnswer {
                statement_id,
                answer,
                messages: Vec::new(),
            });
            if failed {
                break;
            }
        }
        Ok(futures::stream::iter(answers).boxed())
    }
}

#[async_trait]
impl Status for Fake {
    fn health(&self) -> std::result::Result<(), String> {
        if self.read_only.load(Ordering::SeqCst) {
            return Err("writes are refused: the disk is full".to_owned());
        }
        Ok(())
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![Metric {
            name: "marigram_series",
            help: "Series that are known",
            counter: false,
            labels: vec![("shard", "0".to_owned())],
            value: 7.0,
        }]
    }

    fn take_memory(&self, bytes: usize) -> bool {
        let full = self.memory_full.load(Ordering::SeqCst);
        if !full {
            self.memory_taken.fetch_add(bytes, Ordering::SeqCst);
        }
        !full
    }

    fn give_memory(&self, bytes: usize) {
        self.memory_taken.fetch_sub(bytes, Ordering::SeqCst);
    }

    fn memory_max(&self) -> usize {
        match self.memory_max.load(Ordering::SeqCst) {
            0 => 64 << 20,
            bytes => bytes,
        }
    }
}

#[async_trait]
impl Backup for Fake {
    async fn backup(&self, folder: &Path, keep: Option<usize>) -> Result<BackupReport> {
        let mut backups = self.backups.lock().unwrap();
        backups.push((folder.to_owned(), keep));
        Ok(BackupReport {
            number: backups.len() as u64,
            taken_ns: 7,
            bytes: 1 << 60,
            ..BackupReport::default()
        })
    }
}
