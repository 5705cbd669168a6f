//! Compaction: fewer segments, late rows in their place, deletes and dropped tables spent.
//!
//! [`pick`] decides, from metadata alone; [`run`] does it, and changes nothing but new files. The
//! caller makes the result true by committing the edit. [`Budget`] says how fast it may go, and
//! [`History`] what runs and what ran.

mod budget;
mod candidates;
mod history;
mod pick;
mod plan;
mod run;
mod spent;

pub(crate) use budget::Budget;
pub(crate) use history::History;
pub use history::{CompactionInfo, CompactionState};
pub(crate) use pick::{pick, pick_table};
pub(crate) use plan::{PickInput, PickOptions, Plan};
pub(crate) use run::{RunContext, run};
pub(crate) use spent::spent_tombstones;
