//! Maintenance of an engine: flushes, compaction, retention, syncs at intervals; through the
//! owner's calls or background threads.

use super::inner::EngineInner;
use crate::background::BackgroundThreads;
use crate::compaction::PickOptions;
use crate::error::{EngineError, Result};
use crate::maintain::{CompactionSettings, TableCompaction};
use crate::memory::Holder;
use crate::options::Durability;
use crate::parallel::side_by_side;
use crate::shard::Shard;
use marigram_model::TableId;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl EngineInner {
    /// Flushes; everything acknowledged so far is in segments when it returns.
    pub(super) fn flush(&self) -> Result<()> {
        // Freeze first, so that the background threads help with the rest.
        let frozen = self.shards.iter().map(|shard| shard.freeze().map(drop));
        let frozen = frozen.collect::<Vec<_>>().into_iter();
        self.bell.ring();
        let flush = |shard| self.flush_frozen(shard);
        let flushed = if self.context.options.background_threads == 0 {
            self.shards.iter().map(flush).collect()
        } else {
            side_by_side(self.shards.iter(), flush)
        };
        frozen.chain(flushed).collect()
    }

    /// Compacts until nothing is due and all late rows are in the sequence space.
    pub(super) fn compact(&self) -> Result<()> {
        let stop = |_| self.bell.is_stopping();
        let manner = CompactionSettings {
            options: PickOptions::thorough(),
            ..self.on_demand(&stop)
        };
        for shard in &self.shards {
            while shard.compact_once(&|| self.schemas.all(), &manner)? {}
        }
        if self.bell.is_stopping() {
            return Err(EngineError::Closed);
        }
        Ok(())
    }

    /// Rewrites each partition of a table as one sorted segment.
    pub(super) fn compact_table(&self, table: TableId) -> Result<TableCompaction> {
        let stop = |_| self.bell.is_stopping();
        let manner = self.on_demand(&stop);
        let mut all = TableCompaction::default();
        for shard in &self.shards {
            all += shard.compact_table(table, &|| self.schemas.all(), &manner)?;
        }
        Ok(all)
    }

    /// Compaction that a caller waits for: the rate limit does not apply.
    fn on_demand<'a>(&self, stop: &'a dyn Fn(u64) -> bool) -> CompactionSettings<'a> {
        CompactionSettings {
            options: PickOptions::for_policy(self.context.options.compaction),
            stop,
            wait: true,
        }
    }

    /// Runs one round of maintenance.
    pub(super) fn maintain(&self) -> Result<bool> {
        let mut did = self.sync_if_due();
        self.context.trash.purge(&self.context.env);
        // While there is no space for it, writers get the error.
        let _ = self.context.reserve.restore(&self.context.env);
        let stop = |_| self.bell.is_stopping();
        let manner = self.on_demand(&stop);
        for shard in &self.shards {
            let rounds: [&dyn Fn() -> Result<bool>; 3] = [
                &|| self.flush_due(shard),
                &|| shard.compact_once(&|| self.schemas.all(), &manner),
                &|| shard.retain(&|| self.schemas.all(), true),
            ];
            for round in rounds {
                did = match (did, round()) {
                    (Ok(did), Ok(now)) => Ok(did | now),
                    (Err(error), _) | (Ok(_), Err(error)) => Err(error),
                };
            }
        }
        did
    }

    /// Drops rows past their ttl; returns whether there were any.
    pub(super) fn retain(&self) -> Result<bool> {
        let mut did = false;
        for shard in &self.shards {
            did |= shard.retain(&|| self.schemas.all(), true)?;
        }
        Ok(did)
    }

    /// Freezes full memtables, and smaller ones if half of their memory is used.
    pub(super) fn freeze_full(&self) -> Result<()> {
        let memory = &self.context.memory;
        let used = memory.used_by(Holder::Memtable);
        let pressed = used > memory.available(Holder::Memtable) / 4 * 3;
        self.freeze_where(|shard| shard.is_full() || (pressed && shard.is_worth_freeing()))
    }

    /// Frees memory for holders that were refused: drops cold last values, and freezes memtables
    /// before they are full. If the process is over its limit, drops all last values.
    pub(super) fn relieve(&self) -> Result<()> {
        let memory = &self.context.memory;
        let all_go = memory.is_over() && memory.used_by(Holder::LastValues) > memory.limit() / 64;
        for shard in &self.shards {
            if all_go {
                let sequence = shard.state.read().sequence;
                shard.last.lock().evict_all(sequence);
            } else {
                shard.last.lock().evict_cold();
            }
        }
        self.freeze_where(Shard::is_worth_freeing)
    }

    fn freeze_where(&self, wanted: impl Fn(&Shard) -> bool) -> Result<()> {
        let mut frozen = false;
        for shard in &self.shards {
            if wanted(shard) {
                frozen |= shard.freeze()?;
            }
        }
        if frozen {
            self.bell.ring();
        }
        Ok(())
    }

    /// Flushes what is frozen and what is old; returns whether there was anything.
    fn flush_due(&self, shard: &Shard) -> Result<bool> {
        self.freeze_old(shard)?;
        if shard.state.read().frozen.is_empty() {
            return Ok(false);
        }
        self.flush_frozen(shard)?;
        Ok(true)
    }

    fn freeze_old(&self, shard: &Shard) -> Result<bool> {
        Ok(self.is_old(shard) && shard.freeze()?)
    }

    fn is_old(&self, shard: &Shard) -> bool {
        let Some(age_max) = self.context.options.flush_age_max else {
            return false;
        };
        let now_ns = self.context.env.clock.monotonic_ns();
        let since_ns = shard.state.read().active.since_ns;
        since_ns.is_some_and(|since| u128::from(now_ns.saturating_sub(since)) >= age_max.as_nanos())
    }

    fn flush_frozen(&self, shard: &Shard) -> Result<()> {
        while shard.flush_oldest(&|| self.schemas.all())? {
            self.bell.tell_room();
        }
        Ok(())
    }

    /// Flushes a memtable of the shard with the most waiting data, among those that can be flushed
    /// and that nothing else is flushing; returns whether there was one.
    fn flush_largest(&self) -> bool {
        let frozen_bytes = |shard: &Shard| -> Option<usize> {
            let frozen = &shard.state.read().frozen;
            let bytes = frozen.iter().map(|frozen| frozen.memtable.bytes);
            (!frozen.is_empty()).then(|| bytes.sum())
        };
        let waiting = self.shards.iter();
        let mut waiting: Vec<_> = waiting
            .filter_map(|shard| Some((frozen_bytes(shard)?, shard)))
            .collect();
        waiting.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        let live = || self.schemas.all();
        let flushed = waiting
            .iter()
            .any(|(_, shard)| report_outcome(self, "flush", shard.try_flush_oldest(&live)));
        if flushed {
            self.bell.tell_room();
        }
        flushed
    }

    fn sync_if_due(&self) -> Result<bool> {
        let Durability::Interval(interval) = self.context.options.durability else {
            return Ok(false);
        };
        let now_ns = self.context.env.clock.monotonic_ns();
        let synced_ns = self.synced_ns.load(Ordering::Relaxed);
        if u128::from(now_ns.saturating_sub(synced_ns)) < interval.as_nanos() {
            return Ok(false);
        }
        self.synced_ns.store(now_ns, Ordering::Relaxed);
        for shard in &self.shards {
            shard.sync()?;
        }
        Ok(false)
    }
}

