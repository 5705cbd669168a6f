//! IoTDB's clients against the real binary: rows in, queries out, users.

use crate::access::add_user_with;
use crate::server::{ServeProcess, free_port};
use marigram_iotdb::wire::{
    MessageHead, MessageKind, WireMap, WireProtocol, WireRead, WireWrite, message_head, write_call,
};
use marigram_iotdb::{
    DeleteDataRequest, ExecuteStatementRequest, ExecuteStatementResponse, FetchResultsRequest,
    FetchResultsResponse, InsertRecordRequest, InsertTabletRequest, OpenSessionRequest,
    OpenSessionResponse, StatusMessage,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A server that takes IoTDB's clients, and their port.
fn start(data: &std::path::Path) -> (ServeProcess, u16) {
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let server = ServeProcess::start(data, &["--iotdb", &address]);
    (server, port)
}

struct TreeClient {
    socket: TcpStream,
}

impl TreeClient {
    fn connect(port: u16) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).expect("the server answers");
        let minute = Some(Duration::from_mins(1));
        socket.set_read_timeout(minute).expect("the server answers");
        Self { socket }
    }

    fn open(port: u16) -> Self {
        let mut client = Self::connect(port);
        assert_eq!(client.log_in("root", "root"), 200);
        client
    }

    fn log_in(&mut self, user: &str, password: &str) -> i32 {
        let request = OpenSessionRequest {
            client_protocol: 2,
            zone: "UTC",
            username: user,
            password: Some(password),
            configuration: Some(WireMap(vec![("version", "V_1_0"), ("sql_dialect", "tree")])),
        };
        let reply = self.call("openSession", 1, &request);
        result::<OpenSessionResponse<'_>>(&reply).status.code
    }

    fn call<T: WireWrite>(&mut self, method: &str, id: i16, argument: &T) -> Vec<u8> {
        let head = MessageHead {
            protocol: WireProtocol::Binary,
            kind: MessageKind::Call,
            method,
            sequence: 1,
        };
        let message = write_call(&head, |writer| writer.field(id, argument));
        let len = u32::try_from(message.len()).expect("a short message");
        let socket = &mut self.socket;
        socket.write_all(&len.to_be_bytes()).expect("it is sent");
        socket.write_all(&message).expect("it is sent");
        let mut len = [0; 4];
        socket.read_exact(&mut len).expect("an answer");
        let mut reply = vec![0; u32::from_be_bytes(len) as usize];
        socket.read_exact(&mut reply).expect("an answer");
        reply
    }

    fn status<T: WireWrite>(&mut self, method: &str, argument: &T) -> (i32, String) {
        let reply = self.call(method, 1, argument);
        let status: StatusMessage<'_> = result(&reply);
        let message = status.message.unwrap_or_default();
        (status.code, message.to_owned())
    }

    fn run(&mut self, text: &str) {
        let reply = self.call("executeUpdateStatementV2", 1, &statement(text));
        let response: ExecuteStatementResponse<'_> = result(&reply);
        assert_eq!(response.status.code, 200, "{text}: {:?}", response.status);
    }

    /// The columns of a query, and its rows as blocks.
    fn blocks(&mut self, text: &str) -> (Vec<String>, Vec<Vec<u8>>) {
        let reply = self.call("executeQueryStatementV2", 1, &statement(text));
        let response: ExecuteStatementResponse<'_> = result(&reply);
        assert_eq!(response.status.code, 200, "{text}: {:?}", response.status);
        let names = response.columns.unwrap_or_default();
        let names = names.into_iter().map(str::to_owned).collect();
        let owned = |blocks: Vec<&[u8]>| blocks.into_iter().map(<[u8]>::to_vec).collect::<Vec<_>>();
        let mut blocks: Vec<Vec<u8>> = owned(response.blocks.unwrap_or_default());
        let mut has_more = response.has_more == Some(true);
        while has_more {
            let fetch = FetchResultsRequest {
                session_id: 1,
                statement: text,
                fetch_size: 100,
                query_id: response.query_id.expect("a query"),
                timeout_ms: None,
            };
            let reply = self.call("fetchResultsV2", 1, &fetch);
            let response: FetchResultsResponse<'_> = result(&reply);
            assert_eq!(response.status.code, 200, "{:?}", response.status);
            blocks.extend(owned(response.blocks.unwrap_or_default()));
            has_more = response.has_more == Some(true);
        }
        (names, blocks)
    }

    /// The number of rows of a query.
    fn count(&mut self, text: &str) -> u32 {
        let (_, blocks) = self.blocks(text);
        blocks.iter().map(|block| rows_of(block)).sum()
    }
}

fn statement(text: &str) -> ExecuteStatementRequest<'_> {
    ExecuteStatementRequest {
        session_id: 1,
        statement: text,
        statement_id: 1,
        fetch_size: Some(100),
        timeout_ms: None,
    }
}

fn result<'a, T: WireRead<'a>>(reply: &'a [u8]) -> T {
    let (head, mut reader) = message_head(reply, 1 << 24).expect("a message");
    assert_eq!(head.kind, MessageKind::Reply);
    let mut found = None;
    reader
        .fields(|reader, _, _| {
            found = Some(T::read(reader)?);
            Ok(true)
        })
        .expect("a result");
    found.expect("a result")
}

