//! The log that keeps a small state on disk: a snapshot and the edits since.
//!
//! ```text
//! header    frame: magic, 8 bytes; format version, u32
//! snapshot  frame: number u64, kind 1, state after that many edits
//! edit      frame: number u64, kind 2, edit            (numbers rise by one)
//! seal      frame: number u64, kind 3                  (all before it is durable)
//! ```
//!
//! Power may fail at every step, so:
//! - A file comes into being under a temporary name, is synced, renamed, and its directory synced
//!   before anything is appended. So header and snapshot are never torn, and a rename that power
//!   loss takes back uncovers an older file with the same state.
//! - An edit is appended and synced before it takes effect. Power loss can tear only the last
//!   edit, whose commit never returned: it is cut off.
//! - After what was synced, a seal is appended and not synced. It costs little, and where it
//!   stands, damage before it is damage and not a torn write. Damage that a whole later record
//!   follows is an error; acknowledged edits are not dropped without a word.
//! - What a new process reads may be in the page cache only, and may stay there even if a sync now
//!   succeeds, because the kernel gave up writing it when an earlier sync failed. So a log that
//!   does not end in a seal is written anew on opening, before anybody acts on what was read.
//!   So is one of an older format version: a file never holds edits of a version but its own.

use crate::error::ManifestError;
use crate::record::{EDIT, Logged, SEAL, new_log, put_record};
use crate::replay::{TornTail, replay};
use marigram_env::{File, FileSystem};
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
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    path: PathBuf,
    file: Arc<dyn File>,
    state: S,
    number: u64,
    snapshot_bytes: u64,
    edit_bytes: u64,
    options: LogOptions,
    torn: Option<TornTail>,
    poisoned: Option<String>,
}

impl<S: Logged> EditLog<S> {
    /// Opens the log in `dir`, or creates it with the default state.
    pub(crate) fn open(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        options: LogOptions,
    ) -> Result<Self, ManifestError> {
        let path = dir.join(S::FILE);
        let temporary = temporary(&path);
        if fs.exists(&temporary).map_err(io(&temporary))? {
            fs.remove(&temporary).map_err(io(&temporary))?;
        }
        if !fs.exists(&path).map_err(io(&path))? {
            let (file, snapshot_bytes) = replace(&*fs, dir, &path, &S::default(), 0)?;
            let (dir, state) = (dir.to_owned(), S::default());
            let (number, edit_bytes, torn, poisoned) = (0, 0, None, None);
            #[rustfmt::skip]
            return Ok(Self {
                fs, dir, path, file, state, number, snapshot_bytes, edit_bytes, options, torn,
                poisoned,
            });
        }
        let file = fs.open(&path).map_err(io(&path))?;
        let bytes = read_file(&*file).map_err(io(&path))?;
        let replayed = replay::<S>(&path, &bytes)?;
        let mut log = Self {
            fs,
            dir: dir.to_owned(),
            path,
            file,
            state: replayed.state,
            number: replayed.number,
            snapshot_bytes: replayed.snapshot_bytes,
            edit_bytes: (bytes.len() as u64).saturating_sub(replayed.snapshot_bytes),
            options,
            torn: replayed.torn,
            poisoned: None,
        };
        // An old version's reader would take new edits for damage.
        if !replayed.is_sealed || replayed.version < S::VERSION {
            log.rewrite()?;
        }
        Ok(log)
    }

    pub(crate) fn state(&self) -> &S {
        &self.state
    }

    pub(crate) fn torn(&self) -> Option<&TornTail> {
        self.torn.as_ref()
    }

    /// Makes an edit durable and applies it to the state. If it fails, the edit is not applied,
    /// may or may not be there when the log is opened again, and nothing more can be committed.
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
        if let Err(error) = &result {
            self.poisoned = Some(error.to_string());
        }
        result
    }

    fn rewrite(&mut self) -> Result<(), ManifestError> {
        (self.file, self.snapshot_bytes) =
            replace(&*self.fs, &self.dir, &self.path, &self.state, self.number)?;
        self.edit_bytes = 0;
        Ok(())
    }

    fn write(&mut self, edit: &S::Edit) -> Result<(), ManifestError> {
        // Before the edit, not after it: an error on the way leaves the edit unwritten.
        let limit = self
            .options
            .rewrite_bytes_min
            .max(self.snapshot_bytes.saturating_mul(3));
        if self.edit_bytes >= limit {
            self.rewrite()?;
        }
        let number = self.number + 1;
        let mut bytes = Vec::new();
        put_record(number, EDIT, |out| S::encode_edit(edit, out), &mut bytes);
        self.file.append(&bytes).map_err(io(&self.path))?;
        self.file.sync().map_err(io(&self.path))?;
        self.number = number;
        self.state.apply_checked(edit);
        let edit_bytes = bytes.len();
        put_record(number, SEAL, |_| {}, &mut bytes);
        self.edit_bytes += bytes.len() as u64;
        if let Err(error) = self.file.append(&bytes[edit_bytes..]) {
            // The edit stands; but the file's end is unknown now.
            self.poisoned = Some(io(&self.path)(error).to_string());
        }
        Ok(())
    }
}

/// Writes a log with nothing but a snapshot, durably, in the stead of `path`. Returns the file and
/// its length.
fn replace<S: Logged>(
    fs: &dyn FileSystem,
    dir: &Path,
    path: &Path,
    state: &S,
    number: u64,
) -> Result<(Arc<dyn File>, u64), ManifestError> {
    let bytes = new_log(state, number);
    let temporary = temporary(path);
    let file = fs.create(&temporary).map_err(io(&temporary))?;
    file.append(&bytes).map_err(io(&temporary))?;
    file.sync().map_err(io(&temporary))?;
    fs.rename(&temporary, path).map_err(io(path))?;
    fs.sync_dir(dir).map_err(io(dir))?;
    let file = fs.open(path).map_err(io(path))?;
    let mut seal = Vec::new();
    put_record(number, SEAL, |_| {}, &mut seal);
    file.append(&seal).map_err(io(path))?;
    Ok((file, bytes.len() as u64))
}

fn temporary(path: &Path) -> PathBuf {
    path.with_extension("tmp")
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
