//! The witness: the durable extent of the logs beside it, recorded a second time.
//!
//! The file `WITNESS` stands in the data directory for the catalog, and in each shard's directory
//! for its manifest and its write-ahead log. That of the data directory also records, less often, how
//! far each shard is durable: a whole shard that is replaced by an older copy of itself, with its own
//! witness, is found by it. And those of the shards record how far the catalog is durable: older copies of
//! the catalog and of the witness beside it are found by them. An entry is appended after the log itself was synced,
//! and is not synced: it costs one write, and never claims too much. Power loss may lose entries, so
//! the witness is a lower bound; if it claims more than a log holds, the log has lost acknowledged
//! data. Layout: `docs/formats/witness.md`.
//!
//! Invariant: whatever happens to the witness, a whole log is never reported as damaged. An entry that
//! cannot be written is skipped.

use crate::error::ManifestError;
use crate::log::{io, read_file};
use crate::replay::LogExtent;
use marigram_codec::{ChecksummedPrefix, crc32c};
use marigram_env::{File, LogStore};
use marigram_model::LogOwner;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MAGIC: [u8; 8] = *b"MARIWITN";
/// Version of the format.
const VERSION: u32 = 1;
/// Bytes of the header and of each entry.
const SLOT_BYTES: usize = 36;
/// The file is rewritten when it reaches this size, bytes, and twice the size of what is known.
const BYTES_MAX: u64 = 64 * 1024;
/// The name of the file that is being written.
const NEW: &str = "WITNESS.tmp";
const LOG: u32 = 1;
const WAL: u32 = 2;
/// In the witness of the data directory: as `LOG` and `WAL`, of the shard whose number stands above
/// the lowest byte.
const SHARD_LOG: u32 = 3;
const SHARD_WAL: u32 = 4;
/// In the witness of a shard: as `LOG`, of the catalog.
const CATALOG: u32 = 5;
/// The shard's number in a witness of the whole directory.
const NO_SHARD: u32 = u32::MAX;

/// The owner of a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WitnessOwner {
    /// Lineage of the data directory.
    pub lineage: u64,
    /// Number of the shard; `None`: the catalog's.
    pub shard: Option<u32>,
}

impl From<LogOwner> for WitnessOwner {
    fn from(owner: LogOwner) -> Self {
        Self {
            lineage: owner.lineage,
            shard: Some(owner.shard),
        }
    }
}

/// What was durable at some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WitnessedState {
    /// Of the manifest, or of the catalog.
    pub log: Option<LogExtent>,
    /// Of the files of the write-ahead log, by number.
    pub wal: BTreeMap<u64, ChecksummedPrefix>,
    /// Of each shard, in the witness of the data directory.
    pub shards: BTreeMap<u32, WitnessedShard>,
    /// Of the catalog, in the witness of a shard.
    pub catalog: Option<LogExtent>,
}

/// What was durable of a shard at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WitnessedShard {
    /// Of its manifest.
    pub log: Option<LogExtent>,
    /// Of the newest file of its write-ahead log: its number and extent.
    pub wal: Option<(u64, ChecksummedPrefix)>,
}

/// The witness under append.
#[derive(Debug)]
pub struct WitnessFile {
    fs: Arc<dyn LogStore>,
    dir: PathBuf,
    of: WitnessOwner,
    known: WitnessedState,
    /// `None` if an entry could not be written: the next one rewrites the file.
    file: Option<Arc<dyn File>>,
    bytes: u64,
    /// The file is rewritten when it reaches this size, bytes.
    bytes_max: u64,
}

impl WitnessFile {
    /// The file's name.
    pub const FILE: &'static str = "WITNESS";

    /// Reads the witness in `dir` and its owner; `None` if there is none.
    ///
    /// # Errors
    /// `Corrupt` if it is no witness.
    pub fn read(
        fs: &dyn LogStore,
        dir: &Path,
    ) -> Result<Option<(WitnessOwner, WitnessedState)>, ManifestError> {
        let path = dir.join(Self::FILE);
        if !fs.exists(&path).map_err(io(&path))? {
            return Ok(None);
        }
        let file = fs.open(&path).map_err(io(&path))?;
        Self::decode(&path, &read_file(&*file).map_err(io(&path))?).map(Some)
    }

