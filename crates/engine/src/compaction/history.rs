//! Running and past compactions, for `SHOW COMPACTIONS`.
//!
//! Running compactions count with atomics; of those that ended, the last hundred are kept.

use super::plan::CompactionPlan;
use crate::options::CompactionPolicy;
use marigram_manifest::{SegmentId, SegmentMeta};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of ended compactions to keep.
const RECENT_MAX: usize = 100;

/// State of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionState {
    /// It runs.
    Running,
    /// Its result is part of the shard.
    Done,
    /// It was abandoned because the engine closes; nothing has changed.
    Stopped,
    /// It failed; nothing has changed.
    Failed,
}

impl CompactionState {
    /// Name for display.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

/// A compaction that is running, or that ended recently.
#[derive(Clone, Debug)]
pub struct CompactionInfo {
    /// Its number since the engine was opened, from 1.
    pub id: u64,
    /// Number of its shard.
    pub shard: usize,
    /// `move`, `rewrite`, `inner sequence`, `inner unsequence`, `cross` or `table`.
    pub kind: &'static str,
    /// The policy that picked it.
    pub policy: CompactionPolicy,
    /// Its state.
    pub state: CompactionState,
    /// Its inputs.
    pub inputs: Vec<SegmentId>,
    /// Size of the inputs, in bytes.
    pub input_bytes: u64,
    /// Encoded bytes read so far.
    pub bytes_read: u64,
    /// Bytes written so far, including copied ones.
    pub bytes_written: u64,
    /// Bytes of pages that were copied without decoding.
    pub bytes_copied: u64,
    /// Rows read so far, each (series, time) counted once.
    pub rows: u64,
    /// Share of the rows that has been read, percent.
    pub percent: u8,
    /// Start time, ns since the Unix epoch.
    pub started_ns: i64,
    /// Duration so far, ns.
    pub duration_ns: u64,
}

/// The counters of a running compaction.
#[derive(Debug)]
pub(crate) struct CompactionProgress {
    begun: CompactionInfo,
    input_rows: u64,
    monotonic_ns: u64,
    pub rows: AtomicU64,
    pub bytes_read: AtomicU64,
    pub bytes_written: AtomicU64,
    pub bytes_copied: AtomicU64,
}

impl CompactionProgress {
    /// Adds to a counter; counters are only read for display.
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    /// Bytes read and written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed) + self.bytes_written.load(Ordering::Relaxed)
    }

    fn info(&self, state: CompactionState, monotonic_ns: u64) -> CompactionInfo {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let rows = load(&self.rows);
        let percent = match state {
            CompactionState::Done => 100,
            _ => (rows.saturating_mul(100) / self.input_rows.max(1)).min(99) as u8,
        };
        CompactionInfo {
            state,
            rows,
            percent,
            bytes_read: load(&self.bytes_read),
            bytes_written: load(&self.bytes_written),
            bytes_copied: load(&self.bytes_copied),
            duration_ns: monotonic_ns.saturating_sub(self.monotonic_ns),
            ..self.begun.clone()
        }
    }
}

/// Readings of both clocks: ns since the Unix epoch, and monotonic ns.
pub(crate) type ClockReadings = (i64, u64);

/// The compactions of an engine.
#[derive(Debug, Default)]
pub(crate) struct CompactionHistory {
    lists: Mutex<CompactionLists>,
}

#[derive(Debug, Default)]
struct CompactionLists {
    begun: u64,
    running: Vec<Arc<CompactionProgress>>,
    /// Oldest first.
    recent: VecDeque<CompactionInfo>,
}

impl CompactionHistory {
    /// Records that a compaction begins.
    pub(crate) fn begin<'a>(
        &self,
        shard: usize,
        policy: CompactionPolicy,
        plan: &CompactionPlan,
        inputs: impl Iterator<Item = &'a SegmentMeta>,
        now: ClockReadings,
    ) -> Arc<CompactionProgress> {
        let (mut input_bytes, mut input_rows) = (0, 0);
        for meta in inputs {
            input_bytes += meta.bytes;
            input_rows += meta.rows;
        }
        let mut lists = self.lists.lock();
        lists.begun += 1;
        let begun = CompactionInfo {
            id: lists.begun,
            shard,
            kind: plan.kind.name(),
            policy,
            state: CompactionState::Running,
            inputs: plan.inputs.clone(),
            input_bytes,
            bytes_read: 0,
            bytes_written: 0,
            bytes_copied: 0,
            rows: 0,
            percent: 0,
            started_ns: now.0,
            duration_ns: 0,
        };
        let progress = Arc::new(CompactionProgress {
            begun,
            input_rows,
            monotonic_ns: now.1,
            rows: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            bytes_copied: AtomicU64::new(0),
        });
        lists.running.push(progress.clone());
        progress
    }

    /// Records that a compaction ended; returns what it did.
    pub(crate) fn end(
        &self,
        progress: &Arc<CompactionProgress>,
        state: CompactionState,
        now: ClockReadings,
    ) -> CompactionInfo {
        let info = progress.info(state, now.1);
        let mut lists = self.lists.lock();
        lists
            .running
            .retain(|running| !Arc::ptr_eq(running, progress));
        if lists.recent.len() == RECENT_MAX {
            lists.recent.pop_front();
        }
        lists.recent.push_back(info.clone());
        info
    }

    /// The ended compactions, oldest first, and then the running ones.
    pub(crate) fn list(&self, now: ClockReadings) -> Vec<CompactionInfo> {
        let lists = self.lists.lock();
        let running = lists.running.iter();
        let running = running.map(|progress| progress.info(CompactionState::Running, now.1));
        lists.recent.iter().cloned().chain(running).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::CompactionKind;
    use super::*;
    use marigram_manifest::SegmentSpace;

    #[test]
    fn what_runs_is_shown_and_only_the_last_that_ended_are_kept() {
        let history = CompactionHistory::default();
        let plan = CompactionPlan {
            kind: CompactionKind::Cross,
            inputs: vec![SegmentId(3)],
            space: SegmentSpace::Sequence,
            spends_up_to: 0,
            segment_bytes_max: 1,
            cold: false,
        };
        let policy = CompactionPolicy::Balance;
        let begin = || history.begin(1, policy, &plan, std::iter::empty(), (5, 100));
        let running = begin();
        CompactionProgress::add(&running.bytes_written, 10);
        for _ in 0..150 {
            history.end(&begin(), CompactionState::Failed, (6, 107));
        }
        let all = history.list((7, 200));
        assert_eq!(all.len(), 101);
        assert_eq!((all[0].id, all[0].duration_ns), (52, 7));
        let last = &all[100];
        assert_eq!((last.id, last.state), (1, CompactionState::Running));
        assert_eq!((last.bytes_written, last.duration_ns), (10, 100));
        let done = history.end(&running, CompactionState::Done, (8, 201));
        assert_eq!((done.kind, done.percent), ("cross", 100));
    }
}
