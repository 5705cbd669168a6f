//! The path of a batch: checked, resolved, routed, admitted, committed.

use super::inner::EngineInner;
use crate::admission::admit;
use crate::catalog::{SchemaGrowth, computed_by_query};
use crate::commit::{CommitChange, PendingWrite};
use crate::error::{EngineError, Result};
use crate::resolve::{ResolveOutcome, ResolvedBatch, resolve};
use crate::route::{estimate_bytes, route};
use crate::stats::add;
use marigram_model::{FieldType, Limits, TableId, TableSchema, TagType, WriteBatch};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Options of a write.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// Whether to create missing tables, tags and fields; otherwise they are errors.
    pub grow: bool,
}

/// A row that was not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedRow {
    /// The row in the batch, from 0.
    pub row: u32,
    /// What was wrong with it.
    pub reason: String,
}

/// The result of writing a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteReport {
    /// Rows stored.
    pub stored: usize,
    /// Rows not stored, ascending.
    pub rejected: Vec<RejectedRow>,
    /// What the table did not have before.
    pub growth: Option<TableGrowth>,
}

/// What a write added to its table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableGrowth {
    /// Whether the table itself is new.
    pub is_new: bool,
    /// New tags.
    pub tags: Vec<(String, TagType)>,
    /// New fields.
    pub fields: Vec<(String, FieldType)>,
}

/// The origin of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOrigin {
    /// A user, who must not write to rollups.
    User,
    /// The refresh of a rollup.
    Refresh,
}

pub(super) fn write(
    inner: &EngineInner,
    database: &str,
    batch: &WriteBatch,
    options: WriteOptions,
    writer: WriteOrigin,
) -> Result<WriteReport> {
    batch.check()?;
    if let Some(table) = inner.schemas.find(database, &batch.table)?
        && (table.rollup.is_some() != (writer == WriteOrigin::Refresh) || table.view.is_some())
    {
        return Err(computed_by_query(&table));
    }
    // From here on, the numbers of the columns stay valid until the rows are visible.
    let _pass = inner.gate.pass(database, &batch.table)?;
    let context = &inner.context;
    let live = || inner.schemas.all();
    let estimate = estimate_bytes(batch);
    let mut reservation = admit(context, &inner.shards, &live, &inner.bell, estimate)?;
    let (table, resolved, growth) = fit(inner, database, batch, options)?;
    let mut writes = route(table, batch, &resolved, &inner.indexes);
    // Reserve in every log before writing to any: a full disk refuses all of a batch or nothing.
    for (shard, write) in &mut writes {
        let bytes = write.record_bytes_max();
        write.room = Some(inner.shards[*shard].promise_room(bytes)?);
    }
    reservation.adjust(writes.iter().map(|(_, write)| write.bytes).sum());
    let mut rejected: Vec<RejectedRow> = resolved
        .rejects
        .into_reasons()
        .into_iter()
        .map(|(row, reason)| RejectedRow { row, reason })
        .collect();
    let mut stored = 0;
    let mut failure: Option<EngineError> = None;
    let mut failed_shards = Vec::new();
    for (shard, rows, bytes, outcome) in commit(inner, writes) {
        match outcome {
            Ok(()) => {
                reservation.keep(bytes);
                stored += rows;
            }
            Err(error) => {
                failed_shards.push(shard);
                // Report an uncertain outcome rather than a refusal.
                if failure.is_none() || matches!(error, EngineError::Uncertain(_)) {
                    failure = Some(error);
                }
            }
        }
    }
    drop(reservation);
    if let Some(error) = failure {
        if stored == 0 {
            return Err(error);
        }
        reject_shards(inner, table, batch, &failed_shards, &error, &mut rejected);
    }
    add(&context.stats.rows_rejected, rejected.len());
    if let Err(error) = inner.freeze_full() {
        // The rows are stored; the next write reports the failure.
        tracing::error!(%error, "a memtable could not be frozen");
    }
    Ok(WriteReport {
        stored,
        rejected,
        growth,
    })
}

