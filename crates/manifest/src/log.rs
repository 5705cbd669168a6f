//! The log that keeps a small state on disk: a snapshot and the edits since.
//!
//! ```text
//! header    frame: magic, 8 bytes; format version, u32; owner, 12 bytes (manifests only)
//! snapshot  frame: number u64, kind 1, state after that many edits
//! edit      frame: number u64, kind 2, edit            (numbers rise by one)
//! seal      frame: number u64, kind 3, length u64, checksum u32    (all before it is durable)
//! ```
//!
//! Power may fail at every step, so:
//! - A file comes into being under a temporary name, is synced, renamed, and its directory synced
//!   before anything is appended. So header and snapshot are never torn, and a rename that power
//!   loss takes back uncovers an older file with the same state.
//! - An edit is appended and synced before it takes effect. Power loss can tear only the last
//!   edit, whose commit never returned: it is cut off.
//! - After a sync, a seal is appended and not synced. It costs little, and proves that damage before
//!   it is not a torn write. Damage that a whole later record follows is an error: acknowledged edits
//!   are never dropped silently. The one exception is a seal before an edit at the end that no seal
//!   follows: power loss can tear this seal and keep the edit, which then counts.
//! - What a new process reads may be in the page cache only, and may stay there even if a sync now
//!   succeeds, because the kernel gave up writing it when an earlier sync failed. So a log that
//!   does not end in a seal is rewritten on opening, before anybody acts on what was read.
//!   So is one of an older format version: a file holds edits of one version only.
//! - A log cannot detect that its end was lost, or that an older copy replaced it. So it is compared
//!   with what was recorded elsewhere (`proof`) before anything is changed.

use crate::error::ManifestError;
use crate::proof::{LogProof, prove};
use crate::record::{EDIT, LoggedState, new_log, put_record, put_seal};
use crate::replay::{LogExtent, ReplayedLog, TornTail, replay};
use marigram_codec::ChecksummedPrefix;
use marigram_env::{File, LogStore, is_out_of_space};
use marigram_model::LogOwner;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// When a log is rewritten.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// The edits since the snapshot take at least this many bytes, and three times those of the
    /// snapshot.
    pub rewrite_bytes_min: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            rewrite_bytes_min: 64 * 1024,
        }
    }
}

/// A log under append, and the state after its last edit.
#[derive(Debug)]
pub(crate) struct EditLog<S> {
    fs: Arc<dyn LogStore>,
    dir: PathBuf,
    path: PathBuf,
    file: Arc<dyn File>,
    /// A second, equal file; `None` if the log has none, or it could not be written.
    copy: Option<Arc<dyn File>>,
    state: S,
    /// What the header names.
    owner: Option<LogOwner>,
    /// What is durable.
    extent: LogExtent,
    /// Header and snapshot.
    snapshot: ChecksummedPrefix,
    /// The whole file, seals too.
    whole: ChecksummedPrefix,
    options: LogOptions,
    torn: Option<TornTail>,
    poisoned: Option<String>,
}

impl<S: LoggedState> EditLog<S> {
    /// Opens the log in `dir`, or creates it with the default state if it need not exist. Nothing is
    /// changed before the log is known to agree with `proof`.
    pub(crate) fn open(
        fs: Arc<dyn LogStore>,
        dir: &Path,
        options: LogOptions,
        proof: &LogProof,
    ) -> Result<Self, ManifestError> {
        let path = dir.join(S::FILE);
        let Some((bytes, replayed)) = read_proved::<S>(&*fs, dir, proof)? else {
            let (state, number) = (S::default(), 0);
            let written = write_new(&*fs, dir, &state, number, proof.owner)?;
            let begun = BegunLog {
                state,
                number,
                owner: proof.owner,
                torn: None,
            };
            return Ok(Self::begun(fs, dir, begun, written, options));
        };
        for name in [Some(S::FILE), S::COPY].into_iter().flatten() {
            let unfinished = temporary(&dir.join(name));
            if fs.exists(&unfinished).map_err(io(&unfinished))? {
                fs.remove(&unfinished).map_err(io(&unfinished))?;
            }
        }
        // A reader of the old version would report new edits as damage.
        if !replayed.is_sealed || replayed.version < S::VERSION {
            let number = replayed.extent.number;
            let owner = proof.owner.or(replayed.owner);
            let written = write_new(&*fs, dir, &replayed.state, number, owner)?;
            let begun = BegunLog {
                state: replayed.state,
                number,
                owner,
                torn: replayed.torn,
            };
            return Ok(Self::begun(fs, dir, begun, written, options));
        }
        let file = fs.open(&path).map_err(io(&path))?;
        let copy = S::COPY.and_then(|name| equal_copy(&*fs, dir, name, &bytes).ok());
        Ok(Self {
            fs,
            dir: dir.to_owned(),
            path,
            file,
            copy,
            state: replayed.state,
            owner: proof.owner.or(replayed.owner),
            extent: replayed.extent,
            snapshot: replayed.snapshot,
            whole: replayed.whole,
            options,
            torn: replayed.torn,
            poisoned: None,
        })
    }

