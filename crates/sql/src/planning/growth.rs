//! Statements whose plans would be far larger than their text: refused before they are planned.
//!
//! A common table expression is planned anew wherever it is named, and a condition over columns that
//! are computed from each other is written out down to the columns of tables. Either doubles with
//! each step of a short chain. `copies` counts the former on the syntax tree, `inlining` the latter
//! on the plan.

mod copies;
mod inlining;

pub use copies::check_copies;
pub use inlining::check_inlining;
