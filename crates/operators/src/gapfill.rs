//! Gap filling: returns one row per bucket for each group of a query, even for buckets without
//! rows.
//!
//! A query groups by `time_bucket_gapfill(width, time)` and other keys. `rule` is the first of the
//! logical rules: it replaces the bucket with a plain `time_bucket`, so that the series-aware
//! operator recognizes the aggregate. It determines the `range` of times that the query asks for,
//! and puts a `node` above the aggregate (and its HAVING) that takes over the surrounding calls of
//! `locf`, `interpolate` and `fill_value`. `exec` receives the rows in the order of keys and
//! bucket, collects whole groups (`groups`), and returns them with the missing rows inserted
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

/// The largest number of buckets in a group.
const BUCKETS_MAX: u64 = 10_000_000;

/// An error of the statement, at the position of a function's name.
fn gap_fill_error(
    sqlstate: &'static str,
    name: &str,
    message: impl Into<String>,
) -> DataFusionError {
    refused_at(sqlstate, name, message)
}
