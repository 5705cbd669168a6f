//! InfluxDB's HTTP API 3: `/api/v3/query_sql` and `/api/v3/query_influxql` (`query`); its writes are
//! in `http::write`, with the errors of [`V3Error`].
//!
//! `docs/guides/influxdb2.md` says what differs on purpose.

mod error;
mod placeholders;
mod query;

pub use error::V3Error;
pub use placeholders::{bound_sql, has_second_statement};
pub use query::{get_influxql, get_sql, post_influxql, post_sql};
