//! A simulated disk, bucket and clock: deterministic from a seed; the disk is as unkind as a real one
//! may be.

mod bucket;
mod clock;
mod disk;
mod faults;
mod fs;
mod inode;
#[cfg(test)]
mod tests;

pub use bucket::SimBucket;
pub use clock::SimClock;
pub use disk::DiskSnapshot;
pub use faults::{FaultRepeat, OpKind, PlannedFault, SimCrash};
pub use fs::SimFs;
