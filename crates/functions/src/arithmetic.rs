//! Arithmetic with PostgreSQL's semantics: a result that does not fit its type is an error (22003).
//! Whole numbers never wrap, and finite floats have no infinite result.
//!
//! DataFusion's `+`, `-`, `*` and unary minus wrap, and floats become infinite.
//! [`CheckedArithmetic`] replaces them with functions of ours as soon as types are known, before
//! constants are folded. These functions are displayed as the operators that they replace, so that
//! columns keep their names. Division and remainder of whole numbers already check their results.
//! Long chains of operators become one call before that (`chain`).

mod argument;
pub(crate) mod chain;
mod floats;
mod functions;
mod kernel;
mod rule;

pub(crate) use floats::overflow;
pub use functions::unchecked;
pub use rule::CheckedArithmetic;

use arrow::error::ArrowError;
use datafusion::common::DataFusionError;

/// The error for a number that does not fit its type (22003).
pub fn out_of_range(message: impl Into<String>) -> DataFusionError {
    DataFusionError::from(ArrowError::ArithmeticOverflow(message.into()))
}
