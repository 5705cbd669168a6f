//! The laboratory: `marigram lab` repeats the published studies of time-series databases for fleets
//! of devices, on Marigram and on its peers.
//!
//! This crate is the instrument. It depends on no other crate of the project and knows no database:
//! it drives whatever implements [`target::Target`]. The drivers are in two crates above this one:
//! `marigram-lab-drivers` (what drivers share, and Marigram's own interfaces) and
//! `marigram-lab-peers` (the other databases). The command line hands them in.
//!
//! From below to above: [`data`] (tables and rows), [`generate`] (sources of rows), [`question`]
//! (questions and answers), [`expect`] (the right answers, computed from the rows alone),
//! [`target`] (what a database under test must do), [`conformance`] (a check of a driver),
//! [`line_protocol`], [`null`] (a target that drops everything), [`monitor`] (resources and
//! latencies), [`study`] (what a study is), [`studies`], [`run`] (executes studies), [`report`]
//! (reads what `run` stored), [`command`] (the command line).

#![allow(
    clippy::disallowed_methods,
    reason = "a laboratory reads the machine's clock and disk, as a client of a database does"
)]

pub mod command;
pub mod conformance;
pub mod data;
pub mod expect;
pub mod generate;
pub mod line_protocol;
pub mod monitor;
pub mod null;
pub mod question;
pub mod record;
pub mod report;
pub mod run;
pub mod studies;
pub mod study;
pub mod target;
