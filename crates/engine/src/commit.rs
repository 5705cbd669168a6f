//! Group commit: changes of a shard queue up; one writer leads and commits all that wait.
//!
//! A writer that finds no leader becomes the leader, takes the whole queue and commits it with one
//! append and one fsync; the others sleep until their change is decided. There is no thread for it,
//! so that a single-threaded simulation always takes the same steps. While a leader syncs, the next
//! group collects: the slower the disk, the larger the groups.

use crate::error::{EngineError, Result};
use arrow_array::ArrayRef;
use arrow_buffer::ScalarBuffer;
use marigram_model::{ColumnId, TableId, TagKey};
use marigram_series_index::RetiredSeriesPin;
use marigram_wal::{DeleteEntry, RoomPromise};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;

/// A tag set for which the shard had no series when it was looked up.
#[derive(Debug)]
pub(crate) struct NewSlot {
    pub key: TagKey,
    /// `SeriesIndex::hash` of it.
    pub hash: u64,
}

/// Rows of one table for one shard.
#[derive(Debug)]
pub(crate) struct PendingWrite {
    pub table: TableId,
    /// For each row, the series id if `new_slots` is empty, otherwise an index into it.
    pub series: Vec<u32>,
    pub new_slots: Vec<NewSlot>,
    pub times: ScalarBuffer<i64>,
    /// Ascending by id.
    pub columns: Vec<(ColumnId, ArrayRef)>,
    /// Memory reserved for the rows.
    pub bytes: usize,
    /// Space reserved in the log for its record.
    pub room: Option<RoomPromise>,
    /// Keeps series that are retired before the commit readable by id.
    #[expect(dead_code, reason = "it is held while the write waits")]
    pub pin: Option<RetiredSeriesPin>,
}

/// Most bytes of a record in addition to those of its rows, columns and series.
const RECORD_HEAD_BYTES: usize = 256;
/// Bytes of a column in addition to its values.
const COLUMN_HEAD_BYTES: usize = 16;
/// Bytes of a new series in addition to its key.
const SERIES_HEAD_BYTES: usize = 8;

impl PendingWrite {
    /// Most bytes of its record in the log.
    pub(crate) fn record_bytes_max(&self) -> u64 {
        let rows = self.times.len();
        let keys = self.new_slots.iter();
        let keys = keys.map(|slot| slot.key.as_bytes().len() + SERIES_HEAD_BYTES);
        // Values and validity, as in memory; bits are rounded up to bytes.
        let columns = self.columns.len() * (COLUMN_HEAD_BYTES + rows.div_ceil(8));
        (RECORD_HEAD_BYTES + self.bytes + columns + keys.sum::<usize>()) as u64
    }
}

/// The change to commit.
#[derive(Debug)]
pub(crate) enum CommitChange {
    Write(PendingWrite),
    Delete(DeleteEntry, Option<RoomPromise>),
    DropTable(TableId),
}

/// A change that waits for its commit, and later its outcome.
#[derive(Debug)]
pub(crate) struct CommitTicket {
    change: Mutex<Option<CommitChange>>,
    decided: Mutex<bool>,
    outcome: Mutex<Option<Result<()>>>,
}

impl CommitTicket {
    /// Takes the change; only the leader does, once.
    pub(crate) fn take(&self) -> Option<CommitChange> {
        self.change.lock().take()
    }

    /// Whether it waits to delete all rows of series, which retires the series.
    pub(crate) fn ends_series(&self) -> bool {
        let change = self.change.lock();
        matches!(&*change, Some(CommitChange::Delete(delete, _)) if delete.retires_series())
    }

    /// Decides the outcome; the first decision counts.
    pub(crate) fn decide(&self, outcome: Result<()>) {
        let mut decided = self.decided.lock();
        if !std::mem::replace(&mut *decided, true) {
            *self.outcome.lock() = Some(outcome);
        }
    }
}

