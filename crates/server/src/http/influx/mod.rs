//! InfluxDB's HTTP API 1.x: `/query`, and what is InfluxDB's own of `/write`.
//!
//! The bytes of answers are InfluxDB's: clients and their tests compare them. `docs/guides/influxdb.md`
//! says what differs on purpose; `testing/influxdb` compares with a running InfluxDB.

mod answer;
mod columns;
mod csv_form;
mod encoder;
mod error;
mod json_form;
mod msgpack_form;
mod multipart;
mod number;
mod parameters;
mod query;
mod series;
mod series_form;
mod write_errors;

pub(super) use error::InfluxError;
pub(crate) use parameters::{FormValues, bound as bound_parameter};
pub(super) use query::{get, post, read_body};
pub(super) use write_errors::{LinesRefused, refusal, unread_lines};
