//! The manifest of a shard: file `MANIFEST` in its directory.

use crate::error::ManifestError;
use crate::log::{EditLog, LogOptions, io, read_proved};
use crate::proof::LogProof;
use crate::record::{new_log, put_seal};
use crate::replay::{LogExtent, TornTail, replay};
use crate::state::{ManifestEdit, ManifestState};
use marigram_codec::ChecksummedPrefix;
use marigram_env::LogStore;
use marigram_model::LogOwner;
use std::path::Path;
use std::sync::Arc;

/// The name of a shard's directory of segments, beside the manifest.
const SEGMENTS: &str = "segments";

/// The manifest of a shard under change: `MANIFEST` in its directory, a log of edits that is
/// rewritten (to a temporary name, synced, renamed) when it has grown to several times its state.
#[derive(Debug)]
pub struct Manifest {
    log: EditLog<ManifestState>,
}

impl Manifest {
    /// Opens or creates the manifest in `dir`, which must be there. A torn last edit was never
    /// acknowledged and is cut off ([`torn_tail`](Self::torn_tail)).
    ///
    /// # Errors
    /// `Corrupt` for damage elsewhere, and for a manifest that is missing beside segments.
    pub fn open(fs: Arc<dyn LogStore>, dir: &Path) -> Result<(Self, ManifestState), ManifestError> {
        Self::open_with(fs, dir, LogOptions::default())
    }

    /// [`open`](Self::open) with other limits.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(
        fs: Arc<dyn LogStore>,
        dir: &Path,
        options: LogOptions,
    ) -> Result<(Self, ManifestState), ManifestError> {
        Self::open_as(fs, dir, options, &LogProof::default())
    }

    /// Opens the manifest in `dir` if it agrees with `proof`, and creates it only if it need not
    /// exist.
    ///
    /// # Errors
    /// As [`open`](Self::open), and `Corrupt` where it is not; nothing was changed then.
    pub fn open_proved(
        fs: Arc<dyn LogStore>,
        dir: &Path,
        proof: &LogProof,
    ) -> Result<(Self, ManifestState), ManifestError> {
        Self::open_as(fs, dir, LogOptions::default(), proof)
    }

    pub(crate) fn open_as(
        fs: Arc<dyn LogStore>,
        dir: &Path,
        options: LogOptions,
        proof: &LogProof,
    ) -> Result<(Self, ManifestState), ManifestError> {
        refuse_missing(&*fs, dir)?;
        let log: EditLog<ManifestState> = EditLog::open(fs, dir, options, proof)?;
        let state = log.state().clone();
        Ok((Self { log }, state))
    }

    /// Reads the manifest in `dir` and changes nothing; for tools.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read(fs: &dyn LogStore, dir: &Path) -> Result<ManifestState, ManifestError> {
        let proof = LogProof {
            exists: true,
            ..LogProof::default()
        };
        Self::read_proved(fs, dir, &proof).map(Option::unwrap_or_default)
    }

    /// As [`read`](Self::read), but checks the manifest against its proof; `None` if there is none and
    /// none is required.
    ///
    /// # Errors
    /// As [`open_proved`](Self::open_proved).
    pub fn read_proved(
        fs: &dyn LogStore,
        dir: &Path,
        proof: &LogProof,
    ) -> Result<Option<ManifestState>, ManifestError> {
        refuse_missing(fs, dir)?;
        let read = read_proved::<ManifestState>(fs, dir, proof)?;
        Ok(read.map(|(_, replayed)| replayed.state))
    }

    /// The durable extent of the manifest, for its witness.
    #[must_use]
    pub fn extent(&self) -> LogExtent {
        self.log.extent()
    }

    /// Commits a change: makes it durable, then applies it.
    ///
    /// # Errors
    /// `Refused` if the edit contradicts the state: nothing has changed. After any other error it
    /// is unknown whether the edit is on disk: files that it names must stay until the manifest
    /// is opened again, and nothing more can be committed (`Poisoned`).
    pub fn commit(&mut self, edit: &ManifestEdit) -> Result<(), ManifestError> {
        self.log.commit(edit)
    }

    /// The state after the last commit.
    #[must_use]
    pub fn state(&self) -> &ManifestState {
        self.log.state()
    }

    /// The tail that was cut off on opening, for the operator's log.
    #[must_use]
    pub fn torn_tail(&self) -> Option<&TornTail> {
        self.log.torn()
    }
}

impl ManifestState {
    /// The state that the bytes of a manifest hold, without its torn tail; `path` is for messages.
    ///
    /// # Errors
    /// As [`Manifest::open`].
    pub fn from_log(path: &Path, bytes: &[u8]) -> Result<Self, ManifestError> {
        replay::<Self>(path, bytes).map(|replayed| replayed.state)
    }

    /// The bytes of a manifest with the state that `bytes` hold, for another owner: a restored
    /// manifest belongs to its new directory. `path` is for messages.
    ///
    /// # Errors
    /// As [`Manifest::open`].
    pub fn log_with_owner(
        path: &Path,
        bytes: &[u8],
        owner: LogOwner,
    ) -> Result<Vec<u8>, ManifestError> {
        let replayed = replay::<Self>(path, bytes)?;
        let number = replayed.extent.number;
        let mut log = new_log(&replayed.state, number, Some(owner));
        put_seal(number, ChecksummedPrefix::new(&log), &mut log);
        Ok(log)
    }
}

/// A manifest is created before any segment. If there are segments without one, it was lost, and a
/// new, empty one would declare them garbage.
fn refuse_missing(fs: &dyn LogStore, dir: &Path) -> Result<(), ManifestError> {
    let (path, segments) = (dir.join("MANIFEST"), dir.join(SEGMENTS));
    if fs.exists(&path).map_err(io(&path))? || !fs.exists(&segments).map_err(io(&segments))? {
        return Ok(());
    }
    let names = fs.list(&segments).map_err(io(&segments))?;
    match names
        .iter()
        .find(|name| Path::new(name).extension() == Some("seg".as_ref()))
    {
        Some(name) => {
            let reason = format!("the file is missing, though there is {SEGMENTS}/{name}");
            Err(ManifestError::Corrupt {
                path,
                offset: 0,
                reason,
            })
        }
        None => Ok(()),
    }
}
