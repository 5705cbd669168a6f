//! `LATERAL (SELECT … WHERE t.dev = d.dev ORDER BY time DESC LIMIT n)`: the first rows that belong to
//! each row of the left side.
//!
//! DataFusion joins a lateral subquery by taking the conditions that name the left side out of it and
//! into the join's. A LIMIT forbids that, for it would then count the rows of all. Here `decorrelate`
//! takes the conditions out and the LIMIT along: where they are equalities, it becomes the first
//! rows of each key, and for one row an aggregate that can be answered by last values; otherwise
//! `rule` makes an `ASOF JOIN` of it, or numbers the left side's rows and counts for each.

mod decorrelate;
mod rows;
mod rule;

pub use decorrelate::{CorrelatedCondition, DecorrelatedSubquery};
pub use rows::{FIRST, columns_of};
pub use rule::LateralLimitRule;

use datafusion::common::DataFusionError;
use marigram_functions::refused_at;

/// An error of the statement, at the join.
fn lateral_error(message: impl Into<String>) -> DataFusionError {
    refused_at("0A000", "lateral", message)
}
