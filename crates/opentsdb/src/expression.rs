//! `/api/query/exp`: expressions over the series of several metrics.
//!
//! [`ExpressionQuery`] is the request; [`CheckedExpressions`] is what can be computed of it, in the
//! order in which it must be. [`ExpressionJoin`] joins the series of an expression's variables by their
//! tags and computes a [`JoinedSeries`], [`OutputWriter`] writes one as JSON.

mod check;
mod join;
mod output;
mod request;
mod table;

pub use check::{CheckedExpressions, ExpressionMetric, ExpressionOutput, ExpressionStep, JoinKind};
pub use join::{ExpressionJoin, JoinVariables};
pub use output::OutputWriter;
pub use request::ExpressionQuery;
pub use table::{ExpressionHead, JoinedSeries, SeriesSet};

#[cfg(test)]
mod tests;
