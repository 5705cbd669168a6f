//! `ASOF JOIN`: each row of the left side with the newest row of the right side that is not after it.
//!
//! `syntax` makes the join a LEFT JOIN whose condition has a mark, because that is what DataFusion
//! plans; `rule` finds the mark and puts a `node` in the join's place, and hands conditions
//! around it on to the sides; `exec` merges both sides in the order of keys and time.

mod exec;
mod merge;
mod node;
mod rule;

pub use exec::plan;
pub use node::{AsOfCondition, AsOfJoin};
pub use rule::AsOfJoinRule;

use datafusion::common::DataFusionError;
use marigram_functions::refused_at;

/// An error of the statement, at the join.
fn asof_join_error(sqlstate: &'static str, message: impl Into<String>) -> DataFusionError {
    refused_at(sqlstate, "asof", message)
}
