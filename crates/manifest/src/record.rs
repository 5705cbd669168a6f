//! The records of a log, and what a state must do to be kept in one.

use crate::bytes::{MalformedRecord, RecordReader};
use marigram_codec::{ChecksummedPrefix, frame};
use marigram_model::LogOwner;
use std::fmt::Debug;

/// A state that a log keeps.
pub(crate) trait LoggedState: Clone + Debug + Default {
    /// The file's name.
    const FILE: &'static str;
    /// The file's first bytes.
    const MAGIC: [u8; 8];
    /// The newest version of the format, and the one written.
    const VERSION: u32;
    /// The first version whose seals tell the length and the checksum of all that stands before
    /// them.
    const SEALS_TELL: u32;
    /// The first version whose header names the owner, if one does.
    const OWNER_SINCE: Option<u32>;
    /// The name of a second, equal file that is kept beside the log, if one is.
    const COPY: Option<&'static str>;
    /// A change.
    type Edit: Debug;

    fn encode(&self, out: &mut Vec<u8>);
    /// Reads the state from a file of this version.
    fn decode(reader: &mut RecordReader<'_>, version: u32) -> Result<Self, MalformedRecord>;
    fn encode_edit(edit: &Self::Edit, out: &mut Vec<u8>);
    /// Reads a change from a file of this version.
    fn decode_edit(
        reader: &mut RecordReader<'_>,
        version: u32,
    ) -> Result<Self::Edit, MalformedRecord>;
    /// Why the edit contradicts the state, if it does.
    fn check(&self, edit: &Self::Edit) -> Result<(), String>;
    /// Applies an edit that was checked.
    fn apply_checked(&mut self, edit: &Self::Edit);
}

pub(crate) const SNAPSHOT: u8 = 1;
pub(crate) const EDIT: u8 = 2;
pub(crate) const SEAL: u8 = 3;
/// Bytes of number and kind.
pub(crate) const PREFIX_BYTES: usize = 9;

/// The bytes of a log with nothing but a snapshot.
pub(crate) fn new_log<S: LoggedState>(state: &S, number: u64, owner: Option<LogOwner>) -> Vec<u8> {
    let mut header = S::MAGIC.to_vec();
    header.extend_from_slice(&S::VERSION.to_le_bytes());
    if S::OWNER_SINCE.is_some() {
        header.extend_from_slice(&LogOwner::to_bytes(owner));
    }
    let mut bytes = Vec::new();
    frame::write(&header, &mut bytes);
    put_record(number, SNAPSHOT, |out| state.encode(out), &mut bytes);
    bytes
}

/// Bytes of a seal that tells of those before it.
pub(crate) const SEAL_BYTES: usize = frame::HEADER_BYTES + PREFIX_BYTES + 12;

/// Appends a seal to a log whose bytes so far are `before`.
pub(crate) fn put_seal(number: u64, before: ChecksummedPrefix, out: &mut Vec<u8>) {
    let body = |out: &mut Vec<u8>| {
        out.extend_from_slice(&before.bytes.to_le_bytes());
        out.extend_from_slice(&before.checksum.to_le_bytes());
    };
    put_record(number, SEAL, body, out);
}

pub(crate) fn put_record(
    number: u64,
    kind: u8,
    body: impl FnOnce(&mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let mut payload = number.to_le_bytes().to_vec();
    payload.push(kind);
    body(&mut payload);
    frame::write(&payload, out);
}
