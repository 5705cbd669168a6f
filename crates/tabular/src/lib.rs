//! Analyses the rows of a text file: its encoding and dialect, the types of its columns, the format
//! of its times, which columns are tags, and whether several rows have the same (series, time).
//!
//! Invariant: no single row decides anything. A decision takes into account everything that was
//! seen, and what stays ambiguous is an error that names the readings. This crate opens no files:
//! callers pass readers and scratch space.

pub mod cell;
pub mod dialect;
pub mod duplicate_keys;
pub mod encoding;
pub mod headered;
pub mod layout;
pub mod missing_codes;
pub mod names;
pub mod numerals;
pub mod profile;
pub mod record;
pub mod tags;
pub mod time;
pub mod totals;
