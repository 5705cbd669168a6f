//! Arrow Flight SQL, as its own client asks, and as nobody should.

use crate::fake::{Fake, readings, serve};
use arrow::array::{
    Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
};
use arrow::compute::concat_batches;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    Any, CommandGetTableTypes, CommandPreparedStatementQuery, CommandStatementIngest,
    CommandStatementQuery, ProstMessageExt, SqlInfo, TableDefinitionOptions, TableExistsOption,
    TicketStatementQuery,
};
use arrow_flight::{
    Action, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightData,
    FlightDescriptor, FlightInfo, PutResult, Ticket,
};
use futures::{Stream, StreamExt, TryStreamExt};
use marigram_server::{RunningServers, ServerConfig};
use marigram_service::ArrowRoles;
use prost::Message;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

/// A bound against hangs.
const SOON: Duration = Duration::from_mins(1);

type Client = FlightSqlServiceClient<Channel>;

async fn channel(running: &RunningServers) -> Channel {
    let uri = format!("http://{}", running.flight_addr().unwrap());
    Endpoint::from_shared(uri).unwrap().connect().await.unwrap()
}

async fn client_of(change: impl FnOnce(&mut ServerConfig)) -> (RunningServers, Arc<Fake>, Client) {
    let (running, fake) = serve(change).await;
    let client = Client::new(channel(&running).await);
    (running, fake, client)
}

async fn rows_of(client: &mut Client, info: FlightInfo) -> Result<RecordBatch, FlightError> {
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let schema = Arc::new(info.try_decode_schema().unwrap());
    let batches: Vec<RecordBatch> = client.do_get(ticket).await?.try_collect().await?;
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

fn sqlstate(status: &Status) -> String {
    let state = status.metadata().get("marigram-sqlstate").unwrap();
    state.to_str().unwrap().to_owned()
}

async fn until(what: &str, mut is: impl FnMut() -> bool) {
    let waits = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(SOON, waits).await.is_ok(), "{what}");
}

#[tokio::test]
async fn rows_come_as_arrow_with_their_own_types() {
    let (_running, _, mut client) = client_of(|_| {}).await;
    let rows = ask(&mut client, "select types").await.unwrap();
    assert_eq!(rows.num_rows(), 2);
    let kinds: Vec<String> = rows
        .schema()
        .fields()
        .iter()
        .map(|field| field.data_type().to_string())
        .collect();
    assert!(kinds[1].starts_with("Dictionary("), "{kinds:?}");
    assert_eq!(&kinds[2..5], ["Float64", "Int64", "UInt64"]);
    let many = ask(&mut client, "select many").await.unwrap();
    assert_eq!(many.num_rows(), 30_000);
    assert_eq!(ask(&mut client, "select none").await.unwrap().num_rows(), 0);
}

#[tokio::test]
async fn a_statement_without_rows_is_done_when_it_is_planned() {
    let (_running, fake, mut client) = client_of(|_| {}).await;
    let info = client
        .execute("create table t".to_owned(), None)
        .await
        .unwrap();
    assert!(info.endpoint.is_empty());
    assert_eq!(
        (info.total_records, fake.statements.load(Ordering::SeqCst)),
        (0, 1)
    );
    let changed = client
        .execute_update("create table t".to_owned(), None)
        .await;
    assert_eq!(changed.unwrap(), 0);
    assert_eq!(fake.statements.load(Ordering::SeqCst), 2);
    let begun = client.begin_transaction().await.unwrap_err();
    assert_eq!(status_of(begun).code(), Code::Unimplemented);
}

