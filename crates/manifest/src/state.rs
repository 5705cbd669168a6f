//! The contents of a shard, and its changes.

use marigram_model::{DeletedRows, SeriesId, TableId, TimeRange};
use std::collections::BTreeMap;
use std::fmt;

/// A segment's number, unique in its shard and never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u64);

impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether a segment's rows arrived in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SegmentSpace {
    /// In order: a series' rows never overlap between segments.
    Sequence = 1,
    /// Late.
    Unsequence = 2,
}

/// A window of time that no segment crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// First time, ns.
    pub start_ns: i64,
    /// Width, ns.
    pub width_ns: i64,
}

/// A segment of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentMeta {
    /// Number, which is also the file's name.
    pub id: SegmentId,
    /// Space.
    pub space: SegmentSpace,
    /// Partition.
    pub partition: Partition,
    /// First and last time in it, ns.
    pub range: TimeRange,
    /// Rows.
    pub rows: u64,
    /// Length of the file.
    pub bytes: u64,
    /// Highest WAL sequence of a row in it: of two segments with the same (series, time), the
    /// higher one is newer. A tombstone applies to segments with a lower `sequence_max`.
    pub sequence_max: u64,
    /// Tables with rows in it, ascending.
    pub tables: Vec<TableId>,
    /// Lowest series in it.
    pub series_min: SeriesId,
    /// Highest series in it.
    pub series_max: SeriesId,
    /// How often its rows have been merged (0 = flushed).
    pub level: u32,
    /// The checksum in its trailer, which covers its footer, and the footer all the rest: another
    /// file is another segment. `None` where it was written before pins were.
    pub pin: Option<u32>,
}

/// A delete of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// WAL sequence of the delete; also its identity.
    pub sequence: u64,
    /// Table.
    pub table: TableId,
    /// Which rows within `range`.
    pub rows: DeletedRows,
    /// Times that bound the deleted rows, ns.
    pub range: TimeRange,
}

impl Tombstone {
    /// The deleted times of a series that overlap `times`, ascending and disjoint.
    pub fn ranges_of(
        &self,
        series: SeriesId,
        times: TimeRange,
    ) -> impl Iterator<Item = TimeRange> + Clone + '_ {
        self.rows.ranges_of(series, self.range, times)
    }

    /// Whether it deletes a row.
    #[must_use]
    pub fn covers(&self, series: SeriesId, time: i64) -> bool {
        self.rows.contains(series, time, self.range)
    }
}

/// One atomic change. Applied in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestEdit {
    /// Segments that are no longer part of the shard.
    pub removed: Vec<SegmentId>,
    /// New segments; their files are durable.
    pub added: Vec<SegmentMeta>,
    /// New tombstones. One with the sequence of a known one replaces it.
    pub tombstones_added: Vec<Tombstone>,
    /// Sequences of tombstones that apply to no segment any more; unknown ones are ignored.
    pub tombstones_removed: Vec<u64>,
    /// WAL files below this number are no longer needed. Never falls.
    pub wal_floor: Option<u64>,
    /// Highest WAL sequence contained in segments. Never falls.
    pub flushed_sequence: Option<u64>,
    /// Valid bytes of the series log.
    pub series_log_bytes: Option<u64>,
    /// Their checksum; given with them.
    pub series_log_checksum: Option<u32>,
}

/// The contents of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestState {
    /// Segments.
    pub segments: BTreeMap<SegmentId, SegmentMeta>,
    /// Tombstones, ascending by sequence.
    pub tombstones: Vec<Tombstone>,
    /// WAL files below this number are no longer needed.
    pub wal_floor: u64,
    /// Highest WAL sequence contained in segments.
    pub flushed_sequence: u64,
    /// Valid bytes of the series log.
    pub series_log_bytes: u64,
    /// Their checksum. `None` where they were written before pins were.
    pub series_log_checksum: Option<u32>,
    /// Highest segment id that was ever in the manifest; 0 where there was none.
    pub segment_max: u64,
}

impl ManifestState {
    /// Why the edit contradicts the state, if it does: it removes a segment that is not there,
    /// or adds one that is.
    ///
    /// # Errors
    /// The contradiction.
    pub fn check(&self, edit: &ManifestEdit) -> Result<(), String> {
        let mut removed: Vec<_> = edit.removed.clone();
        removed.sort_unstable();
        if let Some(id) = first_twice(&removed) {
            return Err(format!("segment {id} is removed twice"));
        }
        if let Some(missing) = removed.iter().find(|id| !self.segments.contains_key(id)) {
            return Err(format!("segment {missing} is removed but not there"));
        }
        let mut added: Vec<_> = edit.added.iter().map(|segment| segment.id).collect();
        added.sort_unstable();
        if let Some(id) = first_twice(&added) {
            return Err(format!("segment {id} is added twice"));
        }
        for id in added {
            // A segment may be taken out and put back in one edit, in another place.
            let moved = removed.binary_search(&id).is_ok();
            let known = self.segments.contains_key(&id);
            if known && !moved {
                return Err(format!("segment {id} is added but there already"));
            }
            if id.0 == 0 {
                return Err("segment ids begin at 1".to_owned());
            }
        }
        Ok(())
    }

    /// Applies an edit.
    pub fn apply(&mut self, edit: &ManifestEdit) {
        for id in &edit.removed {
            self.segments.remove(id);
        }
        for segment in &edit.added {
            self.segment_max = self.segment_max.max(segment.id.0);
            self.segments.insert(segment.id, segment.clone());
        }
        for tombstone in &edit.tombstones_added {
            let known = self
                .tombstones
                .binary_search_by_key(&tombstone.sequence, |t| t.sequence);
            match known {
                Ok(at) => self.tombstones[at] = tombstone.clone(),
                Err(at) => self.tombstones.insert(at, tombstone.clone()),
            }
        }
        for sequence in &edit.tombstones_removed {
            if let Ok(at) = self
                .tombstones
                .binary_search_by_key(sequence, |t| t.sequence)
            {
                self.tombstones.remove(at);
            }
        }
        self.wal_floor = self.wal_floor.max(edit.wal_floor.unwrap_or(0));
        self.flushed_sequence = self
            .flushed_sequence
            .max(edit.flushed_sequence.unwrap_or(0));
        if let Some(bytes) = edit.series_log_bytes {
            self.series_log_bytes = bytes;
            self.series_log_checksum = edit.series_log_checksum;
        }
        debug_assert!(
            self.tombstones.is_sorted_by(|a, b| a.sequence < b.sequence),
            "tombstones are found by their sequence numbers"
        );
    }

    /// The id for a new segment: above every id that was ever in the manifest, from 1.
    #[must_use]
    pub fn next_segment(&self) -> SegmentId {
        SegmentId(self.segment_max.saturating_add(1))
    }
}

/// The first id that occurs twice in a sorted list.
fn first_twice(ids: &[SegmentId]) -> Option<SegmentId> {
    let twice = ids.windows(2).find(|pair| pair[0] == pair[1])?;
    twice.first().copied()
}
