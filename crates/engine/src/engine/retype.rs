//! Gives a field another type.
//!
//! A page has one type, so a field of another type is another field: the values are written anew,
//! converted, under a number of their own, as an update of each row. One edit of the catalog then
//! puts that number in the place of the old one; the old values stay behind like those of a dropped
//! field. A crash before that edit leaves the old type, and numbers that nobody reads. While rows are
//! rewritten, other changes of the table wait, and no compaction runs, which would remove values
//! that do not belong to a field yet.

use super::Engine;
use super::inner::EngineInner;
use super::write::commit;
use crate::admission::admit;
use crate::commit::PendingWrite;
use crate::error::{EngineError, Result};
use crate::filter::TagFilter;
use crate::route::values_bytes;
use crate::scan::{ScanMetrics, ScanRequest};
use crate::shard::Shard;
use crate::snapshot::TableSnapshot;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_select::take::take;
use marigram_model::{
    ColumnCodec, ColumnId, FieldColumn, FieldType, FieldValue, SeriesId, SortedRows, TableId,
    TableSchema, TimeRange,
};
use std::sync::Arc;

/// Rows that are read, converted and written at once.
const BATCH_ROWS: usize = 32 * 1024;

/// Converted values.
#[derive(Debug)]
pub struct ConvertedColumn {
    /// One value for each row, in the wanted type.
    pub values: ArrayRef,
    /// Rows whose value cannot be converted exactly, ascending.
    pub unfit: Vec<usize>,
}

/// A field, and the type that it is to have.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct RetypeRequest<'a> {
    /// The field.
    pub column: &'a str,
    /// Its new type.
    pub kind: FieldType,
    /// Whether it is a TIMESTAMP that is shown with a zone.
    pub is_zoned: bool,
    /// Converts values of the old type.
    pub convert: &'a dyn Fn(&ArrayRef) -> ConvertedColumn,
}

/// A stored value that has no equal in the wanted type.
#[derive(Clone, Debug, PartialEq)]
pub struct UnfitValue {
    /// The value.
    pub value: FieldValue,
    /// Its time, ns.
    pub time_ns: i64,
    /// The tags of its series that have a value, by name.
    pub tags: Vec<(String, FieldValue)>,
}

/// What became of a field that was to get another type.
#[derive(Clone, Debug, PartialEq)]
pub enum RetypeOutcome {
    /// The field has the new type; so many values were rewritten.
    Done {
        /// Values rewritten.
        values: u64,
    },
    /// Nothing changed: some values cannot be converted exactly.
    Unfit {
        /// Number of such values.
        count: u64,
        /// The one with the earliest time.
        first: Box<UnfitValue>,
    },
}

impl Engine {
    /// Gives a field another type if each of its values converts exactly. Blocks; changes of the
    /// table wait meanwhile, and are refused with `Busy` after some seconds. Reads go on, and see the
    /// old type until the end. An encoding that does not suit the new type is dropped.
    ///
    /// # Errors
    /// If there is no such field, a rollup reads it, writes are refused, or the disk fails. The field
    /// then has its old type.
    pub fn retype_field(
        &self,
        database: &str,
        table: &str,
        request: &RetypeRequest<'_>,
    ) -> Result<RetypeOutcome> {
        let inner = self.writable()?;
        let _held = inner.gate.hold(database, table)?;
        let before = inner
            .schemas
            .check_retype(database, table, request.column)?;
        let snapshot = self.snapshot(database, table)?;
        let field = FieldScan {
            inner,
            snapshot: &snapshot,
            column: before.id,
        };
        if let Some(unfit) = field.unfit(request)? {
            return Ok(unfit);
        }
        // No compaction may remove the values before they belong to a field.
        let maintenance: Vec<_> = inner
            .shards
            .iter()
            .map(|shard| shard.maintenance.lock())
            .collect();
        let id = inner
            .schemas
            .begin_retype(database, table, request.column)?;
        let values = field.rewrite(request, id)?;
        inner.shards.iter().try_for_each(Shard::sync)?;
        let after = FieldColumn {
            id,
            kind: request.kind,
            codec: suited(before.codec, request.kind),
            ..before
        };
        inner
            .schemas
            .finish_retype(database, table, after, request.is_zoned)?;
        drop(maintenance);
        forget_last_rows(inner, snapshot.schema().id);
        Ok(RetypeOutcome::Done { values })
    }
}

/// The codec as far as it suits a type.
fn suited(codec: ColumnCodec, kind: FieldType) -> ColumnCodec {
    if codec.objection(kind).is_none() {
        return codec;
    }
    ColumnCodec {
        encoding: None,
        ..codec
    }
}

/// Cached last rows have the values of the old field.
fn forget_last_rows(inner: &EngineInner, table: TableId) {
    for shard in &inner.shards {
        let sequence = shard.state.read().sequence;
        let mut last = shard.last.lock();
        last.invalidate(sequence, table, None, TimeRange::ALL);
    }
}

/// All values of a field in a snapshot.
struct FieldScan<'a> {
    inner: &'a EngineInner,
    snapshot: &'a TableSnapshot,
    column: ColumnId,
}

