//! Filling of gaps: for each group of a query one row a bucket, also where there are none.
//!
//! A query is grouped by `time_bucket_gapfill(width, time)` and other keys. `rule` is the first of
//! the logical rules: it makes the bucket a plain `time_bucket`, so that the aggregate is one that
//! the operator of series knows, finds the `range` of times that the query asks for, and puts a
//! `node` above the aggregate (and its HAVING) that takes with it the calls of `locf`,
//! `interpolate` and `fill_value` around. `exec` gets its rows in the order of keys and bucket,
//! gathers those of whole groups (`groups`) and answers them with the missing ones between
//! (`fill`).

mod exec;
mod fill;
mod groups;
mod interpolation;
mod node;
mod range;
mod rule;

pub use exec::plan;
pub use node::GapFill;
pub use range::{ConstantEvaluator, column};
pub use rule::GapFillRule;

use datafusion::common::DataFusionError;
use marigram_functions::refused_at;

/// Most buckets of a group.
const BUCKETS_MAX: u64 = 10_000_000;

/// An error of the statement, at the name of a function in it.
fn gap_fill_error(
    sqlstate: &'static str,
    name: &str,
    message: impl Into<String>,
) -> DataFusionError {
    refused_at(sqlstate, name, message)
}
