//! Room on the disk for changes that free more of it.
//!
//! A full disk refuses what needs room, and to drop a table needs a little: a record in the catalog,
//! one in each log, and one in each manifest before a file may go. So a file of the data directory
//! holds some room (`RESERVE`; it has no content). Where such a change finds the disk full, the
//! file goes, and the change is tried again. Until the room is held again, nothing else may take it:
//! writes are refused.
//!
//! Where the file system cannot set room aside, there is no reserve, and nothing else changes.

use crate::error::{EngineError, Result};
use marigram_env::Env;
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Room for the catalog and for manifests; and for each log, which takes it in steps of as much.
const STEP_BYTES: u64 = 1 << 20;
/// When a refused writer may try again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// The reserve of a data directory.
#[derive(Debug)]
pub(crate) struct DiskReserve {
    path: PathBuf,
    bytes: u64,
    /// Whether the file holds the room; changes happen under this lock.
    is_held: Mutex<bool>,
    /// Whether it was given up, and is not back yet.
    is_spent: AtomicBool,
}

impl DiskReserve {
    /// The file's name.
    pub const FILE: &'static str = "RESERVE";

    /// The reserve of the data directory `dir`, taken if there is room for it.
    pub fn open(env: &Env, dir: &Path, shards: usize) -> Self {
        let reserve = Self {
            path: dir.join(Self::FILE),
            bytes: STEP_BYTES * (1 + shards as u64),
            is_held: Mutex::new(false),
            is_spent: AtomicBool::new(false),
        };
        match reserve.take(env) {
            Ok(()) => *reserve.is_held.lock() = true,
            Err(error) => tracing::debug!(%error, "there is no room for the reserve"),
        }
        reserve
    }

    /// Does what frees room on the disk; again with the reserve, where the disk is full.
    ///
    /// # Errors
    /// Those of `change`, of which nothing may be left where it found the disk full.
    pub fn spend_on<T>(&self, env: &Env, change: impl Fn() -> Result<T>) -> Result<T> {
        match change() {
            Err(error) if error.is_of_full_disk() && self.give_up(env) => change(),
            done => done,
        }
    }

    /// Takes the reserve again, if it was given up.
    ///
    /// # Errors
    /// `Busy` where there is no room for it.
    pub fn restore(&self, env: &Env) -> Result<()> {
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

    /// Why writes are refused for its sake, if they are: as a write would, it takes the room again
    /// where there is some.
    pub fn refusal(&self, env: &Env) -> Option<String> {
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
            // Some of it may have been taken.
            drop(file);
            self.remove(env)?;
        }
        taken
    }

    /// Says whether there was a reserve.
    fn give_up(&self, env: &Env) -> bool {
        let mut is_held = self.is_held.lock();
        if !*is_held {
            return false;
        }
        if let Err(error) = self.remove(env) {
            tracing::warn!(%error, "the reserve of disk space could not be given up");
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