    /// A log that was just created.
    fn begun(
        fs: Arc<dyn LogStore>,
        dir: &Path,
        begun: BegunLog<S>,
        written: SnapshotLog,
        options: LogOptions,
    ) -> Self {
        let number = begun.number;
        Self {
            fs,
            dir: dir.to_owned(),
            path: dir.join(S::FILE),
            file: written.file,
            copy: written.copy,
            state: begun.state,
            owner: begun.owner,
            extent: LogExtent {
                base: number,
                number,
                extent: written.snapshot,
            },
            snapshot: written.snapshot,
            whole: written.whole,
            options,
            torn: begun.torn,
            poisoned: None,
        }
    }

    /// How far the log is durable.
    pub(crate) fn extent(&self) -> LogExtent {
        self.extent
    }

    pub(crate) fn state(&self) -> &S {
        &self.state
    }

    pub(crate) fn torn(&self) -> Option<&TornTail> {
        self.torn.as_ref()
    }

    /// Makes an edit durable and applies it to the state. If the disk is full (`Full`), nothing has
    /// changed. After any other failure the edit is not applied, may or may not be there when the log
    /// is opened again, and nothing more can be committed.
    pub(crate) fn commit(&mut self, edit: &S::Edit) -> Result<(), ManifestError> {
        if let Some(reason) = &self.poisoned {
            let (path, reason) = (self.path.clone(), reason.clone());
            return Err(ManifestError::Poisoned { path, reason });
        }
        if let Err(reason) = self.state.check(edit) {
            return Err(ManifestError::Refused {
                path: self.path.clone(),
                reason,
            });
        }
        let result = self.write(edit);
        if let Err(error) = &result
            && !matches!(error, ManifestError::Full { .. })
        {
            self.poisoned = Some(error.to_string());
        }
        result
    }

    fn rewrite(&mut self) -> Result<(), ManifestError> {
        let number = self.extent.number;
        let written = write_new(&*self.fs, &self.dir, &self.state, number, self.owner)?;
        (self.file, self.copy) = (written.file, written.copy);
        (self.snapshot, self.whole) = (written.snapshot, written.whole);
        self.extent = LogExtent {
            base: number,
            number,
            extent: written.snapshot,
        };
        Ok(())
    }

    fn write(&mut self, edit: &S::Edit) -> Result<(), ManifestError> {
        // Before the edit, not after it: an error on the way leaves the edit unwritten.
        let limit = self
            .options
            .rewrite_bytes_min
            .max(self.snapshot.bytes.saturating_mul(3));
        if self.whole.bytes - self.snapshot.bytes >= limit {
            self.rewrite()?;
        }
        let number = self.extent.number + 1;
        let mut bytes = Vec::new();
        put_record(number, EDIT, |out| S::encode_edit(edit, out), &mut bytes);
        let edit_bytes = bytes.len();
        let mut whole = self.whole;
        whole.grow(&bytes);
        put_seal(number, whole, &mut bytes);
        // A file that cannot be asked is no fault of ours: the write below fails, too.
        debug_assert!(
            self.file
                .len()
                .map_or(true, |bytes| bytes == self.whole.bytes),
            "the log ends where its extent does"
        );
        self.append_edit(&bytes[..edit_bytes], bytes.len() as u64)?;
        self.file.sync().map_err(io(&self.path))?;
        self.state.apply_checked(edit);
        self.extent = LogExtent {
            number,
            extent: whole,
            ..self.extent
        };
        whole.grow(&bytes[edit_bytes..]);
        self.whole = whole;
        if let Err(error) = self.file.append(&bytes[edit_bytes..]) {
            // The edit is durable, but the end of the file is unknown now.
            self.poisoned = Some(io(&self.path)(error).to_string());
        }
        if self
            .copy
            .as_ref()
            .is_some_and(|copy| copy.append(&bytes).is_err())
        {
            // It is rewritten with the log, or when the log is opened.
            self.copy = None;
        }
        Ok(())
    }
}

