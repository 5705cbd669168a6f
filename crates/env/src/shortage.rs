//! Which errors say that the system is short of descriptors or of room.
//!
//! Invariant: such a refusal changed nothing, so that whoever met it may try again.

use std::io;

const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;

/// Whether an error says that this process or the system has as many files open as it may.
#[must_use]
pub fn is_out_of_files(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}

/// Whether an error says that the disk is full, or the quota used up.
#[must_use]
pub fn is_out_of_space(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ENOSPC)
        || matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
}