    /// Decodes the bytes of a witness; `path` is for messages.
    ///
    /// # Errors
    /// `Corrupt` if the header is damaged, `Version` for a newer format. Entries that are not whole
    /// are left out.
    pub fn decode(
        path: &Path,
        bytes: &[u8],
    ) -> Result<(WitnessOwner, WitnessedState), ManifestError> {
        let mut slots = bytes.chunks_exact(SLOT_BYTES);
        let header = slots
            .next()
            .filter(|slot| is_whole(slot) && slot[..8] == MAGIC);
        let Some(header) = header else {
            return Err(ManifestError::Corrupt {
                path: path.to_owned(),
                offset: 0,
                reason: "it does not begin as a witness; where all else is whole it may be \
                         removed, and is written anew"
                    .to_owned(),
            });
        };
        if u32_at(header, 8) != VERSION {
            let (path, found, supported) = (path.to_owned(), u32_at(header, 8), VERSION);
            return Err(ManifestError::Version {
                path,
                found,
                supported,
            });
        }
        let shard = u32_at(header, 20);
        let of = WitnessOwner {
            lineage: u64_at(header, 12),
            shard: (shard != NO_SHARD).then_some(shard),
        };
        let mut known = WitnessedState::default();
        for slot in slots.filter(|slot| is_whole(slot)) {
            let extent = ChecksummedPrefix {
                bytes: u64_at(slot, 20),
                checksum: u32_at(slot, 28),
            };
            let (first, second) = (u64_at(slot, 4), u64_at(slot, 12));
            let log = LogExtent {
                base: first,
                number: second,
                extent,
            };
            let (kind, shard) = (u32_at(slot, 0) & 0xff, u32_at(slot, 0) >> 8);
            match kind {
                LOG => known.take_log(log),
                WAL => known.take_wal(first, extent),
                SHARD_LOG => known.shard(shard).take_log(log),
                SHARD_WAL => known.shard(shard).take_wal(first, extent),
                CATALOG => known.take_catalog(log),
                _ => {}
            }
        }
        Ok((of, known))
    }

    /// Opens the witness of `dir` and makes it record what is `known`. If there is none that can be
    /// appended to, it is rewritten.
    ///
    /// # Errors
    /// `Io` if there is none, and none can be written: what is done without one would not be known
    /// for certain later. One that can only not be added to stays as it is.
    pub fn open(
        fs: Arc<dyn LogStore>,
        dir: &Path,
        of: WitnessOwner,
        known: WitnessedState,
    ) -> Result<Self, ManifestError> {
        let mut witness = Self {
            fs,
            dir: dir.to_owned(),
            of,
            known: WitnessedState::default(),
            file: None,
            bytes: 0,
            bytes_max: BYTES_MAX,
        };
        // One that was not finished; where it stays, it is written over.
        let _ = witness.fs.remove(&witness.dir.join(NEW));
        match witness.reopen() {
            Ok(true) => {
                known.log.iter().for_each(|log| witness.note_log(*log));
                for (number, extent) in known.wal {
                    witness.note_wal(number, extent);
                }
                for (number, shard) in known.shards {
                    witness.note_shard(number, shard);
                }
                known
                    .catalog
                    .iter()
                    .for_each(|log| witness.note_catalog(*log));
            }
            Ok(false) | Err(_) => {
                witness.known = known;
                let path = dir.join(Self::FILE);
                if let Err(error) = witness.renew()
                    && !witness.fs.exists(&path).map_err(io(&path))?
                {
                    return Err(io(&path)(error));
                }
            }
        }
        Ok(witness)
    }

    /// Continues the existing file; `false` if it cannot be appended to.
    fn reopen(&mut self) -> Result<bool, ManifestError> {
        let Some((of, known)) = Self::read(&*self.fs, &self.dir)? else {
            return Ok(false);
        };
        let path = self.dir.join(Self::FILE);
        let file = self.fs.open(&path).map_err(io(&path))?;
        let bytes = file.len().map_err(io(&path))?;
        if of != self.of || bytes >= BYTES_MAX || !bytes.is_multiple_of(SLOT_BYTES as u64) {
            return Ok(false);
        }
        (self.known, self.file, self.bytes) = (known, Some(file), bytes);
        Ok(true)
    }

