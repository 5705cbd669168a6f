//! Distinct values once, in the order of their first appearance, and the entry of each value.

pub(crate) mod numbers;
pub(crate) mod strings;
