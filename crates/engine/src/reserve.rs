//! Disk space for changes that free more of it.
//!
//! A full disk refuses whatever needs space, and dropping a table needs a little: a record in the
//! catalog, one in each log, and one in each manifest before a file may be removed. So a file in
//! the data directory holds some space (`RESERVE`; it has no content). If such a change finds the
//! disk full, the file is removed and the change is retried. Until the space is held again, nothing
//! else may take it: writes are refused.
//!
//! If the file system cannot reserve space, there is no reserve, and nothing else changes.

use crate::error::{EngineError, Result};
use marigram_env::Env;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Space for the catalog and for manifests; and for each log, which grows in steps of this size.
const STEP_BYTES: u64 = 1 << 20;
/// When a refused writer may retry.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The reserve of a data directory.
#[derive(Debug)]
pub(crate) struct DiskReserve {
    path: PathBuf,
    bytes: u64,
    /// Whether the file holds the space; it only changes under this lock.
    is_held: Mutex<bool>,
    /// Whether it was released and has not been restored yet.
    is_spent: AtomicBool,
}

impl DiskReserve {
    /// The file's name.
    pub(crate) const FILE: &'static str = "RESERVE";

    /// The reserve of the data directory `dir`; it is created if there is space for it.
    pub(crate) fn open(env: &Env, dir: &Path, shards: usize) -> Self {
        let reserve = Self {
            path: dir.join(Self::FILE),
            bytes: STEP_BYTES * (1 + shards as u64),
            is_held: Mutex::new(false),
            is_spent: AtomicBool::new(false),
        };
        match reserve.take(env) {
            Ok(()) => *reserve.is_held.lock() = true,
            Err(error) => tracing::debug!(%error, "there is no space for the reserve"),
        }
        reserve
    }

    /// Makes a change that frees disk space; retries it with the reserve if the disk is full.
    ///
    /// # Errors
    /// The errors of `change`, which must leave nothing behind if it finds the disk full.
    pub(crate) fn spend_on<T>(&self, env: &Env, change: impl Fn() -> Result<T>) -> Result<T> {
        match change() {
            Err(error) if error.is_of_full_disk() && self.give_up(env) => change(),
            done => done,
        }
    }

    /// Restores the reserve if it was released.
    ///
    /// # Errors
    /// `Busy` if there is no space for it.
    pub(crate) fn restore(&self, env: &Env) -> Result<()> {
        if !self.is_spent.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut is_held = self.is_held.lock();
        if !*is_held {
            self.take(env).map_err(|error| EngineError::Busy {
                reason: format!(
                    "the disk is full ({error}), and what frees room on it needs the little that is \
                     left: nothing was stored; drop tables, or make room on the disk"
                ),
                retry_after: RETRY_AFTER,
            })?;
            *is_held = true;
            tracing::info!("there is room on the disk again");
        }
        self.is_spent.store(false, Ordering::Release);
        Ok(())
    }

    /// Why writes are refused for its sake, if they are. Like a write, it restores the reserve if
    /// there is space.
    pub(crate) fn refusal(&self, env: &Env) -> Option<String> {
        self.restore(env).err()?;
        Some("the disk is full, and the reserve of space is in use".to_owned())
    }

    fn take(&self, env: &Env) -> io::Result<()> {
        let file = if env.fs.exists(&self.path)? {
            env.fs.open(&self.path)?
        } else {
            env.fs.create(&self.path)?
        };
        let taken = file.reserve(0..self.bytes);
        if taken.is_err() {
            // A part of it may have been allocated.
            drop(file);
            self.remove(env)?;
        }
        taken
    }

    /// Releases the reserve; returns whether there was one.
    fn give_up(&self, env: &Env) -> bool {
        let mut is_held = self.is_held.lock();
        if !*is_held {
            return false;
        }
        if let Err(error) = self.remove(env) {
            tracing::warn!(%error, "cannot release the reserve of disk space");
            return false;
        }
        *is_held = false;
        self.is_spent.store(true, Ordering::Release);
        tracing::warn!(
            bytes = self.bytes,
            "the disk is full: the reserve is used for what frees room; writes are refused until it \
             is back"
        );
        true
    }

    fn remove(&self, env: &Env) -> io::Result<()> {
        env.fs.open(&self.path)?.truncate(0)?;
        env.fs.remove(&self.path)
    }
}
