//! What keeps an engine in shape: flushes, compaction, retention, syncs at intervals; by the
//! owner's calls or by background threads.

use super::inner::Inner;
use crate::admission::PRESSED_PART;
use crate::background::Threads;
use crate::error::{EngineError, Result};
use crate::flush::LiveTables;
use crate::memory::Holder;
use crate::options::Durability;
use crate::shard::Shard;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Inner {
    /// Everything acknowledged so far is in segments when it returns.
    pub fn flush(&self) -> Result<()> {
        let mut outcome = Ok(());
        for shard in &self.shards {
            if let Err(error) = shard
                .freeze()
                .map(drop)
                .and_then(|()| self.flush_frozen(shard))
            {
                outcome = outcome.and(Err(error));
            }
        }
        outcome
    }

    /// Compacts until nothing asks for more.
    pub fn compact(&self) -> Result<()> {
        for shard in &self.shards {
            while shard.compact_once(&self.schemas.all(), &|| false)? {}
        }
        Ok(())
    }

    /// One round of upkeep.
    pub fn maintain(&self) -> Result<bool> {
        let mut did = self.sync_if_due();
        for shard in &self.shards {
            let rounds: [&dyn Fn() -> Result<bool>; 3] = [
                &|| self.flush_due(shard),
                &|| shard.compact_once(&self.schemas.all(), &|| false),
                &|| shard.retain(&self.schemas.all()),
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

    /// Drops what has been outlived; says whether there was anything.
    pub fn retain(&self) -> Result<bool> {
        let live = self.schemas.all();
        let mut did = false;
        for shard in &self.shards {
            did |= shard.retain(&live)?;
        }
        Ok(did)
    }

    /// Freezes memtables that are full, and smaller ones where half of what they may have is used.
    pub fn freeze_full(&self) -> Result<()> {
        let memory = &self.context.memory;
        let used = memory.used_by(Holder::Memtable);
        let pressed = used > memory.available(Holder::Memtable) / 4 * 3;
        self.freeze_from(if pressed { PRESSED_PART } else { 1 })
    }

    /// Makes room for those to whom memory was refused: cold last values go, and memtables are
    /// frozen before they are full.
    pub fn relieve(&self) -> Result<()> {
        for shard in &self.shards {
            shard.last.lock().evict_cold();
        }
        self.freeze_from(PRESSED_PART)
    }

    fn freeze_from(&self, part: usize) -> Result<()> {
        let max = self.context.flush_bytes_max() / part;
        let mut frozen = false;
        for shard in &self.shards {
            if shard.state.read().active.bytes >= max.max(1) {
                frozen |= shard.freeze()?;
            }
        }
        if frozen {
            self.bell.ring();
        }
        Ok(())
    }

    /// Flushes what is frozen and what is old; says whether there was anything.
    fn flush_due(&self, shard: &Shard) -> Result<bool> {
        if self.is_old(shard) {
            shard.freeze()?;
        }
        if shard.state.read().frozen.is_empty() {
            return Ok(false);
        }
        self.flush_frozen(shard)?;
        Ok(true)
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
        // The catalog is read after the freeze: it knows every table that the rows are of.
        let live = self.schemas.all();
        while shard.flush_oldest(&live)? {
            self.bell.tell_room();
        }
        Ok(())
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

/// Starts the background threads that the settings ask for. The first flushes before all else;
/// the others compact and retain, and flush too, so that one long compaction holds up nobody.
pub(super) fn start(inner: &Arc<Inner>, threads: &Threads) -> std::io::Result<()> {
    let count = inner.context.options.background_threads;
    let pause = match inner.context.options.durability {
        Durability::Interval(interval) => interval,
        Durability::Fsync | Durability::Os => Duration::MAX,
    };
    for number in 0..count {
        let (inner, bell) = (inner.clone(), inner.bell.clone());
        let compacts = number > 0 || count == 1;
        threads.start(&format!("marigram-{number}"), &bell, pause, move || {
            background_round(&inner, compacts)
        })?;
    }
    Ok(())
}

/// One round of a background thread; says whether it did anything.
fn background_round(inner: &Inner, compacts: bool) -> bool {
    let live: LiveTables = inner.schemas.all();
    let stop = || inner.bell.is_stopping();
    if inner.bell.take_pressed() {
        told("making room in memory", inner.relieve().map(|()| false));
    }
    let mut did = told("sync", inner.sync_if_due());
    for shard in &inner.shards {
        did |= told("flush", inner.flush_due(shard));
    }
    for shard in inner.shards.iter().filter(|_| compacts) {
        if stop() {
            break;
        }
        did |= told("compaction", shard.compact_once(&live, &stop));
        did |= told("retention", shard.retain(&live));
    }
    did
}

/// Whether work was done; that writes are refused was told before; any other error is logged, and work waits for the next round.
fn told(what: &str, outcome: Result<bool>) -> bool {
    match outcome {
        Ok(did) => did,
        Err(EngineError::ReadOnly(_)) => false,
        Err(error) => {
            tracing::warn!(%error, "{what} failed and will be tried again");
            false
        }
    }
}
