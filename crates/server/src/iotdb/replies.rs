//! Answers as messages. A fault is told in the structure that the client expects for its method.

use super::insert::InsertShape;
use super::store::InsertOutcome;
use marigram_iotdb::wire::{ApplicationFault, MessageHead, write_application_fault, write_reply};
use marigram_iotdb::{
    BackupConfigurationResponse, ConnectionInfo, ConnectionsResponse, ExecuteStatementResponse,
    FetchMetadataResponse, FetchResultsResponse, IotDbFault, OpenSessionResponse,
    ServerPropertiesResponse, StatusCode, StatusMessage, TimeZoneResponse,
};

/// The version of the protocol.
const PROTOCOL_VERSION: i32 = 2;

/// The version of IoTDB as which the server answers.
const IOTDB_VERSION: &str = "2.0.5";

/// A status.
pub(super) fn status(head: &MessageHead<'_>, status: &StatusMessage<'_>) -> Vec<u8> {
    write_reply(head, status)
}

/// That all is done.
pub(super) fn done(head: &MessageHead<'_>) -> Vec<u8> {
    status(head, &StatusMessage::SUCCESS)
}

/// That a session is open.
pub(super) fn opened(head: &MessageHead<'_>, session_id: i64) -> Vec<u8> {
    let response = OpenSessionResponse {
        status: StatusMessage::SUCCESS,
        server_protocol: PROTOCOL_VERSION,
        session_id: Some(session_id),
        configuration: Some(marigram_iotdb::wire::WireMap(vec![(
            "timestamp_precision",
            "ms",
        )])),
    };
    write_reply(head, &response)
}

/// The time zone.
pub(super) fn zone(head: &MessageHead<'_>, zone: &str) -> Vec<u8> {
    let response = TimeZoneResponse {
        status: StatusMessage::SUCCESS,
        zone,
    };
    write_reply(head, &response)
}

/// What the server is.
pub(super) fn properties(
    head: &MessageHead<'_>,
    clients_max: usize,
    frame_bytes_max: usize,
) -> Vec<u8> {
    let functions = [
        "count",
        "sum",
        "avg",
        "min_value",
        "max_value",
        "first_value",
        "last_value",
        "min_time",
        "max_time",
        "extreme",
        "time_duration",
    ];
    let response = ServerPropertiesResponse {
        version: IOTDB_VERSION,
        aggregations: functions.to_vec(),
        precision: "ms",
        clients_max: i32::try_from(clients_max).unwrap_or(i32::MAX),
        frame_bytes_max: Some(i32::try_from(frame_bytes_max).unwrap_or(i32::MAX)),
        is_read_only: Some(false),
        build: Some(concat!("marigram-", env!("CARGO_PKG_VERSION"))),
    };
    write_reply(head, &response)
}

/// The connection of the client; others are not shown.
pub(super) fn connections(
    head: &MessageHead<'_>,
    user: &str,
    login_ms: i64,
    session_id: i64,
) -> Vec<u8> {
    let id = session_id.to_string();
    let connection = ConnectionInfo {
        user,
        login_ms,
        id: &id,
        kind: 0,
    };
    let response = ConnectionsResponse {
        connections: vec![connection],
    };
    write_reply(head, &response)
}

/// That writes go to no other server.
pub(super) fn backup_configuration(head: &MessageHead<'_>) -> Vec<u8> {
    let response = BackupConfigurationResponse {
        status: StatusMessage::SUCCESS,
        is_on: Some(false),
    };
    write_reply(head, &response)
}

/// A number.
pub(super) fn number(head: &MessageHead<'_>, number: i64) -> Vec<u8> {
    write_reply(head, &number)
}

/// That a statement without rows is done.
pub(super) fn executed(head: &MessageHead<'_>) -> Vec<u8> {
    write_reply(head, &execute_response(StatusMessage::SUCCESS))
}

/// That a query has no more rows.
pub(super) fn no_more_rows(head: &MessageHead<'_>) -> Vec<u8> {
    write_reply(head, &fetch_response(StatusMessage::SUCCESS))
}

/// What became of the parts of a request.
pub(super) fn parts(head: &MessageHead<'_>, outcome: &InsertOutcome) -> Vec<u8> {
    if outcome.faults.is_empty() {
        return done(head);
    }
    let count = match outcome.shape {
        InsertShape::One => {
            let fault = outcome.faults.values().next();
            let told = fault.map_or(StatusMessage::SUCCESS, IotDbFault::status);
            return status(head, &told);
        }
        InsertShape::Many(count) => count,
    };
    let parts = (0..count).map(|part| {
        let fault = outcome.faults.get(&part);
        fault.map_or(StatusMessage::SUCCESS, IotDbFault::status)
    });
    let whole = StatusMessage {
        code: StatusCode::MULTIPLE.0,
        message: None,
        parts: Some(parts.collect()),
    };
    status(head, &whole)
}

/// A fault, as the answer to the method of `head`.
pub(super) fn fault(head: &MessageHead<'_>, fault: &IotDbFault) -> Vec<u8> {
    let told = fault.status();
    match head.method {
        "openSession" => {
            let response = OpenSessionResponse {
                status: told,
                server_protocol: PROTOCOL_VERSION,
                session_id: None,
                configuration: None,
            };
            write_reply(head, &response)
        }
        "getTimeZone" => {
            let response = TimeZoneResponse {
                status: told,
                zone: "",
            };
            write_reply(head, &response)
        }
        "fetchMetadata" => {
            let response = FetchMetadataResponse {
                status: told,
                json: None,
            };
            write_reply(head, &response)
        }
        "fetchResults" | "fetchResultsV2" => write_reply(head, &fetch_response(told)),
        "getBackupConfiguration" => {
            let response = BackupConfigurationResponse {
                status: told,
                is_on: None,
            };
            write_reply(head, &response)
        }
        // These have no status.
        "requestStatementId" | "getProperties" | "fetchAllConnectionsInfo" => {
            unreadable(head, &fault.message)
        }
        method if method.starts_with("execute") && method != "executeBatchStatement" => {
            write_reply(head, &execute_response(told))
        }
        _ => status(head, &told),
    }
}

/// That the server does not have the method.
pub(super) fn unknown_method(head: &MessageHead<'_>) -> Vec<u8> {
    let name: String = head.method.chars().take(100).collect();
    let message = format!("Invalid method name: '{name}'");
    write_application_fault(head, ApplicationFault::UNKNOWN_METHOD, &message)
}

/// That the arguments cannot be read.
pub(super) fn unreadable(head: &MessageHead<'_>, reason: &str) -> Vec<u8> {
    write_application_fault(head, ApplicationFault::PROTOCOL_ERROR, reason)
}

fn execute_response(status: StatusMessage<'_>) -> ExecuteStatementResponse<'_> {
    ExecuteStatementResponse {
        status,
        query_id: None,
        columns: None,
        operation: None,
        ignores_time: None,
        types: None,
        data_set: None,
        column_places: None,
        blocks: None,
        has_more: None,
        block_places: None,
    }
}

fn fetch_response(status: StatusMessage<'_>) -> FetchResultsResponse<'_> {
    FetchResultsResponse {
        status,
        has_rows: false,
        is_aligned: true,
        data_set: None,
        blocks: None,
        has_more: Some(false),
    }
}
