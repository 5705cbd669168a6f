//! The PostgreSQL interface, over its binary protocol.

use crate::server::ServeProcess;
use futures::SinkExt;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls, binary_copy::BinaryCopyInWriter};

async fn connect(server: &ServeProcess) -> Client {
    let config = format!(
        "host=127.0.0.1 port={} user=me dbname=db",
        server.postgres_port
    );
    let (client, connection) = tokio_postgres::connect(&config, NoTls)
        .await
        .expect("the server takes connections");
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_parameters_and_copy() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(server.write("seed v=1 1").status, 204);
    let client = connect(&server).await;
    client
        .batch_execute(
            "CREATE TABLE t (time TIMESTAMP, dev STRING TAG, n BIGINT FIELD, x DOUBLE FIELD)",
        )
        .await
        .unwrap();

    let types = [Type::TIMESTAMP, Type::TEXT, Type::INT8, Type::FLOAT8];
    let sink = client
        .copy_in("COPY t (time, dev, n, x) FROM STDIN BINARY")
        .await
        .unwrap();
    let writer = BinaryCopyInWriter::new(sink, &types);
    let mut writer = std::pin::pin!(writer);
    let start = chrono::DateTime::from_timestamp(1_700_000_000, 0)
        .unwrap()
        .naive_utc();
    for row in 0..25_000i64 {
        let time = start + chrono::Duration::seconds(row);
        let (dev, x) = (format!("d{}", row % 10), row as f64 / 2.0);
        writer
            .as_mut()
            .write(&[&time, &dev, &row, &x])
            .await
            .unwrap();
    }
    assert_eq!(writer.finish().await.unwrap(), 25_000);

    let statement = client
        .prepare("SELECT time, n, x, dev FROM t WHERE dev = $1 AND n < $2 ORDER BY n")
        .await
        .unwrap();
    let rows = client.query(&statement, &[&"d3", &40i64]).await.unwrap();
    let got: Vec<(i64, f64, String)> = rows
        .iter()
        .map(|row| (row.get(1), row.get(2), row.get(3)))
        .collect();
    let expected: Vec<_> = [3i64, 13, 23, 33]
        .map(|n| (n, n as f64 / 2.0, "d3".to_owned()))
        .to_vec();
    assert_eq!(got, expected);
    let time: chrono::NaiveDateTime = rows[1].get(0);
    assert_eq!(time, start + chrono::Duration::seconds(13));

    let error = client
        .query("SELECT nothing FROM t", &[])
        .await
        .unwrap_err();
    let error = error.as_db_error().expect("the server answered");
    assert_eq!(error.code().code(), "42703", "{error}");
    let one: i64 = client
        .query_one("SELECT count(*) FROM t", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(one, 25_000, "the connection goes on after an error");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_copy_goes_in_and_comes_out() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(server.write("seed v=1 1").status, 204);
    let client = connect(&server).await;
    client
        .batch_execute("CREATE TABLE t (time TIMESTAMP, dev STRING TAG, x DOUBLE FIELD)")
        .await
        .unwrap();
    let bad = "time,dev,x\n2024-01-01 00:00:00,a,1.5\n2024-01-01 00:00:01,a,warm\n";
    let error = copy_csv(&client, bad)
        .await
        .expect_err("'warm' is not a number");
    let error = error
        .as_db_error()
        .expect("the server answered")
        .to_string();
    assert!(error.contains("warm"), "{error}");
    let good = "time,dev,x\n2024-01-01 00:00:00,a,1.5\n2024-01-01 00:00:02,\"b,c\",2.5\n";
    assert_eq!(copy_csv(&client, good).await.unwrap(), 2);
    let rows = client
        .query("SELECT dev, x FROM t ORDER BY time", &[])
        .await
        .unwrap();
    let got: Vec<(String, f64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(got, [("a".to_owned(), 1.5), ("b,c".to_owned(), 2.5)]);
}

/// Sends CSV with a header to table `t`; returns the number of rows stored.
async fn copy_csv(client: &Client, text: &'static str) -> Result<u64, tokio_postgres::Error> {
    let sink = client
        .copy_in("COPY t FROM STDIN WITH (FORMAT csv, HEADER)")
        .await?;
    let mut sink = std::pin::pin!(sink);
    sink.send(bytes::Bytes::from_static(text.as_bytes()))
        .await?;
    sink.finish().await
}

/// PostgreSQL would store a row of nulls; a table here cannot, and says which row it is.
#[tokio::test(flavor = "multi_thread")]
async fn copy_names_a_row_without_values() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(server.write("seed v=1 1").status, 204);
    let client = connect(&server).await;
    client
        .batch_execute("CREATE TABLE t (time TIMESTAMP, dev STRING TAG, n BIGINT, x DOUBLE)")
        .await
        .unwrap();
    let sink = client
        .copy_in("COPY t (time, dev, n, x) FROM STDIN (FORMAT csv)")
        .await
        .unwrap();
    let mut sink = std::pin::pin!(sink);
    let data = "2024-01-01,a,1,\n2024-01-02,a,,\n2024-01-03,a,,2.5\n";
    sink.send(bytes::Bytes::from(data)).await.unwrap();
    let error = sink.finish().await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "22000");
    assert_eq!(
        error.message(),
        "a row was refused: the row has no value in any field, and a table stores no such row"
    );
    assert_eq!(error.where_(), Some("COPY t, line 2"));
    // The good rows of the batch are stored.
    let row = client.query_one("SELECT count(*) FROM t", &[]).await;
    assert_eq!(row.unwrap().get::<_, i64>(0), 2);
}
