//! The answers of the methods that are served, as IoTDB's `client.thrift` declares them.

use crate::wire::{WireMap, wire_struct};

wire_struct! {
    /// What became of a request.
    StatusMessage<'a> {
        /// IoTDB's code.
        1 required code: i32,
        /// What is wrong, for people.
        2 optional message: &'a str,
        /// What became of the parts of the request.
        3 optional parts: Vec<StatusMessage<'a>>,
    }

    /// The session that was opened.
    OpenSessionResponse<'a> {
        /// Whether it was.
        1 required status: StatusMessage<'a>,
        /// The version of the server's protocol.
        2 required server_protocol: i32,
        /// Its number.
        3 optional session_id: i64,
        /// Its settings.
        4 optional configuration: WireMap<&'a str, &'a str>,
    }

    /// Rows in the form before version 1.
    QueryDataSet<'a> {
        /// The times.
        1 required times: &'a [u8],
        /// The values of each column that are not null.
        2 required values: Vec<&'a [u8]>,
        /// Which values each column has.
        3 required bitmaps: Vec<&'a [u8]>,
    }

    /// The begin of a statement's answer.
    ExecuteStatementResponse<'a> {
        /// What became of the statement.
        1 required status: StatusMessage<'a>,
        /// The number of the query, if there are rows.
        2 optional query_id: i64,
        /// The names of the columns beside the time.
        3 optional columns: Vec<&'a str>,
        /// What the statement did.
        4 optional operation: &'a str,
        /// Whether the rows have no times.
        5 optional ignores_time: bool,
        /// The types of the columns.
        6 optional types: Vec<&'a str>,
        /// The first rows, in the form before version 1.
        7 optional data_set: QueryDataSet<'a>,
        /// The place of each column.
        9 optional column_places: WireMap<&'a str, i32>,
        /// The first rows, as blocks.
        13 optional blocks: Vec<&'a [u8]>,
        /// Whether there are more rows.
        14 optional has_more: bool,
        /// For each column, its place in the blocks.
        17 optional block_places: Vec<i32>,
    }

    /// More rows.
    FetchResultsResponse<'a> {
        /// What became of the request.
        1 required status: StatusMessage<'a>,
        /// Whether there are rows.
        2 required has_rows: bool,
        /// Whether the columns have the same times; they always do.
        3 required is_aligned: bool,
        /// The rows, in the form before version 1.
        4 optional data_set: QueryDataSet<'a>,
        /// The rows, as blocks.
        6 optional blocks: Vec<&'a [u8]>,
        /// Whether there are more rows.
        7 optional has_more: bool,
    }

    /// Metadata.
    FetchMetadataResponse<'a> {
        /// What became of the request.
        1 required status: StatusMessage<'a>,
        /// The metadata as JSON.
        2 optional json: &'a str,
    }

    /// The time zone.
    TimeZoneResponse<'a> {
        /// What became of the request.
        1 required status: StatusMessage<'a>,
        /// The zone.
        2 required zone: &'a str,
    }

    /// What the server is.
    ServerPropertiesResponse<'a> {
        /// The version of IoTDB that it speaks like.
        1 required version: &'a str,
        /// Functions that group by time.
        2 required aggregations: Vec<&'a str>,
        /// The unit of times.
        3 required precision: &'a str,
        /// Clients that it serves at once.
        4 required clients_max: i32,
        /// Bytes of a frame.
        5 optional frame_bytes_max: i32,
        /// Whether nothing can be written.
        6 optional is_read_only: bool,
        /// What was built.
        7 optional build: &'a str,
    }

    /// A connection.
    ConnectionInfo<'a> {
        /// The user.
        1 required user: &'a str,
        /// When it logged in, ms.
        2 required login_ms: i64,
        /// Its number.
        3 required id: &'a str,
        /// The kind of its protocol; 0 is this one.
        4 required kind: i32,
    }

    /// Connections.
    ConnectionsResponse<'a> {
        /// The connections.
        1 required connections: Vec<ConnectionInfo<'a>>,
    }

    /// Whether writes go to another server, too.
    BackupConfigurationResponse<'a> {
        /// What became of the request.
        1 required status: StatusMessage<'a>,
        /// Whether they do.
        2 optional is_on: bool,
    }
}
