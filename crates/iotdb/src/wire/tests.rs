//! Round trips in both protocols, bytes of real clients, and bytes that are wrong.

use super::*;
use crate::call::{ClientCall, InsertPurpose, RowForm};
use crate::requests::{ExecuteStatementRequest, InsertRecordsRequest, OpenSessionRequest};
use crate::responses::{ExecuteStatementResponse, QueryDataSet, StatusMessage};
use proptest::prelude::*;

const MEMORY: usize = 1 << 20;

fn head(protocol: WireProtocol, method: &str) -> MessageHead<'_> {
    MessageHead {
        protocol,
        kind: MessageKind::Call,
        method,
        sequence: 7,
    }
}

fn call<T: WireWrite>(protocol: WireProtocol, method: &str, request: &T) -> Vec<u8> {
    write_call(&head(protocol, method), |writer| writer.field(1, request))
}

const BOTH: [WireProtocol; 2] = [WireProtocol::Binary, WireProtocol::Compact];

fn records() -> InsertRecordsRequest<'static> {
    InsertRecordsRequest {
        session_id: -1,
        devices: vec!["root.a.b"; 20],
        measurements: vec![vec!["s", "t"]; 20],
        values: vec![&[1, 0, 0, 0, 1, 0, 1]; 20],
        times: vec![i64::MIN; 20],
    }
}

#[test]
fn calls_are_read_in_both_protocols() {
    for protocol in BOTH {
        let request = OpenSessionRequest {
            client_protocol: 2,
            zone: "UTC",
            username: "root",
            password: Some("root"),
            configuration: Some(WireMap(vec![("version", "V_1_0"), ("sql_dialect", "tree")])),
        };
        let bytes = call(protocol, "openSession", &request);
        let (found, mut reader) = message_head(&bytes, MEMORY).expect("it is a message");
        assert_eq!(
            (found.method, found.sequence, found.protocol),
            ("openSession", 7, protocol)
        );
        let call_read = ClientCall::read(found.method, &mut reader);
        assert_eq!(call_read, Ok(Some(ClientCall::OpenSession(request))));
        assert!(reader.rest().is_empty());

        let bytes = call(protocol, "insertRecords", &records());
        let (found, mut reader) = message_head(&bytes, MEMORY).expect("it is a message");
        let expected = ClientCall::InsertRecords(records(), InsertPurpose::Store);
        assert_eq!(
            ClientCall::read(found.method, &mut reader),
            Ok(Some(expected))
        );
    }
}

#[test]
fn answers_keep_flags_and_distant_fields() {
    for protocol in BOTH {
        let response = ExecuteStatementResponse {
            status: StatusMessage::SUCCESS,
            query_id: Some(1),
            columns: Some(vec!["a", "b"]),
            operation: None,
            ignores_time: Some(false),
            types: Some(vec!["INT32", "TEXT"]),
            data_set: Some(QueryDataSet {
                times: &[0; 8],
                values: vec![&[1], &[2]],
                bitmaps: vec![&[0x80], &[0x80]],
            }),
            column_places: Some(WireMap(vec![("a", 0), ("b", 1)])),
            blocks: Some(vec![&[1, 2, 3]]),
            has_more: Some(true),
            block_places: Some(vec![0, 1]),
        };
        let bytes = write_reply(&head(protocol, "m"), &response);
        let (found, mut reader) = message_head(&bytes, MEMORY).expect("it is a message");
        assert_eq!(found.kind, MessageKind::Reply);
        let mut read = None;
        reader
            .fields(|reader, id, _| {
                assert_eq!(id, 0);
                read = Some(ExecuteStatementResponse::read(reader)?);
                Ok(true)
            })
            .expect("it can be read");
        assert_eq!(read, Some(response));
    }
}

#[test]
fn what_is_not_known_is_skipped() {
    for protocol in BOTH {
        let request = ExecuteStatementRequest {
            session_id: 1,
            statement: "show version",
            statement_id: 2,
            fetch_size: None,
            timeout_ms: Some(5),
        };
        let bytes = write_call(&head(protocol, "executeStatementV2"), |writer| {
            writer.field(9, &vec![WireMap(vec![(true, 1.5)])]);
            writer.field(1, &request);
            writer.field(900, &false);
        });
        let (found, mut reader) = message_head(&bytes, MEMORY).expect("it is a message");
        let expected = ClientCall::ExecuteStatement(request, RowForm::Blocks);
        assert_eq!(
            ClientCall::read(found.method, &mut reader),
            Ok(Some(expected))
        );
        let (_, mut reader) = message_head(&bytes, MEMORY).expect("it is a message");
        assert_eq!(ClientCall::read("makeCoffee", &mut reader), Ok(None));
    }
}

