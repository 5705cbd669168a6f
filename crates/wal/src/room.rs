//! Disk space for future records.
//!
//! A batch goes to the logs of several shards. If one of them found the disk full after another had
//! taken its part, a refused batch would be half there. So a writer first asks each log to promise
//! space, and appends to none of them if one cannot.
//!
//! The file system allocates space in large steps, so that a promise usually costs one addition. On a
//! file system that cannot allocate ahead, a promise is worth nothing, and the append may fail.
//!
//! Invariant: the file has space for what was written and for all that is promised, as far as the
//! file system guarantees that.

use crate::error::WalError;
use marigram_env::File;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Space is allocated in steps of this many bytes.
const STEP_BYTES: u64 = 1 << 20;

/// Space in the file that is appended to.
#[derive(Debug)]
pub struct LogRoom {
    state: Mutex<LogRoomState>,
}

#[derive(Debug)]
struct LogRoomState {
    /// `None` before there is one.
    file: Option<Arc<dyn File>>,
    path: PathBuf,
    /// Bytes of the file.
    written: u64,
    /// How far space is allocated, bytes from the start.
    taken: u64,
    /// Bytes that are promised and may not be written yet.
    promised: u64,
}

/// Space for some bytes, promised until this is dropped.
#[derive(Debug)]
pub struct RoomPromise {
    room: Arc<LogRoom>,
    bytes: u64,
}

impl Drop for RoomPromise {
    fn drop(&mut self) {
        self.room.state.lock().promised -= self.bytes;
    }
}

impl LogRoom {
    /// For a file that will be created at `path`.
    pub(crate) fn new(path: PathBuf) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(LogRoomState {
                file: None,
                path,
                written: 0,
                taken: 0,
                promised: 0,
            }),
        })
    }

    /// Whether there is a file to append to.
    #[must_use]
    pub fn has_file(&self) -> bool {
        self.state.lock().file.is_some()
    }

    /// Promises space for records of `bytes` in total.
    ///
    /// # Errors
    /// `Full` if the disk has no space for them.
    pub fn promise(self: &Arc<Self>, bytes: u64) -> Result<RoomPromise, WalError> {
        let mut state = self.state.lock();
        state.take(bytes)?;
        state.promised += bytes;
        drop(state);
        Ok(RoomPromise {
            room: Arc::clone(self),
            bytes,
        })
    }

    /// Records that the file has `bytes` now.
    pub(crate) fn written(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.written = bytes;
        state.taken = state.taken.max(bytes);
    }

    /// Records that the file was cut to `bytes`, which released its space.
    pub(crate) fn cut(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.written = bytes;
        state.taken = bytes;
        // If this fails, writers that hold promises find the disk full when they append.
        let _ = state.take(0);
    }

    /// Moves to another file, of `written` bytes, with all promises.
    pub(crate) fn move_to(
        &self,
        file: &Arc<dyn File>,
        path: &Path,
        written: u64,
    ) -> Result<(), WalError> {
        let mut state = self.state.lock();
        let mut next = LogRoomState {
            file: Some(Arc::clone(file)),
            path: path.to_owned(),
            written,
            taken: written,
            promised: state.promised,
        };
        next.take(0)?;
        *state = next;
        Ok(())
    }
}

impl LogRoomState {
    /// Allocates space for `bytes` more than are promised.
    fn take(&mut self, bytes: u64) -> Result<(), WalError> {
        let end = self.written + self.promised + bytes;
        if end <= self.taken {
            return Ok(());
        }
        let ample = end.next_multiple_of(STEP_BYTES);
        let Some(file) = &self.file else {
            let source = std::io::ErrorKind::StorageFull.into();
            let path = self.path.clone();
            return Err(WalError::Full { path, source });
        };
        let reserve = |end: u64| file.reserve(self.taken..end).map(|()| end);
        // A nearly full disk may have space for this, but not for a whole step.
        self.taken = reserve(ample)
            .or_else(|_| reserve(end))
            .map_err(WalError::refused(&self.path))?;
        Ok(())
    }
}
