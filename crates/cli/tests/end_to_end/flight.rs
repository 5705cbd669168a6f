//! Arrow Flight SQL of the real server: rows in and out, catalogs, and who may do what.

use crate::access::{Need, ROLES, SQL, add_user, basic, password_of, start_with};
use crate::certificates::CertificateAuthority;
use crate::server::{ServeProcess, free_port};
use arrow::array::{
    ArrayRef, AsArray, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{Int32Type, Int64Type};
use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetTables, CommandGetXdbcTypeInfo,
    CommandStatementIngest, TableDefinitionOptions, TableExistsOption, TableNotExistOption,
};
use arrow_flight::{FlightInfo, IpcMessage, Ticket};
use futures::{StreamExt, TryStreamExt};
use std::path::Path;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

type Client = FlightSqlServiceClient<Channel>;

async fn connect(port: u16) -> Client {
    let uri = format!("http://127.0.0.1:{port}");
    let channel = Endpoint::from_shared(uri).expect("a URI").connect().await;
    Client::new(channel.expect("the server listens"))
}

fn serve(dir: &Path) -> (ServeProcess, u16) {
    let port = free_port();
    let server = ServeProcess::start(dir, &["--flight", &format!("127.0.0.1:{port}")]);
    (server, port)
}

async fn rows_of(client: &mut Client, info: FlightInfo) -> Result<RecordBatch, FlightError> {
    let schema = Arc::new(info.clone().try_decode_schema()?);
    let mut batches = Vec::new();
    for endpoint in info.endpoint {
        let ticket = endpoint.ticket.expect("a ticket");
        let answer: Vec<RecordBatch> = client.do_get(ticket).await?.try_collect().await?;
        batches.extend(answer);
    }
    // ADBC refuses an answer whose schema is not the one that was announced.
    for batch in &batches {
        assert_eq!(batch.schema(), schema);
    }
    Ok(concat_batches(&schema, &batches)?)
}

async fn ask(client: &mut Client, sql: &str) -> Result<RecordBatch, FlightError> {
    let info = client.execute(sql.to_owned(), None).await?;
    rows_of(client, info).await
}

fn status_of(error: FlightError) -> Status {
    match error {
        FlightError::Tonic(status) => *status,
        other => panic!("{other} is no status"),
    }
}

fn texts(rows: &RecordBatch, column: usize) -> Vec<String> {
    let column = arrow::compute::cast(rows.column(column), &arrow::datatypes::DataType::Utf8);
    let column = column.expect("texts");
    let column = column.as_string::<i32>();
    column
        .iter()
        .map(|text| text.unwrap_or("NULL").to_owned())
        .collect()
}

/// Rows of a new table: every 25th has no time.
fn readings() -> RecordBatch {
    let count = 100_i64;
    let times = (0..count).map(|n| (n % 25 != 7).then_some(1_700_000_000_000_000 + n));
    let devices: DictionaryArray<Int32Type> = (0..count)
        .map(|n| if n % 2 == 0 { "even" } else { "odd" })
        .collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "time",
            Arc::new(
                times
                    .collect::<TimestampMicrosecondArray>()
                    .with_timezone("UTC"),
            ),
        ),
        ("device", Arc::new(devices)),
        (
            "value",
            Arc::new(Float64Array::from_iter_values((0..count).map(|n| n as f64))),
        ),
        ("n", Arc::new(Int64Array::from_iter_values(0..count))),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    )
    .expect("columns of one length")
}

