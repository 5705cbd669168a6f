//! State and edits of a shard as bytes: `docs/formats/manifest.md`.

use crate::bytes::{MalformedRecord, RecordReader, malformed, put_count};
use crate::record::LoggedState;
use crate::state::{
    ManifestEdit, ManifestState, Partition, SegmentId, SegmentMeta, SegmentSpace, Tombstone,
};
use marigram_model::{DeletedRows, SeriesId, SeriesTimeRange, TableId, TimeRange};

/// Fewest bytes of a segment's entry, in a file of version 1.
const SEGMENT_BYTES_MIN: usize = 8 + 1 + 16 + 16 + 24 + 4 + 8 + 4;
/// The first version that pins the files that it names.
const PINS_VERSION: u32 = 2;
/// Fewest bytes of a tombstone.
const TOMBSTONE_BYTES_MIN: usize = 8 + 4 + 16 + 1;
/// Bytes of a range of a tombstone: series, first and last time.
const RANGE_BYTES: usize = 4 + 16;

/// Which rows a tombstone covers.
const OF_TABLE: u8 = 0;
const OF_SERIES: u8 = 1;
const OF_RANGES: u8 = 2;

impl LoggedState for ManifestState {
    const FILE: &'static str = "MANIFEST";
    const MAGIC: [u8; 8] = *b"MARIMANI";
    const VERSION: u32 = 4;
    const SEALS_TELL: u32 = 2;
    const OWNER_SINCE: Option<u32> = Some(3);
    const COPY: Option<&'static str> = None;
    type Edit = ManifestEdit;

