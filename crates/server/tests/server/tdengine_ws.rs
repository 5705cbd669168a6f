//! TDengine's WebSocket, right and wrong.

use crate::taos_fake::{FakeTaos, WithUsers, address, serve_taos};
use crate::websocket::{BINARY, CLOSE, PING, PONG, TEXT, WebSocketClient, frame};
use marigram_server::RunningServers;
use marigram_service::OpenAccess;
use marigram_tdengine::{BoundValue, read_raw_block};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

async fn connected(running: &RunningServers) -> WebSocketClient {
    let client = WebSocketClient::connect(address(running), "/ws", "").await;
    client.unwrap()
}

/// A client that has logged in.
async fn logged_in(running: &RunningServers) -> WebSocketClient {
    let mut client = connected(running).await;
    let conn = json!({"action": "conn", "args": {"req_id": 1, "user": "ann", "password": "right"}});
    let answer = client.ask(&conn).await;
    assert_eq!(answer["code"], 0, "{answer}");
    client
}

fn statements(fake: &Arc<FakeTaos>) -> Vec<String> {
    std::mem::take(&mut *fake.statements.lock().unwrap())
}

fn query(sql: &str) -> Value {
    json!({"action": "query", "args": {"req_id": 2, "sql": sql}})
}

/// A binary message.
fn message(id: u64, action: u64, rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for number in [9, id, action] {
        out.extend_from_slice(&u64::to_le_bytes(number));
    }
    out.extend_from_slice(rest);
    out
}

fn binary_query(sql: &str) -> Vec<u8> {
    let length = u32::try_from(sql.len()).unwrap().to_le_bytes();
    message(0, 6, &[&[1, 0][..], &length, sql.as_bytes()].concat())
}

/// Fetches blocks to the end; returns how many, and all bytes.
async fn fetch_all(client: &mut WebSocketClient, id: u64) -> (usize, usize) {
    let (mut blocks, mut rows) = (0, 0);
    loop {
        client.send(BINARY, &message(id, 7, &[1, 0])).await;
        let (kind, bytes) = client.receive().await.unwrap();
        assert_eq!(kind, BINARY);
        assert_eq!(bytes[..10], [255, 255, 255, 255, 255, 255, 255, 255, 7, 0]);
        assert_eq!(bytes[34..38], [0; 4], "no error");
        if bytes[50] == 1 {
            return (blocks, rows);
        }
        let columns = read_raw_block(&bytes[55..]).unwrap();
        rows += columns[0].rows();
        blocks += 1;
    }
}

