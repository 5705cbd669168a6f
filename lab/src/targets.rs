//! The databases: one driver each.
//!
//! To add one: a file here with a `KIND`, and a line in [`kinds`].

pub mod arrow;
pub mod conformance;
pub mod http;
pub mod line_protocol;
pub mod marigram;
pub mod null;
pub mod pg;
pub mod postgresql;
pub mod sql;

use crate::target::Kind;

/// Every kind of target that the laboratory brings along.
#[must_use]
pub fn kinds() -> Vec<Kind> {
    vec![
        null::KIND,
        marigram::HTTP,
        marigram::POSTGRES,
        postgresql::POSTGRESQL,
        postgresql::TIMESCALEDB,
    ]
}
