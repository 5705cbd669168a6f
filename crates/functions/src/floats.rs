//! The order of floats in PostgreSQL: NaN equals itself and is greater than every number, and the
//! two zeros are equal.
//!
//! Arrow orders floats by their bits: a NaN with a sign before all numbers, −0.0 before 0.0. Stored
//! and selected values do not change. When values are compared, sorted, grouped or joined,
//! [`FloatOrderRule`] makes the plan use [`canonical`] values or comparisons of ours. It is the
//! last logical rule, so that the other rules, and the pruning of pages, see comparisons that they
//! know.

mod compare;
mod key;
mod rule;

pub use key::{canonical, canonical_array};
pub use rule::FloatOrderRule;
