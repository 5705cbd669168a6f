//! Foreign formats, as pure functions between bytes and batches.
//!
//! Invariant: nothing here does I/O, reads a clock, or panics on any input.

pub mod flight;
pub mod lines;
pub mod opentsdb;
