//! What Marigram is tested with as a whole: a naive model of what it should answer, and simulated
//! machines that lose power under it.
//!
//! The model ([`oracle`]) keeps rows in ordered maps and nothing else: no files, no merging, no
//! encoding. The simulation ([`crash`]) runs a random workload on the engine and on the model,
//! breaks the disk under the engine, and compares the two row by row.
#![allow(
    clippy::disallowed_methods,
    clippy::missing_panics_doc,
    reason = "tests reach the machine, and panic where something is wrong"
)]

pub mod crash;
pub mod oracle;