fn ingest(
    table: &str,
    if_not_exist: TableNotExistOption,
    if_exists: TableExistsOption,
) -> CommandStatementIngest {
    let mut options = TableDefinitionOptions::default();
    options.set_if_exists(if_exists);
    options.set_if_not_exist(if_not_exist);
    CommandStatementIngest {
        table_definition_options: Some(options),
        table: table.to_owned(),
        ..CommandStatementIngest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_go_in_and_come_out_as_arrow() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_server, port) = serve(dir.path());
    let mut client = connect(port).await;
    client
        .execute_update("CREATE DATABASE plant".to_owned(), None)
        .await
        .expect("it is made");
    client.set_header("database", "plant");
    let send = |batch: RecordBatch| futures::stream::iter([Ok(batch)]);
    let fail = ingest(
        "readings",
        TableNotExistOption::Fail,
        TableExistsOption::Append,
    );
    let error = client
        .execute_ingest(fail, send(readings()))
        .await
        .expect_err("no table");
    assert_eq!(status_of(error).code(), Code::NotFound);
    let create = ingest(
        "readings",
        TableNotExistOption::Create,
        TableExistsOption::Append,
    );
    let error = client
        .execute_ingest(create.clone(), send(readings()))
        .await;
    let status = status_of(error.expect_err("rows without a time"));
    assert!(
        status
            .message()
            .starts_with("96 rows stored, 4 refused: row 7: "),
        "{status}"
    );
    let rows = ask(
        &mut client,
        "SELECT count(*) FROM readings WHERE device = 'even'",
    )
    .await;
    let rows = rows.expect("an answer");
    assert_eq!(rows.column(0).as_primitive::<Int64Type>().value(0), 48);

    // All columns come back with the types of the table: the tag is a dictionary.
    let rows = ask(&mut client, "SELECT * FROM readings ORDER BY time")
        .await
        .expect("rows");
    assert_eq!(rows.num_rows(), 96);
    let device = rows
        .schema()
        .field_with_name("device")
        .expect("a column")
        .clone();
    assert!(
        matches!(
            device.data_type(),
            arrow::datatypes::DataType::Dictionary(..)
        ),
        "{device}"
    );

    let replace = ingest(
        "readings",
        TableNotExistOption::Create,
        TableExistsOption::Replace,
    );
    let first = readings().slice(0, 7);
    assert_eq!(
        client
            .execute_ingest(replace, send(first))
            .await
            .expect("stored"),
        7
    );
    let rows = ask(&mut client, "SELECT * FROM readings")
        .await
        .expect("rows");
    assert_eq!(rows.num_rows(), 7);
    // A table of these roles takes text where it has a tag.
    let more: Vec<(&str, ArrayRef)> = vec![
        (
            "time",
            Arc::new(TimestampMicrosecondArray::from(vec![1, 2])),
        ),
        ("device", Arc::new(StringArray::from(vec!["a", "b"]))),
        ("value", Arc::new(Float64Array::from(vec![1.0, 2.0]))),
    ];
    let more = RecordBatch::try_from_iter(more).expect("two rows");
    assert_eq!(
        client
            .execute_ingest(create, send(more))
            .await
            .expect("stored"),
        2
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_are_prepared_and_their_parameters_bound() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_server, port) = serve(dir.path());
    let mut client = connect(port).await;
    let create = "CREATE TABLE m (time TIMESTAMP, host STRING TAG, v DOUBLE FIELD)";
    client
        .execute_update(create.to_owned(), None)
        .await
        .expect("it is made");
    let insert = "INSERT INTO m (time, host, v) VALUES (to_timestamp_micros($1), $2, $3)";
    let mut insert = client
        .prepare(insert.to_owned(), None)
        .await
        .expect("it is right");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("1", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("2", Arc::new(StringArray::from(vec!["a", "b", "a"]))),
        ("3", Arc::new(Int64Array::from(vec![10, 20, 30]))),
    ];
    let rows = RecordBatch::try_from_iter(columns).expect("three rows");
    insert.set_parameters(rows).expect("they are taken");
    assert_eq!(insert.execute_update().await.expect("stored"), 3);
    let query = "SELECT v FROM m WHERE host = $1 AND v > $2 ORDER BY v".to_owned();
    let mut query = client.prepare(query, None).await.expect("it is right");
    assert_eq!(query.dataset_schema().expect("columns").fields().len(), 1);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("1", Arc::new(StringArray::from(vec!["a", "b"]))),
        ("2", Arc::new(Float64Array::from(vec![15.0, 0.0]))),
    ];
    let values = RecordBatch::try_from_iter(columns).expect("two rows");
    query.set_parameters(values).expect("they are taken");
    let info = query.execute().await.expect("it is planned");
    let rows = rows_of(&mut client, info).await.expect("rows");
    let values = rows
        .column(0)
        .as_primitive::<arrow::datatypes::Float64Type>();
    assert_eq!(values.values(), &[30.0, 20.0]);
    let wrong = client
        .prepare("SELECT nothing FROM m".to_owned(), None)
        .await;
    let status = status_of(wrong.expect_err("no column"));
    let state = status.metadata().get("marigram-sqlstate").expect("a state");
    assert_eq!(state, "42703");
}

