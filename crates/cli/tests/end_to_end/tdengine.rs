//! TDengine's clients against the real binary: REST, WebSocket, lines, users.

use crate::access::add_user_with;
use crate::server::{ServeProcess, free_port, request};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// A server that takes TDengine's clients, and their port.
fn start(data: &Path) -> (ServeProcess, u16) {
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let server = ServeProcess::start(data, &["--tdengine", &address]);
    (server, port)
}

/// Runs a statement in the database `power`.
fn sql(port: u16, statement: &str) -> Value {
    let target = "/rest/sql/power";
    let answer = request(port, "POST", target, &[], statement.as_bytes());
    let answer = answer.expect("the server answers");
    assert_eq!(answer.status, 200, "{statement}: {}", answer.body);
    answer.json()
}

/// Runs a statement that succeeds; returns its rows.
fn rows(port: u16, statement: &str) -> Value {
    let answer = sql(port, statement);
    assert_eq!(answer["code"], 0, "{statement}: {answer}");
    answer["data"].clone()
}

/// A WebSocket that speaks JSON.
struct TextSocket(TcpStream);

impl TextSocket {
    fn connect(port: u16) -> Self {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("the server answers");
        let minute = Some(Duration::from_mins(1));
        socket.set_read_timeout(minute).expect("a timeout");
        let request = format!(
            "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        socket
            .write_all(request.as_bytes())
            .expect("the server reads");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).expect("the server answers");
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 101"));
        Self(socket)
    }

    fn ask(&mut self, request: &Value) -> Value {
        let text = request.to_string();
        let length = u16::try_from(text.len()).expect("a short request");
        let mut frame = vec![0x81, 0xfe];
        frame.extend(length.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        self.0.write_all(&frame).expect("the server reads");
        let mut head = [0; 2];
        self.0.read_exact(&mut head).expect("the server answers");
        assert_eq!(head[0], 0x81);
        let mut length = usize::from(head[1]);
        if length == 126 {
            let mut more = [0; 2];
            self.0.read_exact(&mut more).expect("the server answers");
            length = usize::from(u16::from_be_bytes(more));
        }
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).expect("the server answers");
        serde_json::from_slice(&payload).expect("JSON")
    }
}

#[test]
fn tables_are_made_filled_and_read_by_rest_and_websocket() {
    let dir = tempfile::tempdir().unwrap();
    let (mut server, port) = start(dir.path());
    assert_eq!(sql(port, "SHOW TABLES")["code"], 0x0388);
    rows(port, "CREATE DATABASE power");
    rows(
        port,
        "CREATE STABLE meters (ts TIMESTAMP, current FLOAT, voltage INT) \
         TAGS (groupid INT, location BINARY(24))",
    );
    let stored = rows(
        port,
        "INSERT INTO d1001 USING meters TAGS (2, 'San Francisco') VALUES (1538548685000, 10.3, 219) \
         (1538548695000, 12.6, 218) d1002 USING meters TAGS (3, 'Palo Alto') VALUES (1538548685000, 10.5, 220)",
    );
    assert_eq!(stored, json!([[3]]));
    // What was acknowledged survives.
    server.kill_and_restart();
    let answer = sql(port, "SELECT ts, current, voltage FROM d1001");
    assert_eq!(
        answer["column_meta"],
        json!([
            ["ts", "TIMESTAMP", 8],
            ["current", "FLOAT", 4],
            ["voltage", "INT", 4]
        ])
    );
    assert_eq!(
        answer["data"],
        json!([
            ["2018-10-03T06:38:05.000Z", 10.3, 219],
            ["2018-10-03T06:38:15.000Z", 12.6, 218]
        ])
    );
    let groups = "SELECT groupid, count(*) FROM meters GROUP BY groupid ORDER BY groupid";
    assert_eq!(rows(port, groups), json!([[2, 2], [3, 1]]));
    assert_eq!(sql(port, "SELECT * FROM nothing")["code"], 0x2603);

    let mut socket = TextSocket::connect(port);
    let conn = json!({"action": "conn", "args": {"req_id": 1, "user": "root", "password": "taosdata", "db": "power"}});
    assert_eq!(socket.ask(&conn)["code"], 0);
    let query = |sql: &str| json!({"action": "query", "args": {"req_id": 2, "sql": sql}});
    let answer = socket.ask(&query(
        "SELECT tbname, voltage FROM meters WHERE groupid = 3",
    ));
    assert_eq!(
        answer["fields_names"],
        json!(["tbname", "voltage"]),
        "{answer}"
    );
    let fetch = json!({"action": "fetch", "args": {"req_id": 3, "id": answer["id"]}});
    assert_eq!(socket.ask(&fetch)["rows"], 1);
    // A prepared statement.
    let id = socket.ask(&json!({"action": "init", "args": {"req_id": 4}}))["stmt_id"].clone();
    for (action, name, value) in [
        (
            "prepare",
            "sql",
            json!("INSERT INTO ? USING meters TAGS (?, ?) VALUES (?, ?, ?)"),
        ),
        ("set_table_name", "name", json!("d1003")),
        ("set_tags", "tags", json!([4, "it's"])),
        (
            "bind",
            "columns",
            json!([
                [1_538_548_685_000_i64, 1_538_548_686_000_i64],
                [1.5, null],
                [220, 221]
            ]),
        ),
        ("add_batch", "more", Value::Null),
    ] {
        let mut args = json!({"req_id": 5, "stmt_id": id});
        args[name] = value;
        let answer = socket.ask(&json!({"action": action, "args": args}));
        assert_eq!(answer["code"], 0, "{answer}");
    }
    let answer = socket.ask(&json!({"action": "exec", "args": {"req_id": 6, "stmt_id": id}}));
    assert_eq!(
        (&answer["code"], &answer["affected"]),
        (&json!(0), &json!(2)),
        "{answer}"
    );
    let last = "SELECT location, sum(voltage) FROM meters WHERE tbname = 'd1003' GROUP BY location";
    assert_eq!(rows(port, last), json!([["it's", 441]]));
}

