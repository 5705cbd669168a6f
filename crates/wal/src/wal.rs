//! The log under append.

use crate::error::WalError;
use crate::file::{HEADER_BYTES, create, file_name, file_number};
use crate::replay::{ApplyEntry, FoundWalFile, ReplayReport};
use crate::room::LogRoom;
use marigram_codec::ChecksummedPrefix;
use marigram_env::{File, LogStore, is_out_of_space};
use marigram_model::LogOwner;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The log under append: numbered files `NNNNNNNNNN.wal` in a directory.
#[derive(Debug)]
pub struct Wal {
    fs: Arc<dyn LogStore>,
    dir: PathBuf,
    /// What the headers of new files name.
    owner: Option<LogOwner>,
    /// Number of the file that is appended to.
    number: u64,
    /// `None` where there was no room yet to make it.
    file: Option<Arc<dyn File>>,
    /// Bytes of each file, the one that is appended to among them.
    files: BTreeMap<u64, u64>,
    /// What was written to the file that is appended to.
    written: ChecksummedPrefix,
    /// What of it is durable.
    synced: ChecksummedPrefix,
    /// The file before it, as far as this process has begun another one after it.
    before: Option<(u64, ChecksummedPrefix)>,
    /// Room for records to come.
    room: Arc<LogRoom>,
    /// Why nothing can be appended any more.
    poisoned: Option<(io::ErrorKind, String)>,
}

/// What is known of a log before it is opened.
#[derive(Clone, Debug)]
pub struct WalProof {
    /// How far files are durable at least, by number.
    pub durable: BTreeMap<u64, ChecksummedPrefix>,
    /// Whose the files must be, as far as their headers tell; new files get this owner.
    pub owner: Option<LogOwner>,
    /// Whether files below the floor may be removed: not before it is certain that the floor is
    /// the log's own.
    pub remove_released: bool,
}

impl Default for WalProof {
    /// Nothing is known, and the floor is what it should be.
    fn default() -> Self {
        Self {
            durable: BTreeMap::new(),
            owner: None,
            remove_released: true,
        }
    }
}

impl Wal {
    /// Replays the files numbered `floor` and above in order into `apply` (sequence, entry); removes
    /// files below `floor`; cuts a torn tail off the last file that holds records; then begins a new
    /// file for appending, so that old files are never appended to. The directory must exist.
    ///
    /// # Errors
    /// If the file system refuses, if `apply` does, or if anything but the tail of the last file
    /// is damaged or missing: damage is never skipped.
    pub fn open(
        fs: Arc<dyn LogStore>,
        dir: &Path,
        floor: u64,
        apply: &mut dyn FnMut(u64, crate::WalEntry) -> Result<(), WalError>,
    ) -> Result<(Self, ReplayReport), WalError> {
        Self::open_proved(fs, dir, floor, &WalProof::default(), apply)
    }

    /// As [`open`](Self::open), if the files are what `proof` says: otherwise nothing is applied
    /// or changed.
    ///
    /// # Errors
    /// As [`open`](Self::open), and `Corrupt` where a file is shorter than what is durable of it, or
    /// another one.
    pub fn open_proved(
        fs: Arc<dyn LogStore>,
        dir: &Path,
        floor: u64,
        proof: &WalProof,
        apply: &mut dyn FnMut(u64, crate::WalEntry) -> Result<(), WalError>,
    ) -> Result<(Self, ReplayReport), WalError> {
        let (mut found, released) = find(fs.as_ref(), dir, floor)?;
        for file in &found {
            proof
                .owner
                .map_or(Ok(()), |owner| file.check_owner(owner))?;
        }
        prove(dir, &found, proof.durable.range(floor..))?;
        if proof.remove_released {
            for path in released {
                fs.remove(&path).map_err(WalError::io(path))?;
            }
        }
        let mut report = ReplayReport::default();
        replay(&mut found, apply, &mut report)?;
        let number = found.last().map_or(floor.max(1), |last| last.number + 1);
        let files: BTreeMap<_, _> = found
            .into_iter()
            .map(|found| (found.number, found.bytes))
            .collect();
        let mut wal = Self {
            fs,
            dir: dir.to_owned(),
            owner: proof.owner,
            number,
            room: LogRoom::new(dir.join(file_name(number))),
            file: None,
            files,
            written: ChecksummedPrefix::default(),
            synced: ChecksummedPrefix::default(),
            before: None,
            poisoned: None,
        };
        match wal.ensure_file() {
            // What was replayed can be read all the same.
            Ok(_) | Err(WalError::Full { .. }) => Ok((wal, report)),
            Err(error) => Err(error),
        }
    }

    /// Makes the file that is appended to, if there was no room for it yet.
    ///
    /// # Errors
    /// `Full` where there is none now. If the file system refuses otherwise, the log is poisoned.
    pub fn ensure_file(&mut self) -> Result<Arc<dyn File>, WalError> {
        if let Some(file) = &self.file {
            return Ok(Arc::clone(file));
        }
        self.check()?;
        self.begin(self.number)
    }

