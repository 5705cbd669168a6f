//! Room on the disk for records to come.
//!
//! A batch goes to the logs of several shards. That one of them finds the disk full after another
//! has taken its part must not happen: what was refused would be half there. So whoever is to append
//! first has room promised by each log, and appends to none where one cannot promise it.
//!
//! The file system sets room aside in large steps, so that a promise mostly costs an addition. Where
//! it cannot set room aside, a promise is worth nothing, and the append finds out.
//!
//! Invariant: the file has room for what was written and all that is promised, as far as the file
//! system promises that.

use crate::error::WalError;
use marigram_env::File;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Room is set aside in steps of so many bytes.
const STEP_BYTES: u64 = 1 << 20;

/// Room of the file that is appended to.
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
    /// How far room is set aside.
    taken: u64,
    /// Bytes that are promised and perhaps not written yet.
    promised: u64,
}

/// Room for so many bytes, until it is dropped.
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
    /// Of a file to come, at `path`.
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

    /// Promises room for records of `bytes` in all.
    ///
    /// # Errors
    /// `Full` where the disk has no room for them.
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

    /// The file has so many bytes now.
    pub(crate) fn written(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.written = bytes;
        state.taken = state.taken.max(bytes);
    }

    /// The file was cut to so many bytes, and lost the room that it had.
    pub(crate) fn cut(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.written = bytes;
        state.taken = bytes;
        // Where that fails, those who were promised room find the disk full when they append.
        let _ = state.take(0);
    }

    /// Records go to another file from here on, of `written` bytes; what is promised is promised
    /// there.
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
    /// Sets room aside for `bytes` more than are promised.
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
        // Close to the end of the disk there may be room for this and not for a whole step.
        self.taken = reserve(ample)
            .or_else(|_| reserve(end))
            .map_err(WalError::refused(&self.path))?;
        Ok(())
    }
}
