//! One ceiling over all memory that grows with data: an accountant on which every holder draws.
//!
//! Each holder has a *reserve*, a part of the ceiling that the others leave to it, and a *share*, the
//! most that it gets (`docs/decisions/0012-memory.md`). So neither rows that wait to be flushed nor
//! queries can starve the other, and what nobody uses goes to whoever asks. Who is refused decides
//! what to do (flush, spill, wait, give up).
//!
//! Where the process is measured, what no holder has taken of it lowers the ceiling for all:
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

/// Who holds memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// Rows that are not in segments yet, and what flushing them takes.
    Memtable,
    /// Tags and ids of series, and the time up to which each has been flushed.
    SeriesIndex,
    /// Footers, directories and page indexes of open segments.
    SegmentIndex,
    /// The last-value cache.
    LastValues,
    /// Bodies of requests, and the batches parsed from them.
    Requests,
    /// Pages that scans have decoded, and batches on their way to those who read them.
    Scan,
    /// What queries keep: sorts, groups, tables of joins.
    Query,
    /// Compaction.
    Compaction,
    /// Records of the log on their way back into memory.
    Recovery,
    /// What the process holds beyond all that: code, threads' stacks, what the allocator keeps.
    /// Known only where it is measured: see [`MemoryAccountant::measured`].
    Process,
}

/// Of the ceiling, in 32nds.
const PARTS: usize = 32;

/// What a process that works has for itself beyond what it began with: one part of so many of the
/// ceiling.
const WORKING_PART: usize = 8;

impl Holder {
    /// Every holder.
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

    /// Whether it gives back what it holds once its work is done, or when memory is short.
    fn gives_back(self) -> bool {
        !matches!(self, Self::SeriesIndex | Self::SegmentIndex)
    }

    /// What the others leave to it and the most that it gets, in 32nds of the ceiling.
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

/// What a holder has, and has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// In use, bytes.
    pub bytes: usize,
    /// The most that ever was in use, bytes.
    pub peak_bytes: usize,
    /// How often memory was refused.
    pub refusals: u64,
    /// How often somebody waited for memory.
    pub waits: u64,
}

/// One ceiling over everything; every holder draws on it.
pub struct MemoryAccountant {
    limit: usize,
    state: Mutex<AccountantState>,
    /// Something was given back.
    room: Condvar,
    on_refusal: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// The process was larger than the ceiling when it was last measured.
    is_over: AtomicBool,
}

#[derive(Debug, Default)]
struct AccountantState {
    usage: [MemoryUsage; Holder::ALL.len()],
    used: usize,
    peak: usize,
    waiting: usize,
    /// What [`Holder::Process`] has, over time.
    unaccounted: UnaccountedMemory,
    /// Refusals and waits, of all holders, since the process was last measured.
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
    /// An accountant with nothing in use.
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

    /// The most bytes that ever were in use by all holders together.
    #[must_use]
    pub fn peak(&self) -> usize {
        self.state.lock().peak
    }

    /// Bytes in use by one holder.
    #[must_use]
    pub fn used_by(&self, holder: Holder) -> usize {
        self.usage(holder).bytes
    }

    /// What a holder has, and has had.
    #[must_use]
    pub fn usage(&self, holder: Holder) -> MemoryUsage {
        self.state.lock().usage[holder as usize]
    }

    /// The most bytes that a holder gets, however little the others use.
    #[must_use]
    pub fn share(&self, holder: Holder) -> usize {
        let at_rest = self.state.lock().unaccounted.floor_bytes();
        part(self.room_beside(at_rest), holder.parts().1)
    }

    /// The most bytes that a holder can get while nobody else asks for any: what others flush, evict
    /// or finish is there for it, what indexes hold is not. A process that works has more for itself
    /// than one that has just begun; that is allowed for.
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

    /// Bytes that a holder could have now in all, what it has included: what the others neither
    /// use nor have reserved, at least its own reserve, at most its share.
    #[must_use]
    pub fn available(&self, holder: Holder) -> usize {
        self.available_in(&self.state.lock(), holder)
    }

    /// Takes `bytes` if they are available; says whether they were.
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

    /// As [`try_grow`](Self::try_grow), but waits up to `timeout` for others to give something
    /// back. Blocks the thread.
    #[expect(
        clippy::disallowed_methods,
        reason = "a wait on a condition has a deadline of the machine's; no data depends on it"
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

    /// Takes `bytes` whether they are available or not: what exists already must be counted.
    pub fn grow(&self, holder: Holder, bytes: usize) {
        self.state.lock().add(holder, bytes);
    }

    /// Gives back `bytes` that were taken.
    ///
    /// # Panics
    /// In debug builds, if more is given back than was taken.
    pub fn shrink(&self, holder: Holder, bytes: usize) {
        let mut state = self.state.lock();
        let usage = &mut state.usage[holder as usize];
        debug_assert!(
            usage.bytes >= bytes,
            "{} gave back more than it took",
            holder.name()
        );
        let bytes = bytes.min(usage.bytes);
        usage.bytes -= bytes;
        state.used -= bytes;
        if state.waiting > 0 && bytes > 0 {
            self.room.notify_all();
        }
    }

    /// The process is resident with so many bytes in all: what no holder has taken of them counts
    /// as [`Holder::Process`] from here on.
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

    /// Whether the process was larger than the ceiling when it was last measured: who holds most
    /// gives way.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Notes that somebody waits, where the waiting is done elsewhere.
    pub fn note_wait(&self, holder: Holder) {
        let mut state = self.state.lock();
        state.usage[holder as usize].waits += 1;
        state.refused = true;
    }

    /// `notify` is called, on the asking thread, whenever memory is refused. Set once.
    pub(crate) fn on_refusal(&self, notify: impl Fn() + Send + Sync + 'static) {
        // A second one would be a second engine on one accountant, which none makes.
        let _ = self.on_refusal.set(Box::new(notify));
    }

    fn tell_refusal(&self) {
        if let Some(notify) = self.on_refusal.get() {
            notify();
        }
    }

    /// What the holders share beside a process of so many bytes. Some is left for what comes into
    /// being between two looks at the process; and a little is there whatever it has, so that what
    /// makes room finds some.
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
        // Who needs nothing is not refused because others have too much: an operator that is told
        // to spill batches without columns writes what cannot be read again.
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

/// `free` bytes, at least the holder's reserve and at most its share of `room`.
fn clamped(room: usize, free: usize, holder: Holder) -> usize {
    let (reserve, share) = holder.parts();
    free.max(part(room, reserve)).min(part(room, share))
}

/// So many 32nds of `bytes`.
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
