//! Tools for testing Marigram as a whole: a naive model of the expected answers, and simulated
//! machines that lose power.
//!
//! The model ([`oracle`]) keeps rows in ordered maps: no files, no merging, no encoding. The
//! simulation ([`crash`]) runs a random workload on the engine and on the model, makes the disk
//! under the engine fail, and compares the two row by row.
#![allow(
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    reason = "tests use the machine, and panic if something is wrong"
)]

pub mod crash;
pub mod oracle;
