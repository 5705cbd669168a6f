//! The write-ahead log of a shard: every change, durable before it is acknowledged, in the order
//! of its sequence numbers.
//!
//! The format is documented byte by byte in `docs/formats/wal.md`. Invariants: a file that is not
//! the last one was synced before the next was made, so damage in it is corruption and never a
//! torn tail; files are appended to only by the process that made them; a log that failed to
//! append or sync accepts nothing more, unless the disk was full and the record was removed.

mod entry;
mod error;
mod file;
mod record;
mod replay;
mod room;
#[cfg(test)]
mod tests;
mod wal;

pub use entry::{DeleteEntry, WalEntry, WriteEntry};
pub use error::WalError;
pub use file::{FORMAT_VERSION, file_name, with_owner};
pub use record::{RecordError, decode_record, encode_record};
pub use replay::ReplayReport;
pub use room::{LogRoom, RoomPromise};
pub use wal::{Wal, WalProof};
