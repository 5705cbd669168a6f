//! Distinct values once, and the entry of each value.

pub(crate) mod numbers;
mod planes;
pub(crate) mod strings;