impl<S> EditLog<S> {
    /// Appends an edit, with space for `bytes` in total. On a full disk no part of it stays.
    fn append_edit(&self, edit: &[u8], bytes: u64) -> Result<(), ManifestError> {
        let full = |source| ManifestError::Full {
            path: self.path.clone(),
            source,
        };
        let before = self.file.len().map_err(io(&self.path))?;
        match self.file.reserve(before..before + bytes) {
            Err(source) if is_out_of_space(&source) => return Err(full(source)),
            outcome => outcome.map_err(io(&self.path))?,
        }
        match self.file.append(edit) {
            Err(source) if is_out_of_space(&source) => {
                let cut = self.file.truncate(before).and_then(|()| self.file.sync());
                cut.map_err(io(&self.path))?;
                Err(full(source))
            }
            outcome => outcome.map_err(io(&self.path)),
        }
    }
}

/// What a log holds that was just created.
struct BegunLog<S> {
    state: S,
    number: u64,
    owner: Option<LogOwner>,
    torn: Option<TornTail>,
}

/// A log that holds only a snapshot.
struct SnapshotLog {
    file: Arc<dyn File>,
    copy: Option<Arc<dyn File>>,
    snapshot: ChecksummedPrefix,
    whole: ChecksummedPrefix,
}

/// Replaces the log in `dir`, durably, by one that holds only a snapshot.
fn write_new<S: LoggedState>(
    fs: &dyn LogStore,
    dir: &Path,
    state: &S,
    number: u64,
    owner: Option<LogOwner>,
) -> Result<SnapshotLog, ManifestError> {
    let path = dir.join(S::FILE);
    let mut bytes = new_log(state, number, owner);
    let file = replace(fs, dir, &path, &bytes)?;
    let snapshot = ChecksummedPrefix::new(&bytes);
    let log_bytes = bytes.len();
    put_seal(number, snapshot, &mut bytes);
    file.append(&bytes[log_bytes..]).map_err(io(&path))?;
    let copy = S::COPY.and_then(|name| new_copy(fs, dir, name, &bytes).ok());
    Ok(SnapshotLog {
        file,
        copy,
        snapshot,
        whole: ChecksummedPrefix::new(&bytes),
    })
}

/// Replaces the file `path`, durably, by one with these bytes.
fn replace(
    fs: &dyn LogStore,
    dir: &Path,
    path: &Path,
    bytes: &[u8],
) -> Result<Arc<dyn File>, ManifestError> {
    let temporary = temporary(path);
    // Until the rename, a full disk leaves everything unchanged.
    let refused = |source| {
        if is_out_of_space(&source) {
            let _ = fs.remove(&temporary);
            let path = temporary.clone();
            return ManifestError::Full { path, source };
        }
        io(&temporary)(source)
    };
    let file = fs.create(&temporary).map_err(refused)?;
    file.append(bytes).map_err(refused)?;
    file.sync().map_err(io(&temporary))?;
    fs.rename(&temporary, path).map_err(io(path))?;
    fs.sync_dir(dir).map_err(io(dir))?;
    fs.open(path).map_err(io(path))
}

/// A log as bytes, and decoded.
pub(crate) type ReadLog<S> = (Vec<u8>, ReplayedLog<S>);

