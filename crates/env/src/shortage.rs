//! Recognizes errors of a system that is short of file descriptors or disk space.
//!
//! Invariant: such an operation changed nothing, so that the caller may try again.

use std::io;

const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;

/// Whether an error means that the process or the system has reached its limit of open files.
#[must_use]
pub fn is_out_of_files(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}

/// Whether an error means that the disk is full or the quota exhausted.
#[must_use]
pub fn is_out_of_space(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ENOSPC)
        || matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
}
