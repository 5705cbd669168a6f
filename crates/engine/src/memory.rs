//! One ceiling over all memory that grows with data: an accountant grants it to every holder.
//!
//! Each holder has a *reserve*, a part of the ceiling that the others leave to it, and a *share*,
//! the most that it can get (`docs/decisions/0012-memory.md`). So neither rows that wait for a
//! flush nor queries can starve the other, and unused memory is available to any holder. A holder
//! that is refused decides what to do (flush, spill, wait, give up).
//!
//! If the process is measured, memory that no holder has reserved lowers the ceiling for all:
//! reserves and shares are parts of what is left.

mod process_memory;
mod reservation;
#[cfg(test)]
mod tests;

pub use process_memory::ProcessMemory;
pub use reservation::MemoryReservation;

use process_memory::UnaccountedMemory;

use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Holders of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// Rows that are not in segments yet, and the memory to flush them.
    Memtable,
    /// Tags and ids of series, and the time up to which each has been flushed.
    SeriesIndex,
    /// Footers, directories and page indexes of open segments.
    SegmentIndex,
    /// The last-value cache.
    LastValues,
    /// Bodies of requests, and the batches parsed from them.
    Requests,
    /// Pages that scans have decoded, and batches that have not reached their readers.
    Scan,
    /// State of queries: sorts, groups, hash tables of joins.
    Query,
    /// Compaction.
    Compaction,
    /// Log records that are being read back into memory.
    Recovery,
    /// Further memory of the process: code, stacks of threads, memory that the allocator keeps.
    /// Only known if it is measured: see [`MemoryAccountant::measured`].
    Process,
}

/// Reserves and shares are given in this many parts of the ceiling.
const PARTS: usize = 32;

/// What a working process uses for itself in addition to its initial memory: one of this many parts
/// of the ceiling.
const WORKING_PART: usize = 8;

impl Holder {
    /// All holders.
    pub const ALL: [Self; 10] = [
        Self::Memtable,
        Self::SeriesIndex,
        Self::SegmentIndex,
        Self::LastValues,
        Self::Requests,
        Self::Scan,
        Self::Query,
        Self::Compaction,
        Self::Recovery,
        Self::Process,
    ];

    /// The holder's name in status and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memtable => "memtable",
            Self::SeriesIndex => "series_index",
            Self::SegmentIndex => "segment_index",
            Self::LastValues => "last_values",
            Self::Requests => "requests",
            Self::Scan => "scan",
            Self::Query => "query",
            Self::Compaction => "compaction",
            Self::Recovery => "recovery",
            Self::Process => "process",
        }
    }

    /// Whether it releases its memory once its work is done, or when memory is short.
    fn gives_back(self) -> bool {
        !matches!(self, Self::SeriesIndex | Self::SegmentIndex)
    }

    /// Its reserve and its share, in 32nds of the ceiling.
    fn parts(self) -> (usize, usize) {
        match self {
            Self::Memtable => (4, 16),
            Self::Requests | Self::Compaction => (1, 8),
            Self::Scan => (2, 12),
            Self::Query => (6, 24),
            Self::LastValues => (0, 4),
            Self::SeriesIndex | Self::SegmentIndex | Self::Recovery | Self::Process => (0, PARTS),
        }
    }
}

/// Current and past usage of a holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// In use, bytes.
    pub bytes: usize,
    /// The most that was ever in use, bytes.
    pub peak_bytes: usize,
    /// How often memory was refused.
    pub refusals: u64,
    /// How often a caller waited for memory.
    pub waits: u64,
}

/// One ceiling over everything; it grants memory to every holder.
pub struct MemoryAccountant {
    limit: usize,
    state: Mutex<AccountantState>,
    /// Signals that memory was released.
    room: Condvar,
    on_refusal: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Whether the process exceeded the ceiling when it was last measured.
    is_over: AtomicBool,
}

#[derive(Debug, Default)]
struct AccountantState {
    usage: [MemoryUsage; Holder::ALL.len()],
    used: usize,
    peak: usize,
    waiting: usize,
    /// The memory of [`Holder::Process`], over time.
    unaccounted: UnaccountedMemory,
    /// Whether a holder was refused or waited since the process was last measured.
    refused: bool,
}

