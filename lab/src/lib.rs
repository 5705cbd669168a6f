//! The laboratory: `marigram lab` repeats the published studies of time-series databases that fleets
//! of devices write to, on Marigram and on its peers.
//!
//! The laboratory is an outside observer: it depends on no other crate of the project. It reaches
//! Marigram's server over the wire, as it reaches every peer; the embedded library is handed in by
//! the command line as one more [`target::Kind`].
//!
//! From below to above: [`data`] (tables and rows), [`generate`] (sources of rows), [`question`]
//! (what is asked, and answers), [`expect`] (the right answers, worked out from the rows alone),
//! [`target`] (what a database under test must do), [`targets`] (the databases), [`peers`]
//! (installing and starting them), [`monitor`] (resources and latencies), [`study`] (what a study
//! is), [`studies`] (the studies), [`run`] (executes them), [`report`] (reads what was stored),
//! [`command`] (the command line).

#![allow(
    clippy::disallowed_methods,
    reason = "a laboratory reads the machine's clock and disk, as a client of a database does"
)]

pub mod command;
pub mod data;
pub mod expect;
pub mod generate;
pub mod monitor;
pub mod peers;
pub mod question;
pub mod record;
pub mod report;
pub mod run;
pub mod studies;
pub mod study;
pub mod target;
pub mod targets;
