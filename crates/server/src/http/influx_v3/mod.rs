//! InfluxDB's HTTP API 3: `/api/v3/query_sql` and `/api/v3/query_influxql` (`query`); its writes are
//! in `http::write`, with the errors of [`V3Error`].
//!
//! `docs/guides/influxdb2.md` says what differs on purpose.

mod error;
mod placeholders;
mod query;

pub(super) use error::V3Error;
pub(crate) use placeholders::{bound_sql, has_second_statement};
pub(super) use query::{get_influxql, get_sql, post_influxql, post_sql};
