//! What the rows of a text file are: its encoding and dialect, the types of its columns, how its
//! times are written, which columns are tags, and whether rows stand for the same (series, time).
//!
//! Invariant: nothing is decided by one row. A decision is made over all that was seen, and what
//! stays ambiguous is an error that names the readings. Nothing here opens a file: readers and
//! scratch space are handed in.

pub mod cell;
pub mod dialect;
pub mod duplicate_keys;
pub mod encoding;
pub mod layout;
pub mod names;
pub mod profile;
pub mod record;
pub mod tags;
pub mod time;