/// Reads the log in `dir` and checks it against its proof; changes nothing. `None` if there is no log
/// and none is required.
pub(crate) fn read_proved<S: LoggedState>(
    fs: &dyn LogStore,
    dir: &Path,
    proof: &LogProof,
) -> Result<Option<ReadLog<S>>, ManifestError> {
    let path = dir.join(S::FILE);
    let read = || {
        if !fs.exists(&path).map_err(io(&path))? {
            if proof.exists || proof.durable.is_some() {
                return Err(ManifestError::Corrupt {
                    path: path.clone(),
                    offset: 0,
                    reason: "the file is missing".to_owned(),
                });
            }
            return Ok(None);
        }
        let file = fs.open(&path).map_err(io(&path))?;
        let bytes = read_file(&*file).map_err(io(&path))?;
        let replayed = replay::<S>(&path, &bytes)?;
        prove(&path, &bytes, &replayed, proof)?;
        Ok(Some((bytes, replayed)))
    };
    let Some(name) = S::COPY else { return read() };
    match (read(), read_copy::<S>(fs, dir, name)) {
        (
            Err(ManifestError::Corrupt {
                path,
                offset,
                reason,
            }),
            Some((bytes, copy)),
        ) => {
            let copy_path = dir.join(name);
            let fits = prove(&copy_path, &bytes, &copy, proof).is_ok();
            let advice = advice(&copy_path, &path, copy.extent.number, fits);
            let reason = format!("{reason}; {advice}");
            Err(ManifestError::Corrupt {
                path,
                offset,
                reason,
            })
        }
        // An edit is written to the copy only after it is durable in the log.
        (Ok(Some((_, log))), Some((bytes, copy)))
            if copy.extent.number > log.extent.number
                && prove(&dir.join(name), &bytes, &copy, proof).is_ok() =>
        {
            let (last, further) = (log.extent.number, copy.extent.number);
            let advice = advice(&dir.join(name), &path, further, true);
            let reason = format!(
                "it ends with change {last}, and {name} beside it with change {further}: its end is lost, or it was replaced by an older version; {advice}"
            );
            let offset = log.extent.extent.bytes;
            Err(ManifestError::Corrupt {
                path,
                offset,
                reason,
            })
        }
        (read, _) => read,
    }
}

/// The copy beside a log, if there is one that can be read.
fn read_copy<S: LoggedState>(
    fs: &dyn LogStore,
    dir: &Path,
    name: &str,
) -> Option<(Vec<u8>, ReplayedLog<S>)> {
    let path = dir.join(name);
    if !fs.exists(&path).ok()? {
        return None;
    }
    let bytes = read_file(&*fs.open(&path).ok()?).ok()?;
    let replayed = replay::<S>(&path, &bytes).ok()?;
    Some((bytes, replayed))
}

/// Advice to the operator of a damaged log whose copy is sound.
fn advice(copy: &Path, path: &Path, number: u64, fits: bool) -> String {
    let (copy, path) = (copy.display(), path.display());
    let what = if fits {
        "which is all that is known to have been made durable"
    } else {
        "which is not the last one that was made durable; a backup may hold more"
    };
    format!("{copy} is whole up to change {number}, {what}: to use it, cp {copy} {path}")
}

/// The copy of a log, rewritten if it is not equal to `bytes`.
fn equal_copy(
    fs: &dyn LogStore,
    dir: &Path,
    name: &str,
    bytes: &[u8],
) -> Result<Arc<dyn File>, ManifestError> {
    let path = dir.join(name);
    if fs.exists(&path).map_err(io(&path))? {
        let file = fs.open(&path).map_err(io(&path))?;
        if read_file(&*file).map_err(io(&path))? == bytes {
            return Ok(file);
        }
    }
    new_copy(fs, dir, name, bytes)
}

/// Replaces the copy. A failure leaves nothing unfinished behind if possible, and is not fatal.
fn new_copy(
    fs: &dyn LogStore,
    dir: &Path,
    name: &str,
    bytes: &[u8],
) -> Result<Arc<dyn File>, ManifestError> {
    let path = dir.join(name);
    replace(fs, dir, &path, bytes).inspect_err(|_| {
        let _ = fs.remove(&temporary(&path));
    })
}

fn temporary(path: &Path) -> PathBuf {
    // CATALOG.tmp, MANIFEST.tmp, CATALOG.copy.tmp.
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    PathBuf::from(name)
}

/// An I/O error at a path.
pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> ManifestError + use<'_> {
    move |source| ManifestError::Io {
        path: path.to_owned(),
        source,
    }
}

pub(crate) fn read_file(file: &dyn File) -> std::io::Result<Vec<u8>> {
    let len = usize::try_from(file.len()?).map_err(std::io::Error::other)?;
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}