    /// Records the durable extent of the manifest or the catalog.
    pub fn note_log(&mut self, log: LogExtent) {
        if self.known.log == Some(log) {
            return;
        }
        self.known.log = Some(log);
        self.append(&log_slot(log));
    }

    /// Records the durable extent of a file of the write-ahead log.
    pub fn note_wal(&mut self, number: u64, extent: ChecksummedPrefix) {
        if self.known.wal.get(&number) == Some(&extent) {
            return;
        }
        self.known.wal.insert(number, extent);
        self.append(&wal_slot(number, extent));
    }

    /// Records the durable extent of a shard, in the witness of the data directory.
    pub fn note_shard(&mut self, number: u32, shard: WitnessedShard) {
        let before = *self.known.shard(number);
        let known = self.known.shard(number);
        shard.log.iter().for_each(|log| known.take_log(*log));
        shard
            .wal
            .iter()
            .for_each(|wal| known.take_wal(wal.0, wal.1));
        let known = *known;
        if let Some(log) = known.log.filter(|log| before.log != Some(*log)) {
            self.append(&shard_log_slot(number, log));
        }
        if let Some(wal) = known.wal.filter(|wal| before.wal != Some(*wal)) {
            self.append(&shard_wal_slot(number, wal));
        }
    }

    /// Records the durable extent of the catalog, in the witness of a shard.
    pub fn note_catalog(&mut self, catalog: LogExtent) {
        let before = self.known.catalog;
        self.known.take_catalog(catalog);
        if self.known.catalog != before {
            self.append(&catalog_slot(catalog));
        }
    }

    /// Forgets files of the write-ahead log below `floor`, which are no longer needed.
    pub fn release_wal(&mut self, floor: u64) {
        self.known.wal = self.known.wal.split_off(&floor);
    }

    fn append(&mut self, slot: &[u8; SLOT_BYTES]) {
        match &self.file {
            Some(file) if self.bytes < self.bytes_max => {
                if file.append(slot).is_ok() {
                    self.bytes += SLOT_BYTES as u64;
                } else {
                    // A part of it may be in the file.
                    self.file = None;
                }
            }
            _ => {
                // The next entry records it.
                let _ = self.renew();
            }
        }
    }

    /// Replaces the file, durably, by one with all that is known. If that fails, the old one stays,
    /// which claims less and nothing wrong.
    fn renew(&mut self) -> std::io::Result<()> {
        let (path, new) = (self.dir.join(Self::FILE), self.dir.join(NEW));
        let mut bytes = header(self.of).to_vec();
        bytes.extend(self.known.log.iter().flat_map(|log| log_slot(*log)));
        let wal = self.known.wal.iter();
        bytes.extend(wal.flat_map(|(number, extent)| wal_slot(*number, *extent)));
        for (number, shard) in &self.known.shards {
            bytes.extend(
                shard
                    .log
                    .iter()
                    .flat_map(|log| shard_log_slot(*number, *log)),
            );
            bytes.extend(
                shard
                    .wal
                    .iter()
                    .flat_map(|wal| shard_wal_slot(*number, *wal)),
            );
        }
        bytes.extend(self.known.catalog.iter().flat_map(|log| catalog_slot(*log)));
        let write = || {
            let file = self.fs.create(&new)?;
            file.append(&bytes)?;
            file.sync()?;
            self.fs.rename(&new, &path)?;
            self.fs.sync_dir(&self.dir)?;
            self.fs.open(&path)
        };
        let written = write();
        if written.is_err() {
            let _ = self.fs.remove(&new);
        }
        self.bytes = bytes.len() as u64;
        self.bytes_max = BYTES_MAX.max(2 * self.bytes);
        self.file = None;
        self.file = Some(written?);
        Ok(())
    }
}

