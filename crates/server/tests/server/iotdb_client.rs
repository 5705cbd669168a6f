//! A small client of IoTDB's protocol, and a database of trees that answers a few statements.

use crate::fake::{Fake, services};
use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use futures::StreamExt;
use marigram_iotdb::wire::{
    MessageHead, MessageKind, WireProtocol, WireRead, WireWrite, WireWriter, message_head,
    write_call,
};
use marigram_iotdb::{
    ExecuteStatementRequest, ExecuteStatementResponse, IGNORES_TIME_KEY, OpenSessionRequest,
    StatusMessage,
};
use marigram_model::WriteBatch;
use marigram_server::{RunningServers, ServedDatabase, ServerConfig, start};
use marigram_service::{
    Answer, ArrowRoles, Authentication, Ingest, LanguageQuery, LanguageRequest, OpenAccess,
    ROLE_KEY, Result, RowStream, ServiceError, Session, StatementAnswer, StatementAnswers,
    WriteReport,
};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A bound against a hang.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// A database of trees.
#[derive(Default)]
pub(crate) struct TreeFake {
    pub(crate) fake: Arc<Fake>,
    /// Every statement, with its user and time zone.
    pub(crate) texts: Mutex<Vec<(String, String, String)>>,
    /// What the database `root.sg` has as fields.
    pub(crate) fields: Mutex<Vec<(&'static str, DataType)>>,
    /// How often somebody asked for them.
    pub(crate) asked: AtomicUsize,
}

/// Starts a server with a listener for IoTDB's clients only.
pub(crate) async fn serve_trees(
    access: Arc<dyn Authentication>,
    change: impl FnOnce(&mut ServerConfig),
) -> (RunningServers, Arc<TreeFake>) {
    let tree = Arc::new(TreeFake::default());
    let served = ServedDatabase {
        languages: tree.clone(),
        ingest: tree.clone(),
        access,
        ..services(&tree.fake)
    };
    let any: Option<SocketAddr> = "127.0.0.1:0".parse().ok();
    let mut config = ServerConfig {
        http: None,
        postgres: None,
        iotdb: any,
        ..ServerConfig::default()
    };
    change(&mut config);
    (start(config, served).await.unwrap(), tree)
}

/// The same, where everyone may do everything.
pub(crate) async fn serve_open_trees() -> (RunningServers, Arc<TreeFake>) {
    serve_trees(Arc::new(OpenAccess), |_| {}).await
}

pub(crate) fn address(running: &RunningServers) -> SocketAddr {
    running.address("iotdb").unwrap()
}

impl TreeFake {
    /// The rows that were stored: database, device, ms, and the fields that have values.
    pub(crate) fn rows(&self) -> Vec<(String, String, i64, Vec<String>)> {
        let lines = self.fake.lines.lock().unwrap();
        let mut rows = Vec::new();
        for (database, batch) in lines.iter() {
            assert_eq!(batch.table, "devices");
            batch.check().unwrap();
            for row in 0..batch.len() {
                let slot = batch.slots[row] as usize;
                let device = batch.tags[0].value(slot).unwrap();
                let fields = batch.fields.iter();
                let set = fields.filter(|field| !field.values.is_null(row));
                let set = set.map(|field| {
                    let value = arrow::util::display::array_value_to_string(&field.values, row);
                    format!("{}={}", field.name, value.unwrap())
                });
                let device = match device {
                    marigram_model::TagValueRef::String(text) => text.to_owned(),
                    other => panic!("{other:?}"),
                };
                let ms = batch.times[row] / 1_000_000;
                rows.push((database.clone(), device, ms, set.collect()));
            }
        }
        rows
    }

    /// The statements that clients sent.
    pub(crate) fn statements(&self) -> Vec<String> {
        let texts = self.texts.lock().unwrap();
        let of_clients = texts.iter().filter(|(user, ..)| user != "iotdb");
        of_clients.map(|(_, text, _)| text.clone()).collect()
    }

