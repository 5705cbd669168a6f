//! What Marigram takes from the world: files and time, behind traits.
//!
//! The engine reaches disk and clock only through [`Env`]. In production that is [`OsFs`] and
//! [`SystemClock`]; in tests it is [`SimFs`] and [`SimClock`], which lose power, tear writes and
//! return errors, and do so in the same way each time for the same seed.
//!
//! Invariant: no function here promises more durability than the traits say, and the simulation
//! never keeps more than they promise except by chance.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate is where the machine's disk and clock are reached"
)]

mod file_pool;
mod os;
mod read_ahead;
mod relief;
mod shortage;
mod sim;
mod traits;

pub use file_pool::{FilePool, PooledFile};
pub use os::{OsFs, SystemClock};
pub use relief::ReliefFs;
pub use shortage::{is_out_of_files, is_out_of_space};
pub use sim::{DiskSnapshot, FaultRepeat, OpKind, PlannedFault, SimClock, SimCrash, SimFs};
pub use traits::{Clock, File, FileSystem, Lock};

use std::sync::Arc;

/// What an engine gets from the world. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Env {
    /// Disk.
    pub fs: Arc<dyn FileSystem>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl Env {
    /// The machine's own disk and clock.
    pub fn real() -> Self {
        Self {
            fs: Arc::new(OsFs),
            clock: Arc::new(SystemClock::new()),
        }
    }

    /// A simulated disk and clock. The caller keeps clones of both to steer them.
    pub fn simulated(fs: &SimFs, clock: &SimClock) -> Self {
        Self {
            fs: Arc::new(fs.clone()),
            clock: Arc::new(clock.clone()),
        }
    }
}
