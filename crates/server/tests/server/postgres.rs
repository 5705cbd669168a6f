//! The PostgreSQL protocol, through tokio-postgres, and byte by byte where tokio-postgres is not
//! enough.

use crate::fake::{Fake, serve};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type, TimestampNanosecondType};
use bytes::{BufMut, Bytes, BytesMut};
use futures::{SinkExt, StreamExt, TryStreamExt};
use marigram_server::RunningServers;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

async fn connect(running: &RunningServers, database: &str) -> Result<Client, Error> {
    let address = running.postgres_addr().unwrap();
    let config = format!(
        "host={} port={} user=me password=any dbname={database} application_name=test",
        address.ip(),
        address.port()
    );
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
    tokio::spawn(async move {
        // The client sees its end.
        let _ = connection.await;
    });
    Ok(client)
}

async fn client() -> (RunningServers, Arc<Fake>, Client) {
    let (running, fake) = serve(|_| {}).await;
    let client = connect(&running, "main").await.unwrap();
    (running, fake, client)
}

fn code(error: &Error) -> &str {
    error.code().map_or("none", SqlState::code)
}

#[tokio::test]
async fn simple_queries() {
    let (_running, _fake, client) = client().await;
    let answers = client
        .simple_query("select types; create table t;")
        .await
        .unwrap();
    let rows: Vec<_> = answers
        .iter()
        .filter_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at)).collect::<Vec<_>>())
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        rows,
        [
            [
                Some("1970-01-01 00:00:01.5"),
                Some("d_1"),
                Some("1.5"),
                Some("9223372036854775807"),
                Some("18446744073709551615"),
                Some("t"),
                Some("a,\"b\"\tc")
            ],
            [
                Some("1970-01-01 00:00:00"),
                None,
                None,
                Some("-9223372036854775808"),
                Some("0"),
                Some("f"),
                Some("")
            ]
        ]
    );
    assert!(client.simple_query("").await.unwrap().len() <= 1);
    let error = client
        .simple_query("create table t; select bad")
        .await
        .unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "42601");
    let position = tokio_postgres::error::ErrorPosition::Original(24);
    assert_eq!(error.position(), Some(&position));
    // The connection continues.
    client.simple_query("create table t").await.unwrap();
}

#[tokio::test]
async fn parameters_and_rows_in_binary() {
    let (_running, _fake, client) = client().await;
    let time = UNIX_EPOCH + Duration::from_micros(1_700_000_000_000_001);
    let bytes: &[u8] = &[0, 1, 255];
    let row = client
        .query_one(
            "select echo $1",
            &[&-5_i64, &0.1_f64, &"é", &true, &time, &bytes],
        )
        .await
        .unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, f64>(1)), (-5, 0.1));
    assert_eq!((row.get::<_, &str>(2), row.get::<_, bool>(3)), ("é", true));
    // The column is a timestamp without a zone.
    assert_eq!(row.get::<_, SystemTime>(4), time);
    assert_eq!(row.get::<_, &[u8]>(5), bytes);
    let none: Option<i64> = None;
    let none_text: Option<&str> = None;
    let row = client
        .query_one(
            "select echo $1",
            &[&none, &0.1_f64, &none_text, &true, &time, &bytes],
        )
        .await
        .unwrap();
    assert_eq!(
        (row.get::<_, Option<i64>>(0), row.get::<_, Option<&str>>(2)),
        (None, None)
    );
    assert_eq!(client.execute("create table t", &[]).await.unwrap(), 0);
    assert_eq!(
        client.query("select many", &[]).await.unwrap().len(),
        30_000
    );
    let error = client.query("select broken", &[]).await.unwrap_err();
    assert_eq!(code(&error), "XX000");
    assert_eq!(client.query("select none", &[]).await.unwrap().len(), 0);
}