/// Changes that wait for a shard's next group.
#[derive(Debug, Default)]
pub(crate) struct CommitQueue {
    waiting: Mutex<WaitingCommits>,
    decided: Condvar,
}

#[derive(Debug, Default)]
struct WaitingCommits {
    tickets: Vec<Arc<CommitTicket>>,
    leading: bool,
}

impl CommitQueue {
    /// Queues a change. The caller must [`drive`](Self::drive) its ticket.
    pub(crate) fn submit(&self, change: CommitChange) -> Arc<CommitTicket> {
        let ticket = Arc::new(CommitTicket {
            change: Mutex::new(Some(change)),
            decided: Mutex::new(false),
            outcome: Mutex::new(None),
        });
        self.waiting.lock().tickets.push(ticket.clone());
        ticket
    }

    /// Waits until the ticket is decided, and leads a group with `lead` if there is no leader.
    /// `lead` must decide every ticket that it gets.
    pub(crate) fn drive(
        &self,
        ticket: &CommitTicket,
        lead: impl Fn(&[Arc<CommitTicket>]),
    ) -> Result<()> {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(outcome) = ticket.outcome.lock().take() {
                return outcome;
            }
            if waiting.leading {
                self.decided.wait(&mut waiting);
                continue;
            }
            self.lead(waiting, &lead);
            waiting = self.waiting.lock();
        }
    }

    /// Leads a group with `lead` if the ticket waits and there is no leader. A caller with tickets
    /// in several queues calls this for all of them before it waits for any.
    pub(crate) fn lead_if_free(&self, ticket: &CommitTicket, lead: impl Fn(&[Arc<CommitTicket>])) {
        let waiting = self.waiting.lock();
        if !waiting.leading && ticket.outcome.lock().is_none() {
            self.lead(waiting, &lead);
        }
    }

    fn lead(
        &self,
        mut waiting: MutexGuard<'_, WaitingCommits>,
        lead: &impl Fn(&[Arc<CommitTicket>]),
    ) {
        waiting.leading = true;
        let group = CommitGroup {
            queue: self,
            tickets: std::mem::take(&mut waiting.tickets),
        };
        drop(waiting);
        lead(&group.tickets);
    }
}

/// A group that is being committed. Dropping it ends the lead, even if the leader panics.
struct CommitGroup<'a> {
    queue: &'a CommitQueue,
    tickets: Vec<Arc<CommitTicket>>,
}

impl Drop for CommitGroup<'_> {
    fn drop(&mut self) {
        for ticket in &self.tickets {
            let undecided = "the commit ended without a decision; this is a bug";
            ticket.decide(Err(EngineError::ReadOnly(undecided.to_owned())));
        }
        self.queue.waiting.lock().leading = false;
        self.queue.decided.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::{CommitChange, CommitQueue, CommitTicket};
    use marigram_model::TableId;
    use std::cell::Cell;
    use std::sync::Arc;

    fn decide_all(group: &[Arc<CommitTicket>]) {
        for ticket in group {
            ticket.decide(Ok(()));
        }
    }

    #[test]
    fn whoever_finds_a_leader_at_one_queue_leads_at_another() {
        let (busy, free) = (CommitQueue::default(), CommitQueue::default());
        let change = || CommitChange::DropTable(TableId(1));
        let others = busy.submit(change());
        let led = Cell::new(0);
        let count = |group: &[Arc<CommitTicket>]| {
            led.set(led.get() + group.len());
            decide_all(group);
        };
        busy.drive(&others, |group| {
            let (behind, beside) = (busy.submit(change()), free.submit(change()));
            busy.lead_if_free(&behind, count);
            assert_eq!(led.get(), 0, "that queue already has a leader");
            free.lead_if_free(&beside, count);
            assert_eq!(led.get(), 1);
            // Already decided: there is nothing to lead.
            free.lead_if_free(&beside, count);
            free.drive(&beside, count).unwrap();
            assert_eq!(led.get(), 1);
            decide_all(group);
        })
        .unwrap();
    }
}