#[test]
fn lines_become_super_tables() {
    let dir = tempfile::tempdir().unwrap();
    let (_server, port) = start(dir.path());
    rows(port, "CREATE DATABASE power PRECISION 'us'");
    let write = |target: &str, body: &str| {
        let answer = request(port, "POST", target, &[], body.as_bytes());
        let answer = answer.expect("the server answers");
        assert_eq!(answer.status, 204, "{target}: {}", answer.body);
    };
    let influx = "/influxdb/v1/write?db=power&precision=ms";
    write(
        influx,
        "cpu,host=a idle=1.5,n=3i 1000\ncpu,host=b idle=2.5 1000",
    );
    write(influx, "cpu,host=a,zone=z idle=3.5,note=\"x y\" 2000");
    write(
        "/opentsdb/v1/put/telnet/power",
        "put sys.load 1356998400 1.5 host=a",
    );
    write(
        "/opentsdb/v1/put/json/power",
        r#"[{"metric":"sys.load","timestamp":1356998401,"value":2,"tags":{"host":"b"}}]"#,
    );
    let idle = "SELECT host, sum(idle) FROM cpu GROUP BY host ORDER BY host";
    assert_eq!(rows(port, idle), json!([["a", 5], ["b", 2.5]]));
    let times = "SELECT _ts, note FROM cpu WHERE zone = 'z'";
    assert_eq!(
        rows(port, times),
        json!([["1970-01-01T00:00:02.000000Z", "x y"]])
    );
    let load = "SELECT sum(_value) FROM `sys.load`";
    assert_eq!(rows(port, load), json!([[3.5]]));
}

#[test]
fn users_are_those_of_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    add_user_with(&data, "ann", "correct horse", &["--admin"]);
    let (_server, port) = start(&data);
    let ask = |headers: &[(&str, &str)]| {
        let answer = request(port, "POST", "/rest/sql", headers, b"SHOW DATABASES");
        let answer = answer.expect("the server answers");
        (answer.status, answer.json()["code"].clone())
    };
    assert_eq!(ask(&[]), (401, json!(0x1105)));
    // ann:correct horse
    let basic = [("Authorization", "Basic YW5uOmNvcnJlY3QgaG9yc2U=")];
    assert_eq!(ask(&basic), (200, json!(0)));
    let login = request(port, "GET", "/rest/login/ann/correct%20horse", &[], b"");
    let token = login.expect("the server answers").json()["desc"].clone();
    let taosd = format!("Taosd {}", token.as_str().expect("a token"));
    assert_eq!(ask(&[("Authorization", &taosd)]), (200, json!(0)));
    let mut socket = TextSocket::connect(port);
    let conn =
        |password: &str| json!({"action": "conn", "args": {"user": "ann", "password": password}});
    assert_eq!(socket.ask(&conn("wrong"))["code"], 0x0357);
    assert_eq!(socket.ask(&conn("correct horse"))["code"], 0);
}
