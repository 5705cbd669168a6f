//! IoTDB's protocol and its SQL of trees, without I/O: Thrift's frames, the requests and answers of
//! `IClientRPCService`, tablets and rows, blocks of answers, and statements as syntax trees.
//!
//! [`wire`] reads and writes Thrift. [`ClientCall`] is a request; [`Tablet`] and [`record_values`] read
//! the rows of one; [`AnswerRows`] writes those of an answer. [`parse_statement`] reads a statement of the
//! tree dialect, and [`PathPattern`] is a path with wildcards.
//!
//! Invariants: no bytes and no text cause a panic; what is allocated is bounded by the length of what was
//! received and the limit of the reader.

mod answer;
mod call;
mod mapping;
mod path;
pub mod request_text;
mod requests;
mod responses;
mod sql;
mod status;
mod tablet;
mod value;
pub mod wire;

pub use answer::{AnswerColumn, AnswerRows, DataSetBytes};
pub use call::{ClientCall, InsertPurpose, RowForm};
pub use mapping::{
    DEVICE_TAG, DEVICES_TABLE, IGNORES_TIME_KEY, MEASUREMENT_TAG, TIME_ANSWER, TIME_COLUMN,
    TIMESERIES_TABLE, TYPE_KEY, database_name, database_path, databases_above, day_of_text,
    day_to_ms, default_database, field_name, field_names, java_double, java_float,
    measurement_of_field, ms_to_day, ms_to_ns, ns_to_ms,
};
pub use path::{PathNode, PathPattern, TreePath, node_text};
pub use requests::*;
pub use responses::*;
pub use sql::*;
pub use status::{IotDbFault, StatusCode};
pub use tablet::{Tablet, TabletColumn, record_values};
pub use value::{IotDbType, IotDbValue};