#[tokio::test(flavor = "multi_thread")]
async fn catalogs_schemas_tables_and_keys_are_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let (_server, port) = serve(dir.path());
    let mut client = connect(port).await;
    for sql in [
        "CREATE DATABASE plant",
        "CREATE TABLE plant.m (time TIMESTAMP, host STRING TAG, v DOUBLE FIELD)",
        "CREATE TABLE plant.other (time TIMESTAMP, v DOUBLE FIELD)",
        "CREATE VIEW plant.seen AS SELECT host, v FROM m",
    ] {
        client
            .execute_update(sql.to_owned(), None)
            .await
            .expect(sql);
    }
    let info = client.get_catalogs().await.expect("an answer");
    let rows = rows_of(&mut client, info).await.expect("rows");
    assert_eq!(texts(&rows, 0), ["main", "plant"]);
    let info = client.get_db_schemas(CommandGetDbSchemas {
        catalog: Some("plant".to_owned()),
        db_schema_filter_pattern: None,
    });
    let info = info.await.expect("an answer");
    let rows = rows_of(&mut client, info).await.expect("rows");
    assert_eq!(
        (texts(&rows, 0), texts(&rows, 1)),
        (vec!["plant".to_owned()], vec!["public".to_owned()])
    );
    let asked = CommandGetTables {
        catalog: None,
        db_schema_filter_pattern: None,
        table_name_filter_pattern: Some("%e%".to_owned()),
        table_types: Vec::new(),
        include_schema: true,
    };
    let info = client.get_tables(asked.clone()).await.expect("an answer");
    let rows = rows_of(&mut client, info).await.expect("rows");
    assert_eq!(texts(&rows, 2), ["other", "seen"]);
    assert_eq!(texts(&rows, 3), ["BASE TABLE", "VIEW"]);
    let schema = rows.column(4).as_binary::<i32>().value(0).to_vec();
    let schema = arrow::datatypes::Schema::try_from(IpcMessage(schema.into())).expect("a schema");
    assert_eq!(schema.fields().len(), 2);
    let views = CommandGetTables {
        table_types: vec!["VIEW".to_owned()],
        include_schema: false,
        ..asked
    };
    let info = client.get_tables(views).await.expect("an answer");
    let rows = rows_of(&mut client, info).await.expect("rows");
    assert_eq!(
        (texts(&rows, 2), rows.num_columns()),
        (vec!["seen".to_owned()], 4)
    );
    let keys = CommandGetPrimaryKeys {
        catalog: Some("plant".to_owned()),
        db_schema: None,
        table: "m".to_owned(),
    };
    let info = client.get_primary_keys(keys).await.expect("an answer");
    let rows = rows_of(&mut client, info).await.expect("rows");
    assert_eq!(texts(&rows, 3), ["host", "time"]);
    let info = client.get_xdbc_type_info(CommandGetXdbcTypeInfo { data_type: None });
    let info = info.await.expect("an answer");
    assert!(rows_of(&mut client, info).await.expect("rows").num_rows() >= 9);
}

