//! IoTDB's protocol: bytes of real clients, every kind of request, and bytes that are wrong.

use crate::iotdb_client::{
    SOON, TreeClient, address, result, serve_open_trees, serve_trees, status_of,
};
use arrow::datatypes::DataType;
use async_trait::async_trait;
use marigram_access::{AccessRights, PasswordVerifiers};
use marigram_iotdb::wire::{MessageKind, WireMap, message_head};
use marigram_iotdb::{
    CloseOperationRequest, CreateAlignedTimeseriesRequest, ExecuteBatchRequest,
    ExecuteStatementResponse, FetchResultsRequest, FetchResultsResponse, InsertRecordRequest,
    InsertRecordsOfOneDeviceRequest, InsertRecordsRequest, InsertStringRecordRequest,
    InsertTabletRequest, InsertTabletsRequest, LastDataQueryRequest, OpenSessionRequest,
    OpenSessionResponse, RawDataQueryRequest, ServerPropertiesResponse, SetTimeZoneRequest,
    StatusMessage, TimeZoneResponse,
};
use marigram_service::{Authentication, Identity, OpenAccess, ServiceError, wrong_password};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Messages as apache-iotdb 2.0.11 writes them, without the length of their frames.
const OPEN: &str = "800100010000000b6f70656e53657373696f6e000000000c0001080001000000020b00020000000355\
    54430b000300000004726f6f740b000400000004726f6f740d00050b0b000000020000000776657273696f6e0000000556\
    5f315f300000000b73716c5f6469616c6563740000000474726565000000000000";
const OPEN_COMPACT: &str = "8221000b6f70656e53657373696f6e1c150418035554431804726f6f741804726f6f741b0288\
    0776657273696f6e05565f315f300b73716c5f6469616c6563740474726565000000000000";
const STATEMENT_ID: &str = "80010001000000127265717565737453746174656d656e744964000000000a00010000000000\
    0000010000000000";
const TABLET: &str = "800100010000000c696e736572745461626c6574000000000c00010a000100000000000000010b0002\
    0000000a726f6f742e73672e64310f00030b000000020000000273310000000273320b00040000001600000001000000000\
    0000002616200000001630102000b000500000010000000000000000100000000000000020f000608000000020000000100\
    0000050800070000000202000800000000000000";
const RECORD: &str = "800100010000000c696e736572745265636f7264000000000c00010a000100000000000000010b0002\
    0000000a726f6f742e73672e64310f00030b000000020000000273310000000273320b00040000000c01000000050500000\
    0027a7a0a0005000000000000000302000600000000000000";
const QUERY_COMPACT: &str = "8221001765786563757465517565727953746174656d656e7456321c1602181873656c656374\
    202a2066726f6d20726f6f742e73672e6431160215904e1600000000000000";