#[tokio::test]
async fn portals_give_out_rows_in_parts() {
    let (_running, fake, mut client) = client().await;
    let transaction = client.transaction().await.unwrap();
    let statement = transaction.prepare("select many").await.unwrap();
    let portal = transaction.bind(&statement, &[]).await.unwrap();
    let mut seen = 0;
    loop {
        let rows = transaction.query_portal(&portal, 7001).await.unwrap();
        if rows.is_empty() {
            break;
        }
        for row in &rows {
            assert_eq!(row.get::<_, i64>(0), seen);
            seen += 1;
        }
    }
    assert_eq!(seen, 30_000);
    transaction.commit().await.unwrap();
    while fake.alive.load(Ordering::SeqCst) > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_failed_block_is_refused_until_its_end() {
    let (_running, _fake, client) = client().await;
    client.batch_execute("begin").await.unwrap();
    assert_eq!(
        code(&client.batch_execute("select bad").await.unwrap_err()),
        "42601"
    );
    assert_eq!(
        code(&client.batch_execute("create table t").await.unwrap_err()),
        "25P02"
    );
    assert_eq!(
        code(&client.query("select types", &[]).await.unwrap_err()),
        "25P02"
    );
    client.batch_execute("rollback").await.unwrap();
    client.batch_execute("create table t").await.unwrap();
}

#[tokio::test]
async fn databases_that_are_not_there() {
    let (running, _fake) = serve(|_| {}).await;
    let error = connect(&running, "nowhere").await.err().unwrap();
    assert_eq!(code(&error), "3D000");
    // The database that clients send if the user named none.
    assert!(connect(&running, "me").await.is_ok());
    assert!(connect(&running, "postgres").await.is_ok());
}

#[tokio::test]
async fn cancel_timeout_and_leaving_stop_a_query() {
    let (running, fake, client) = client().await;
    let token = client.cancel_token();
    let query = client.query("select endless", &[]);
    let cancel = async {
        while fake.alive.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        // A later request stops a statement that is between two waits.
        token.cancel_query(NoTls).await.unwrap();
    };
    let (answer, ()) = tokio::join!(query, cancel);
    assert_eq!(code(&answer.unwrap_err()), "57014");
    assert_eq!(fake.alive.load(Ordering::SeqCst), 0);

    client.batch_execute("set timeout 20").await.unwrap();
    let error = client.batch_execute("select endless").await.unwrap_err();
    assert_eq!(code(&error), "57014");
    assert!(error.as_db_error().unwrap().message().contains("20 ms"));
    client.batch_execute("set timeout 1000000").await.unwrap();

    let mut rows = Box::pin(client.query_raw("select endless", Vec::<String>::new()));
    assert!(futures::poll!(&mut rows).is_pending());
    while fake.alive.load(Ordering::SeqCst) == 0 {
        let _ = futures::poll!(&mut rows);
        tokio::task::yield_now().await;
    }
    drop(rows);
    drop(client);
    // tokio-postgres waits for the answer before it disconnects; a shutdown ends it.
    running.shutdown(Duration::from_millis(10)).await;
    assert_eq!(fake.alive.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_statement_that_commits_is_neither_cancelled_nor_timed_out() {
    let (_running, fake, client) = client().await;
    client.batch_execute("set timeout 20").await.unwrap();
    client.batch_execute("write slowly").await.unwrap();
    client.batch_execute("set timeout 1000000").await.unwrap();

    let token = client.cancel_token();
    let before = fake.statements.load(Ordering::SeqCst);
    let write = client.batch_execute("write on and on");
    let cancel = async {
        while fake.statements.load(Ordering::SeqCst) == before {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        token.cancel_query(NoTls).await.unwrap();
    };
    let (answer, ()) = tokio::join!(write, cancel);
    let error = answer.unwrap_err();
    assert_eq!(code(&error), "57014");
    let message = error.as_db_error().unwrap().message();
    assert!(message.contains("cancelled by its client"), "{message}");
    // The request does not stop the next statement.
    client.batch_execute("create table t").await.unwrap();
}

#[tokio::test]
async fn a_copy_that_ends_early_says_what_it_stored() {
    let (_running, _fake, client) = client().await;
    let mut data = String::new();
    for row in 0..200_000 {
        writeln!(data, "2026-01-01\td_1\t1\t{row}").unwrap();
    }
    data.push_str("broken");
    let sink = client.copy_in("COPY readings FROM STDIN").await.unwrap();
    futures::pin_mut!(sink);
    sink.send(Bytes::from(data)).await.unwrap();
    let error = sink.finish().await.unwrap_err();
    let detail = error.as_db_error().unwrap().detail().unwrap().to_owned();
    assert!(detail.ends_with("rows are stored."), "{detail}");
}

fn binary_rows(rows: i64) -> BytesMut {
    let mut data = BytesMut::from(&b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0"[..]);
    for row in 0..rows {
        data.put_i16(3);
        data.put_i32(8);
        data.put_i64(row);
        data.put_i32(3);
        data.put_slice(b"d_1");
        if row % 2 == 0 {
            data.put_i32(8);
            data.put_f64(row as f64);
        } else {
            data.put_i32(-1);
        }
    }
    data.put_i16(-1);
    data
}

async fn copy_in(client: &Client, sql: &str, data: &[u8]) -> Result<u64, Error> {
    let sink = client.copy_in(sql).await?;
    let mut sink = Box::pin(sink);
    for part in data.chunks(5000) {
        sink.as_mut().send(Bytes::copy_from_slice(part)).await?;
    }
    sink.as_mut().finish().await
}

#[tokio::test]
async fn copy_in_binary_counts_exactly() {
    let (_running, fake, client) = client().await;
    let sql = "copy \"readings\" ( \"time\", \"device\", \"value\" ) from stdin binary;";
    assert_eq!(
        copy_in(&client, sql, &binary_rows(25_001)).await.unwrap(),
        25_001
    );
    let copied = fake.copied.lock().unwrap();
    let sizes: Vec<_> = copied.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(sizes, [10_000, 10_000, 5001]);
    let times = copied[2]
        .column(0)
        .as_primitive::<TimestampNanosecondType>();
    assert_eq!(times.value(5000), (946_684_800_000_000 + 25_000) * 1000);
    let values = copied[2].column(2).as_primitive::<Float64Type>();
    assert_eq!((values.value(0), values.is_null(1)), (20_000.0, true));
}

#[tokio::test]
async fn copy_in_text_and_csv() {
    let (_running, fake, client) = client().await;
    let data = b"2024-01-01 00:00:00+00\td\\t1\t1.5\t7\n2024-01-01 00:00:01\t\\N\t\\N\t\\N\n";
    assert_eq!(
        copy_in(&client, "COPY readings FROM STDIN", data)
            .await
            .unwrap(),
        2
    );
    let data = b"count,time\n5,2024-01-01T00:00:00Z\n";
    let sql = "COPY main.public.readings (count, time) FROM STDIN WITH (FORMAT csv, HEADER match)";
    assert_eq!(copy_in(&client, sql, data).await.unwrap(), 1);
    let copied = fake.copied.lock().unwrap();
    assert_eq!(copied[0].column(1).as_string::<i32>().value(0), "d\t1");
    assert_eq!(
        copied[1]
            .column_by_name("count")
            .unwrap()
            .as_primitive::<Int64Type>()
            .value(0),
        5
    );
    assert_eq!(copied[1].num_columns(), 2);
}

#[tokio::test]
async fn copy_in_that_is_wrong_says_where() {
    let (_running, fake, client) = client().await;
    let data = b"2024-01-01\ta\t1\t1\n2024-01-01\ta\tx\t1\n";
    let error = copy_in(&client, "COPY readings FROM STDIN", data)
        .await
        .unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "22P02");
    assert_eq!(error.where_(), Some("COPY readings, line 2, column value"));
    assert!(fake.copied.lock().unwrap().is_empty());
    let error = copy_in(&client, "COPY readings FROM STDIN", b"\\N\ta\t1\t1\n")
        .await
        .unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.where_(), Some("COPY readings, line 1"));
    assert!(error.message().contains("it has no time"));
    // (As simple queries: tokio-postgres loses count of its Syncs when a COPY does not begin.)
    let error = client
        .batch_execute("COPY nothing FROM STDIN")
        .await
        .unwrap_err();
    assert_eq!(code(&error), "42P01", "{error:?}");
    let error = client
        .batch_execute("COPY readings (tim) FROM STDIN")
        .await
        .unwrap_err();
    assert_eq!(code(&error), "42703", "{error:?}");
    // The connection continues after each.
    client.batch_execute("create table t").await.unwrap();
}

#[tokio::test]
async fn copy_out() {
    let (_running, _fake, client) = client().await;
    let read = async |sql: &str| {
        let stream = client.copy_out(sql).await.unwrap();
        let parts: Vec<Bytes> = stream.try_collect().await.unwrap();
        parts.concat()
    };
    let csv = read("COPY readings TO STDOUT WITH (FORMAT csv, HEADER)").await;
    let text = String::from_utf8(csv).unwrap();
    assert!(text.starts_with("time,tag,f,big,huge,ok,text\n1970-01-01 00:00:01.5,d_1,1.5,"));
    assert!(
        text.ends_with(
            "t,\"a,\"\"b\"\"\tc\"\n1970-01-01 00:00:00,,,-9223372036854775808,0,f,\"\"\n"
        )
    );
    let text = String::from_utf8(read("COPY (select types) TO STDOUT").await).unwrap();
    assert!(
        text.contains("\ta,\"b\"\\tc\n") && text.contains("\t\\N\t\\N\t"),
        "{text}"
    );
    let binary = read("COPY (select many) TO STDOUT (FORMAT binary)").await;
    assert_eq!(binary.len(), 19 + 30_000 * (2 + 4 + 8) + 2);
    let sql = "COPY (select none) TO STDOUT (FORMAT binary)";
    let parts: Vec<Bytes> = client
        .copy_out(sql)
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    // psycopg looks for the header in the message of the first row, or in the tail's.
    assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), [21]);
    let error = client
        .copy_out("COPY (select bad) TO STDOUT")
        .await
        .err()
        .unwrap();
    assert_eq!(code(&error), "42601");
}

/// Reads messages up to `ReadyForQuery`; returns their types, and the last one's body.
async fn until_ready(socket: &mut TcpStream) -> String {
    let mut kinds = String::new();
    loop {
        let kind = socket.read_u8().await.unwrap();
        let length = socket.read_u32().await.unwrap() as usize;
        let mut body = vec![0; length - 4];
        socket.read_exact(&mut body).await.unwrap();
        kinds.push(kind as char);
        if kind == b'Z' {
            kinds.push(body[0] as char);
            return kinds;
        }
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.put_u32(body.len() as u32 + 4);
    message.extend_from_slice(body);
    message
}

#[tokio::test]
async fn a_client_that_sends_first_and_reads_later_is_told_what_is_too_large() {
    let (running, _fake) = serve(|config| config.body_limit = 1000).await;
    let mut socket = TcpStream::connect(running.postgres_addr().unwrap())
        .await
        .unwrap();
    let body = b"\0\x03\0\0user\0me\0database\0main\0\0";
    let length = (body.len() as u32 + 4).to_be_bytes();
    socket
        .write_all(&[&length[..], body].concat())
        .await
        .unwrap();
    until_ready(&mut socket).await;
    // More bytes than the buffers of both sockets can hold.
    let mut query = vec![b' '; 32 << 20];
    let length = query.len() as u32 - 1;
    query[0] = b'Q';
    query[1..5].copy_from_slice(&length.to_be_bytes());
    let mut answer = Vec::new();
    for part in query.chunks(1 << 16) {
        socket.write_all(part).await.unwrap();
        // libpq also reads meanwhile, and gives up at the end of the stream.
        match socket.try_read_buf(&mut answer) {
            Ok(0) => panic!("the end came before all was sent"),
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    socket.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.contains("08P01"), "{answer}");
    assert!(answer.contains("the limit is 1000"), "{answer}");
}

#[tokio::test]
async fn the_order_of_messages() {
    let (running, _fake) = serve(|_| {}).await;
    let mut socket = TcpStream::connect(running.postgres_addr().unwrap())
        .await
        .unwrap();
    // JDBC first asks for GSS encryption, others ask for TLS.
    for code in [80_877_104_u32, 80_877_103] {
        socket
            .write_all(&[&8_u32.to_be_bytes()[..], &code.to_be_bytes()].concat())
            .await
            .unwrap();
        assert_eq!(socket.read_u8().await.unwrap(), b'N');
    }
    // The server answers protocol 3.2 with 3.0.
    let body = b"\0\x03\0\x02user\0me\0database\0main\0\0";
    let startup = [&(body.len() as u32 + 4).to_be_bytes()[..], body].concat();
    socket.write_all(&startup).await.unwrap();
    let kinds = until_ready(&mut socket).await;
    assert!(
        kinds.starts_with("vRSS") && kinds.ends_with("KZI"),
        "{kinds}"
    );

    // An error is sent at once, because asyncpg waits for it before its Sync.
    let flushed = [message(b'P', b"\0select bad\0\0\0"), message(b'H', b"")];
    socket.write_all(&flushed.concat()).await.unwrap();
    let kind = tokio::time::timeout(Duration::from_mins(1), socket.read_u8());
    assert_eq!(kind.await.expect("the error goes out").unwrap(), b'E');
    let length = socket.read_u32().await.unwrap() as usize;
    socket.read_exact(&mut vec![0; length - 4]).await.unwrap();
    socket.write_all(&message(b'S', b"")).await.unwrap();
    assert_eq!(until_ready(&mut socket).await, "ZI");

    // An error in the extended protocol skips what follows until Sync.
    let bad = [
        message(b'P', b"\0select bad\0\0\0"),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
    ];
    socket.write_all(&bad.concat()).await.unwrap();
    assert_eq!(until_ready(&mut socket).await, "EZI");
    let good = [
        message(b'P', b"a\0select none\0\0\0"),
        message(b'D', b"Sa\0"),
        message(b'B', b"\0a\0\0\0\0\0\0\x01\0\x01"),
        message(b'D', b"P\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'C', b"Sa\0"),
        message(b'P', b"\0 ; \0\0\0"),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
    ];
    socket.write_all(&good.concat()).await.unwrap();
    assert_eq!(until_ready(&mut socket).await, "1tT2TC312IZI");
    socket
        .write_all(&message(b'Q', b"begin; create table t\0"))
        .await
        .unwrap();
    assert_eq!(until_ready(&mut socket).await, "CCZT");
    socket.write_all(&message(b'Q', b"end\0")).await.unwrap();
    assert_eq!(until_ready(&mut socket).await, "CZI");

    // A message that breaks the rules ends the connection, with an error that says why.
    socket
        .write_all(&message(b'B', b"\0\0\0\xff"))
        .await
        .unwrap();
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest[0], b'E');
    assert!(String::from_utf8_lossy(&rest).contains("08P01"));
}

#[tokio::test]
async fn connections_over_the_limit_are_told_so() {
    let (running, _fake) = serve(|config| config.connections_max = 1).await;
    let first = connect(&running, "main").await.unwrap();
    let error = connect(&running, "main").await.err().unwrap();
    assert_eq!(code(&error), "53300");
    drop(first);
    let mut stream = futures::stream::repeat(());
    while connect(&running, "main").await.is_err() {
        stream.next().await;
    }
}