impl FieldScan<'_> {
    /// Calls `each` with the shard, the series of each row, and the rows that have a value.
    fn for_each(
        &self,
        mut each: impl FnMut(usize, &[u32], SortedRows) -> Result<()>,
    ) -> Result<()> {
        let request = ScanRequest {
            selection: self.snapshot.select(&TagFilter::All),
            range: TimeRange::ALL,
            columns: vec![self.column],
            bounds: Vec::new(),
            batch_rows: BATCH_ROWS,
            partitions: 1,
            limit: None,
        };
        let metrics = Arc::new(ScanMetrics::default());
        for mut partition in self.snapshot.scan(&request, metrics)? {
            while let Some(rows) = partition.next_rows()? {
                if self.inner.bell.is_stopping() {
                    return Err(EngineError::Closed);
                }
                let mut series = Vec::with_capacity(rows.len());
                for run in &rows.runs {
                    series.resize(series.len() + run.rows as usize, run.series.0);
                }
                each(partition.shard(), &series, rows)?;
            }
        }
        Ok(())
    }

    /// The values that do not convert, if there are any.
    fn unfit(&self, request: &RetypeRequest<'_>) -> Result<Option<RetypeOutcome>> {
        let (mut count, mut first) = (0, None::<(i64, usize, SeriesId, FieldValue)>);
        self.for_each(|shard, series, rows| {
            let Some(values) = rows.columns.first() else {
                return Ok(());
            };
            let converted = (request.convert)(values);
            count += converted.unfit.len() as u64;
            for row in converted.unfit {
                let time = rows.times[row];
                if first.as_ref().is_none_or(|first| time < first.0)
                    && let Some(value) = FieldValue::from_array(values, row)
                {
                    first = Some((time, shard, SeriesId(series[row]), value));
                }
            }
            Ok(())
        })?;
        Ok(
            first.map(|(time_ns, shard, series, value)| RetypeOutcome::Unfit {
                count,
                first: Box::new(UnfitValue {
                    value,
                    time_ns,
                    tags: tags_of(self.snapshot, shard, series),
                }),
            }),
        )
    }

    /// Writes all values under another number; returns how many.
    fn rewrite(&self, request: &RetypeRequest<'_>, id: ColumnId) -> Result<u64> {
        let (inner, table) = (self.inner, self.snapshot.schema().id);
        let mut written = 0;
        self.for_each(|shard, series, rows| {
            let Some(values) = rows.columns.first() else {
                return Ok(());
            };
            let valid: UInt32Array = (0..rows.len() as u32)
                .filter(|row| values.is_valid(*row as usize))
                .collect();
            if valid.is_empty() {
                return Ok(());
            }
            let take = |values: &ArrayRef| {
                take(values, &valid, None).map_err(|error| EngineError::Invalid(error.to_string()))
            };
            let converted = (request.convert)(&take(values)?);
            if let Some(row) = converted.unfit.first() {
                // The table is held, so the first pass saw all values.
                let reason = format!("value {row} of '{}' changed meanwhile", request.column);
                return Err(EngineError::Invalid(reason));
            }
            let rows_of = |row: &u32| *row as usize;
            let series: Vec<u32> = valid.values().iter().map(|r| series[rows_of(r)]).collect();
            let times: Vec<i64> = valid
                .values()
                .iter()
                .map(|r| rows.times[rows_of(r)])
                .collect();
            let bytes = series.len() * (size_of::<u32>() + size_of::<i64>())
                + values_bytes(converted.values.as_ref());
            written += series.len() as u64;
            let write = PendingWrite {
                table,
                series,
                new_slots: Vec::new(),
                times: times.into(),
                columns: vec![(id, converted.values)],
                bytes,
                room: None,
                pin: None,
            };
            store(inner, shard, write)
        })?;
        Ok(written)
    }
}

/// Stores rows of one shard.
fn store(inner: &EngineInner, shard: usize, mut write: PendingWrite) -> Result<()> {
    let live = || inner.schemas.all();
    let bytes = write.bytes;
    let mut reservation = admit(&inner.context, &inner.shards, &live, &inner.bell, bytes)?;
    write.room = Some(inner.shards[shard].promise_room(write.record_bytes_max())?);
    for (_, _, bytes, outcome) in commit(inner, vec![(shard, write)]) {
        outcome?;
        reservation.keep(bytes);
    }
    drop(reservation);
    if let Err(error) = inner.freeze_full() {
        // The rows are stored; the next write reports the failure.
        tracing::error!(%error, "a memtable could not be frozen");
    }
    Ok(())
}

/// The tags of a series that have a value.
fn tags_of(snapshot: &TableSnapshot, shard: usize, series: SeriesId) -> Vec<(String, FieldValue)> {
    let schema: &TableSchema = snapshot.schema();
    let tags = schema.tags.iter().enumerate();
    tags.filter_map(|(ordinal, tag)| {
        let values = snapshot.tag_values(shard, &[series], u16::try_from(ordinal).ok()?);
        Some((tag.name.clone(), FieldValue::from_array(&values, 0)?))
    })
    .collect()
}