/// The number of rows of a block: behind the number of its columns and their types.
fn rows_of(block: &[u8]) -> u32 {
    let word = |at: usize| u32::from_be_bytes(block[at..at + 4].try_into().expect("four bytes"));
    word(4 + word(0) as usize)
}

fn record<'a>(device: &'a str, values: &'a [u8], time: i64) -> InsertRecordRequest<'a> {
    InsertRecordRequest {
        session_id: 1,
        device,
        measurements: vec!["s1"],
        values,
        time,
        writes_to_table: None,
    }
}

#[test]
fn rows_come_in_and_queries_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (mut server, port) = start(dir.path());
    let mut client = TreeClient::open(port);
    let reply = client.call("setStorageGroup", 2, &"root.sg");
    assert_eq!(result::<StatusMessage<'_>>(&reply).code, 200);
    let times: Vec<u8> = (0..1000_i64).flat_map(i64::to_be_bytes).collect();
    let ints: Vec<u8> = (0..1000_i32).flat_map(i32::to_be_bytes).collect();
    let texts: Vec<u8> = [0, 0, 0, 1, b'x'].repeat(1000);
    let tablet = InsertTabletRequest {
        session_id: 1,
        device: "root.sg.d1",
        measurements: vec!["s1", "s2"],
        values: &[ints, texts].concat(),
        times: &times,
        types: vec![1, 5],
        rows: 1000,
        writes_to_table: None,
        is_compressed: None,
    };
    let stored = client.status("insertTablet", &tablet);
    assert_eq!(stored.0, 200, "{stored:?}");
    let value = [1, 0, 0, 0, 7];
    let stored = client.status("insertRecord", &record("root.other.d", &value, 5));
    assert_eq!(stored.0, 200, "{stored:?}");
    client.run("INSERT INTO root.sg.d2(timestamp, s1) VALUES (1, 5), (2, 6)");
    // What was acknowledged survives.
    server.kill_and_restart();
    let mut client = TreeClient::open(port);
    let (names, blocks) = client.blocks("SELECT s1, s2 FROM root.sg.d1");
    assert_eq!(names, ["root.sg.d1.s1", "root.sg.d1.s2"]);
    assert_eq!(blocks.len(), 10);
    assert_eq!(blocks.iter().map(|block| rows_of(block)).sum::<u32>(), 1000);
    assert_eq!(client.count("SELECT s1 FROM root.other.d"), 1);
    assert_eq!(client.count("SELECT s1 FROM root.sg.d2"), 2);
    assert_eq!(client.count("SHOW DATABASES"), 2);
    // A text does not fit an integer; at another device it is a timeseries of its own.
    let text = [5, 0, 0, 0, 1, b'x'];
    let refused = client.status("insertRecord", &record("root.sg.d1", &text, 5));
    assert_eq!(refused.0, 507, "{refused:?}");
    let stored = client.status("insertRecord", &record("root.sg.d3", &text, 5));
    assert_eq!(stored.0, 200, "{stored:?}");
    assert_eq!(client.count("SELECT s1 FROM root.sg.d3"), 1);
    assert_eq!(client.count("SELECT s1 FROM root.sg.d1"), 1000);
    let delete = DeleteDataRequest {
        session_id: 1,
        paths: vec!["root.sg.d1.s1"],
        start: 0,
        end: 899,
    };
    assert_eq!(client.status("deleteData", &delete).0, 200);
    assert_eq!(client.count("SELECT s1 FROM root.sg.d1"), 100);
    // The rows are those of a table.
    let statement = "SELECT count(s1) AS n FROM \"root.sg\".devices WHERE device = 'root.sg.d1'";
    let accept = [("Accept", "text/csv")];
    let rows = server.request("POST", "/api/v1/sql?db=main", &accept, statement.as_bytes());
    assert_eq!(
        (rows.status, rows.body.replace("\r\n", "\n")),
        (200, "n\n100\n".to_owned())
    );
    let reply = client.call("deleteStorageGroups", 2, &vec!["root.sg", "root.other"]);
    assert_eq!(result::<StatusMessage<'_>>(&reply).code, 200);
    assert_eq!(client.count("SHOW DATABASES"), 0);
}

#[test]
fn users_log_in() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    add_user_with(&data, "root", "correct horse", &["--admin"]);
    let (_server, port) = start(&data);
    let mut client = TreeClient::connect(port);
    let value = [1, 0, 0, 0, 7];
    let row = record("root.sg.d", &value, 5);
    assert_eq!(client.status("insertRecord", &row).0, 802);
    let begin = Instant::now();
    assert_eq!(client.log_in("root", "root"), 801);
    assert!(
        begin.elapsed() >= Duration::from_millis(100),
        "a failure is answered late"
    );
    assert_eq!(client.log_in("root", "correct horse"), 200);
    let stored = client.status("insertRecord", &row);
    assert_eq!(stored.0, 200, "{stored:?}");
    assert_eq!(client.count("SELECT s1 FROM root.sg.d"), 1);
}
