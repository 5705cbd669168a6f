//! Two-step aggregates, as TimescaleDB's toolkit has them: an aggregate reduces the rows of a group to a
//! summary (`stats_agg(v)`), and accessors compute figures from it (`average(…)`, `stddev(…)`).
//! `rollup` joins summaries.
//!
//! A summary is a value of its own: a struct. So it may be selected in a subquery or a view, and several
//! figures cost one pass over the rows.

mod accessors;
mod aggregates;
mod candlestick;
mod counter;
mod percentiles;
mod rollup;
mod statistics;
mod summary;
mod time_weight;

pub(crate) use accessors::functions as accessor_functions;
pub(crate) use aggregates::aggregates;

pub use accessors::{ACCESSORS, SummaryPlace, accessor_function};
