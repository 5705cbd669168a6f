//! Reference tables as those see them who use the crate.
#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]
#![allow(
    clippy::disallowed_methods,
    reason = "these tests damage files, start processes and wait as a machine does"
)]

mod alter;
mod alter_types;
mod concurrency;
mod durability;
mod foreign;
mod insert;
mod scan;
mod support;
mod tables;
mod types;
