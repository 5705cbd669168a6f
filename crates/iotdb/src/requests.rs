//! The arguments of the methods that are served, as IoTDB's `client.thrift` declares them.
//!
//! The number of the session stands in every request, and nothing reads it: a connection has one
//! session.

use crate::wire::{WireMap, wire_struct};

wire_struct! {
    /// Opens the session of a connection.
    OpenSessionRequest<'a> {
        /// The version of the client's protocol.
        1 required client_protocol: i32,
        /// The client's time zone.
        2 required zone: &'a str,
        /// The user.
        3 required username: &'a str,
        /// The password.
        4 optional password: &'a str,
        /// More settings: `version`, `sql_dialect`, `db`.
        5 optional configuration: WireMap<&'a str, &'a str>,
    }

    /// A statement.
    ExecuteStatementRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The text.
        2 required statement: &'a str,
        /// The number of the client's statement.
        3 required statement_id: i64,
        /// Rows that an answer may have.
        4 optional fetch_size: i32,
        /// The time that the statement may take, ms; not set if it is not positive.
        5 optional timeout_ms: i64,
    }

    /// Several statements that answer no rows.
    ExecuteBatchRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The texts.
        2 required statements: Vec<&'a str>,
    }

    /// Asks for more rows of a query.
    FetchResultsRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The text of the query.
        2 required statement: &'a str,
        /// Rows that the answer may have.
        3 required fetch_size: i32,
        /// The number of the query.
        4 required query_id: i64,
        /// The time that the request may take, ms.
        6 optional timeout_ms: i64,
    }

    /// Asks for metadata.
    FetchMetadataRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// What is asked: `METADATA_IN_JSON`, `COLUMN`, `ALL_COLUMNS`.
        2 required kind: &'a str,
        /// The path it is asked for.
        3 optional path: &'a str,
    }

    /// Sets the time zone.
    SetTimeZoneRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The zone.
        2 required zone: &'a str,
    }

    /// A row whose values carry their types.
    InsertRecordRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The device.
        2 required device: &'a str,
        /// The measurements.
        3 required measurements: Vec<&'a str>,
        /// The values, each with its type.
        4 required values: &'a [u8],
        /// The time.
        5 required time: i64,
        /// Whether the row belongs to a table.
        7 optional writes_to_table: bool,
    }

    /// A row of texts.
    InsertStringRecordRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The device.
        2 required device: &'a str,
        /// The measurements.
        3 required measurements: Vec<&'a str>,
        /// The values.
        4 required values: Vec<&'a str>,
        /// The time.
        5 required time: i64,
    }

    /// Rows of one device, by columns.
    InsertTabletRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The device.
        2 required device: &'a str,
        /// The measurements.
        3 required measurements: Vec<&'a str>,
        /// The columns.
        4 required values: &'a [u8],
        /// The times.
        5 required times: &'a [u8],
        /// The types of the columns.
        6 required types: Vec<i32>,
        /// The number of rows.
        7 required rows: i32,
        /// Whether the rows belong to a table.
        9 optional writes_to_table: bool,
        /// Whether times and values are compressed.
        11 optional is_compressed: bool,
    }

    /// Tablets of several devices.
    InsertTabletsRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The devices.
        2 required devices: Vec<&'a str>,
        /// The measurements of each.
        3 required measurements: Vec<Vec<&'a str>>,
        /// The columns of each.
        4 required values: Vec<&'a [u8]>,
        /// The times of each.
        5 required times: Vec<&'a [u8]>,
        /// The types of each one's columns.
        6 required types: Vec<Vec<i32>>,
        /// The number of rows of each.
        7 required rows: Vec<i32>,
    }

    /// Rows of several devices.
    InsertRecordsRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The device of each row.
        2 required devices: Vec<&'a str>,
        /// The measurements of each row.
        3 required measurements: Vec<Vec<&'a str>>,
        /// The values of each row.
        4 required values: Vec<&'a [u8]>,
        /// The time of each row.
        5 required times: Vec<i64>,
    }

    /// Rows of one device.
    InsertRecordsOfOneDeviceRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The device.
        2 required device: &'a str,
        /// The measurements of each row.
        3 required measurements: Vec<Vec<&'a str>>,
        /// The values of each row.
        4 required values: Vec<&'a [u8]>,
        /// The time of each row.
        5 required times: Vec<i64>,
    }

    /// Rows of texts of one device.
    InsertStringRecordsOfOneDeviceRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The device.
        2 required device: &'a str,
        /// The measurements of each row.
        3 required measurements: Vec<Vec<&'a str>>,
        /// The values of each row.
        4 required values: Vec<Vec<&'a str>>,
        /// The time of each row.
        5 required times: Vec<i64>,
    }

    /// Rows of texts of several devices.
    InsertStringRecordsRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The device of each row.
        2 required devices: Vec<&'a str>,
        /// The measurements of each row.
        3 required measurements: Vec<Vec<&'a str>>,
        /// The values of each row.
        4 required values: Vec<Vec<&'a str>>,
        /// The time of each row.
        5 required times: Vec<i64>,
    }

    /// Deletes points.
    DeleteDataRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The timeseries.
        2 required paths: Vec<&'a str>,
        /// The first time.
        3 required start: i64,
        /// The last time, included.
        4 required end: i64,
    }

    /// Creates a timeseries.
    CreateTimeseriesRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// Its path.
        2 required path: &'a str,
        /// Its type.
        3 required data_type: i32,
    }

    /// Creates the timeseries of an aligned device.
    CreateAlignedTimeseriesRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The device.
        2 required device: &'a str,
        /// The measurements.
        3 required measurements: Vec<&'a str>,
        /// Their types.
        4 required data_types: Vec<i32>,
    }

    /// Creates several timeseries.
    CreateMultiTimeseriesRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// Their paths.
        2 required paths: Vec<&'a str>,
        /// Their types.
        3 required data_types: Vec<i32>,
    }

    /// Reads points of timeseries.
    RawDataQueryRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The timeseries.
        2 required paths: Vec<&'a str>,
        /// Rows that an answer may have.
        3 optional fetch_size: i32,
        /// The first time.
        4 required start: i64,
        /// The time before which the points are.
        5 required end: i64,
        /// The number of the client's statement.
        6 required statement_id: i64,
        /// The time that the query may take, ms.
        9 optional timeout_ms: i64,
    }

    /// Reads the newest points of timeseries.
    LastDataQueryRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The timeseries.
        2 required paths: Vec<&'a str>,
        /// Rows that an answer may have.
        3 optional fetch_size: i32,
        /// The time from which on the points are.
        4 required time: i64,
        /// The number of the client's statement.
        5 required statement_id: i64,
        /// The time that the query may take, ms.
        8 optional timeout_ms: i64,
    }

    /// Reads the newest points of one device.
    FastLastDataQueryRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The database, or what the client takes for it.
        2 required database: &'a str,
        /// The device.
        3 required device: &'a str,
        /// The measurements.
        4 required measurements: Vec<&'a str>,
        /// Rows that an answer may have.
        5 optional fetch_size: i32,
        /// The number of the client's statement.
        6 required statement_id: i64,
        /// The time that the query may take, ms.
        9 optional timeout_ms: i64,
    }

    /// Aggregates timeseries.
    AggregationQueryRequest<'a> {
        /// The session.
        1 required session_id: i64,
        /// The number of the client's statement.
        2 required statement_id: i64,
        /// The timeseries.
        3 required paths: Vec<&'a str>,
        /// The function for each of them.
        4 required aggregations: Vec<i32>,
        /// The first time.
        5 optional start: i64,
        /// The time before which the points are.
        6 optional end: i64,
        /// The length of a window.
        7 optional interval: i64,
        /// The distance of windows.
        8 optional sliding_step: i64,
        /// Rows that an answer may have.
        9 optional fetch_size: i32,
        /// The time that the query may take, ms.
        10 optional timeout_ms: i64,
    }
}

wire_struct! {
    /// Ends the session.
    CloseSessionRequest {
        /// The session.
        1 required session_id: i64,
    }

    /// Ends a query, or the client's statement with all of its queries.
    CloseOperationRequest {
        /// The session.
        1 required session_id: i64,
        /// The query.
        2 optional query_id: i64,
        /// The statement.
        3 optional statement_id: i64,
    }
}