/// Fits a batch to its table, which grows if allowed. Returns what it lacked, too.
fn fit(
    inner: &EngineInner,
    database: &str,
    batch: &WriteBatch,
    options: WriteOptions,
) -> Result<(TableId, ResolvedBatch, Option<TableGrowth>)> {
    let mut grown: Option<TableGrowth> = None;
    let now_ns = inner.context.env.clock.now_ns();
    let mut schema: Option<Arc<TableSchema>> = inner.schemas.find(database, &batch.table)?;
    if schema.is_none() && !options.grow {
        schema = Some(inner.schemas.table(database, &batch.table)?);
    }
    // Each round adds what the previous one found missing. Others may grow the table meanwhile;
    // another round is only needed if somebody dropped it.
    loop {
        let outcome = if let Some(schema) = &schema {
            resolve(schema, batch, options.grow, false, now_ns)?
        } else {
            Limits::check_name("table", &batch.table)?;
            let blank = inner.schemas.blank(database, &batch.table, TableId(0));
            resolve(&blank, batch, options.grow, true, now_ns)?
        };
        match (outcome, &schema) {
            (ResolveOutcome::Done(resolved), Some(schema)) => {
                return Ok((schema.id, resolved, grown));
            }
            // No row can be stored, so the table is not created: every row is rejected.
            (ResolveOutcome::Done(resolved), None) => return Ok((TableId(0), resolved, grown)),
            (ResolveOutcome::Grow(growth), before) => {
                let is_new = before.is_none();
                schema = Some(grow(inner, database, &batch.table, &growth)?);
                let grown = grown.get_or_insert_default();
                grown.is_new |= is_new;
                grown.tags.extend(growth.tags);
                grown.fields.extend(growth.fields);
            }
        }
    }
}

fn grow(
    inner: &EngineInner,
    database: &str,
    table: &str,
    growth: &SchemaGrowth,
) -> Result<Arc<TableSchema>> {
    inner.schemas.grow(database, table, growth)
}

/// Shard, rows, bytes, outcome.
pub(super) type CommittedGroups = (usize, usize, usize, Result<()>);

/// Queues writes on all their shards, then drives each: (shard, rows, bytes, outcome). Writers
/// begin with different shards, and wait for one only if all their queues have leaders, so the logs
/// of several shards are synced in parallel.
pub(super) fn commit(
    inner: &EngineInner,
    mut writes: Vec<(usize, PendingWrite)>,
) -> Vec<CommittedGroups> {
    let turn = inner.turn.fetch_add(1, Ordering::Relaxed);
    let first = turn % writes.len().max(1);
    writes.rotate_left(first);
    let submit = |(number, write): (usize, PendingWrite)| {
        let (rows, bytes) = (write.times.len(), write.bytes);
        let shard = &inner.shards[number];
        (
            number,
            rows,
            bytes,
            shard.submit(CommitChange::Write(write)),
        )
    };
    let tickets: Vec<_> = writes.into_iter().map(submit).collect();
    for (number, _, _, ticket) in &tickets {
        inner.shards[*number].lead_if_free(ticket);
    }
    tickets
        .into_iter()
        .map(|(number, rows, bytes, ticket)| {
            (number, rows, bytes, inner.shards[number].drive(&ticket))
        })
        .collect()
}

/// Some shards stored their rows and these did not: rejects the rows of these shards.
fn reject_shards(
    inner: &EngineInner,
    table: TableId,
    batch: &WriteBatch,
    failed: &[usize],
    error: &EngineError,
    rejected: &mut Vec<RejectedRow>,
) {
    let Ok(ResolveOutcome::Done(resolved)) =
        inner
            .schemas
            .all()
            .get(&table)
            .map_or(Err(EngineError::Closed), |schema| {
                // As for a batch that may grow: a column that only rejected rows have was not
                // created.
                resolve(schema, batch, true, false, inner.context.env.clock.now_ns())
            })
    else {
        return;
    };
    let known: std::collections::HashSet<u32> = rejected.iter().map(|row| row.row).collect();
    for (row, shard) in crate::route::shard_of_rows(table, batch, &resolved, inner.shards.len()) {
        if failed.contains(&shard) && !known.contains(&row) {
            rejected.push(RejectedRow {
                row,
                reason: error.to_string(),
            });
        }
    }
    rejected.sort_by_key(|row| row.row);
}
