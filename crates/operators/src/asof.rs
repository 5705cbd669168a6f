//! `ASOF JOIN`: joins each row of the left side to the newest row of the right side that is not
//! after it.
//!
//! `syntax` turns the join into a LEFT JOIN whose condition has a marker, because DataFusion can
//! plan that. `rule` finds the marker, replaces the join with a `node`, and pushes the surrounding
//! conditions down to the sides. `exec` merges both sides in the order of keys and time.

mod exec;
mod merge;
mod node;
mod rule;

pub use exec::plan;
pub use node::{AsOfCondition, AsOfJoin};
pub use rule::AsOfJoinRule;

use datafusion::common::DataFusionError;
use marigram_functions::refused_at;

/// An error of the statement, at the position of the join.
fn asof_join_error(sqlstate: &'static str, message: impl Into<String>) -> DataFusionError {
    refused_at(sqlstate, "asof", message)
}
