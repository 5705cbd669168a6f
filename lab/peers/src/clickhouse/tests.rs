//! The driver against a small server that answers from a list and keeps what it was asked.

use super::*;
use marigram_lab::data::{Column, FieldKind, TagKind, Values};
use marigram_lab::question::{Aggregate, Ask, Cell, Select, Selection};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A request: its path, its body.
type Request = (String, Vec<u8>);

fn serve(stream: TcpStream, answer: impl Fn(&str) -> (u16, String), requests: &Sender<Request>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut writer = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).expect("a request") == 0 {
            return;
        }
        let path = line.split(' ').nth(1).expect("a path").to_owned();
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).expect("a header");
            let header = header.trim().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let (status, text) = answer(&String::from_utf8_lossy(&body));
        requests.send((path, body)).expect("the test listens");
        write!(
            writer,
            "HTTP/1.1 {status} x\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        )
        .expect("an answer");
    }
}

/// A server that answers each statement by `answer`.
fn server(answer: fn(&str) -> (u16, String)) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let sender = sender.clone();
            let stream = stream.expect("a client");
            std::thread::spawn(move || serve(stream, answer, &sender));
        }
    });
    (url, receiver)
}

fn answers(sql: &str) -> (u16, String) {
    let text = match sql {
        "SELECT version()" => "26.9.1\n",
        sql if sql.starts_with("SELECT sum(bytes_on_disk)") => "1234\n",
        sql if sql.starts_with("SELECT name, ts, i") => "d7\t1970-01-01T00:00:01.000000000Z\t\\N\n",
        sql if sql.starts_with("SELECT nothing") => return (404, "Code: 60".to_owned()),
        _ => "",
    };
    (200, text.to_owned())
}

fn tables() -> Arc<[Table]> {
    let text = |text: &str| Some(text.to_owned());
    let table = Table::new(
        "t",
        &[
            ("name", TagKind::Text),
            ("number", TagKind::Integer),
            ("site", TagKind::Text),
        ],
        0,
        &[("i", FieldKind::I32), ("s", FieldKind::Text)],
        vec![
            vec![text("d7"), text("7"), text("n")],
            vec![text("d8"), text("8"), None],
        ],
    );
    vec![table].into()
}

fn target(url: &str) -> Box<dyn Target> {
    let settings = Settings {
        url: Some(url.to_owned()),
        ..Settings::default()
    };
    (KIND.make)(&settings).expect("an address is all it needs")
}

#[test]
fn without_an_address_it_says_why() {
    let error = (KIND.make)(&Settings::default()).err().expect("no address");
    assert!(
        error.to_string().contains("--peer clickhouse=http://"),
        "{error}"
    );
}

#[test]
fn a_life_with_a_server() {
    let (url, requests) = server(answers);
    let mut target = target(&url);
    let folder = tempfile::tempdir().expect("a folder");
    target.start(folder.path()).expect("started");
    assert_eq!(target.facts().version, "ClickHouse 26.9.1");
    let tables = tables();
    target.create(&tables).expect("created");
    let mut session = target.connect(&tables).expect("connected");
    let rows = Rows {
        table: 0,
        series: vec![1],
        times: vec![2],
        columns: vec![
            Column {
                values: Values::I32(vec![3]),
                present: None,
            },
            Column {
                values: Values::Text(vec![String::new()]),
                present: Some(vec![false]),
            },
        ],
    };
    let payload = session.encode(&rows).expect("encoded");
    assert_eq!((payload.rows, payload.points), (1, 1));
    session.write(&payload).expect("written");
    let question = Question {
        name: "q".to_owned(),
        ask: Ask::Select(Select::all(0, Selection::Last(vec![0]))),
    };
    let reply = session.ask(&question).expect("asked");
    let answer = session.decode(&question, reply).expect("decoded");
    let name = Cell::Text("d7".to_owned());
    assert_eq!(answer.rows, [[name, Cell::Time(1_000_000_000), Cell::Null]]);
    target.settle(&tables).expect("settled");
    assert_eq!(target.disk_bytes().expect("a size"), 1234);
    assert_eq!(target.restart(&tables).expect("not ours"), None);
    target.stop().expect("stopped");

    let requests: Vec<Request> = requests.try_iter().collect();
    let bodies: Vec<_> = requests
        .iter()
        .map(|(_, body)| String::from_utf8_lossy(body))
        .collect();
    assert_eq!(
        bodies[3],
        "CREATE TABLE t (name LowCardinality(String) CODEC(ZSTD(1)), \
         number Int64 CODEC(T64, ZSTD(1)), site LowCardinality(Nullable(String)) CODEC(ZSTD(1)), \
         ts DateTime64(9, 'UTC') CODEC(DoubleDelta, ZSTD(1)), i Nullable(Int32) CODEC(T64, ZSTD(1)), \
         s Nullable(String) CODEC(ZSTD(1))) ENGINE = ReplacingMergeTree ORDER BY (name, ts)"
    );
    let (path, body) = &requests[4];
    assert!(
        path.ends_with("&query=INSERT%20INTO%20t%20FORMAT%20RowBinary"),
        "{path}"
    );
    let mut expected = b"\x02d8".to_vec();
    expected.extend(8_i64.to_le_bytes());
    expected.push(1);
    expected.extend(2_i64.to_le_bytes());
    expected.extend([0, 3, 0, 0, 0, 1]);
    assert_eq!(body, &expected);
    assert_eq!(
        bodies[5],
        "SELECT name, ts, i FROM t ORDER BY name DESC, ts DESC LIMIT 1 BY name"
    );
    assert_eq!(bodies[6], "OPTIMIZE TABLE t FINAL");
}

#[test]
fn an_error_of_the_server_is_an_error() {
    let (url, _requests) = server(|_| (500, "Code: 241. DB::Exception".to_owned()));
    let folder = tempfile::tempdir().expect("a folder");
    let error = target(&url).start(folder.path()).expect_err("it fails");
    assert!(format!("{error:#}").contains("Code: 241"), "{error:#}");
}

#[test]
fn text_is_not_added_up_and_marigrams_sql_not_asked() {
    let target = target("http://127.0.0.1:1");
    let question = |ask| Question {
        name: "q".to_owned(),
        ask,
    };
    let sum = Select::all(0, Selection::Aggregates(vec![(Aggregate::Sum, 1)]));
    let sql = Ask::Sql("SELECT 1".to_owned());
    for ask in [Ask::Select(sum), sql] {
        assert!(target.cannot(&tables(), &question(ask)).is_some());
    }
    let count = Select::all(0, Selection::Aggregates(vec![(Aggregate::Count, 1)]));
    assert_eq!(
        target.cannot(&tables(), &question(Ask::Select(count))),
        None
    );
}