    fn answer(text: &str) -> Result<Answer> {
        let numbers = |from: i64, to: i64| {
            let times: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
            let values = (from..to).map(|n| (n % 2 == 0).then_some(n as f64 / 2.0));
            let values: ArrayRef = Arc::new(values.collect::<Float64Array>());
            RecordBatch::try_from_iter([("Time", times), ("root.sg.d1.s1", values)]).unwrap()
        };
        let rows = |batches: Vec<Result<RecordBatch>>| {
            let schema = match &batches[0] {
                Ok(batch) => batch.schema(),
                Err(_) => numbers(0, 0).schema(),
            };
            let batches = futures::stream::iter(batches).boxed();
            Ok(Answer::Rows(RowStream::new(schema, batches)))
        };
        match text {
            "SHOW DATABASES" => rows(vec![Ok(texts(&[("Database", &["root.sg", "main"])]))]),
            "SHOW TIMESERIES root.sg.d1.*" => rows(vec![Ok(texts(&[
                ("Timeseries", &["root.sg.d1.s1", "root.sg.d1.`a b`"]),
                ("DataType", &["INT32", "DOUBLE"]),
            ]))]),
            text if text.starts_with("SHOW TIMESERIES ") => {
                rows(vec![Ok(texts(&[("Timeseries", &[]), ("DataType", &[])]))])
            }
            "select many" => rows(
                (0..30)
                    .map(|n| Ok(numbers(n * 100, n * 100 + 100)))
                    .collect(),
            ),
            "select none" => rows(vec![Ok(numbers(0, 0))]),
            "select broken" => rows(vec![
                Ok(numbers(0, 10)),
                Err(ServiceError::Internal("page 7 is damaged".to_owned())),
            ]),
            "select forever" => {
                let schema = numbers(0, 0).schema();
                let batches = futures::stream::pending().boxed();
                Ok(Answer::Rows(RowStream::new(schema, batches)))
            }
            text if text.starts_with("select bad") => Err(ServiceError::Invalid {
                message: "[701] it means nothing".to_owned(),
                position: None,
                sqlstate: "22023",
            }),
            _ => Ok(Answer::Done {
                tag: "OK".to_owned(),
                rows: 0,
                notices: Vec::new(),
            }),
        }
    }
}

/// A batch of texts without time.
fn texts(columns: &[(&str, &[&str])]) -> RecordBatch {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, _)| Field::new(*name, DataType::Utf8, true))
        .collect();
    let metadata = HashMap::from([(IGNORES_TIME_KEY.to_owned(), "true".to_owned())]);
    let schema = Schema::new(fields).with_metadata(metadata);
    let arrays = columns.iter().map(|(_, texts)| {
        let array: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        array
    });
    RecordBatch::try_new(Arc::new(schema), arrays.collect()).unwrap()
}

#[async_trait]
impl LanguageQuery for TreeFake {
    async fn run(&self, session: &Session, request: LanguageRequest) -> Result<StatementAnswers> {
        let user = session.identity.user.clone();
        let seen = (user, request.text.clone(), session.time_zone.clone());
        self.texts.lock().unwrap().push(seen);
        let answer = StatementAnswer {
            statement_id: 0,
            answer: Self::answer(&request.text),
            messages: Vec::new(),
        };
        Ok(futures::stream::iter([answer]).boxed())
    }
}

#[async_trait]
impl Ingest for TreeFake {
    async fn write(
        &self,
        database: &str,
        batches: Vec<WriteBatch>,
        create_database: bool,
    ) -> Result<Vec<WriteReport>> {
        self.fake.write(database, batches, create_database).await
    }

    async fn write_measurements(
        &self,
        database: &str,
        policy: Option<&str>,
        batches: Vec<WriteBatch>,
        create_database: bool,
    ) -> Result<Vec<WriteReport>> {
        let written = self
            .fake
            .write_measurements(database, policy, batches, create_database);
        written.await
    }

    async fn table_schema(&self, database: &str, table: &str) -> Result<SchemaRef> {
        assert_eq!(database, "root.sg");
        let fields = self.fields.lock().unwrap();
        if table == "devices" {
            self.asked.fetch_add(1, Ordering::SeqCst);
        }
        if table != "devices" || fields.is_empty() {
            let message = "table 'devices' does not exist".to_owned();
            return Err(ServiceError::NotFound(message, "42P01"));
        }
        let role = HashMap::from([(ROLE_KEY.to_owned(), "field".to_owned())]);
        let fields = fields
            .iter()
            .map(|(name, kind)| Field::new(*name, kind.clone(), true).with_metadata(role.clone()));
        Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
    }

    async fn write_arrow(
        &self,
        database: &str,
        table: &str,
        batch: RecordBatch,
        roles: Option<&ArrowRoles>,
    ) -> Result<WriteReport> {
        self.fake.write_arrow(database, table, batch, roles).await
    }
}