    /// Makes the file with this number and appends to it from here on.
    fn begin(&mut self, number: u64) -> Result<Arc<dyn File>, WalError> {
        debug_assert!(
            self.files.keys().all(|earlier| *earlier <= number),
            "files are numbered in the order of their records"
        );
        let path = self.dir.join(file_name(number));
        let created = create(self.fs.as_ref(), &self.dir, number, self.owner);
        let made = created.and_then(|(file, header)| {
            let moved = self.room.move_to(&file, &path, HEADER_BYTES as u64);
            moved.map(|()| (file, header))
        });
        match made {
            Ok((file, header)) => {
                // One without records may be made anew, and is as good as missing meanwhile.
                let has_records = self.synced.bytes > HEADER_BYTES as u64;
                self.before = has_records.then_some((self.number, self.synced));
                (self.written, self.synced) = (header, header);
                self.file = Some(Arc::clone(&file));
                self.number = number;
                self.files.insert(number, HEADER_BYTES as u64);
                Ok(file)
            }
            Err(error @ WalError::Full { .. }) => {
                // A file without records is passed over when the log is opened. The only one stays: it
                // proves that the log is not lost.
                if !self.files.is_empty() {
                    let _ = self.fs.remove(&path);
                }
                Err(error)
            }
            Err(error) => {
                if let WalError::Io { source, .. } = &error {
                    self.poison(source);
                }
                Err(error)
            }
        }
    }

    /// Number of the file that is appended to.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Room for records, which is taken before they are appended.
    #[must_use]
    pub fn room(&self) -> &Arc<LogRoom> {
        &self.room
    }

    /// Appends whole records (from [`encode_record`](crate::encode_record)) and, where `sync`,
    /// makes them durable.
    ///
    /// # Errors
    /// `Full` where the disk is full: the records are not in the log, and it goes on. Otherwise the
    /// log is poisoned, and every later append fails with the same reason: `Io` where the records are
    /// surely not in it, `Uncertain` where they could not be taken back.
    pub fn append(&mut self, records: &[u8], sync: bool) -> Result<(), WalError> {
        self.check()?;
        let file = self.ensure_file()?;
        let before = self.bytes_of(self.number);
        let (error, is_full) = match file.append(records) {
            Err(error) => {
                let is_full = is_out_of_space(&error);
                (error, is_full)
            }
            // After a failed sync nobody knows what else the disk did not take.
            Ok(()) => match if sync { file.sync() } else { Ok(()) } {
                Err(error) => (error, false),
                Ok(()) => {
                    let bytes = before + records.len() as u64;
                    self.files.insert(self.number, bytes);
                    self.room.written(bytes);
                    self.written.grow(records);
                    // The witness records this extent: opening the log compares the file with it.
                    debug_assert_eq!(self.written.bytes, bytes, "the extent is that of the file");
                    if sync {
                        self.synced = self.written;
                    }
                    return Ok(());
                }
            },
        };
        let path = self.path();
        // What was refused must not come back after a restart.
        if file.truncate(before).and_then(|()| file.sync()).is_err() {
            self.poison(&error);
            return Err(WalError::Uncertain {
                path,
                source: error,
            });
        }
        if is_full {
            self.room.cut(before);
            return Err(WalError::Full {
                path,
                source: error,
            });
        }
        self.poison(&error);
        Err(WalError::Io {
            path,
            source: error,
        })
    }

