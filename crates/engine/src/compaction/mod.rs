//! Compaction: makes fewer segments, moves late rows to their place, and removes deleted rows and
//! dropped tables.
//!
//! [`pick`] decides, only from metadata; [`run`] executes, and changes nothing except new files.
//! The caller puts the result into effect by committing the edit. [`TokenBucket`] limits the speed,
//! and [`CompactionHistory`] records running and past compactions.

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