#[tokio::test]
async fn a_client_logs_in_asks_and_fetches() {
    let (running, fake) = serve_taos(Arc::new(OpenAccess), |_| {}).await;
    let mut client = connected(&running).await;
    let answer = client.ask(&json!({"action": "version"})).await;
    assert_eq!(
        (&answer["version"], &answer["code"]),
        (&json!("3.3.6.0"), &json!(0))
    );
    let answer = client.ask(&query("select types")).await;
    assert_eq!(
        (&answer["code"], &answer["message"]),
        (&json!(0xffff), &json!("server not connected"))
    );
    let conn = |db: &str| json!({"action": "conn", "args": {"req_id": 5, "user": "root", "password": "x", "db": db}});
    let answer = client.ask(&conn("nowhere")).await;
    assert_eq!(
        (&answer["code"], &answer["req_id"]),
        (&json!(0x0388), &json!(5))
    );
    assert_eq!(client.ask(&conn("power")).await["code"], 0);
    assert_eq!(client.ask(&conn("power")).await["code"], 0xffff);
    let answer = client.ask(&query("select types")).await;
    assert_eq!(
        (&answer["action"], &answer["req_id"]),
        (&json!("query"), &json!(2))
    );
    assert_eq!(answer["fields_names"][5], "n");
    assert_eq!(answer["fields_types"], json!([9, 1, 4, 14, 6, 10, 16, 15]));
    assert_eq!(answer["fields_lengths"], json!([8, 1, 4, 8, 4, 8, 4, 4095]));
    let id = answer["id"].as_u64().unwrap();
    let fetch = json!({"action": "fetch", "args": {"req_id": 3, "id": id}});
    let answer = client.ask(&fetch).await;
    assert_eq!(
        (&answer["rows"], &answer["completed"]),
        (&json!(2), &json!(false))
    );
    let fetch_block = json!({"action": "fetch_block", "args": {"req_id": 3, "id": id}});
    client.send(TEXT, fetch_block.to_string().as_bytes()).await;
    let (kind, bytes) = client.receive().await.unwrap();
    assert_eq!((kind, &bytes[8..16]), (BINARY, &id.to_le_bytes()[..]));
    let mut columns = read_raw_block(&bytes[16..]).unwrap();
    let first: Vec<_> = columns
        .iter_mut()
        .map(|column| column.next_value().unwrap())
        .collect();
    assert_eq!(first[0], BoundValue::Integer(1500));
    assert_eq!(first[3], BoundValue::Integer(u64::MAX.into()));
    assert_eq!(first[5], BoundValue::Text("日本".into()));
    assert_eq!(columns[5].next_value().unwrap(), BoundValue::Null);
    assert_eq!(client.ask(&fetch).await["completed"], true);
    assert_eq!(client.ask(&fetch).await["message"], "result is nil");
    // Binary messages do the same.
    client.send(BINARY, &binary_query("select many")).await;
    let answer = client.text().await;
    assert_eq!(
        (&answer["action"], &answer["req_id"]),
        (&json!("binary_query"), &json!(9))
    );
    let (blocks, rows) = fetch_all(&mut client, answer["id"].as_u64().unwrap()).await;
    assert_eq!((blocks, rows), (300, 300_000));
    let answer = client.ask(&query("INSERT INTO t VALUES (1)")).await;
    assert_eq!(
        (&answer["is_update"], &answer["affected_rows"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(fake.alive.load(Ordering::SeqCst), 0);
    assert!(
        statements(&fake)
            .iter()
            .any(|text| text == "power:select types")
    );
}

#[tokio::test]
async fn the_database_of_a_connection_follows_use() {
    let (running, fake) = serve_taos(Arc::new(OpenAccess), |_| {}).await;
    let mut client = logged_in(&running).await;
    let current = json!({"action": "get_current_db", "args": {"req_id": 2}});
    assert_eq!(client.ask(&current).await["db"], "");
    assert_eq!(client.ask(&query("use power")).await["code"], 0);
    assert_eq!(client.ask(&query("use nowhere")).await["code"], 0x0388);
    assert_eq!(client.ask(&current).await["db"], "power");
    let zone = |name: &str| json!({"action": "options_connection", "args": {"options": [{"option": 1, "value": name}]}});
    assert_eq!(client.ask(&zone("Asia/Shanghai")).await["code"], 0);
    assert_eq!(client.ask(&zone("Nowhere")).await["code"], 0xffff);
    client.ask(&query("select types")).await;
    assert_eq!(statements(&fake).last().unwrap(), "power:select types");
}

#[tokio::test]
async fn results_are_freed_and_leaving_stops_statements() {
    let (running, fake) = serve_taos(Arc::new(OpenAccess), |_| {}).await;
    let mut client = logged_in(&running).await;
    for _ in 0..64 {
        assert_eq!(client.ask(&query("select flood")).await["code"], 0);
    }
    let answer = client.ask(&query("select flood")).await;
    assert_eq!(answer["code"], 0x0102, "{answer}");
    let free = json!({"action": "free_result", "args": {"id": 1}});
    client.send(TEXT, free.to_string().as_bytes()).await;
    assert_eq!(client.ask(&query("select flood")).await["code"], 0);
    // A ping is answered while a statement runs.
    assert_eq!(
        client
            .ask(&json!({"action": "free_result", "args": {}}))
            .await["code"],
        0xffff
    );
    let free = json!({"action": "free_result", "args": {"id": 2}});
    client.send(TEXT, free.to_string().as_bytes()).await;
    let answer = client.ask(&query("select endless")).await;
    let id = answer["id"].as_u64().unwrap();
    client.send(BINARY, &message(id, 7, &[1, 0])).await;
    client.send(PING, b"there?").await;
    assert_eq!(client.receive().await, Some((PONG, b"there?".to_vec())));
    assert_eq!(fake.alive.load(Ordering::SeqCst), 64);
    drop(client);
    for _ in 0..1000 {
        if fake.alive.load(Ordering::SeqCst) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the statements go on");
}

#[tokio::test]
async fn prepared_statements_become_inserts() {
    let (running, fake) = serve_taos(Arc::new(OpenAccess), |_| {}).await;
    let mut client = logged_in(&running).await;
    let id = client
        .ask(&json!({"action": "init", "args": {"req_id": 1}}))
        .await["stmt_id"]
        .clone();
    let act = |action: &str, more: Value| {
        let mut args = json!({"req_id": 3, "stmt_id": id});
        args.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"action": action, "args": args})
    };
    let sql = "insert into ? using st tags(?) values(?, ?, ?)";
    let answer = client.ask(&act("prepare", json!({"sql": sql}))).await;
    assert_eq!(
        (&answer["is_insert"], &answer["stmt_id"]),
        (&json!(true), &id)
    );
    let fields = client.ask(&act("get_col_fields", json!({}))).await["fields"].clone();
    assert_eq!(
        (&fields[0]["name"], &fields[0]["precision"]),
        (&json!("ts"), &json!(1))
    );
    assert_eq!(
        (&fields[2]["field_type"], &fields[2]["bytes"]),
        (&json!(8), &json!(18))
    );
    let fields = client.ask(&act("get_tag_fields", json!({}))).await["fields"].clone();
    assert_eq!(
        (&fields[0]["name"], &fields[0]["bytes"]),
        (&json!("place"), &json!(34))
    );
    for (action, more) in [
        ("set_table_name", json!({"name": "d1"})),
        ("set_tags", json!({"tags": ["it's"]})),
        ("bind", json!({"columns": [[1, 2], [5, null], ["a", "b"]]})),
        ("add_batch", json!({})),
    ] {
        assert_eq!(client.ask(&act(action, more)).await["code"], 0, "{action}");
    }
    let answer = client
        .ask(&act("bind", json!({"columns": [[1], [2]]})))
        .await;
    assert_eq!(answer["code"], 0x0118);
    statements(&fake);
    let answer = client.ask(&act("exec", json!({}))).await;
    assert_eq!(answer["code"], 0, "{answer}");
    let ran = statements(&fake);
    let expected = ":INSERT INTO `d1` USING st TAGS ('it\\'s') VALUES (1,5,'a')(2,NULL,'b')";
    assert_eq!(ran, [expected]);
    client
        .send(TEXT, act("close", json!({})).to_string().as_bytes())
        .await;
    assert_eq!(
        client.ask(&act("exec", json!({}))).await["message"],
        "stmt is nil"
    );
}

#[tokio::test]
async fn prepared_statements_of_the_second_kind_tell_what_is_bound() {
    let (running, fake) = serve_taos(Arc::new(OpenAccess), |_| {}).await;
    let mut client = logged_in(&running).await;
    let id = client
        .ask(&json!({"action": "stmt2_init", "args": {"req_id": 1}}))
        .await["stmt_id"]
        .clone();
    let act = |action: &str, more: Value| {
        let mut args = json!({"req_id": 3, "stmt_id": id});
        args.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"action": action, "args": args})
    };
    let sql = "insert into st (v, tbname, ts, place) values(?, ?, ?, ?)";
    let prepare = act("stmt2_prepare", json!({"sql": sql, "get_fields": true}));
    let answer = client.ask(&prepare).await;
    let kinds = answer["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| &field["bind_type"]);
    assert_eq!(kinds.collect::<Vec<_>>(), [1, 4, 1, 2], "{answer}");
    let bytes = bound_tables();
    let bind = [&[1, 0, 255, 255, 255, 255][..], &bytes].concat();
    client
        .send(BINARY, &message(id.as_u64().unwrap(), 9, &bind))
        .await;
    let answer = client.text().await;
    assert_eq!(
        (&answer["action"], &answer["code"]),
        (&json!("stmt2_bind"), &json!(0)),
        "{answer}"
    );
    statements(&fake);
    assert_eq!(client.ask(&act("stmt2_exec", json!({}))).await["code"], 0);
    let expected = ":INSERT INTO `d1` USING st (`place`) TAGS ('no') (`v`,`ts`) VALUES (5,7)";
    assert_eq!(statements(&fake), [expected]);
    let answer = client
        .ask(&act("stmt2_prepare", json!({"sql": "select types"})))
        .await;
    assert_eq!(
        (&answer["is_insert"], &answer["fields_count"]),
        (&json!(false), &json!(0))
    );
    assert_eq!(client.ask(&act("stmt2_exec", json!({}))).await["code"], 0);
    let answer = client.ask(&act("stmt2_result", json!({}))).await;
    assert_eq!(answer["fields_count"], 8);
    assert_eq!(
        fetch_all(&mut client, answer["id"].as_u64().unwrap()).await,
        (1, 2)
    );
    assert_eq!(client.ask(&act("stmt2_close", json!({}))).await["code"], 0);
}

/// The table `d1` with a tag, an integer and a time.
fn bound_tables() -> Vec<u8> {
    let number = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
    let column = |code: u8, lengths: &[u8], data: &[u8]| {
        let total = 18 + lengths.len() + data.len();
        let head = [&number(total)[..], &[code, 0, 0, 0, 1, 0, 0, 0, 0]].concat();
        let has_lengths = [u8::from(!lengths.is_empty())];
        [&head[..], &has_lengths, lengths, &number(data.len()), data].concat()
    };
    let tag = column(10, &[2, 0, 0, 0], b"no");
    let columns = [
        column(4, &[], &[5, 0, 0, 0]),
        column(9, &[], &7_i64.to_le_bytes()),
    ]
    .concat();
    let names = [3, 0, b'd', b'1', 0];
    let tags = [&number(tag.len())[..], &tag].concat();
    let columns = [&number(columns.len())[..], &columns].concat();
    let tags_at = 28 + names.len();
    let columns_at = tags_at + tags.len();
    let head = [columns_at + columns.len(), 1, 1, 2, 28, tags_at, columns_at].map(number);
    [&head.concat()[..], &names, &tags, &columns].concat()
}

#[tokio::test]
async fn lines_come_as_messages_too() {
    let (running, fake) = serve_taos(Arc::new(OpenAccess), |_| {}).await;
    let mut client = logged_in(&running).await;
    let insert = |protocol: u8, data: &str| json!({"action": "insert", "args": {"protocol": protocol, "precision": "ms", "data": data}});
    let answer = client.ask(&insert(1, "cpu,host=a idle=1 1000")).await;
    assert_eq!(answer["code"], 0, "{answer}");
    assert!(
        statements(&fake)
            .join("\n")
            .contains("VALUES (1000000,1.0)")
    );
    assert_eq!(client.ask(&insert(1, "cpu")).await["code"], 0x3002);
    assert_eq!(client.ask(&insert(9, "cpu")).await["code"], 0xffff);
}

#[tokio::test]
async fn hostile_messages_neither_hang_nor_grow() {
    let (running, _) = serve_taos(Arc::new(OpenAccess), |config| config.body_limit = 200_000).await;
    // Before a login, little may be sent.
    let mut client = connected(&running).await;
    let large = frame(TEXT, &vec![b'x'; 100_000]);
    let _ = client.send_raw(&large).await;
    assert!(matches!(client.receive().await, None | Some((CLOSE, _))));
    // After it, as much as a body may have.
    let mut client = logged_in(&running).await;
    client
        .send(TEXT, query(&"x".repeat(150_000)).to_string().as_bytes())
        .await;
    assert_eq!(client.text().await["code"], 0x2600);
    let _ = client.send_raw(&frame(BINARY, &vec![1; 300_000])).await;
    assert!(matches!(client.receive().await, None | Some((CLOSE, _))));
    let mut client = logged_in(&running).await;
    for text in ["", "{", "[]", "null", "{\"action\":5}", "{\"req_id\":-1}"] {
        client.send(TEXT, text.as_bytes()).await;
        assert_eq!(client.text().await["code"], 0xffff, "{text}");
    }
    for action in [
        "nothing",
        "stmt2_nothing",
        "fetch",
        "prepare",
        "insert",
        "query",
    ] {
        let answer = client
            .ask(&json!({"action": action, "args": {"stmt_id": 7}}))
            .await;
        assert_eq!(answer["code"], 0xffff, "{action}");
    }
    for (id, action, rest) in [
        (0, 6, &[1, 0, 255, 255, 255, 255][..]),
        (0, 6, &[]),
        (1, 1, &[0; 40]),
        (1, 2, &[255; 40]),
        (1, 9, &[1, 0, 255, 255, 255, 255, 0]),
        (0, 3, &[]),
        (0, u64::MAX, &[]),
    ] {
        client.send(BINARY, &message(id, action, rest)).await;
        assert_ne!(client.text().await["code"], 0, "{action} {rest:?}");
    }
    client.send(BINARY, &message(77, 7, &[1, 0])).await;
    let (_, bytes) = client.receive().await.unwrap();
    assert_eq!(
        (&bytes[34..38], bytes.last()),
        (&[255, 255, 0, 0][..], Some(&1))
    );
    // A message without a head ends the connection, as do frames that are none.
    client.send(BINARY, &[1, 2, 3]).await;
    assert!(matches!(client.receive().await, Some((CLOSE, _))));
    for bytes in [
        &[0x83, 0x80, 0, 0, 0, 0][..],
        &[0xff; 64],
        &[0x81, 0x01, b'x'],
    ] {
        let mut client = connected(&running).await;
        client.send_raw(bytes).await.unwrap();
        assert!(
            matches!(client.receive().await, None | Some((CLOSE, _))),
            "{bytes:?}"
        );
    }
}

#[tokio::test]
async fn users_and_browsers_are_checked() {
    let (running, fake) = serve_taos(Arc::new(WithUsers), |_| {}).await;
    let mut client = connected(&running).await;
    let conn =
        |password: &str| json!({"action": "conn", "args": {"user": "ann", "password": password}});
    let answer = client.ask(&conn("wrong")).await;
    assert_eq!(answer["code"], 0x0357, "{answer}");
    assert_eq!(client.ask(&query("select types")).await["code"], 0xffff);
    assert_eq!(client.ask(&json!({"action": "conn"})).await["code"], 0x0357);
    assert!(statements(&fake).is_empty());
    assert_eq!(client.ask(&conn("right")).await["code"], 0);
    assert_eq!(client.ask(&query("select types")).await["code"], 0);
    let token = WebSocketClient::connect(address(&running), "/rest/ws?token=mgt_right", "").await;
    let mut client = token.unwrap();
    assert_eq!(
        client.ask(&json!({"action": "conn", "args": {}})).await["code"],
        0
    );
    for headers in [
        "Origin: http://evil.example\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
    ] {
        let refused = WebSocketClient::connect(address(&running), "/ws", headers).await;
        let head = refused.err().unwrap();
        assert!(head.starts_with("HTTP/1.1 403"), "{head}");
    }
}

#[tokio::test]
async fn a_server_that_stops_closes_its_websockets() {
    let (running, _) = serve_taos(Arc::new(OpenAccess), |_| {}).await;
    let mut client = logged_in(&running).await;
    let stopped = tokio::spawn(async move { running.shutdown(Duration::from_secs(20)).await });
    let (kind, payload) = client.receive().await.unwrap();
    assert_eq!((kind, &payload[..2]), (CLOSE, &1001_u16.to_be_bytes()[..]));
    drop(client);
    tokio::time::timeout(Duration::from_mins(1), stopped)
        .await
        .unwrap()
        .unwrap();
}