/// A client.
pub(crate) struct TreeClient {
    pub(crate) socket: TcpStream,
    protocol: WireProtocol,
    sequence: i32,
}

impl TreeClient {
    /// A client without a session.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self {
            socket: TcpStream::connect(address).await.unwrap(),
            protocol: WireProtocol::Binary,
            sequence: 0,
        }
    }

    /// A client with a session.
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let mut client = Self::connect(address).await;
        let reply = client.log_in("root", "root").await;
        assert_eq!(reply.0, 200, "{reply:?}");
        client
    }

    /// The same in the compact protocol.
    pub(crate) async fn open_compact(address: SocketAddr) -> Self {
        let mut client = Self::connect(address).await;
        client.protocol = WireProtocol::Compact;
        assert_eq!(client.log_in("root", "root").await.0, 200);
        client
    }

    /// Opens a session; returns code and message.
    pub(crate) async fn log_in(&mut self, user: &str, password: &str) -> (i32, String) {
        let request = OpenSessionRequest {
            client_protocol: 2,
            zone: "Asia/Shanghai",
            username: user,
            password: Some(password),
            configuration: None,
        };
        let reply = self.call("openSession", 1, &request).await;
        let response: marigram_iotdb::OpenSessionResponse<'_> = result(&reply);
        status_of(&response.status)
    }

    /// Calls a method with one argument; returns the message.
    pub(crate) async fn call<T: WireWrite>(&mut self, method: &str, id: i16, it: &T) -> Vec<u8> {
        self.call_with(method, |writer| writer.field(id, it)).await
    }

    /// Calls a method.
    pub(crate) async fn call_with(
        &mut self,
        method: &str,
        arguments: impl FnOnce(&mut WireWriter),
    ) -> Vec<u8> {
        self.sequence += 1;
        let head = MessageHead {
            protocol: self.protocol,
            kind: MessageKind::Call,
            method,
            sequence: self.sequence,
        };
        let message = write_call(&head, arguments);
        let reply = self.exchange(&message).await;
        let (found, _) = message_head(&reply, 1 << 20).unwrap();
        assert_eq!(
            (found.method, found.sequence, found.protocol),
            (method, self.sequence, self.protocol)
        );
        reply
    }

    /// Sends a message as a frame, and reads one.
    pub(crate) async fn exchange(&mut self, message: &[u8]) -> Vec<u8> {
        let len = u32::try_from(message.len()).unwrap();
        self.socket.write_all(&len.to_be_bytes()).await.unwrap();
        self.socket.write_all(message).await.unwrap();
        self.frame().await
    }

    /// Reads a frame.
    pub(crate) async fn frame(&mut self) -> Vec<u8> {
        let read = async {
            let len = self.socket.read_u32().await.unwrap();
            let mut bytes = vec![0; len as usize];
            self.socket.read_exact(&mut bytes).await.unwrap();
            bytes
        };
        tokio::time::timeout(SOON, read).await.unwrap()
    }

    /// Calls a method that answers a status.
    pub(crate) async fn status<T: WireWrite>(&mut self, method: &str, it: &T) -> (i32, String) {
        let reply = self.call(method, 1, it).await;
        status_of(&result::<StatusMessage<'_>>(&reply))
    }

    /// Runs a statement; hands the answer to `look`.
    pub(crate) async fn statement<T>(
        &mut self,
        method: &str,
        text: &str,
        fetch_size: i32,
        look: impl FnOnce(&ExecuteStatementResponse<'_>) -> T,
    ) -> T {
        let request = ExecuteStatementRequest {
            session_id: 1,
            statement: text,
            statement_id: 1,
            fetch_size: Some(fetch_size),
            timeout_ms: None,
        };
        let reply = self.call(method, 1, &request).await;
        look(&result(&reply))
    }
}

/// What a reply has as its result.
pub(crate) fn result<'a, T: WireRead<'a>>(reply: &'a [u8]) -> T {
    let (head, mut reader) = message_head(reply, 1 << 24).unwrap();
    assert_eq!(head.kind, MessageKind::Reply, "{}", head.method);
    let mut found = None;
    let read = reader.fields(|reader, id, _| {
        assert_eq!(id, 0);
        found = Some(T::read(reader)?);
        Ok(true)
    });
    read.unwrap();
    found.unwrap()
}

pub(crate) fn status_of(status: &StatusMessage<'_>) -> (i32, String) {
    (status.code, status.message.unwrap_or_default().to_owned())
}
