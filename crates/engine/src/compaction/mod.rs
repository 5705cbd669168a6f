//! Compaction: fewer segments, late rows in their place, deletes and dropped tables spent.
//!
//! [`pick`] decides, from metadata alone; [`run`] does it, and changes nothing but new files. The
//! caller makes the result true by committing the edit. [`TokenBucket`] says how fast it may go, and
//! [`CompactionHistory`] what runs and what ran.

mod candidates;
mod history;
mod pick;
mod plan;
mod run;
mod spent;
mod token_bucket;

pub(crate) use history::CompactionHistory;
pub use history::{CompactionInfo, CompactionState};
pub(crate) use pick::{pick, pick_table};
pub(crate) use plan::{CompactionPlan, PickInput, PickOptions};
pub(crate) use run::{RunContext, run};
pub(crate) use spent::spent_tombstones;
pub(crate) use token_bucket::TokenBucket;
