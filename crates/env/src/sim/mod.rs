//! A simulated disk and clock: deterministic from a seed, and as unkind as real ones may be.

mod clock;
mod disk;
mod faults;
mod fs;
mod inode;
#[cfg(test)]
mod tests;

pub use clock::SimClock;
pub use disk::DiskSnapshot;
pub use faults::{FaultRepeat, OpKind, PlannedFault, SimCrash};
pub use fs::SimFs;