impl WitnessedState {
    /// Adds an extent of the manifest or the catalog.
    pub fn take_log(&mut self, log: LogExtent) {
        if self.log.is_none_or(|known| known.number <= log.number) {
            self.log = Some(log);
        }
    }

    fn take_catalog(&mut self, log: LogExtent) {
        if self.catalog.is_none_or(|known| known.number <= log.number) {
            self.catalog = Some(log);
        }
    }

    fn take_wal(&mut self, number: u64, extent: ChecksummedPrefix) {
        let known = self.wal.entry(number).or_insert(extent);
        if known.bytes < extent.bytes {
            *known = extent;
        }
    }

    fn shard(&mut self, number: u32) -> &mut WitnessedShard {
        self.shards.entry(number).or_default()
    }

    /// Adds what the witness of the data directory records of this shard.
    pub fn take_shard(&mut self, shard: &WitnessedShard) {
        shard.log.iter().for_each(|log| self.take_log(*log));
        shard.wal.iter().for_each(|wal| self.take_wal(wal.0, wal.1));
    }
}

impl WitnessedShard {
    fn take_log(&mut self, log: LogExtent) {
        if self.log.is_none_or(|known| known.number <= log.number) {
            self.log = Some(log);
        }
    }

    fn take_wal(&mut self, number: u64, extent: ChecksummedPrefix) {
        let known = |known: &(u64, ChecksummedPrefix)| (known.0, known.1.bytes);
        if self
            .wal
            .as_ref()
            .is_none_or(|wal| known(wal) < (number, extent.bytes))
        {
            self.wal = Some((number, extent));
        }
    }
}

fn header(of: WitnessOwner) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    slot[..8].copy_from_slice(&MAGIC);
    slot[8..12].copy_from_slice(&VERSION.to_le_bytes());
    slot[12..20].copy_from_slice(&of.lineage.to_le_bytes());
    slot[20..24].copy_from_slice(&of.shard.unwrap_or(NO_SHARD).to_le_bytes());
    sealed(slot)
}

fn log_slot(log: LogExtent) -> [u8; SLOT_BYTES] {
    entry(LOG, log.base, log.number, log.extent)
}

fn wal_slot(number: u64, extent: ChecksummedPrefix) -> [u8; SLOT_BYTES] {
    entry(WAL, number, 0, extent)
}

fn catalog_slot(log: LogExtent) -> [u8; SLOT_BYTES] {
    entry(CATALOG, log.base, log.number, log.extent)
}

fn shard_log_slot(shard: u32, log: LogExtent) -> [u8; SLOT_BYTES] {
    entry(SHARD_LOG | shard << 8, log.base, log.number, log.extent)
}

fn shard_wal_slot(shard: u32, (number, extent): (u64, ChecksummedPrefix)) -> [u8; SLOT_BYTES] {
    entry(SHARD_WAL | shard << 8, number, 0, extent)
}

fn entry(kind: u32, first: u64, second: u64, extent: ChecksummedPrefix) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    slot[..4].copy_from_slice(&kind.to_le_bytes());
    slot[4..12].copy_from_slice(&first.to_le_bytes());
    slot[12..20].copy_from_slice(&second.to_le_bytes());
    slot[20..28].copy_from_slice(&extent.bytes.to_le_bytes());
    slot[28..32].copy_from_slice(&extent.checksum.to_le_bytes());
    sealed(slot)
}

/// Ends a slot with the checksum of what stands before.
fn sealed(mut slot: [u8; SLOT_BYTES]) -> [u8; SLOT_BYTES] {
    let checksum = crc32c([&slot[..SLOT_BYTES - 4]]);
    slot[SLOT_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
    slot
}

fn is_whole(slot: &[u8]) -> bool {
    crc32c([&slot[..SLOT_BYTES - 4]]) == u32_at(slot, SLOT_BYTES - 4)
}

fn u32_at(slot: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([slot[at], slot[at + 1], slot[at + 2], slot[at + 3]])
}

fn u64_at(slot: &[u8], at: usize) -> u64 {
    u64::from(u32_at(slot, at)) | u64::from(u32_at(slot, at + 4)) << 32
}
