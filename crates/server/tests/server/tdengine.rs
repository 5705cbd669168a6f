//! TDengine's REST API, right and wrong, and the APIs for lines of other protocols.

use crate::http::{Reply, ask, ask_as};
use crate::taos_fake::{FakeTaos, WithUsers, address, serve_taos};
use marigram_service::OpenAccess;
use marigram_tdengine::TaosdToken;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn sql(address: SocketAddr, path: &str, statement: &str) -> Reply {
    let line = format!("POST /rest/sql{path}");
    ask(address, &line, &[], statement.as_bytes()).await
}

fn statements(fake: &Arc<FakeTaos>) -> Vec<String> {
    std::mem::take(&mut *fake.statements.lock().unwrap())
}

#[tokio::test]
async fn rows_and_numbers_of_rows_are_answered_as_json() {
    let (running, fake) = serve_taos(Arc::new(OpenAccess), |_| {}).await;
    let address = address(&running);
    let reply = sql(address, "/power", " select types ").await;
    assert_eq!(reply.status, 200);
    let answer = reply.json();
    assert_eq!((&answer["code"], &answer["rows"]), (&json!(0), &json!(2)));
    assert_eq!(answer["column_meta"][0], json!(["ts", "TIMESTAMP", 8]));
    assert_eq!(answer["column_meta"][3], json!(["u", "BIGINT UNSIGNED", 8]));
    let text = reply.text();
    let first = "[\"1970-01-01T00:00:01.500Z\",true,-3,18446744073709551615,0.5,\"日本\",\"01ff\",{\"a\":1}]";
    assert!(text.contains(first), "{text}");
    assert!(text.contains(",null,null,null,null,null,null,null]"));
    let reply = sql(address, "?tz=Asia/Shanghai&req_id=7", "select types").await;
    assert!(reply.text().contains("1970-01-01T08:00:01.500+08:00"));
    let reply = sql(address, "?row_with_meta=true", "select types").await;
    assert_eq!(reply.json()["data"][0]["i"], -3);
    let reply = sql(address, "", "INSERT INTO t VALUES (1, 2)").await;
    assert_eq!(
        reply.text(),
        "{\"code\":0,\"column_meta\":[[\"affected_rows\",\"INT\",4]],\"data\":[[1]],\"rows\":1}"
    );
    let reply = sql(address, "", "select many").await;
    let answer = reply.json();
    assert_eq!(
        (&answer["rows"], &answer["data"][299_999]),
        (&json!(300_000), &json!([299_999]))
    );
    assert_eq!(
        statements(&fake)[..2],
        ["power:select types", ":select types"]
    );
    assert_eq!(fake.alive.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn errors_have_numbers_and_wrong_requests_a_status() {
    let (running, _) = serve_taos(Arc::new(OpenAccess), |config| config.body_limit = 1000).await;
    let address = address(&running);
    let reply = sql(address, "", "select nothing").await;
    assert_eq!(
        (reply.status, reply.json()),
        (
            200,
            json!({"code": 0x2603, "desc": "Table does not exist: nothing"})
        )
    );
    for (path, statement, status, code) in [
        ("", "x", 200, 0x2600),
        ("", "   ", 400, 0x1107),
        ("?req_id=x", "select types", 400, 0xffff),
        ("?row_with_meta=x", "select types", 400, 0xffff),
        ("?tz=Nowhere", "select types", 400, 0xffff),
        ("/a/b", "select types", 404, 0xffff),
    ] {
        let reply = sql(address, path, statement).await;
        assert_eq!(reply.status, status, "{path} {statement}");
        assert_eq!(reply.json()["code"], code, "{path} {statement}");
    }
    let reply = ask(address, "POST /rest/sql", &[], b"").await;
    assert_eq!((reply.status, &reply.json()["code"]), (400, &json!(0x1106)));
    let reply = ask(address, "POST /rest/sql", &[], b"\xff").await;
    assert_eq!(reply.status, 400);
    let reply = ask(address, "POST /rest/sql", &[], &[b'x'; 1001]).await;
    assert_eq!(reply.status, 413);
    let reply = ask(address, "GET /rest/sql", &[], b"").await;
    assert_eq!(reply.status, 405);
    let reply = ask(address, "GET /nothing", &[], b"").await;
    assert_eq!((reply.status, &reply.json()["code"]), (404, &json!(0xffff)));
    let reply = sql(address, "", "select broken").await;
    assert_eq!((reply.status, &reply.json()["code"]), (500, &json!(0x02ff)));
    // An error after the first bytes breaks the answer off.
    let reply = sql(address, "", "select broken far away").await;
    let body: Result<serde_json::Value, _> = serde_json::from_slice(reply.bytes());
    assert!(reply.status == 200 && body.is_err());
    let reply = ask(address, "GET /-/ping", &[], b"").await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn users_prove_themselves_in_several_ways() {
    let (running, _) = serve_taos(Arc::new(WithUsers), |_| {}).await;
    let address = address(&running);
    let login = ask(address, "GET /rest/login/ann/right", &[], b"").await;
    let token = login.json()["desc"].as_str().unwrap().to_owned();
    let known = TaosdToken {
        user: "ann".to_owned(),
        password: "right".to_owned(),
    };
    assert_eq!(known.to_text().as_deref(), Some(token.as_str()));
    let taosd = format!("Authorization: Taosd {token}");
    let ways: [(&str, &[&str]); 5] = [
        ("", &["Authorization: Basic YW5uOnJpZ2h0"]),
        ("", &[&taosd]),
        ("", &["Authorization: Bearer mgt_right"]),
        ("?token=mgt_right", &[]),
        ("?u=ann&p=right", &[]),
    ];
    for (path, headers) in ways {
        let line = format!("POST /rest/sql{path}");
        let reply = ask(address, &line, headers, b"select types").await;
        assert_eq!(reply.status, 200, "{path} {headers:?}");
    }
    let wrong: [(&[&str], u64); 4] = [
        (&[], 0x1105),
        (&["Authorization: Basic YW5uOndyb25n"], 0x0357),
        (&["Authorization: Taosd x"], 0x1122),
        (&["Authorization: Bearer mgt_wrong"], 0x0357),
    ];
    for (headers, code) in wrong {
        let reply = ask(address, "POST /rest/sql", headers, b"select types").await;
        assert_eq!(reply.status, 401, "{headers:?}");
        assert_eq!(reply.json()["code"], code, "{headers:?}");
    }
    let long = format!("GET /rest/login/{}/x", "u".repeat(25));
    assert_eq!(ask(address, &long, &[], b"").await.status, 400);
}

#[tokio::test]
async fn web_pages_of_others_may_not_ask() {
    let (running, fake) = serve_taos(Arc::new(OpenAccess), |_| {}).await;
    let address = address(&running);
    for headers in [
        ["Host: localhost", "Origin: http://evil.example"],
        ["Host: evil.example", "X: y"],
    ] {
        let reply = ask_as(address, "POST /rest/sql", &headers, b"select types").await;
        assert_eq!(reply.status, 403, "{headers:?}");
    }
    assert!(statements(&fake).is_empty());
}

#[tokio::test]
async fn a_client_that_leaves_stops_its_statement() {
    let (running, fake) = serve_taos(Arc::new(OpenAccess), |_| {}).await;
    let mut socket = TcpStream::connect(address(&running)).await.unwrap();
    let request =
        b"POST /rest/sql HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\nselect flood";
    socket.write_all(request).await.unwrap();
    let mut some = [0; 1000];
    socket.read_exact(&mut some).await.unwrap();
    assert_eq!(fake.alive.load(Ordering::SeqCst), 1);
    drop(socket);
    for _ in 0..1000 {
        if fake.alive.load(Ordering::SeqCst) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the statement goes on");
}

#[tokio::test]
async fn lines_of_influxdb_and_opentsdb_become_rows_of_super_tables() {
    let (running, fake) = serve_taos(Arc::new(OpenAccess), |_| {}).await;
    let address = address(&running);
    let write = "POST /influxdb/v1/write?db=power&precision=ms";
    let lines = b"cpu,host=a idle=1.5 1000\ncpu,host=b idle=2 1001\ncpu,host=a idle=3 1002";
    let reply = ask(address, write, &[], lines).await;
    assert_eq!((reply.status, reply.text()), (204, ""));
    let ran = statements(&fake);
    assert_eq!(ran[0], "power:DESCRIBE `cpu`");
    assert_eq!(
        ran[1],
        "power:CREATE STABLE IF NOT EXISTS `cpu` (`_ts` TIMESTAMP, `idle` DOUBLE) TAGS (`host` NCHAR(16))"
    );
    assert_eq!((ran.len(), ran[2].as_str()), (4, "power:DESCRIBE `cpu`"));
    // The times are in the precision of the database.
    assert!(ran[3].contains("TAGS ('a') (`_ts`,`idle`) VALUES (1000000,1.5)(1002000,3.0)"));
    assert!(ran[3].contains("TAGS ('b') (`_ts`,`idle`) VALUES (1001000,2.0)"));
    assert!(ran[3].starts_with("power:INSERT INTO `t_"), "{}", ran[3]);
    // Columns that are missing are added, and tables may have names.
    let write = "POST /influxdb/v1/write?db=power&table_name_key=host";
    let lines = format!("cpu,host={},zone=z idle=1,text=\"x\" 1000", "n".repeat(20));
    let reply = ask(address, write, &[], lines.as_bytes()).await;
    assert_eq!(reply.status, 204);
    let ran = statements(&fake).join("\n");
    for change in [
        "ALTER STABLE `cpu` ADD COLUMN `text` VARCHAR(16)",
        "ALTER STABLE `cpu` ADD TAG `zone` NCHAR(16)",
        "ALTER STABLE `cpu` MODIFY TAG `host` NCHAR(32)",
    ] {
        assert!(ran.contains(change), "{change}\n{ran}");
    }
    assert!(ran.contains("INSERT INTO `nnnnnnnnnnnnnnnnnnnn` USING `cpu`"));
    let telnet = "POST /opentsdb/v1/put/telnet/power";
    let reply = ask(
        address,
        telnet,
        &[],
        b"put cpu 1000 1 host=a\ncpu 1001 2 host=a\n",
    )
    .await;
    assert_eq!(reply.status, 204);
    assert!(
        statements(&fake)
            .join("\n")
            .contains("(`_ts`,`_value`) VALUES (1000000000,1.0)")
    );
    let json = br#"{"metric":"cpu","timestamp":1000,"value":1,"tags":{"host":"a"}}"#;
    let reply = ask(address, "POST /opentsdb/v1/put/json/power", &[], json).await;
    assert_eq!(reply.status, 204);
    statements(&fake);
    for (line, body) in [
        ("POST /influxdb/v1/write", &b"cpu v=1"[..]),
        ("POST /influxdb/v1/write?db=power", b"cpu"),
        ("POST /influxdb/v1/write?db=power&precision=x", b"cpu v=1"),
        (telnet, b"put cpu"),
        ("POST /opentsdb/v1/put/json/power", b"{"),
    ] {
        let reply = ask(address, line, &[], body).await;
        assert_eq!(reply.status, 400, "{line}");
    }
    assert!(statements(&fake).is_empty());
}
