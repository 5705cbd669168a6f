//! Refuses statements whose plans would be far larger than their text, before they are planned.
//!
//! A common table expression is planned again wherever it is named, and a condition over columns
//! that are computed from each other is expanded down to the columns of tables. Either doubles with
//! each step of a short chain. `copies` counts the former in the syntax tree, `inlining` the latter
//! in the plan. Rules also copy operands and subqueries, which doubles with each level of nesting:
//! `expression_parts` knows the copies, `nested_subqueries` counts those of subqueries.

mod copies;
mod expression_parts;
mod inlining;
mod nested_subqueries;

pub(crate) use copies::check_copies;
pub(crate) use inlining::check_inlining;
pub(crate) use nested_subqueries::check_nested_subqueries;
