//! Stores distinct values once, and for each value the index of its entry.

pub(crate) mod numbers;
mod planes;
pub(crate) mod strings;