impl fmt::Debug for MemoryAccountant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryAccountant")
            .field("limit", &self.limit)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl MemoryAccountant {
    /// An accountant without any memory in use.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit: limit_bytes,
            state: Mutex::default(),
            room: Condvar::new(),
            on_refusal: OnceLock::new(),
            is_over: AtomicBool::new(false),
        }
    }

    /// The ceiling, bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes in use by all holders.
    #[must_use]
    pub fn used(&self) -> usize {
        self.state.lock().used
    }

    /// The most bytes that all holders together ever had in use.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.state.lock().peak
    }

    /// Bytes in use by one holder.
    #[must_use]
    pub fn used_by(&self, holder: Holder) -> usize {
        self.usage(holder).bytes
    }

    /// Current and past usage of a holder.
    #[must_use]
    pub fn usage(&self, holder: Holder) -> MemoryUsage {
        self.state.lock().usage[holder as usize]
    }

    /// The most bytes that a holder can get, however little the others use.
    #[must_use]
    pub fn share(&self, holder: Holder) -> usize {
        let at_rest = self.state.lock().unaccounted.floor_bytes();
        part(self.room_beside(at_rest), holder.parts().1)
    }

    /// The most bytes that a holder can get while no other holder needs any. Memory that others
    /// flush, evict or finish is available to it; memory that indexes hold is not. It allows for
    /// the fact that a working process uses more for itself than one that has just started.
    #[must_use]
    pub fn attainable(&self, holder: Holder) -> usize {
        let state = self.state.lock();
        let at_rest = state.unaccounted.floor_bytes();
        let working = if at_rest == 0 {
            0
        } else {
            at_rest + self.limit / WORKING_PART
        };
        let room = self.room_beside(working);
        let others = Holder::ALL
            .into_iter()
            .filter(|other| *other != holder && *other != Holder::Process);
        let kept = others.map(|other| {
            let reserved = part(room, other.parts().0);
            if other.gives_back() {
                reserved
            } else {
                state.usage[other as usize].bytes.max(reserved)
            }
        });
        clamped(room, room.saturating_sub(kept.sum()), holder)
    }

    /// Bytes that a holder could have in total at present, including what it has: what the others
    /// neither use nor have reserved, at least its own reserve, at most its share.
    #[must_use]
    pub fn available(&self, holder: Holder) -> usize {
        self.available_in(&self.state.lock(), holder)
    }

    /// Reserves `bytes` if they are available; returns whether they were.
    pub fn try_grow(&self, holder: Holder, bytes: usize) -> bool {
        let mut state = self.state.lock();
        let taken = self.take(&mut state, holder, bytes);
        if !taken {
            state.usage[holder as usize].refusals += 1;
            state.refused = true;
            drop(state);
            self.tell_refusal();
        }
        taken
    }

    /// Like [`try_grow`](Self::try_grow), but waits up to `timeout` for others to release memory.
    /// Blocks the thread.
    #[expect(
        clippy::disallowed_methods,
        reason = "a wait on a condition needs a deadline by the machine's clock; no data depends on it"
    )]
    pub fn wait_grow(&self, holder: Holder, bytes: usize, timeout: Duration) -> bool {
        let mut state = self.state.lock();
        if self.take(&mut state, holder, bytes) {
            return true;
        }
        state.usage[holder as usize].waits += 1;
        state.refused = true;
        drop(state);
        self.tell_refusal();
        let deadline = Instant::now() + timeout;
        let mut state = self.state.lock();
        loop {
            if self.take(&mut state, holder, bytes) {
                return true;
            }
            state.waiting += 1;
            let ended = self.room.wait_until(&mut state, deadline).timed_out();
            state.waiting -= 1;
            if ended {
                let taken = self.take(&mut state, holder, bytes);
                state.usage[holder as usize].refusals += u64::from(!taken);
                return taken;
            }
        }
    }

    /// Reserves `bytes` whether or not they are available: existing memory must be counted.
    pub fn grow(&self, holder: Holder, bytes: usize) {
        self.state.lock().add(holder, bytes);
    }

    /// Releases `bytes` that were reserved.
    ///
    /// # Panics
    /// In debug builds, if more is released than was reserved.
    pub fn shrink(&self, holder: Holder, bytes: usize) {
        let mut state = self.state.lock();
        let usage = &mut state.usage[holder as usize];
        debug_assert!(
            usage.bytes >= bytes,
            "{} released more than it had reserved",
            holder.name()
        );
        let bytes = bytes.min(usage.bytes);
        usage.bytes -= bytes;
        state.used -= bytes;
        if state.waiting > 0 && bytes > 0 {
            self.room.notify_all();
        }
    }

    /// Records the resident size of the process: what no holder has reserved of it counts as
    /// [`Holder::Process`] from now on.
    pub fn measured(&self, resident_bytes: usize) -> ProcessMemory {
        let mut state = self.state.lock();
        let before = state.usage[Holder::Process as usize].bytes;
        state.used -= before;
        state.usage[Holder::Process as usize].bytes = 0;
        let used = state.used;
        let beyond = state.unaccounted.note(resident_bytes, used);
        state.add(Holder::Process, beyond);
        let refused = std::mem::take(&mut state.refused) || state.waiting > 0;
        if state.waiting > 0 && beyond < before {
            self.room.notify_all();
        }
        let measured = ProcessMemory {
            resident_bytes,
            retained_bytes: state.unaccounted.retained_bytes(),
            refused,
        };
        drop(state);
        let is_over = resident_bytes > self.limit;
        self.is_over.store(is_over, Ordering::Relaxed);
        if is_over {
            self.tell_refusal();
        }
        measured
    }

    /// Whether the process exceeded the ceiling when it was last measured; then the largest holders
    /// must give way.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Records a wait that happens elsewhere.
    pub fn note_wait(&self, holder: Holder) {
        let mut state = self.state.lock();
        state.usage[holder as usize].waits += 1;
        state.refused = true;
    }

    /// Sets `notify`, which is called on the requesting thread whenever memory is refused. Set
    /// once.
    pub(crate) fn on_refusal(&self, notify: impl Fn() + Send + Sync + 'static) {
        // A second call would mean a second engine on one accountant, which does not occur.
        let _ = self.on_refusal.set(Box::new(notify));
    }

    fn tell_refusal(&self) {
        if let Some(notify) = self.on_refusal.get() {
            notify();
        }
    }

    /// The memory that the holders share next to a process of this size. Some is left for what may
    /// appear between two measurements of the process. A little is always available, so that work
    /// that frees memory can run.
    fn room_beside(&self, process_bytes: usize) -> usize {
        if process_bytes == 0 {
            return self.limit;
        }
        let room = self.limit.saturating_sub(process_bytes + self.limit / 32);
        room.max(self.limit / 16)
    }

    fn available_in(&self, state: &AccountantState, holder: Holder) -> usize {
        let room = self.room_beside(state.usage[Holder::Process as usize].bytes);
        let others = Holder::ALL
            .into_iter()
            .filter(|other| *other != holder && *other != Holder::Process);
        let taken: usize = others
            .map(|other| {
                let reserved = part(room, other.parts().0);
                state.usage[other as usize].bytes.max(reserved)
            })
            .sum();
        clamped(room, room.saturating_sub(taken), holder)
    }

    fn take(&self, state: &mut AccountantState, holder: Holder, bytes: usize) -> bool {
        // A request for nothing is never refused, even if others have too much: an operator that
        // must spill batches without columns would write data that cannot be read again.
        if bytes == 0 {
            return true;
        }
        let after = state.usage[holder as usize].bytes.checked_add(bytes);
        let fits = after.is_some_and(|after| after <= self.available_in(state, holder));
        if fits {
            state.add(holder, bytes);
        }
        fits
    }
}

/// `free` bytes, but at least the holder's reserve and at most its share of `room`.
fn clamped(room: usize, free: usize, holder: Holder) -> usize {
    let (reserve, share) = holder.parts();
    free.max(part(room, reserve)).min(part(room, share))
}

/// This many 32nds of `bytes`.
fn part(bytes: usize, parts: usize) -> usize {
    if parts == PARTS {
        return bytes;
    }
    bytes / PARTS * parts
}

impl AccountantState {
    fn add(&mut self, holder: Holder, bytes: usize) {
        let usage = &mut self.usage[holder as usize];
        usage.bytes += bytes;
        usage.peak_bytes = usage.peak_bytes.max(usage.bytes);
        self.used += bytes;
        self.peak = self.peak.max(self.used);
    }
}
