//! Admission control for writes: memory for a batch is reserved before any of it is stored.
//!
//! At the ceiling, the engine first makes room (empties caches, flushes memtables). Then writers
//! wait for a limited time. After that, they are refused with an error that says when to retry.

use crate::background::BackgroundSignal;
use crate::error::{EngineError, Result};
use crate::flush::LiveSource;
use crate::memory::{Holder, MemoryAccountant};
use crate::shard::{Shard, ShardContext};
use std::time::Duration;

/// How long a writer waits for memory at most, and how often it checks.
const WAIT_MAX: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Number of unsuccessful checks after which even the last-value cache's required memory is
/// released.
const LOOKS_BEFORE_CACHES: u128 = 25;
/// When a refused writer may retry.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Memory reserved for rows; released when dropped, unless the holder of the rows keeps it.
#[derive(Debug)]
pub(crate) struct WriteReservation<'a> {
    memory: &'a MemoryAccountant,
    bytes: usize,
}

impl WriteReservation<'_> {
    /// Replaces the estimate by the bytes that are now known to be needed.
    pub(crate) fn adjust(&mut self, bytes: usize) {
        if bytes >= self.bytes {
            self.memory.grow(Holder::Memtable, bytes - self.bytes);
        } else {
            self.memory.shrink(Holder::Memtable, self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    /// Hands this many bytes over to a memtable.
    pub(crate) fn keep(&mut self, bytes: usize) {
        self.bytes -= bytes;
    }
}

impl Drop for WriteReservation<'_> {
    fn drop(&mut self) {
        self.memory.shrink(Holder::Memtable, self.bytes);
    }
}

/// Reserves `bytes` for rows.
pub(crate) fn admit<'a>(
    context: &'a ShardContext,
    shards: &[Shard],
    live: LiveSource<'_>,
    bell: &BackgroundSignal,
    bytes: usize,
) -> Result<WriteReservation<'a>> {
    let memory = &*context.memory;
    if bytes > memory.share(Holder::Memtable) {
        return Err(EngineError::Invalid(format!(
            "the batch takes {bytes} bytes, over half of the memory ceiling of {} bytes; \
             send smaller batches",
            memory.limit()
        )));
    }
    let started_ns = context.env.clock.monotonic_ns();
    let looks_max = WAIT_MAX.as_millis() / LOOK_EVERY.as_millis();
    for look in 0..=looks_max {
        if memory.try_grow(Holder::Memtable, bytes) {
            return Ok(WriteReservation { memory, bytes });
        }
        if look == 0 {
            memory.note_wait(Holder::Memtable);
            make_room(context, shards, live, bell)?;
            continue;
        }
        if look == LOOKS_BEFORE_CACHES {
            empty_caches(shards);
            continue;
        }
        let waited_ns = context.env.clock.monotonic_ns().saturating_sub(started_ns);
        let threads = context.options.background_threads > 0;
        if !threads || u128::from(waited_ns) > WAIT_MAX.as_nanos() {
            break;
        }
        bell.wait_for_room(LOOK_EVERY);
    }
    Err(EngineError::Busy {
        reason: format!(
            "{} of {} bytes of memory are in use, {} of them by rows that wait for a flush",
            memory.used(),
            memory.limit(),
            memory.used_by(Holder::Memtable)
        ),
        retry_after: RETRY_AFTER,
    })
}

/// Flushes memtables: on the background threads, or, if there are none, on this thread. Without
/// threads, it also empties caches at once, because nothing else makes room later.
fn make_room(
    context: &ShardContext,
    shards: &[Shard],
    live: LiveSource<'_>,
    bell: &BackgroundSignal,
) -> Result<()> {
    let threads = context.options.background_threads > 0;
    let mut flushing = false;
    for shard in shards {
        shard.last.lock().evict_cold();
        if threads && shard.is_worth_freeing() {
            shard.freeze()?;
        }
        flushing |= !shard.state.read().frozen.is_empty();
    }
    // Small memtables become small segments, so flush them only if there is nothing else to flush.
    if !flushing || !threads {
        for shard in shards {
            shard.freeze()?;
        }
    }
    bell.ring();
    if !threads {
        empty_caches(shards);
        for shard in shards {
            while shard.flush_oldest(live)? {}
        }
    }
    Ok(())
}

fn empty_caches(shards: &[Shard]) {
    for shard in shards {
        let sequence = shard.state.read().sequence;
        shard.last.lock().evict_all(sequence);
    }
}
