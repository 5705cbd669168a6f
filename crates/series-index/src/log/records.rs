//! Encodes and decodes the records of the log.

use crate::compact::{canonical, put_key, put_number, take_number};
use crate::index::{BulkIndex, SeriesIndex};
use crate::keys::{ColdKeys, GONE};
use marigram_codec::frame;
use marigram_model::{SeriesId, SeriesIdentity, TableId, TagKey};

pub(super) const MAGIC: [u8; 8] = *b"MARISERI";
pub(super) const VERSION: u32 = 2;
const SERIES: u8 = 1;
const REMOVED: u8 = 2;
/// Payload at which a record is complete, in bytes.
const RECORD_BYTES: usize = 1 << 20;
const SHORT: &str = "the record ends early";

/// Appends the frame with which a log begins.
pub(super) fn put_header(out: &mut Vec<u8>) {
    frame::write(&[&MAGIC[..], &VERSION.to_le_bytes()].concat(), out);
}

/// Appends a record of removed series; nothing if there are none.
pub(super) fn put_removed(series: &[SeriesId], out: &mut Vec<u8>) {
    for part in series.chunks(RECORD_BYTES / 4) {
        frame::write_with(out, |out| {
            out.push(REMOVED);
            for id in part {
                out.extend_from_slice(&id.0.to_le_bytes());
            }
        });
    }
}

/// Appends one record with series from `first` up to at most `end`; returns where it stopped.
/// `held` counts the series that were not removed.
pub(super) fn put_series(
    index: &SeriesIndex,
    first: SeriesId,
    end: SeriesId,
    cold: &mut ColdKeys,
    held: &mut usize,
    out: &mut Vec<u8>,
) -> SeriesId {
    let mut next = first;
    let (mut key, mut tags) = (Vec::new(), Vec::new());
    frame::write_with(out, |out| {
        let start = out.len();
        out.push(SERIES);
        out.extend_from_slice(&first.0.to_le_bytes());
        while next < end && out.len() - start < RECORD_BYTES {
            key.clear();
            tags.clear();
            let live = !index.retired().contains(next.0);
            match index.read_key(next, cold, &mut key).filter(|_| live) {
                Some(table) => {
                    put_key(&key, &mut tags);
                    put_number(u64::from(table.0) + 1, out);
                    put_number(tags.len() as u64, out);
                    out.extend_from_slice(&tags);
                    *held += 1;
                }
                None => out.push(0),
            }
            next = SeriesId(next.0 + 1);
        }
    });
    next
}

/// The progress of a load.
pub(super) struct LoadProgress<'a> {
    pub index: BulkIndex,
    /// Entries of series that were not removed.
    pub held: usize,
    pub identity: &'a dyn Fn(TableId) -> Option<SeriesIdentity>,
    pub key: TagKey,
}

impl LoadProgress<'_> {
    /// Applies a record of this version.
    pub(super) fn replay(&mut self, payload: &[u8]) -> Result<(), String> {
        let (kind, rest) = payload.split_first().ok_or(SHORT)?;
        match *kind {
            SERIES => self.replay_series(rest),
            REMOVED => self.replay_removed(rest),
            other => Err(format!("unknown record kind {other}")),
        }
    }

    fn replay_series(&mut self, payload: &[u8]) -> Result<(), String> {
        let mut rest = self.check_first(payload)?;
        while !rest.is_empty() {
            let owner = take_number(&mut rest).ok_or(SHORT)?;
            if owner == 0 {
                self.index.add_gone().map_err(|error| error.to_string())?;
                continue;
            }
            let table = u32::try_from(owner - 1).map_err(|_| "this is not a table's number")?;
            let len = take_number(&mut rest).ok_or(SHORT)?;
            let len = usize::try_from(len).map_err(|_| SHORT)?;
            let (tags, after) = rest.split_at_checked(len).ok_or(SHORT)?;
            rest = after;
            self.key.clear();
            if !canonical(tags, &mut self.key) {
                return Err("damaged tag key".to_owned());
            }
            let key = std::mem::take(&mut self.key);
            self.add(TableId(table), key.as_bytes())?;
            self.key = key;
        }
        Ok(())
    }

    fn replay_removed(&mut self, payload: &[u8]) -> Result<(), String> {
        let (ids, []) = payload.as_chunks::<4>() else {
            return Err(SHORT.to_owned());
        };
        for id in ids {
            let id = SeriesId(u32::from_le_bytes(*id));
            if id >= self.index.next_id() {
                return Err(format!("series {id} is removed but never existed"));
            }
            self.index.remove(id);
        }
        Ok(())
    }

    /// Applies a record of version 1.
    pub(super) fn replay_v1(&mut self, payload: &[u8]) -> Result<(), String> {
        let mut rest = self.check_first(payload)?;
        while !rest.is_empty() {
            let (table, after) = rest.split_first_chunk::<4>().ok_or(SHORT)?;
            let (len, after) = after.split_first_chunk::<4>().ok_or(SHORT)?;
            let len = u32::from_le_bytes(*len) as usize;
            let (key, after) = after.split_at_checked(len).ok_or(SHORT)?;
            rest = after;
            match TableId(u32::from_le_bytes(*table)) {
                GONE if key.is_empty() => {
                    self.index.add_gone().map_err(|error| error.to_string())?;
                }
                table => {
                    TagKey::from_bytes(key).map_err(|error| error.to_string())?;
                    self.add(table, key)?;
                }
            }
        }
        Ok(())
    }

    fn check_first<'a>(&self, payload: &'a [u8]) -> Result<&'a [u8], String> {
        let (first, rest) = payload.split_first_chunk::<4>().ok_or(SHORT)?;
        let (first, next) = (u32::from_le_bytes(*first), self.index.next_id());
        if first == next.0 {
            Ok(rest)
        } else {
            Err(format!("series {first} follows where {next} is expected"))
        }
    }

    /// Adds a series with a canonical key.
    fn add(&mut self, table: TableId, key: &[u8]) -> Result<(), String> {
        self.held += 1;
        let added = match (self.identity)(table) {
            Some(identity) => {
                if identity != SeriesIdentity::Plain {
                    self.index.set_identity(table, identity);
                }
                self.index.add(table, key)
            }
            None => self.index.add_gone(),
        };
        added.map_err(|error| error.to_string())
    }
}