    fn encode(&self, out: &mut Vec<u8>) {
        for number in [
            self.wal_floor,
            self.flushed_sequence,
            self.series_log_bytes,
            self.segment_max,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        put_pin(self.series_log_checksum, out);
        put_count(self.segments.len(), out);
        self.segments
            .values()
            .for_each(|segment| put_segment(segment, out));
        put_count(self.tombstones.len(), out);
        self.tombstones
            .iter()
            .for_each(|tombstone| put_tombstone(tombstone, out));
    }

    fn decode(reader: &mut RecordReader<'_>, version: u32) -> Result<Self, MalformedRecord> {
        let mut state = Self {
            wal_floor: reader.u64()?,
            flushed_sequence: reader.u64()?,
            series_log_bytes: reader.u64()?,
            segment_max: reader.u64()?,
            ..Self::default()
        };
        state.series_log_checksum = pin(reader, version)?;
        for _ in 0..reader.u32_count(SEGMENT_BYTES_MIN)? {
            let segment = segment(reader, version)?;
            let last = state.segments.last_key_value().map(|(id, _)| *id);
            if last >= Some(segment.id) || segment.id.0 > state.segment_max {
                return malformed(format!("segment {} is out of order", segment.id));
            }
            state.segments.insert(segment.id, segment);
        }
        for _ in 0..reader.u32_count(TOMBSTONE_BYTES_MIN)? {
            let tombstone = tombstone(reader)?;
            if state
                .tombstones
                .last()
                .is_some_and(|last| last.sequence >= tombstone.sequence)
            {
                return malformed("tombstones are not in ascending order");
            }
            state.tombstones.push(tombstone);
        }
        Ok(state)
    }

    fn encode_edit(edit: &ManifestEdit, out: &mut Vec<u8>) {
        put_count(edit.removed.len(), out);
        edit.removed
            .iter()
            .for_each(|id| out.extend_from_slice(&id.0.to_le_bytes()));
        put_count(edit.added.len(), out);
        edit.added
            .iter()
            .for_each(|segment| put_segment(segment, out));
        put_count(edit.tombstones_added.len(), out);
        edit.tombstones_added
            .iter()
            .for_each(|tombstone| put_tombstone(tombstone, out));
        put_count(edit.tombstones_removed.len(), out);
        for sequence in &edit.tombstones_removed {
            out.extend_from_slice(&sequence.to_le_bytes());
        }
        for mark in [edit.wal_floor, edit.flushed_sequence, edit.series_log_bytes] {
            out.push(u8::from(mark.is_some()));
            if let Some(mark) = mark {
                out.extend_from_slice(&mark.to_le_bytes());
            }
        }
        put_pin(edit.series_log_checksum, out);
    }

    fn decode_edit(
        reader: &mut RecordReader<'_>,
        version: u32,
    ) -> Result<ManifestEdit, MalformedRecord> {
        Ok(ManifestEdit {
            removed: list(reader, 8, |reader| reader.u64().map(SegmentId))?,
            added: list(reader, SEGMENT_BYTES_MIN, |reader| segment(reader, version))?,
            tombstones_added: list(reader, TOMBSTONE_BYTES_MIN, tombstone)?,
            tombstones_removed: list(reader, 8, sequence)?,
            wal_floor: mark(reader)?,
            flushed_sequence: mark(reader)?,
            series_log_bytes: mark(reader)?,
            series_log_checksum: pin(reader, version)?,
        })
    }

    fn check(&self, edit: &ManifestEdit) -> Result<(), String> {
        Self::check(self, edit)
    }

    fn apply_checked(&mut self, edit: &ManifestEdit) {
        self.apply(edit);
    }
}

fn list<T>(
    reader: &mut RecordReader<'_>,
    item_bytes: usize,
    mut item: impl FnMut(&mut RecordReader<'_>) -> Result<T, MalformedRecord>,
) -> Result<Vec<T>, MalformedRecord> {
    (0..reader.u32_count(item_bytes)?)
        .map(|_| item(reader))
        .collect()
}

fn sequence(reader: &mut RecordReader<'_>) -> Result<u64, MalformedRecord> {
    reader.u64()
}

fn mark(reader: &mut RecordReader<'_>) -> Result<Option<u64>, MalformedRecord> {
    if reader.flag()? {
        reader.u64().map(Some)
    } else {
        Ok(None)
    }
}

fn put_range(range: TimeRange, out: &mut Vec<u8>) {
    out.extend_from_slice(&range.min.to_le_bytes());
    out.extend_from_slice(&range.max.to_le_bytes());
}

fn put_segment(segment: &SegmentMeta, out: &mut Vec<u8>) {
    out.extend_from_slice(&segment.id.0.to_le_bytes());
    out.push(segment.space as u8);
    out.extend_from_slice(&segment.partition.start_ns.to_le_bytes());
    out.extend_from_slice(&segment.partition.width_ns.to_le_bytes());
    put_range(segment.range, out);
    for number in [segment.rows, segment.bytes, segment.sequence_max] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    put_count(segment.tables.len(), out);
    segment
        .tables
        .iter()
        .for_each(|table| out.extend_from_slice(&table.0.to_le_bytes()));
    for number in [segment.series_min.0, segment.series_max.0, segment.level] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    put_pin(segment.pin, out);
}

/// Appends a checksum that a file must have, if one is known.
fn put_pin(pin: Option<u32>, out: &mut Vec<u8>) {
    out.push(u8::from(pin.is_some()));
    if let Some(pin) = pin {
        out.extend_from_slice(&pin.to_le_bytes());
    }
}

fn pin(reader: &mut RecordReader<'_>, version: u32) -> Result<Option<u32>, MalformedRecord> {
    if version < PINS_VERSION || !reader.flag()? {
        return Ok(None);
    }
    reader.u32().map(Some)
}

fn segment(reader: &mut RecordReader<'_>, version: u32) -> Result<SegmentMeta, MalformedRecord> {
    let meta = SegmentMeta {
        id: SegmentId(reader.u64()?),
        space: match reader.byte()? {
            1 => SegmentSpace::Sequence,
            2 => SegmentSpace::Unsequence,
            other => return malformed(format!("no space has the number {other}")),
        },
        partition: Partition {
            start_ns: reader.i64()?,
            width_ns: reader.i64()?,
        },
        range: time_range(reader)?,
        rows: reader.u64()?,
        bytes: reader.u64()?,
        sequence_max: reader.u64()?,
        tables: list(reader, 4, |reader| reader.u32().map(TableId))?,
        series_min: SeriesId(reader.u32()?),
        series_max: SeriesId(reader.u32()?),
        level: reader.u32()?,
        pin: pin(reader, version)?,
    };
    if !meta.tables.is_sorted_by(|a, b| a < b) {
        return malformed(format!(
            "the tables of segment {} are not ascending",
            meta.id
        ));
    }
    Ok(meta)
}

fn put_tombstone(tombstone: &Tombstone, out: &mut Vec<u8>) {
    out.extend_from_slice(&tombstone.sequence.to_le_bytes());
    out.extend_from_slice(&tombstone.table.0.to_le_bytes());
    put_range(tombstone.range, out);
    match &tombstone.rows {
        DeletedRows::Table => out.push(OF_TABLE),
        DeletedRows::Series(series) => {
            out.push(OF_SERIES);
            put_count(series.len(), out);
            series
                .iter()
                .for_each(|id| out.extend_from_slice(&id.0.to_le_bytes()));
        }
        DeletedRows::Ranges(ranges) => {
            out.push(OF_RANGES);
            put_count(ranges.len(), out);
            for SeriesTimeRange { series, range } in &**ranges {
                out.extend_from_slice(&series.0.to_le_bytes());
                put_range(*range, out);
            }
        }
    }
}

fn tombstone(reader: &mut RecordReader<'_>) -> Result<Tombstone, MalformedRecord> {
    let sequence = reader.u64()?;
    let table = TableId(reader.u32()?);
    let range = time_range(reader)?;
    let rows = match reader.byte()? {
        OF_TABLE => DeletedRows::Table,
        OF_SERIES => {
            DeletedRows::Series(list(reader, 4, |reader| reader.u32().map(SeriesId))?.into())
        }
        OF_RANGES => {
            let ranges = list(reader, RANGE_BYTES, |reader| {
                Ok(SeriesTimeRange {
                    series: SeriesId(reader.u32()?),
                    range: time_range(reader)?,
                })
            });
            DeletedRows::Ranges(ranges?.into())
        }
        other => return malformed(format!("no kind of deleted rows has the number {other}")),
    };
    if let Err(error) = rows.check(range) {
        return malformed(format!("tombstone {sequence}: {error}"));
    }
    Ok(Tombstone {
        sequence,
        table,
        rows,
        range,
    })
}

fn time_range(reader: &mut RecordReader<'_>) -> Result<TimeRange, MalformedRecord> {
    Ok(TimeRange {
        min: reader.i64()?,
        max: reader.i64()?,
    })
}