fn bytes(hex: &str) -> Vec<u8> {
    let hex: String = hex.split_whitespace().collect();
    let pairs = (0..hex.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

#[tokio::test]
async fn a_real_client_opens_a_session_and_stores_rows() {
    let (running, tree) = serve_open_trees().await;
    let mut client = TreeClient::connect(address(&running)).await;
    let reply = client.exchange(&bytes(OPEN)).await;
    let opened: OpenSessionResponse<'_> = result(&reply);
    assert_eq!((opened.status.code, opened.server_protocol), (200, 2));
    assert_eq!(opened.session_id, Some(1));
    let reply = client.exchange(&bytes(STATEMENT_ID)).await;
    assert_eq!(result::<i64>(&reply), 1);
    for message in [TABLET, RECORD] {
        let reply = client.exchange(&bytes(message)).await;
        let status = status_of(&result(&reply));
        assert_eq!(status.0, 200, "{status:?}");
    }
    let row = |ms, fields: &[&str]| {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        ("root.sg".to_owned(), "root.sg.d1".to_owned(), ms, fields)
    };
    let expected = [
        row(1, &["s1=1", "s2=ab"]),
        row(2, &["s2=c"]),
        row(3, &["s1=5", "s2=zz"]),
    ];
    assert_eq!(tree.rows(), expected);
    // The compact protocol, with what others send.
    let mut client = TreeClient::connect(address(&running)).await;
    let reply = client.exchange(&bytes(OPEN_COMPACT)).await;
    let opened: OpenSessionResponse<'_> = result(&reply);
    assert_eq!(opened.session_id, Some(2));
    client.exchange(&bytes(QUERY_COMPACT)).await;
    assert_eq!(tree.statements(), ["select * from root.sg.d1"]);
}

#[tokio::test]
async fn sessions_have_zones_and_end() {
    let (running, tree) = serve_open_trees().await;
    let mut client = TreeClient::open(address(&running)).await;
    let reply = client.call("getTimeZone", 1, &1_i64).await;
    assert_eq!(result::<TimeZoneResponse<'_>>(&reply).zone, "Asia/Shanghai");
    let zone = |zone| SetTimeZoneRequest {
        session_id: 1,
        zone,
    };
    assert_eq!(client.status("setTimeZone", &zone("+02:00")).await.0, 200);
    assert_eq!(client.status("setTimeZone", &zone("Nowhere")).await.0, 703);
    client.statement("executeStatementV2", "x", 1, |_| ()).await;
    assert_eq!(tree.texts.lock().unwrap()[0].2, "+02:00");
    let reply = client.call_with("getProperties", |_| {}).await;
    let properties: ServerPropertiesResponse<'_> = result(&reply);
    assert_eq!(properties.precision, "ms");
    let close = marigram_iotdb::CloseSessionRequest { session_id: 1 };
    assert_eq!(client.status("closeSession", &close).await.0, 200);
    let status = client
        .statement("executeStatementV2", "x", 1, |it| it.status.code)
        .await;
    assert_eq!(status, 802);
    let mut compact = TreeClient::open_compact(address(&running)).await;
    let reply = compact.call("getTimeZone", 1, &1_i64).await;
    assert_eq!(result::<TimeZoneResponse<'_>>(&reply).zone, "Asia/Shanghai");
}

#[tokio::test]
async fn dialects_and_zones_that_do_not_exist_are_refused() {
    let (running, _) = serve_open_trees().await;
    let mut client = TreeClient::connect(address(&running)).await;
    for (zone, dialect, code) in [
        ("UTC", "table", 205),
        ("Nowhere", "tree", 703),
        ("UTC", "TREE", 200),
    ] {
        let request = OpenSessionRequest {
            client_protocol: 2,
            zone,
            username: "root",
            password: None,
            configuration: Some(WireMap(vec![("sql_dialect", dialect)])),
        };
        let reply = client.call("openSession", 1, &request).await;
        let response: OpenSessionResponse<'_> = result(&reply);
        assert_eq!(response.status.code, code, "{zone} {dialect}");
    }
}

#[tokio::test]
async fn requests_become_statements() {
    let (running, tree) = serve_open_trees().await;
    let mut client = TreeClient::open(address(&running)).await;
    let path = |method: &'static str, path: &'static str| (method, path);
    for (method, path) in [path("setStorageGroup", "root.sg")] {
        let reply = client.call(method, 2, &path).await;
        assert_eq!(result::<StatusMessage<'_>>(&reply).code, 200);
    }
    for method in ["deleteStorageGroups", "deleteTimeseries"] {
        let reply = client.call(method, 2, &vec!["root.sg.d1"]).await;
        assert_eq!(result::<StatusMessage<'_>>(&reply).code, 200);
    }
    let aligned = CreateAlignedTimeseriesRequest {
        session_id: 1,
        device: "root.sg.d1",
        measurements: vec!["s1", "s2"],
        data_types: vec![1, 5],
    };
    let status = client.status("createAlignedTimeseries", &aligned).await;
    assert_eq!(status.0, 200, "{status:?}");
    let batch = ExecuteBatchRequest {
        session_id: 1,
        statements: vec!["insert a", "select bad", "insert b"],
    };
    let reply = client.call("executeBatchStatement", 1, &batch).await;
    let status: StatusMessage<'_> = result(&reply);
    assert_eq!(status.code, 302);
    let parts = status.parts.unwrap();
    let codes: Vec<i32> = parts.iter().map(|part| part.code).collect();
    assert_eq!(codes, [200, 701, 200]);
    assert_eq!(parts[1].message, Some("it means nothing"));
    let raw = RawDataQueryRequest {
        session_id: 1,
        paths: vec!["root.sg.d1.s1"],
        fetch_size: None,
        start: 0,
        end: 100,
        statement_id: 1,
        timeout_ms: None,
    };
    client.call("executeRawDataQueryV2", 1, &raw).await;
    let last = LastDataQueryRequest {
        session_id: 1,
        paths: vec!["root.sg.d1.s1"],
        fetch_size: None,
        time: 5,
        statement_id: 1,
        timeout_ms: None,
    };
    client.call("executeLastDataQuery", 1, &last).await;
    let expected = [
        "CREATE DATABASE root.sg",
        "DROP DATABASE root.sg.d1",
        "DROP TIMESERIES root.sg.d1",
        "CREATE ALIGNED TIMESERIES root.sg.d1(s1 INT32, s2 TEXT)",
        "insert a",
        "select bad",
        "insert b",
        "SELECT sg.d1.s1 FROM root WHERE time >= 0 AND time < 100",
        "SELECT LAST sg.d1.s1 FROM root WHERE time >= 5",
    ];
    assert_eq!(tree.statements(), expected);
    let reply = client.call("setStorageGroup", 2, &"no path`").await;
    assert_eq!(result::<StatusMessage<'_>>(&reply).code, 509);
}

#[tokio::test]
async fn rows_are_fetched_in_parts() {
    let (running, _) = serve_open_trees().await;
    let mut client = TreeClient::open(address(&running)).await;
    let look = |it: &ExecuteStatementResponse<'_>| {
        assert_eq!(it.status.code, 200);
        assert_eq!(it.columns, Some(vec!["root.sg.d1.s1"]));
        assert_eq!(it.types, Some(vec!["DOUBLE"]));
        assert_eq!(it.ignores_time, Some(false));
        assert_eq!(it.has_more, Some(true));
        assert_eq!(it.block_places, Some(vec![0]));
        let blocks = it.blocks.as_ref().unwrap();
        // One column of doubles, 1000 rows.
        assert_eq!(blocks[0][..9], [0, 0, 0, 1, 4, 0, 0, 3, 0xe8]);
        it.query_id.unwrap()
    };
    let method = "executeQueryStatementV2";
    let query_id = client.statement(method, "select many", 1000, look).await;
    let fetch = |query_id| FetchResultsRequest {
        session_id: 1,
        statement: "",
        fetch_size: 1500,
        query_id,
        timeout_ms: None,
    };
    for (rows, has_more) in [(Some(1500_u32), true), (Some(500), false), (None, false)] {
        let reply = client.call("fetchResultsV2", 1, &fetch(query_id)).await;
        let response: FetchResultsResponse<'_> = result(&reply);
        assert_eq!(response.status.code, 200);
        assert_eq!(response.has_rows, rows.is_some());
        assert_eq!(response.has_more, Some(has_more));
        let blocks = response.blocks.unwrap_or_default();
        let counts: Vec<u32> = blocks
            .iter()
            .map(|block| u32::from_be_bytes(block[5..9].try_into().unwrap()))
            .collect();
        assert_eq!(counts, rows.into_iter().collect::<Vec<_>>());
    }
    let close = CloseOperationRequest {
        session_id: 1,
        query_id: Some(query_id),
        statement_id: Some(1),
    };
    assert_eq!(client.status("closeOperation", &close).await.0, 200);
    let reply = client.call("fetchResultsV2", 1, &fetch(query_id)).await;
    assert_eq!(result::<FetchResultsResponse<'_>>(&reply).status.code, 714);
}

#[tokio::test]
async fn old_clients_get_data_sets() {
    let (running, _) = serve_open_trees().await;
    let mut client = TreeClient::open(address(&running)).await;
    let look = |it: &ExecuteStatementResponse<'_>| {
        assert!(it.blocks.is_none());
        let set = it.data_set.as_ref().unwrap();
        assert_eq!((set.times.len(), set.values.len()), (3 * 8, 1));
        assert_eq!(set.bitmaps[0], [0b1010_0000]);
        it.query_id.unwrap()
    };
    let query_id = client
        .statement("executeQueryStatement", "select many", 3, look)
        .await;
    let fetch = FetchResultsRequest {
        session_id: 1,
        statement: "",
        fetch_size: 1,
        query_id,
        timeout_ms: None,
    };
    let reply = client.call("fetchResults", 1, &fetch).await;
    let response: FetchResultsResponse<'_> = result(&reply);
    assert_eq!(response.data_set.unwrap().times, 3_i64.to_be_bytes());
    // SHOW has no time, and an answer may have no rows.
    let show = client
        .statement("executeStatement", "SHOW DATABASES", 9, |it| {
            let set = it.data_set.as_ref().unwrap();
            (it.ignores_time, set.values[0].to_vec())
        })
        .await;
    assert_eq!(
        show,
        (Some(true), b"\0\0\0\x07root.sg\0\0\0\x04main".to_vec())
    );
    let none = client
        .statement("executeQueryStatementV2", "select none", 9, |it| {
            (it.blocks.as_ref().unwrap().len(), it.has_more)
        })
        .await;
    assert_eq!(none, (0, Some(false)));
}

#[tokio::test]
async fn failures_of_queries_are_told() {
    let (running, _) = serve_open_trees().await;
    let mut client = TreeClient::open(address(&running)).await;
    let told = |it: &ExecuteStatementResponse<'_>| status_of(&it.status);
    let method = "executeQueryStatementV2";
    let wrong = client.statement(method, "select bad", 9, told).await;
    assert_eq!(wrong, (701, "it means nothing".to_owned()));
    let broken = client.statement(method, "select broken", 100, told).await;
    assert_eq!(broken, (305, "page 7 is damaged".to_owned()));
    // A part was sent before.
    let query_id = client
        .statement(method, "select broken", 5, |it| it.query_id.unwrap())
        .await;
    let fetch = FetchResultsRequest {
        session_id: 1,
        statement: "",
        fetch_size: 100,
        query_id,
        timeout_ms: None,
    };
    for code in [305, 714] {
        let reply = client.call("fetchResultsV2", 1, &fetch).await;
        let response: FetchResultsResponse<'_> = result(&reply);
        assert_eq!((response.status.code, response.has_rows), (code, false));
    }
    let request = marigram_iotdb::ExecuteStatementRequest {
        session_id: 1,
        statement: "select forever",
        statement_id: 1,
        fetch_size: None,
        timeout_ms: Some(100),
    };
    let reply = client.call(method, 1, &request).await;
    let response: ExecuteStatementResponse<'_> = result(&reply);
    assert_eq!(response.status.code, 720, "{:?}", response.status);
    // The client leaves while its query runs; the server stops meanwhile.
    let mut leaves = TreeClient::open(address(&running)).await;
    let wait = Duration::from_millis(200);
    let asks = leaves.statement(method, "select forever", 1, |_| ());
    assert!(tokio::time::timeout(wait, asks).await.is_err());
    drop(leaves);
    let stops = running.shutdown(Duration::from_millis(200));
    assert!(tokio::time::timeout(SOON, stops).await.is_ok());
}

#[tokio::test]
async fn open_queries_of_a_session_are_bounded() {
    let (running, _) = serve_open_trees().await;
    let mut client = TreeClient::open(address(&running)).await;
    let method = "executeQueryStatementV2";
    let mut codes = Vec::new();
    for _ in 0..17 {
        let code = client
            .statement(method, "select many", 1, |it| it.status.code)
            .await;
        codes.push(code);
    }
    assert_eq!(codes.iter().filter(|code| **code == 200).count(), 16);
    let close = CloseOperationRequest {
        session_id: 1,
        query_id: None,
        statement_id: Some(1),
    };
    client.status("closeOperation", &close).await;
    let code = client
        .statement(method, "select many", 1, |it| it.status.code)
        .await;
    assert_eq!(code, 200);
}

fn record<'a>(measurements: &[&'a str], values: &'a [u8], time: i64) -> InsertRecordRequest<'a> {
    InsertRecordRequest {
        session_id: 1,
        device: "root.sg.d1",
        measurements: measurements.to_vec(),
        values,
        time,
        writes_to_table: None,
    }
}

#[tokio::test]
async fn values_go_to_the_fields_of_their_types() {
    let (running, tree) = serve_open_trees().await;
    let fields = vec![
        ("s1", DataType::Int32),
        ("s3", DataType::Float64),
        ("s4", DataType::Utf8),
    ];
    *tree.fields.lock().unwrap() = fields;
    let mut client = TreeClient::open(address(&running)).await;
    // The device has an INT32 in s1, so a text does not fit; s2 is new; `a b` is a DOUBLE.
    let values = [
        &[5, 0, 0, 0, 1, b'x'][..],
        &[2, 0, 0, 0, 0, 0, 0, 0, 9],
        &[0, 1],
    ]
    .concat();
    let told = client
        .status("insertRecord", &record(&["s1", "s2", "s5"], &values, 1))
        .await;
    assert_eq!(told.0, 507);
    assert!(
        told.1
            .starts_with("Fail to insert measurements [s1] caused by [data type of root.sg.d1.s1"),
        "{told:?}"
    );
    // Another device may have another type.
    let other = InsertRecordRequest {
        device: "root.sg.d2",
        ..record(&["s1"], &values[..6], 2)
    };
    assert_eq!(client.status("insertRecord", &other).await.0, 200);
    let texts = InsertStringRecordRequest {
        session_id: 1,
        device: "root.sg.d2",
        measurements: vec!["s3", "s4", "s6", "s7"],
        values: vec!["7", "'a b'", "true", "null"],
        time: 3,
    };
    assert_eq!(client.status("insertStringRecord", &texts).await.0, 200);
    let row = |device: &str, ms, fields: &[&str]| {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        ("root.sg".to_owned(), device.to_owned(), ms, fields)
    };
    let expected = [
        row("root.sg.d1", 1, &["s2=9", "s5=true"]),
        row("root.sg.d2", 2, &["s1::TEXT=x"]),
        row("root.sg.d2", 3, &["s3=7.0", "s4=a b", "s6=true"]),
    ];
    assert_eq!(tree.rows(), expected);
    assert!(tree.asked.load(Ordering::SeqCst) <= 4);
}

#[tokio::test]
async fn parts_of_an_insert_are_told_one_by_one() {
    let (running, tree) = serve_open_trees().await;
    let mut client = TreeClient::open(address(&running)).await;
    let one = [1, 0, 0, 0, 1];
    let records = InsertRecordsRequest {
        session_id: 1,
        devices: vec!["root.sg.d1", "root.*", "root.new.d1", "root.sg.d1"],
        measurements: vec![vec!["s1"]; 4],
        values: vec![&one[..]; 4],
        times: vec![1, 2, 3, -5],
    };
    let reply = client.call("insertRecords", 1, &records).await;
    let status: StatusMessage<'_> = result(&reply);
    assert_eq!(status.code, 302);
    let codes: Vec<i32> = status.parts.unwrap().iter().map(|it| it.code).collect();
    // The fake refuses rows before 1970.
    assert_eq!(codes, [200, 509, 200, 605]);
    let databases: Vec<String> = tree.rows().into_iter().map(|row| row.0).collect();
    assert!(databases.contains(&"root.new".to_owned()), "{databases:?}");
    // Lists that do not fit store nothing.
    let before = tree.rows().len();
    let of_one = InsertRecordsOfOneDeviceRequest {
        session_id: 1,
        device: "root.sg.d1",
        measurements: vec![vec!["s1"]; 2],
        values: vec![&one[..], &one[..4]],
        times: vec![1, 2],
    };
    let status = client.status("insertRecordsOfOneDevice", &of_one).await;
    assert_eq!(status.0, 303, "{status:?}");
    let tablets = InsertTabletsRequest {
        session_id: 1,
        devices: vec!["root.sg.d1", "root.sg.d2"],
        measurements: vec![vec!["s1"]; 2],
        values: vec![&one[1..]; 2],
        times: vec![&[0; 8]; 2],
        types: vec![vec![1]],
        rows: vec![1, 1],
    };
    assert_eq!(client.status("insertTablets", &tablets).await.0, 303);
    assert_eq!(client.status("testInsertTablets", &tablets).await.0, 303);
    let table = InsertTabletRequest {
        session_id: 1,
        device: "t",
        measurements: vec![],
        values: &[],
        times: &[],
        types: vec![],
        rows: 0,
        writes_to_table: Some(true),
        is_compressed: None,
    };
    assert_eq!(client.status("insertTablet", &table).await.0, 300);
    let test = record(&["s1"], &one, 7);
    assert_eq!(client.status("testInsertRecord", &test).await.0, 200);
    assert_eq!(tree.rows().len(), before);
    let late = record(&["s1"], &one, i64::MAX);
    assert_eq!(client.status("insertRecord", &late).await.0, 507);
    tree.fake.read_only.store(true, Ordering::SeqCst);
    assert_eq!(client.status("insertRecord", &test).await.0, 600);
}

#[tokio::test]
async fn hostile_bytes_are_answered_or_the_connection_ends() {
    let (running, tree) = serve_trees(Arc::new(OpenAccess), |config| {
        config.body_limit = 100_000;
    })
    .await;
    let address = address(&running);
    let open = bytes(OPEN);
    let frame = |message: &[u8]| {
        let len = u32::try_from(message.len()).unwrap();
        [&len.to_be_bytes()[..], message].concat()
    };
    let garbage: Vec<u8> = (0..10_000_u32).map(|at| (at * 7 % 251) as u8).collect();
    for sent in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0xff; 100],
        &[0x7f, 0xff, 0xff, 0xff, 1, 2, 3],
        &frame(&garbage),
        &frame(&[]),
        &frame(&open[..open.len() / 2])[..20],
        &frame(b"\x80\x01\x00\x02\x00\x00\x00\x01x\x00\x00\x00\x00\x00"),
        &[&frame(&open)[..], &[0, 2, 0, 0]].concat(),
    ] {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(sent).await.unwrap();
        let _ = socket.shutdown().await;
        let mut rest = Vec::new();
        let ends = tokio::time::timeout(SOON, socket.read_to_end(&mut rest)).await;
        assert!(ends.is_ok(), "{sent:?}");
    }
    // What is framed and cannot be read is answered, and the session goes on.
    let mut client = TreeClient::open(address).await;
    // The head takes 23 bytes.
    for len in 23..open.len() - 1 {
        let reply = client.exchange(&open[..len]).await;
        assert!(!reply.is_empty(), "{len}");
    }
    let mut client = TreeClient::open(address).await;
    let deep = [
        &b"\x80\x01\x00\x01\x00\x00\x00\x0adeleteData\x00\x00\x00\x01"[..],
        &[12, 0, 9].repeat(30_000),
    ]
    .concat();
    for message in [
        &deep,
        &[&b"\x80\x01\x00\x01\x00\x00\x00\x0ainsertBlah\x00\x00\x00\x01\x00"[..]].concat(),
        &bytes(TABLET)[..bytes(TABLET).len() - 7].to_vec(),
    ] {
        let reply = client.exchange(message).await;
        let (head, _) = message_head(&reply, 1 << 20).unwrap();
        assert_eq!(head.kind, MessageKind::Exception);
    }
    for at in 0..bytes(TABLET).len() {
        let mut message = bytes(TABLET);
        message[at] ^= 0xff;
        let mut client = TreeClient::open(address).await;
        let sent = frame(&message);
        client.socket.write_all(&sent).await.unwrap();
        let _ = client.socket.shutdown().await;
        let mut rest = Vec::new();
        let ends = tokio::time::timeout(SOON, client.socket.read_to_end(&mut rest)).await;
        assert!(ends.is_ok(), "byte {at}");
    }
    assert_eq!(tree.fake.memory_taken.load(Ordering::SeqCst), 0);
    TreeClient::open(address).await;
}

#[tokio::test]
async fn connections_beyond_the_limit_are_told() {
    let (running, _) = serve_trees(Arc::new(OpenAccess), |config| config.connections_max = 1).await;
    let address = address(&running);
    let first = TreeClient::open(address).await;
    let mut second = TreeClient::connect(address).await;
    let (code, message) = second.log_in("root", "root").await;
    assert_eq!(code, 717);
    assert!(message.contains("connections_max"), "{message}");
    drop(first);
    let opens = async {
        while second.log_in("root", "root").await.0 != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(SOON, opens).await.is_ok());
    // Those that say nothing hold no place, and stopping waits for none of them.
    let silent = TcpStream::connect(address).await.unwrap();
    running.shutdown(Duration::from_secs(10)).await;
    drop(silent);
}

/// A database with users.
struct WithUsers;

#[async_trait]
impl Authentication for WithUsers {
    fn is_open(&self) -> bool {
        false
    }

    fn rights(&self, identity: &Identity) -> Result<Arc<AccessRights>, ServiceError> {
        match identity.user.as_str() {
            "reader" => Ok(Arc::default()),
            _ => OpenAccess.rights(identity),
        }
    }

    async fn check_password(&self, user: &str, password: &str) -> Result<Identity, ServiceError> {
        if password != "right" {
            return Err(wrong_password());
        }
        Ok(Identity::of_password(user, 1))
    }

    fn check_token(&self, token: &str) -> Option<Identity> {
        OpenAccess.check_token(token)
    }

    fn user_number(&self, user: &str) -> u64 {
        OpenAccess.user_number(user)
    }

    fn verifiers(&self, user: &str) -> PasswordVerifiers {
        OpenAccess.verifiers(user)
    }
}

#[tokio::test]
async fn users_log_in_and_need_privileges() {
    let (running, tree) = serve_trees(Arc::new(WithUsers), |_| {}).await;
    let mut client = TreeClient::connect(address(&running)).await;
    let values = [1, 0, 0, 0, 1];
    let row = record(&["s1"], &values, 1);
    assert_eq!(client.status("insertRecord", &row).await.0, 802);
    assert_eq!(client.log_in("ann", "wrong").await.0, 801);
    assert_eq!(client.status("insertRecord", &row).await.0, 802);
    assert_eq!(client.log_in("reader", "right").await.0, 200);
    let refused = client.status("insertRecord", &row).await;
    assert_eq!(refused.0, 803, "{refused:?}");
    assert!(tree.rows().is_empty());
    assert_eq!(client.log_in("ann", "right").await.0, 200);
    assert_eq!(client.status("insertRecord", &row).await.0, 200);
    assert_eq!(tree.rows().len(), 1);
    let texts = tree.texts.lock().unwrap();
    assert!(texts.iter().any(|(_, text, _)| text == "SHOW DATABASES"));
}
