//! The order of floats as PostgreSQL has it: NaN is equal to itself and greater than every number, and
//! the two zeros are equal.
//!
//! Arrow orders floats by their bits: a NaN with a sign before all numbers, −0.0 before 0.0. Nothing
//! is changed in what is stored or selected. Where values are compared, sorted, grouped or joined,
//! [`FloatOrderRule`] has it done with [`canonical`] values or by a comparison of ours. It is the last of the
//! logical rules, so that the others, and the pruning of pages, see comparisons as they know them.

mod compare;
mod key;
mod rule;

pub use key::{canonical, canonical_array};
pub use rule::FloatOrderRule;
