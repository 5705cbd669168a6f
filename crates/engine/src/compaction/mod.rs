//! Compaction: fewer segments, late rows in their place, deletes and dropped tables spent.
//!
//! [`pick`] decides, from metadata alone; [`run`] does it, and changes nothing but new files. The
//! caller makes the result true by committing the edit.

mod candidates;
mod pick;
mod plan;
mod run;
mod spent;

pub(crate) use pick::pick;
pub(crate) use plan::{PickInput, PickOptions};
pub(crate) use run::{RunContext, run};
pub(crate) use spent::spent_tombstones;
