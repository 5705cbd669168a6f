//! Deletes: of matching series in a range of time, and of listed rows.

use super::Engine;
use super::inner::EngineInner;
use crate::catalog::computed_by_query;
use crate::commit::CommitChange;
use crate::error::{EngineError, Result};
use crate::filter::TagFilter;
use crate::resolve::resolve_keys;
use crate::route::route_keys;
use crate::shard::Shard;
use marigram_model::{DeletedRows, SeriesId, TableId, TimeRange, WriteBatch};
use marigram_wal::DeleteEntry;
use std::sync::Arc;
use std::time::Duration;

/// Most bytes of a delete record, without its lists.
pub(super) const DELETE_HEAD_BYTES: usize = 64;

/// Bytes of a series, or of a range of one, in a delete record.
const SERIES_BYTES: usize = 4;
const RANGE_BYTES: usize = 20;

/// Memory of the lists of deleted rows in all shards, bytes, from which further ones have to wait for
/// compaction.
const LISTED_BYTES_MAX: usize = 64 << 20;

/// When to try again if they have to.
const RETRY_AFTER: Duration = Duration::from_secs(5);

type ShardChange<'a> = (&'a Shard, CommitChange);

impl Engine {
    /// Most rows that one [`delete_rows`](Self::delete_rows) takes.
    pub const DELETED_ROWS_MAX: usize = 1_000_000;

    /// Deletes the rows of matching series in a range of time. With [`TimeRange::ALL`], the series
    /// are deleted as well: they leave the index, and the same tags create new ones.
    ///
    /// # Errors
    /// If there is no such table, or writes are refused.
    pub fn delete(
        &self,
        database: &str,
        table: &str,
        filter: &TagFilter,
        range: TimeRange,
    ) -> Result<()> {
        let inner = self.lasting()?;
        let _pass = inner.gate.pass(database, table)?;
        let table = inner.schemas.table(database, table)?;
        if table.rollup.is_some() || table.view.is_some() {
            return Err(computed_by_query(&table));
        }
        let changes = self.freeing(|| range_deletes(inner, table.id, filter, range))?;
        commit_deletes(changes)
    }

    /// Deletes the rows of a table that have the series (tags) and times of `keys`, which has no
    /// fields; rows that do not exist are ignored. The rows of a shard disappear together, and are
    /// durably gone when it returns. The series stay.
    ///
    /// # Errors
    /// If there is no such table, a column of `keys` is not a tag of it, there are more than
    /// [`DELETED_ROWS_MAX`](Self::DELETED_ROWS_MAX) rows, earlier lists of deleted rows wait for
    /// compaction, or writes are refused. Nothing is deleted then.
    pub fn delete_rows(&self, database: &str, keys: &WriteBatch) -> Result<()> {
        keys.check()
            .map_err(|error| EngineError::Invalid(error.to_string()))?;
        if keys.len() > Self::DELETED_ROWS_MAX {
            return Err(EngineError::Invalid(format!(
                "{} rows are too many for one delete; the limit is {}",
                keys.len(),
                Self::DELETED_ROWS_MAX
            )));
        }
        let inner = self.lasting()?;
        let _pass = inner.gate.pass(database, &keys.table)?;
        let table = inner.schemas.table(database, &keys.table)?;
        if table.rollup.is_some() || table.view.is_some() {
            return Err(computed_by_query(&table));
        }
        let resolved = resolve_keys(&table, keys)?;
        let routed = route_keys(table.id, keys, &resolved, &inner.indexes);
        let mut deletes = Vec::new();
        for (shard, rows) in inner.shards.iter().zip(routed.rows) {
            if let Some((rows, range)) = DeletedRows::of_rows(rows) {
                let table = table.id;
                deletes.push((shard, DeleteEntry { table, rows, range }));
            }
        }
        let bytes = deletes.iter().map(|(_, delete)| delete.rows.heap_bytes());
        check_listed(inner, bytes.sum())?;
        let changes = self.freeing(|| {
            let promised = deletes.iter().cloned();
            promised
                .map(|(shard, delete)| promised_change(shard, delete))
                .collect::<Result<Vec<_>>>()
        })?;
        let outcome = commit_deletes(changes);
        // The numbers of the series stay theirs until the delete is in the log.
        drop(routed.pins);
        outcome
    }
}

/// An error if there are already many lists of deleted rows.
fn check_listed(inner: &EngineInner, bytes: usize) -> Result<()> {
    let of_shard = |shard: &Shard| -> usize {
        let state = shard.state.read();
        let tombstones = state.tombstones.iter();
        tombstones
            .map(|tombstone| tombstone.rows.heap_bytes())
            .sum()
    };
    let listed: usize = inner.shards.iter().map(of_shard).sum();
    if listed > 0 && listed + bytes > LISTED_BYTES_MAX {
        return Err(EngineError::Busy {
            reason: "the rows of earlier deletes wait for compaction".to_owned(),
            retry_after: RETRY_AFTER,
        });
    }
    Ok(())
}

/// Deletes rows of a table, whoever provides its rows.
pub(super) fn delete_range(
    inner: &EngineInner,
    table: TableId,
    filter: &TagFilter,
    range: TimeRange,
) -> Result<()> {
    commit_deletes(range_deletes(inner, table, filter, range)?)
}

/// The changes that delete rows of a table: one for each shard, with space reserved in its log.
fn range_deletes<'a>(
    inner: &'a EngineInner,
    table: TableId,
    filter: &TagFilter,
    range: TimeRange,
) -> Result<Vec<ShardChange<'a>>> {
    let mut changes = Vec::new();
    if range.is_empty() {
        return Ok(changes);
    }
    for shard in &inner.shards {
        let rows = match filter {
            TagFilter::All => DeletedRows::Table,
            filter => {
                let index = shard.index.read();
                let matching = filter.evaluate(table, &index);
                if matching.is_empty() {
                    continue;
                }
                let series: Arc<[SeriesId]> = matching.into_iter().map(SeriesId).collect();
                DeletedRows::Series(series)
            }
        };
        changes.push(promised_change(shard, DeleteEntry { table, rows, range })?);
    }
    Ok(changes)
}

/// Reserves space for a delete in its shard's log. This is done in every log before anything is
/// written to any: a full disk refuses the whole delete.
fn promised_change(shard: &Shard, delete: DeleteEntry) -> Result<ShardChange<'_>> {
    let list_bytes = match &delete.rows {
        DeletedRows::Table => 0,
        DeletedRows::Series(series) => series.len() * SERIES_BYTES,
        DeletedRows::Ranges(ranges) => ranges.len() * RANGE_BYTES,
    };
    let room = shard.promise_room((DELETE_HEAD_BYTES + list_bytes) as u64)?;
    Ok((shard, CommitChange::Delete(delete, Some(room))))
}

fn commit_deletes(changes: Vec<ShardChange<'_>>) -> Result<()> {
    let submit = |(shard, change)| (shard, Shard::submit(shard, change));
    let tickets: Vec<_> = changes.into_iter().map(submit).collect();
    let outcomes = tickets
        .into_iter()
        .map(|(shard, ticket)| shard.drive(&ticket));
    outcomes.collect::<Vec<_>>().into_iter().collect()
}
