//! The proof that a log is whole.
//!
//! A log alone cannot distinguish a tail that power loss tore from one that was lost later, nor an old
//! copy of itself from the newest file. So the durable extent of a log is recorded a second time, in
//! another file (`witness`), and compared on opening, before anything is changed.

use crate::error::ManifestError;
use crate::replay::{LogExtent, ReplayedLog};
use marigram_codec::ChecksummedPrefix;
use marigram_model::LogOwner;
use std::path::Path;

/// What is known about a log before it is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogProof {
    /// Whether the file must exist: a new one would hide that it was lost.
    pub exists: bool,
    /// The least extent that the log must have.
    pub durable: Option<LogExtent>,
    /// Whose the log must be, as far as its header tells; a new one gets this owner. Catalogs name
    /// none.
    pub owner: Option<LogOwner>,
}

/// Checks a log against its proof; `bytes` is the file, `replayed` what it holds.
pub(crate) fn prove<S>(
    path: &Path,
    bytes: &[u8],
    replayed: &ReplayedLog<S>,
    proof: &LogProof,
) -> Result<(), ManifestError> {
    let found = replayed.extent;
    let corrupt = |offset: u64, reason: String| {
        let path = path.to_owned();
        Err(ManifestError::Corrupt {
            path,
            offset,
            reason,
        })
    };
    if let Some(reason) = proof.owner.and_then(|owner| owner.refusal(replayed.owner)) {
        return corrupt(0, reason);
    }
    let Some(durable) = proof.durable else {
        return Ok(());
    };
    if found.number < durable.number {
        return corrupt(
            found.extent.bytes,
            format!(
                "it ends with change {}, though change {} was made durable, as a WITNESS of the directory says: \
                 its end is lost, or it was replaced by an older version",
                found.number, durable.number
            ),
        );
    }
    let same = if found.base == durable.base {
        usize::try_from(durable.extent.bytes)
            .ok()
            .and_then(|end| bytes.get(..end))
            .is_some_and(|bytes| ChecksummedPrefix::new(bytes) == durable.extent)
    } else {
        // It was rewritten later, after everything that the proof knows.
        found.base >= durable.number
    };
    if same {
        return Ok(());
    }
    corrupt(
        0,
        format!(
            "its length and checksum up to change {} are not those that a WITNESS of the directory names: \
             it was replaced by another file",
            durable.number
        ),
    )
}
