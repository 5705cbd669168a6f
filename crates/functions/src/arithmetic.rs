//! Arithmetic of whole numbers as PostgreSQL has it: what does not fit into its type is an error
//! (22003) and never wraps.
//!
//! DataFusion's `+`, `-`, `*` and unary minus wrap. [`CheckedArithmetic`] puts functions of ours in
//! their place as soon as types are known, before constants are folded. They have the names of what
//! they stand for, so that columns keep theirs. Division and remainder check by themselves.

mod functions;
mod kernel;
mod rule;

pub use functions::unchecked;
pub use rule::CheckedArithmetic;

use arrow::error::ArrowError;
use datafusion::common::DataFusionError;

/// The error of a number that does not fit into its type (22003).
pub fn out_of_range(message: impl Into<String>) -> DataFusionError {
    DataFusionError::from(ArrowError::ArithmeticOverflow(message.into()))
}