/// Starts the background threads that the settings ask for. The first one flushes before all else.
/// The others compact and retain, and flush as well, so that one long compaction delays nothing. A
/// single thread flushes between the batches of a compaction.
pub(super) fn start(inner: &Arc<EngineInner>, threads: &BackgroundThreads) -> std::io::Result<()> {
    let count = inner.context.options.background_threads;
    let pause = match inner.context.options.durability {
        Durability::Interval(interval) => interval,
        Durability::Fsync | Durability::Os => Duration::MAX,
    };
    for number in 0..count {
        let (inner, bell) = (inner.clone(), inner.bell.clone());
        let role = BackgroundRole {
            compacts: number > 0 || count == 1,
            alone: count == 1,
        };
        threads.start(&format!("marigram-{number}"), &bell, pause, move || {
            background_round(&inner, role)
        })?;
    }
    Ok(())
}

/// The role of a background thread.
#[derive(Clone, Copy, Debug)]
struct BackgroundRole {
    /// Whether it compacts and retains.
    compacts: bool,
    /// Whether it is the only thread.
    alone: bool,
}

/// Runs one round of a background thread; returns whether it did anything.
fn background_round(inner: &EngineInner, role: BackgroundRole) -> bool {
    let live = || inner.schemas.all();
    let mut did = flush_round(inner);
    let manner = CompactionSettings {
        options: PickOptions::for_policy(inner.context.options.compaction),
        stop: &|bytes| inner.pause_compaction(bytes, role),
        wait: false,
    };
    for shard in inner.shards.iter().filter(|_| role.compacts) {
        if inner.bell.is_stopping() {
            break;
        }
        did |= report_outcome(inner, "compaction", shard.compact_once(&live, &manner));
        did |= report_outcome(inner, "retention", shard.retain(&live, false));
    }
    if role.compacts {
        inner.context.trash.purge_if_due(&inner.context.env);
        let _ = inner.context.reserve.restore(&inner.context.env);
    }
    did
}

/// The part of a round for which writers wait.
pub(super) fn flush_round(inner: &EngineInner) -> bool {
    if inner.bell.take_pressed() {
        report_outcome(
            inner,
            "making room in memory",
            inner.relieve().map(|()| false),
        );
    }
    let mut did = report_outcome(inner, "sync", inner.sync_if_due());
    for shard in &inner.shards {
        did |= report_outcome(inner, "freeze", inner.freeze_old(shard));
    }
    while inner.flush_largest() {
        did = true;
    }
    did
}

impl EngineInner {
    /// Pauses a background compaction, which has read and written `bytes` more, as the rate limit
    /// demands; returns whether to abandon the compaction.
    fn pause_compaction(&self, bytes: u64, role: BackgroundRole) -> bool {
        let clock = &self.context.env.clock;
        let now_ns = clock.monotonic_ns();
        let pause = match &self.budget {
            Some(budget) => budget.lock().pay(bytes, now_ns),
            None => Duration::ZERO,
        };
        let until_ns = now_ns.saturating_add(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX));
        loop {
            if role.alone {
                flush_round(self);
            }
            let now_ns = clock.monotonic_ns();
            if self.bell.is_stopping() || now_ns >= until_ns {
                return self.bell.is_stopping();
            }
            self.bell.rest(Duration::from_nanos(until_ns - now_ns));
        }
    }
}

/// Returns whether work was done. Refused writes have been reported before. Any other error is
/// logged now and then, and the work waits for the next round.
fn report_outcome(inner: &EngineInner, what: &'static str, outcome: Result<bool>) -> bool {
    match outcome {
        Ok(did) => did,
        Err(EngineError::ReadOnly(_)) => false,
        Err(error) => {
            let now_ns = inner.context.env.clock.monotonic_ns();
            if let Some(untold) = inner.complaints.next(what, now_ns) {
                tracing::warn!(%error, untold, "{what} failed and will be tried again");
            }
            false
        }
    }
}