fn json_ticket(database: &str, language: &str, query: &str) -> Ticket {
    let ticket = serde_json::json!({
        "database": database, "sql_query": query, "query_type": language, "params": {"n": 1},
    });
    Ticket::new(ticket.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn influxdbs_tickets_get_sql_and_influxql() {
    let dir = tempfile::tempdir().expect("a directory");
    let (server, port) = serve(dir.path());
    assert_eq!(server.write("m,host=a v=1 1\nm,host=b v=2 2").status, 204);
    let mut client = connect(port).await;
    for (language, query, rows) in [
        ("sql", "SELECT host FROM m WHERE v > $n", 1),
        ("influxql", "SELECT v FROM m WHERE v > $n", 1),
        ("influxql", "SHOW MEASUREMENTS", 1),
        ("influxql", "SELECT v FROM m GROUP BY host", 2),
    ] {
        let stream = client
            .do_get(json_ticket("db", language, query))
            .await
            .expect(query);
        let batches: Vec<RecordBatch> = stream.try_collect().await.expect(query);
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(count, rows, "{query}");
    }
    let error = client
        .do_get(json_ticket("nowhere", "sql", "SELECT 1"))
        .await;
    assert_eq!(
        status_of(error.expect_err("no database")).code(),
        Code::NotFound
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_role_may_do_what_it_was_granted_over_flight() {
    let dir = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let server = start_with(dir.path(), &["--flight", &format!("127.0.0.1:{port}")]);
    for (role, held) in ROLES {
        let mut client = connect(port).await;
        client
            .handshake(role, &password_of(role))
            .await
            .expect("it comes in");
        client.set_header("database", "plant");
        for (need, statement) in SQL {
            let wanted = if held.contains(&need) {
                Code::Ok
            } else {
                Code::PermissionDenied
            };
            let code = |result: Result<RecordBatch, FlightError>| {
                result.map_or_else(|error| status_of(error).code(), |_| Code::Ok)
            };
            let asked = match client.execute(statement.to_owned(), None).await {
                Ok(info) if info.endpoint.is_empty() => Code::Ok,
                Ok(info) => code(rows_of(&mut client, info).await),
                Err(error) => status_of(error).code(),
            };
            assert_eq!(asked, wanted, "{role}: {statement}");
            let updated = client.execute_update(statement.to_owned(), None).await;
            let updated = updated.map_or_else(|error| status_of(error).code(), |_| Code::Ok);
            assert_eq!(updated, wanted, "{role}, as an update: {statement}");
            let by_ticket = client.do_get(json_ticket("plant", "sql", statement)).await;
            let by_ticket = by_ticket.map_or_else(|error| status_of(error).code(), |_| Code::Ok);
            assert_eq!(by_ticket, wanted, "{role}, by ticket: {statement}");
        }
        let append = ingest("m", TableNotExistOption::Create, TableExistsOption::Append);
        let rows: Vec<(&str, ArrayRef)> = vec![
            ("time", Arc::new(TimestampMicrosecondArray::from(vec![5]))),
            ("host", Arc::new(StringArray::from(vec!["f"]))),
            ("v", Arc::new(Float64Array::from(vec![1.0]))),
        ];
        let rows = RecordBatch::try_from_iter(rows).expect("a row");
        let stored = client
            .execute_ingest(append, futures::stream::iter([Ok(rows)]))
            .await;
        assert_eq!(
            stored.is_ok(),
            held.contains(&Need::Write),
            "{role} ingests: {stored:?}"
        );
        let info = client.get_tables(CommandGetTables::default()).await;
        if let Ok(info) = info
            && let Ok(rows) = rows_of(&mut client, info).await
        {
            let sees = texts(&rows, 2).contains(&"m".to_owned());
            let any = !held.is_empty();
            assert!(!sees || any, "{role} sees {:?}", texts(&rows, 2));
            let secrets = texts(&rows, 2).contains(&"secrets".to_owned());
            assert!(
                !secrets || held.contains(&Need::Administer),
                "{role} sees the vault"
            );
        }
    }
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_proves_who_it_is_may_call() {
    let dir = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let server = start_with(dir.path(), &["--flight", &format!("127.0.0.1:{port}")]);
    let root = basic("root", &password_of("root"));
    let headers = [("Authorization", &*root)];
    let made = server.request(
        "POST",
        "/api/v1/sql",
        &headers,
        b"CREATE TOKEN READ ON plant",
    );
    let token = made.json()["rows"][0][1]
        .as_str()
        .expect("a token")
        .to_owned();
    let mut client = connect(port).await;
    let error = client.execute("SELECT 1".to_owned(), None).await;
    let status = status_of(error.expect_err("nobody"));
    assert_eq!(status.code(), Code::Unauthenticated);
    assert!(client.handshake("root", "wrong").await.is_err());
    assert!(client.handshake("ghost", "ghostghost").await.is_err());
    for (value, wanted) in [
        (root.clone(), Code::Ok),
        (format!("Bearer {token}"), Code::Ok),
        (format!("Token {token}"), Code::Ok),
        ("Bearer wrong".to_owned(), Code::Unauthenticated),
        ("Bearer flight_00".to_owned(), Code::Unauthenticated),
        ("Digest x".to_owned(), Code::Unauthenticated),
    ] {
        let mut client = connect(port).await;
        client.set_header("authorization", &value);
        let answer = ask(&mut client, "SELECT count(*) FROM plant.m").await;
        let code = answer.map_or_else(|error| status_of(error).code(), |_| Code::Ok);
        assert_eq!(code, wanted, "{value}");
    }
    // A user who is gone has no more use of what the handshake gave.
    let mut client = connect(port).await;
    client
        .handshake("reader", &password_of("reader"))
        .await
        .expect("she comes in");
    ask(&mut client, "SELECT count(*) FROM plant.m")
        .await
        .expect("she may");
    let reply = server.request("POST", "/api/v1/sql", &headers, b"DROP USER reader");
    assert_eq!(reply.status, 200);
    let error = ask(&mut client, "SELECT 1").await.expect_err("she is gone");
    assert_eq!(status_of(error).code(), Code::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_handshake_gave_ends_with_the_password() {
    let dir = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let server = start_with(dir.path(), &["--flight", &format!("127.0.0.1:{port}")]);
    let root = basic("root", &password_of("root"));
    let code = |answer: Result<RecordBatch, FlightError>| {
        answer.map_or_else(|error| status_of(error).code(), |_| Code::Ok)
    };
    let count = "SELECT count(*) FROM plant.m";
    let sql = |text: &str| {
        let headers = [("Authorization", &*root)];
        let reply = server.request("POST", "/api/v1/sql", &headers, text.as_bytes());
        assert_eq!(reply.status, 200, "{text}: {}", reply.body);
    };
    for (change, password) in [
        ("ALTER USER reader PASSWORD 'another one'", "another one"),
        (
            "DROP USER reader; CREATE USER reader WITH PASSWORD 'another one'; \
             GRANT READ ON plant TO reader",
            "another one",
        ),
        ("ALTER USER reader NOLOGIN", ""),
    ] {
        sql(
            "DROP USER IF EXISTS reader; CREATE USER reader WITH PASSWORD 'readerreader'; \
             GRANT READ ON plant TO reader",
        );
        let mut client = connect(port).await;
        let first = client.handshake("reader", "readerreader").await;
        let first = first.expect("she comes in");
        assert_eq!(code(ask(&mut client, count).await), Code::Ok);
        // A handshake with the token gives the same token, so it does not live longer.
        let bearer = format!("Bearer {}", String::from_utf8_lossy(&first));
        let again = with_header(port, &bearer).await;
        assert_eq!(again.expect("she may"), first);
        sql(change);
        assert_eq!(
            code(ask(&mut client, count).await),
            Code::Unauthenticated,
            "{change}"
        );
        let again = with_header(port, &bearer).await;
        assert_eq!(again.expect_err(change).code(), Code::Unauthenticated);
        let mut client = connect(port).await;
        let renewed = client.handshake("reader", password).await;
        assert_eq!(renewed.is_ok(), !password.is_empty(), "{change}");
    }
}

/// The token that a handshake with this header gives.
async fn with_header(port: u16, authorization: &str) -> Result<Vec<u8>, Status> {
    let mut plain = connect(port).await.inner().clone();
    let mut request = tonic::Request::new(futures::stream::empty());
    let value = authorization.parse().expect("a header");
    request.metadata_mut().insert("authorization", value);
    let mut answers = plain.handshake(request).await?.into_inner();
    let answer = answers.message().await?.expect("an answer");
    Ok(answer.payload.to_vec())
}

/// A port whose connections go on to `port`, encrypted by `config`.
async fn tunnel(config: rustls::ClientConfig, port: u16) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let own = listener.local_addr().expect("an address").port();
    let connector = TlsConnector::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((mut plain, _)) = listener.accept().await {
            let connector = connector.clone();
            tokio::spawn(async move {
                let socket = TcpStream::connect(("127.0.0.1", port)).await?;
                let name = "localhost".try_into().expect("a name");
                let mut encrypted = connector.connect(name, socket).await?;
                tokio::io::copy_bidirectional(&mut plain, &mut encrypted).await
            });
        }
    });
    own
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_encrypted_where_there_is_a_certificate() {
    let dir = tempfile::tempdir().expect("a directory");
    let authority = CertificateAuthority::new();
    let (certificate, key) = authority.issue().write(dir.path());
    let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
    let data = dir.path().join("data");
    add_user(&data, "root", &["--admin"]);
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let options = [
        "--flight",
        &address,
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
    ];
    let _server = ServeProcess::start(&data, &options);
    let client_config = |authority: &CertificateAuthority, protocol: &[u8]| {
        let mut config = authority.client(None);
        config.alpn_protocols = vec![protocol.to_vec()];
        config
    };
    let encrypted = tunnel(client_config(&authority, b"h2"), port).await;
    let mut client = connect(encrypted).await;
    let password = password_of("root");
    client
        .handshake("root", &password)
        .await
        .expect("it comes in");
    let rows = ask(&mut client, "SELECT 41 + 1").await.expect("an answer");
    assert_eq!(rows.column(0).as_primitive::<Int64Type>().value(0), 42);
    // Without TLS, with a certificate of somebody else, or with another protocol, nobody calls.
    let foreign = client_config(&CertificateAuthority::new(), b"h2");
    let foreign = tunnel(foreign, port).await;
    let other = tunnel(client_config(&authority, b"postgresql"), port).await;
    for port in [port, foreign, other] {
        let uri = format!("http://127.0.0.1:{port}");
        let endpoint = Endpoint::from_shared(uri).expect("a URI");
        if let Ok(channel) = endpoint.connect().await {
            let mut client = Client::new(channel);
            assert!(client.handshake("root", &password).await.is_err());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_stops_or_sees_another_users_statement() {
    let dir = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let _server = start_with(dir.path(), &["--flight", &format!("127.0.0.1:{port}")]);
    let mut root = connect(port).await;
    root.handshake("root", &password_of("root"))
        .await
        .expect("it comes in");
    let mut reader = connect(port).await;
    reader
        .handshake("reader", &password_of("reader"))
        .await
        .expect("she comes in");
    reader.set_header("database", "plant");
    // A statement with more rows than anybody waits for.
    let sql = "SELECT a.value FROM generate_series(1, 100000000) AS a";
    let info = root
        .execute(sql.to_owned(), None)
        .await
        .expect("it is planned");
    let ticket = info.endpoint[0].ticket.clone().expect("a ticket");
    let mut rows = root.do_get(ticket).await.expect("it runs");
    rows.next().await.expect("rows").expect("rows");
    let request = arrow_flight::CancelFlightInfoRequest::new(info);
    let inner = |client: &Client| client.inner().clone();
    let cancel = |client: &Client| {
        let mut plain = arrow_flight::FlightClient::new_from_inner(inner(client));
        let token = client.token().cloned().expect("a token");
        plain
            .add_header("authorization", &format!("Bearer {token}"))
            .expect("a header");
        let request = request.clone();
        async move {
            plain
                .cancel_flight_info(request)
                .await
                .expect("an answer")
                .status()
        }
    };
    let by_reader = cancel(&reader).await;
    assert_eq!(by_reader, arrow_flight::CancelStatus::NotCancellable);
    rows.next().await.expect("rows").expect("it still runs");
    assert_eq!(cancel(&root).await, arrow_flight::CancelStatus::Cancelled);
    let error = loop {
        match rows.next().await.expect("an error") {
            Ok(_) => {}
            Err(error) => break status_of(error),
        }
    };
    assert_eq!(error.code(), Code::Cancelled, "{error}");
}
