//! What Marigram takes from the world: logs, blobs and time, behind traits.
//!
//! The engine reaches disk and clock only through [`Env`]: [`LogStore`] for files under append,
//! [`BlobStore`] for immutable blobs, [`Clock`] for time. In production these are [`OsFs`],
//! [`FileBlobs`] over it, and [`SystemClock`]. In tests they are [`SimFs`], [`FileBlobs`] over it,
//! and [`SimClock`]: they lose power, tear writes and return errors, in the same way each time for
//! the same seed.
//!
//! Invariant: no function here promises more durability than the traits say, and the simulation
//! never keeps more than they promise except by chance.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate is where the machine's disk and clock are reached"
)]

mod blob;
mod blob_pool;
mod file_blobs;
mod os;
mod read_ahead;
mod relief;
mod shortage;
mod sim;
mod traits;

pub use blob::{BlobMeta, BlobStore, BlobStores, BlobUpload, PutMode, UNFINISHED};
pub use blob_pool::{BlobPool, PooledBlob};
pub use file_blobs::{FileBlobStores, FileBlobs};
pub use os::{OsFs, SystemClock};
pub use relief::ReliefFs;
pub use shortage::{is_out_of_files, is_out_of_space};
pub use sim::{
    DiskSnapshot, FaultRepeat, OpKind, PlannedFault, SimBucket, SimClock, SimCrash, SimFs,
};
pub use traits::{Clock, File, Lock, LogStore, ReadAt};

use std::path::Path;
use std::sync::Arc;

/// What an engine gets from the world. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Env {
    /// Disk: files under append.
    pub fs: Arc<dyn LogStore>,
    /// Where immutable blobs stand.
    pub blobs: Arc<dyn BlobStores>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl Env {
    /// The machine's own disk and clock.
    pub fn real() -> Self {
        Self {
            fs: Arc::new(OsFs),
            blobs: Arc::new(FileBlobStores),
            clock: Arc::new(SystemClock::new()),
        }
    }

    /// A simulated disk and clock. The caller keeps clones of both to steer them.
    pub fn simulated(fs: &SimFs, clock: &SimClock) -> Self {
        Self {
            fs: Arc::new(fs.clone()),
            blobs: Arc::new(FileBlobStores),
            clock: Arc::new(clock.clone()),
        }
    }

    /// The blob store of the data directory, or folder of backups, `dir`.
    #[must_use]
    pub fn blob_store(&self, dir: &Path) -> Arc<dyn BlobStore> {
        self.blobs.blobs_in(&self.fs, dir)
    }
}