#[test]
fn missing_fields_are_named() {
    let bytes = write_call(&head(WireProtocol::Binary, "closeSession"), |writer| {
        writer.field(1, &StatusMessage::SUCCESS);
    });
    let (_, mut reader) = message_head(&bytes, MEMORY).expect("it is a message");
    // The code of the status stands where the session should, with another type.
    let fault = ClientCall::read("closeSession", &mut reader).expect_err("a field is missing");
    assert_eq!(
        fault.to_string(),
        "CloseSessionRequest lacks its field session_id"
    );
}

#[test]
fn depth_and_memory_are_bounded() {
    // A structure in a structure, and so on.
    let mut bytes = vec![0x80, 1, 0, 1, 0, 0, 0, 1, b'x', 0, 0, 0, 0];
    bytes.extend([12, 0, 1].repeat(100_000));
    let (_, mut reader) = message_head(&bytes, MEMORY).expect("it is a message");
    assert_eq!(reader.fields(|_, _, _| Ok(false)), Err(WireFault::TooDeep));
    // Empty lists, a byte each.
    let mut bytes = vec![0xf9, 0xff, 0xff, 0x03];
    bytes.extend([0].repeat(65_535));
    let mut reader = WireReader::new(&bytes, WireProtocol::Compact, 100_000);
    assert_eq!(
        Vec::<Vec<&str>>::read(&mut reader),
        Err(WireFault::TooManyValues)
    );
    // A list that is longer than the message.
    let mut reader = WireReader::new(&[11, 0x7f, 0xff, 0xff, 0xff], WireProtocol::Binary, MEMORY);
    assert_eq!(Vec::<&str>::read(&mut reader), Err(WireFault::Truncated));
    let mut reader = WireReader::new(&[11, 0xff, 0xff, 0xff, 0xff], WireProtocol::Binary, MEMORY);
    assert_eq!(Vec::<&str>::read(&mut reader), Err(WireFault::WrongLength));
    let long = [0xff; 11];
    let mut reader = WireReader::new(&long, WireProtocol::Compact, MEMORY);
    assert_eq!(reader.i64(), Err(WireFault::WrongInteger));
}

#[test]
fn cut_messages_are_refused() {
    for protocol in BOTH {
        let bytes = call(protocol, "insertRecords", &records());
        for len in 0..bytes.len() {
            let read = message_head(&bytes[..len], MEMORY)
                .and_then(|(found, mut reader)| ClientCall::read(found.method, &mut reader));
            assert!(read.is_err(), "{len} of {} bytes", bytes.len());
        }
    }
}

const METHODS: [&str; 8] = [
    "openSession",
    "executeStatementV2",
    "insertTablet",
    "insertTablets",
    "insertRecords",
    "insertStringRecords",
    "executeAggregationQueryV2",
    "deleteTimeseries",
];

proptest! {
    #[test]
    fn integers_come_back(value: i64, small: i32, double: f64) {
        for protocol in BOTH {
            let mut writer = WireWriter::new(protocol);
            writer.i64(value);
            writer.i32(small);
            writer.double(double);
            let bytes = writer.into_bytes();
            let mut reader = WireReader::new(&bytes, protocol, 0);
            prop_assert_eq!(reader.i64(), Ok(value));
            prop_assert_eq!(reader.i32(), Ok(small));
            prop_assert_eq!(reader.double().map(f64::to_bits), Ok(double.to_bits()));
        }
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), method in 0..METHODS.len()) {
        let _ = message_head(&bytes, MEMORY);
        for protocol in BOTH {
            let mut reader = WireReader::new(&bytes, protocol, MEMORY);
            let _ = ClientCall::read(METHODS[method], &mut reader);
        }
    }

    #[test]
    fn changed_bytes_do_not_panic(at: proptest::sample::Index, byte: u8) {
        for protocol in BOTH {
            let mut bytes = call(protocol, "insertRecords", &records());
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok((found, mut reader)) = message_head(&bytes, MEMORY) {
                let _ = ClientCall::read(found.method, &mut reader);
            }
        }
    }
}