#[tokio::test]
async fn errors_are_statuses_with_an_sqlstate() {
    let (_running, fake, mut client) = client_of(|_| {}).await;
    let status = status_of(ask(&mut client, "something bad").await.unwrap_err());
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(status.message(), "this is not understood: something bad");
    assert_eq!(sqlstate(&status), "42601");
    assert!(!status.details().is_empty());
    let status = status_of(ask(&mut client, "select broken at once").await.unwrap_err());
    assert_eq!(
        (status.code(), status.message()),
        (Code::Internal, "page 7 of segment 3 is damaged")
    );
    let far = status_of(
        ask(&mut client, "select broken far away")
            .await
            .unwrap_err(),
    );
    assert_eq!(
        (far.code(), far.message()),
        (Code::Internal, "page 7 of segment 3 is damaged")
    );
    client.set_header("database", "nowhere");
    let status = status_of(ask(&mut client, "select types").await.unwrap_err());
    assert_eq!(
        (status.code(), &*sqlstate(&status)),
        (Code::NotFound, "3D000")
    );
    until("all streams end", || fake.alive.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn prepared_statements_get_their_parameters() {
    let (_running, _, mut client) = client_of(|_| {}).await;
    let mut prepared = client
        .prepare("select echo $1, $2, $3, $4, $5, $6".to_owned(), None)
        .await
        .unwrap();
    let schema = prepared.parameter_schema().unwrap().clone();
    assert_eq!(schema.fields().len(), 6);
    assert_eq!(schema.field(0).name(), "$1");
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("1", Arc::new(Int64Array::from(vec![7, 8]))),
        ("2", Arc::new(Int64Array::from(vec![Some(2), None]))),
        ("3", Arc::new(StringArray::from(vec!["é", ""]))),
        ("4", Arc::new(StringArray::from(vec!["true", "false"]))),
        ("5", Arc::new(TimestampNanosecondArray::from(vec![1, 2]))),
        ("6", Arc::new(StringArray::from(vec![None, Some("x")]))),
    ];
    prepared
        .set_parameters(
            RecordBatch::try_from_iter_with_nullable(
                columns
                    .into_iter()
                    .map(|(name, column)| (name, column, true)),
            )
            .unwrap(),
        )
        .unwrap();
    let info = prepared.execute().await.unwrap();
    let rows = rows_of(&mut client, info).await.unwrap();
    assert_eq!(rows.num_rows(), 2, "the statement runs once for each row");
    let second = rows
        .column(1)
        .as_any()
        .downcast_ref::<Float64Array>()
        .unwrap();
    assert!(second.value(0) == 2.0 && second.is_null(1));
    let too_few: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    prepared
        .set_parameters(RecordBatch::try_from_iter([("1", too_few)]).unwrap())
        .unwrap();
    let info = prepared.execute().await.unwrap();
    let status = status_of(rows_of(&mut client, info).await.unwrap_err());
    assert!(
        status.message().contains("has 6 parameters, and 1 values"),
        "{status}"
    );
    prepared.close().await.unwrap();
}

fn json_ticket(members: &str) -> Ticket {
    Ticket::new(format!("{{{members}}}"))
}

#[tokio::test]
async fn tickets_of_influxdbs_clients_are_answered() {
    let (_running, _, mut client) = client_of(|_| {}).await;
    for (members, rows) in [
        (
            r#""database":"main","sql_query":"select many;","query_type":"sql""#,
            30_000,
        ),
        (
            r#""database":"main","sql_query":"SELECT series","query_type":"influxql""#,
            8,
        ),
        (r#""database":"main","sql_query":"create table t""#, 1),
    ] {
        let stream = client.do_get(json_ticket(members)).await.unwrap();
        let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
        let count: usize = batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(count, rows, "{members}");
    }
    for (members, part) in [
        (r#""sql_query":"q""#, "no 'database'"),
        (r#""database":"main","sql_query":"a; b""#, "one statement"),
        (
            r#""database":"main","sql_query":"q","query_type":"flux""#,
            "'flux' is not known",
        ),
        (r#""database":"main","sql_query":"select $x""#, "no 'x'"),
        (
            r#""database":"main","sql_query":"SELECT","query_type":"influxql""#,
            "found EOF",
        ),
        (r#""database": "#, "not the JSON"),
    ] {
        let error = client.do_get(json_ticket(members)).await.unwrap_err();
        let status = status_of(error);
        assert_eq!(status.code(), Code::InvalidArgument, "{members}: {status}");
        assert!(status.message().contains(part), "{members}: {status}");
    }
}

/// Rows of `readings`; those of `missing` have no time.
fn rows(count: i64, missing: &[i64]) -> RecordBatch {
    let times = (0..count).map(|n| (!missing.contains(&n)).then_some(n));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(times.collect::<TimestampNanosecondArray>()),
        Arc::new(StringArray::from_iter_values(
            (0..count).map(|n| format!("d{}", n % 7)),
        )),
        Arc::new(Float64Array::from_iter_values((0..count).map(|n| n as f64))),
        Arc::new(Int64Array::from_iter_values(0..count)),
    ];
    let names = readings()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect::<Vec<_>>();
    RecordBatch::try_from_iter_with_nullable(
        names
            .into_iter()
            .zip(columns)
            .map(|(name, column)| (name, column, true)),
    )
    .unwrap()
}

fn ingest(table: &str, if_exists: TableExistsOption) -> CommandStatementIngest {
    let mut options = TableDefinitionOptions::default();
    options.set_if_exists(if_exists);
    CommandStatementIngest {
        table_definition_options: Some(options),
        table: table.to_owned(),
        ..CommandStatementIngest::default()
    }
}

#[tokio::test]
async fn good_rows_are_kept_and_bad_ones_named() {
    let (_running, fake, mut client) = client_of(|_| {}).await;
    let send = |batches: Vec<RecordBatch>| futures::stream::iter(batches).map(Ok);
    let append = ingest("readings", TableExistsOption::Append);
    let stored = client
        .execute_ingest(append.clone(), send(vec![rows(1000, &[]), rows(5, &[])]))
        .await;
    assert_eq!(stored.unwrap(), 1005);
    assert_eq!(fake.copied.lock().unwrap().len(), 2);
    let error = client
        .execute_ingest(append, send(vec![rows(10, &[]), rows(10, &[3, 4])]))
        .await;
    let status = status_of(error.unwrap_err());
    assert_eq!(
        status.message(),
        "18 rows stored, 2 refused: row 13: it has no time; row 14: it has no time"
    );
    let fail = ingest("readings", TableExistsOption::Fail);
    let error = client.execute_ingest(fail, send(vec![rows(1, &[])])).await;
    assert_eq!(status_of(error.unwrap_err()).code(), Code::AlreadyExists);
    assert!(fake.created.lock().unwrap().is_empty());
    let new = ingest("fresh", TableExistsOption::Append);
    let stored = client.execute_ingest(new, send(vec![rows(3, &[])])).await;
    assert_eq!(stored.unwrap(), 3);
    let roles = ArrowRoles {
        time: "time".to_owned(),
        tags: vec!["device".to_owned()],
    };
    assert_eq!(*fake.created.lock().unwrap(), [roles]);
}

async fn put(
    client: &mut Client,
    messages: impl Stream<Item = FlightData> + Send + 'static,
) -> Result<Vec<PutResult>, Status> {
    let answered = client.do_put(messages).await.map_err(status_of)?;
    answered.try_collect().await
}

/// The messages of rows for a descriptor.
async fn messages(descriptor: FlightDescriptor, batch: RecordBatch) -> Vec<FlightData> {
    let encoder = FlightDataEncoderBuilder::new()
        .with_flight_descriptor(Some(descriptor))
        .build(futures::stream::iter([Ok(batch)]));
    encoder.try_collect().await.unwrap()
}

#[tokio::test]
async fn rows_may_be_put_to_a_path_and_damaged_ones_are_refused() {
    let (_running, fake, mut client) = client_of(|config| config.body_limit = 1 << 20).await;
    let path = FlightDescriptor::new_path(vec!["main".to_owned(), "readings".to_owned()]);
    let sent = messages(path, rows(100, &[])).await;
    let answers = put(&mut client, futures::stream::iter(sent.clone()))
        .await
        .unwrap();
    assert_eq!(answers.len(), 1);
    assert_eq!(fake.copied.lock().unwrap()[0].num_rows(), 100);

    // Every byte of the heads, and some of the bodies.
    for at in 0..sent[1].data_header.len() {
        let mut damaged = sent.clone();
        let mut header = damaged[1].data_header.to_vec();
        header[at] ^= 0xff;
        damaged[1].data_header = header.into();
        let _ = tokio::time::timeout(SOON, put(&mut client, futures::stream::iter(damaged)))
            .await
            .expect("it ends");
    }
    let mut cut = sent.clone();
    cut[1].data_body = cut[1].data_body.slice(..40);
    let status = put(&mut client, futures::stream::iter(cut))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    let mut headless = sent.clone();
    headless[0].flight_descriptor = None;
    let status = put(&mut client, futures::stream::iter(headless))
        .await
        .unwrap_err();
    assert!(status.message().contains("no descriptor"), "{status}");
    let status = put(&mut client, futures::stream::empty())
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    let mut large = sent;
    large[1].data_body = vec![0; 2 << 20].into();
    let status = put(&mut client, futures::stream::iter(large))
        .await
        .unwrap_err();
    assert!(status.message().contains("body_limit"), "{status}");
    // The server goes on, and holds nothing.
    assert_eq!(ask(&mut client, "select none").await.unwrap().num_rows(), 0);
    until("all memory comes back", || {
        fake.memory_taken.load(Ordering::SeqCst) == 0
    })
    .await;
}

#[tokio::test]
async fn an_upload_waits_for_memory_and_is_refused_without() {
    let (_running, fake, mut client) = client_of(|_| {}).await;
    fake.memory_full.store(true, Ordering::SeqCst);
    let path = FlightDescriptor::new_path(vec!["readings".to_owned()]);
    let sent = messages(path, rows(100, &[])).await;
    let status = put(&mut client, futures::stream::iter(sent))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert!(fake.copied.lock().unwrap().is_empty());
}

async fn begin_endless(
    client: &mut Client,
    fake: &Fake,
) -> (FlightInfo, arrow_flight::decode::FlightRecordBatchStream) {
    let info = client
        .execute("select endless".to_owned(), None)
        .await
        .unwrap();
    until("planning holds no rows", || {
        fake.alive.load(Ordering::SeqCst) == 0
    })
    .await;
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let mut stream = client.do_get(ticket).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().num_rows(), 10);
    assert_eq!(fake.alive.load(Ordering::SeqCst), 1);
    (info, stream)
}

#[tokio::test]
async fn a_client_stops_its_statement_or_goes_away() {
    let (_running, fake, mut client) = client_of(|_| {}).await;
    let (info, mut stream) = begin_endless(&mut client, &fake).await;
    let request = CancelFlightInfoRequest::new(info);
    let mut statuses = Vec::new();
    for _ in 0..2 {
        let action = Action::new("CancelFlightInfo", request.encode_to_vec());
        let mut results = client.do_action(action).await.unwrap();
        let result = results.message().await.unwrap().unwrap();
        statuses.push(
            CancelFlightInfoResult::decode(&*result.body)
                .unwrap()
                .status(),
        );
        until("the statement ends", || {
            fake.alive.load(Ordering::SeqCst) == 0
        })
        .await;
        if statuses.len() == 1 {
            let status = status_of(stream.next().await.unwrap().unwrap_err());
            assert_eq!(
                (status.code(), status.message()),
                (Code::Cancelled, "the client stopped the statement")
            );
        }
    }
    assert_eq!(
        statuses,
        [CancelStatus::Cancelled, CancelStatus::NotCancellable]
    );
    let (_, stream) = begin_endless(&mut client, &fake).await;
    drop(stream);
    until("it ends with its client", || {
        fake.alive.load(Ordering::SeqCst) == 0
    })
    .await;
}

#[tokio::test]
async fn a_statement_ends_with_its_timeout_and_with_the_server() {
    let (_running, fake, mut client) = client_of(|config| config.statement_timeout_ms = 300).await;
    let (_, mut stream) = begin_endless(&mut client, &fake).await;
    let status = status_of(stream.next().await.unwrap().unwrap_err());
    assert_eq!(status.code(), Code::Cancelled);
    assert!(status.message().contains("(300 ms)"), "{status}");

    let (running, fake, mut client) = client_of(|_| {}).await;
    let (_, mut stream) = begin_endless(&mut client, &fake).await;
    running.shutdown(Duration::from_millis(100)).await;
    let last = tokio::time::timeout(SOON, stream.next())
        .await
        .expect("it ends");
    assert!(last.is_none_or(|last| last.is_err()));
    until("the statement ends", || {
        fake.alive.load(Ordering::SeqCst) == 0
    })
    .await;
}

#[tokio::test]
async fn a_client_that_never_reads_gives_its_place_up() {
    let (_running, fake, mut client) = client_of(|config| config.write_timeout_ms = 500).await;
    let mut streams = Vec::new();
    for _ in 0..10 {
        let ticket = json_ticket(r#""database":"main","sql_query":"select flood""#);
        streams.push(client.do_get(ticket).await.unwrap());
    }
    assert!(
        fake.made.load(Ordering::SeqCst) <= 20,
        "little is made ahead"
    );
    let taken = fake.memory_taken.load(Ordering::SeqCst);
    assert!(taken <= 10 * (3 << 20), "{taken} bytes are held");
    until("all end", || fake.alive.load(Ordering::SeqCst) == 0).await;
    until("all memory comes back", || {
        fake.memory_taken.load(Ordering::SeqCst) == 0
    })
    .await;
    // What the others did not read fills the client's own window of the connection.
    let mut first = streams.swap_remove(0);
    drop(streams);
    let last = loop {
        match first.next().await.expect("the answer broke off") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    let status = status_of(last);
    assert!(status.message().contains("write_timeout"), "{status}");
    // Others go on, on the same connection.
    assert_eq!(
        ask(&mut client, "select many").await.unwrap().num_rows(),
        30_000
    );
}

#[tokio::test]
async fn requests_beyond_the_limit_are_refused() {
    let (_running, fake, mut client) = client_of(|config| config.requests_max = 1).await;
    let (_, stream) = begin_endless(&mut client, &fake).await;
    let status = status_of(ask(&mut client, "select many").await.unwrap_err());
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    drop(stream);
    until("the place is free", || {
        fake.alive.load(Ordering::SeqCst) == 0
    })
    .await;
    assert_eq!(
        ask(&mut client, "select many").await.unwrap().num_rows(),
        30_000
    );
}

#[tokio::test]
async fn a_handshake_gives_a_token_and_the_server_tells_about_itself() {
    let (_running, _, mut client) = client_of(|_| {}).await;
    let token = client.handshake("ann", "secret").await.unwrap();
    assert!(token.starts_with(b"flight_"));
    assert_eq!(ask(&mut client, "select none").await.unwrap().num_rows(), 0);
    let info = client
        .get_sql_info(vec![SqlInfo::FlightSqlServerName])
        .await
        .unwrap();
    assert_eq!(rows_of(&mut client, info).await.unwrap().num_rows(), 1);
    let info = client.get_table_types().await.unwrap();
    assert_eq!(rows_of(&mut client, info).await.unwrap().num_rows(), 2);
}

#[tokio::test]
async fn calls_are_counted() {
    let (running, _, mut client) = client_of(|_| {}).await;
    ask(&mut client, "select many").await.unwrap();
    ask(&mut client, "something bad").await.unwrap_err();
    let append = ingest("readings", TableExistsOption::Append);
    let sent = futures::stream::iter([Ok(rows(7, &[]))]);
    client.execute_ingest(append, sent).await.unwrap();
    let metrics = crate::http::ask(running.http_addr().unwrap(), "GET /metrics", &[], b"").await;
    let text = metrics.text();
    for line in [
        "marigram_server_requests_total{route=\"flight/DoGet\",status=\"200\"} 1",
        "marigram_server_requests_total{route=\"flight/GetFlightInfo\",status=\"400\"} 1",
        "marigram_server_rows_stored_total{route=\"flight/DoPut\"} 7",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

/// Bytes that stand for commands and tickets.
fn garbage() -> Vec<Vec<u8>> {
    let any = |url: &str, value: &[u8]| {
        Any {
            type_url: url.to_owned(),
            value: value.to_vec().into(),
        }
        .encode_to_vec()
    };
    let flight = "type.googleapis.com/arrow.flight.protocol.sql.";
    let handle = |bytes: &[u8]| {
        let statement_handle = bytes.to_vec().into();
        TicketStatementQuery { statement_handle }
            .as_any()
            .encode_to_vec()
    };
    let prepared = |bytes: &[u8]| {
        let prepared_statement_handle = bytes.to_vec().into();
        CommandPreparedStatementQuery {
            prepared_statement_handle,
        }
        .as_any()
        .encode_to_vec()
    };
    vec![
        Vec::new(),
        b"\0".to_vec(),
        vec![0xff; 1000],
        b"{".repeat(100_000),
        "é".repeat(1000).into_bytes(),
        any("", b""),
        any(&"x".repeat(100_000), b""),
        any(&format!("{flight}CommandStatementQuery"), &[0xff; 50]),
        any(
            &format!("{flight}CommandGetSqlInfo"),
            b"\x0a\xff\xff\xff\xff\x0f",
        ),
        any(&format!("{flight}CommandStatementSubstraitPlan"), b""),
        handle(b""),
        handle(&[0x0a, 0xff]),
        handle(&[0xff; 100]),
        // A handle whose parameters are no Arrow.
        handle(b"\x12\x08select 1\x22\x06\x0a\x02xx\x12\x00"),
        prepared(b"\x12\x08select 1\x22\x06\x0a\x02xx\x12\x00"),
        prepared(&[0x22; 99]),
        CommandGetTableTypes {}.as_any().encode_to_vec()[..10].to_vec(),
    ]
}

#[tokio::test]
async fn garbage_gets_an_error_and_the_server_goes_on() {
    let (running, fake, mut client) = client_of(|_| {}).await;
    let mut plain = FlightServiceClient::new(channel(&running).await);
    for bytes in garbage() {
        let ticket = Ticket::new(bytes.clone());
        let got = plain.do_get(ticket).await.err();
        assert!(
            got.is_some(),
            "{}",
            bytes[..bytes.len().min(40)].escape_ascii()
        );
        let descriptor = FlightDescriptor::new_cmd(bytes.clone());
        let got = plain.get_flight_info(descriptor.clone()).await.err();
        assert!(
            got.is_some(),
            "{}",
            bytes[..bytes.len().min(40)].escape_ascii()
        );
        let _ = plain.get_schema(descriptor).await;
        for name in [
            "CreatePreparedStatement",
            "CancelFlightInfo",
            "CancelQuery",
            "x",
        ] {
            let action = Action::new(name, bytes.clone());
            let _ = plain.do_action(action).await;
        }
    }
    let query = CommandStatementQuery {
        query: "select none".to_owned(),
        transaction_id: Some(b"t".to_vec().into()),
    };
    let descriptor = FlightDescriptor::new_cmd(query.as_any().encode_to_vec());
    let status = plain.get_flight_info(descriptor).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    assert_eq!(ask(&mut client, "select none").await.unwrap().num_rows(), 0);
    until("all memory comes back", || {
        fake.memory_taken.load(Ordering::SeqCst) == 0
    })
    .await;
}

/// Sends bytes on a connection of its own, and reads until the server closes it.
async fn sent(running: &RunningServers, bytes: &[u8]) -> bool {
    let mut socket = TcpStream::connect(running.flight_addr().unwrap())
        .await
        .unwrap();
    let exchange = async {
        let _ = socket.write_all(bytes).await;
        let mut part = vec![0; 1 << 16];
        while let Ok(1..) = socket.read(&mut part).await {}
    };
    tokio::time::timeout(SOON, exchange).await.is_ok()
}

#[tokio::test]
async fn connections_that_speak_no_grpc_are_closed() {
    let change = |config: &mut ServerConfig| {
        config.http_idle_timeout_ms = 1_000;
        config.connections_max = 64;
    };
    let (running, fake, mut client) = client_of(change).await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let huge_frame = [0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1];
    let headers_of_nothing = [0, 0, 1, 1, 4, 0, 0, 0, 1, 0xff];
    for bytes in [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        vec![0; 10_000],
        preface[..10].to_vec(),
        preface.to_vec(),
        [&preface[..], &settings].concat(),
        [&preface[..], &settings, &huge_frame].concat(),
        [&preface[..], &settings, &headers_of_nothing].concat(),
        Vec::new(),
    ] {
        assert!(sent(&running, &bytes).await, "{}", bytes.escape_ascii());
    }
    // Many silent connections take no place for good.
    let mut idle = Vec::new();
    for _ in 0..60 {
        let address = running.flight_addr().unwrap();
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let mut client_after = Client::new(channel(&running).await);
    assert_eq!(
        ask(&mut client_after, "select none")
            .await
            .unwrap()
            .num_rows(),
        0
    );
    drop(idle);
    // The first client's connection was idle, too: it may need a second call.
    let _ = ask(&mut client, "select none").await;
    assert_eq!(ask(&mut client, "select none").await.unwrap().num_rows(), 0);
    until("all memory comes back", || {
        fake.memory_taken.load(Ordering::SeqCst) == 0
    })
    .await;
}

#[tokio::test]
async fn a_message_that_never_ends_is_given_up() {
    let change = |config: &mut ServerConfig| config.http_idle_timeout_ms = 500;
    let (_running, fake, mut client) = client_of(change).await;
    let path = FlightDescriptor::new_path(vec!["readings".to_owned()]);
    let first = messages(path, rows(10, &[])).await.into_iter().take(1);
    let never = futures::stream::iter(first).chain(futures::stream::pending());
    let ended = tokio::time::timeout(SOON, put(&mut client, never)).await;
    let status = ended.expect("it is given up").unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    until("all memory comes back", || {
        fake.memory_taken.load(Ordering::SeqCst) == 0
    })
    .await;
}