    fn bytes_of(&self, number: u64) -> u64 {
        self.files.get(&number).copied().unwrap_or_default()
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// If the file system refuses; then the log is poisoned.
    pub fn sync(&mut self) -> Result<(), WalError> {
        self.check()?;
        let Some(file) = &self.file else {
            return Ok(());
        };
        match file.sync() {
            Ok(()) => {
                debug_assert!(
                    self.synced.bytes <= self.written.bytes,
                    "the durable part never shrinks"
                );
                self.synced = self.written;
                Ok(())
            }
            Err(source) => {
                self.poison(&source);
                let path = self.path();
                Err(WalError::Io { path, source })
            }
        }
    }

    /// What is durable of the file that is appended to.
    #[must_use]
    pub fn synced(&self) -> ChecksummedPrefix {
        self.synced
    }

    /// Number and contents of the file that was appended to before the last
    /// [`rotate`](Self::rotate), if it holds records: all of it is durable.
    #[must_use]
    pub fn before(&self) -> Option<(u64, ChecksummedPrefix)> {
        self.before
    }

    /// Number and durable extent of the newest file of this log that holds durable records, of those
    /// since it was opened.
    #[must_use]
    pub fn newest_durable(&self) -> Option<(u64, ChecksummedPrefix)> {
        let has_records = self.synced.bytes > HEADER_BYTES as u64;
        has_records
            .then_some((self.number, self.synced))
            .or(self.before)
    }

    /// Syncs, then begins a new file and returns its number: entries before are in lower files.
    ///
    /// # Errors
    /// `Full` where there is no room or no descriptor for a new file: the log goes on in the old one.
    /// If the file system refuses otherwise, the log is poisoned.
    pub fn rotate(&mut self) -> Result<u64, WalError> {
        self.sync()?;
        if self.file.is_none() {
            self.ensure_file()?;
            return Ok(self.number);
        }
        // Room that the old file has left goes with the file.
        self.begin(self.number + 1)?;
        Ok(self.number)
    }

    /// Removes files numbered below `floor`, but never the one that is appended to.
    ///
    /// # Errors
    /// If the file system refuses. The log stays usable: what is left over is removed at the next
    /// call or opening.
    pub fn remove_below(&mut self, floor: u64) -> Result<(), WalError> {
        let floor = floor.min(self.number);
        while let Some((number, _)) = self.files.first_key_value().filter(|(n, _)| **n < floor) {
            let (number, path) = (*number, self.dir.join(file_name(*number)));
            self.fs.remove(&path).map_err(WalError::io(path))?;
            self.files.remove(&number);
        }
        Ok(())
    }

    /// Name and length (bytes) of each file numbered `floor` or above, ascending. A file's first
    /// bytes never change as long as the log takes records.
    pub fn files_from(&self, floor: u64) -> impl Iterator<Item = (String, u64)> {
        self.files
            .range(floor..)
            .map(|(number, bytes)| (file_name(*number), *bytes))
    }

    /// Bytes in all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.values().sum()
    }

    fn path(&self) -> PathBuf {
        self.dir.join(file_name(self.number))
    }

    fn check(&self) -> Result<(), WalError> {
        match &self.poisoned {
            None => Ok(()),
            Some((kind, reason)) => {
                let reason = format!("the log accepts no more records after this error: {reason}");
                Err(WalError::Io {
                    path: self.path(),
                    source: io::Error::new(*kind, reason),
                })
            }
        }
    }

    fn poison(&mut self, error: &io::Error) {
        self.poisoned = Some((error.kind(), error.to_string()));
    }
}

/// Opens the files from `floor` on, which must be without a gap; gives also the paths of those
/// below it.
fn find(
    fs: &dyn LogStore,
    dir: &Path,
    floor: u64,
) -> Result<(Vec<FoundWalFile>, Vec<PathBuf>), WalError> {
    // Without a directory there is no file either, which the error then names.
    let names = match fs.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        names => names.map_err(WalError::io(dir))?,
    };
    let mut numbers: Vec<_> = names.iter().filter_map(|name| file_number(name)).collect();
    numbers.sort_unstable();
    let (mut found, mut released) = (Vec::new(), Vec::new());
    // The floor's file was durable before the floor was, and the first file ever is number 1.
    let mut expected = floor.max(1);
    for number in numbers {
        if number < floor {
            released.push(dir.join(file_name(number)));
            continue;
        }
        if number != expected {
            let reason = format!("the file is missing, though {} is there", file_name(number));
            return Err(WalError::corrupt(dir.join(file_name(expected)), 0, reason));
        }
        found.push(FoundWalFile::open(fs, dir, number)?);
        expected += 1;
    }
    if found.is_empty() && floor > 1 {
        let reason = "the file is missing, though later changes must be in it";
        return Err(WalError::corrupt(dir.join(file_name(floor)), 0, reason));
    }
    Ok((found, released))
}

/// Compares the files that were found with what is durable of them.
fn prove<'a>(
    dir: &Path,
    found: &[FoundWalFile],
    durable: impl Iterator<Item = (&'a u64, &'a ChecksummedPrefix)>,
) -> Result<(), WalError> {
    for (number, extent) in durable {
        match found.iter().find(|file| file.number == *number) {
            Some(file) => file.prove(*extent)?,
            None => {
                let reason = "the file is missing, though the shard's WITNESS names changes in it";
                return Err(WalError::corrupt(dir.join(file_name(*number)), 0, reason));
            }
        }
    }
    Ok(())
}

/// Replays what was found. Files without records at the end are taken off the list, and new ones
/// take their places: if only the process died, nobody knows whether their headers reached the
/// disk, and records must never follow a header that did not.
fn replay(
    found: &mut Vec<FoundWalFile>,
    apply: &mut ApplyEntry<'_>,
    report: &mut ReplayReport,
) -> Result<(), WalError> {
    found.truncate(
        found
            .iter()
            .rposition(FoundWalFile::has_records)
            .map_or(0, |last| last + 1),
    );
    let mut sequence = None;
    let count = found.len();
    for (at, file) in found.iter_mut().enumerate() {
        file.check()?;
        file.replay(at + 1 == count, &mut sequence, apply, report)?;
    }
    Ok(())
}
