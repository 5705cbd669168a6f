//! One ceiling over all memory that grows with data: an accountant on which every holder draws.
//!
//! Counters only: no locks, no waiting. Who is refused decides what to do (flush, spill, wait,
//! give up).

use std::sync::atomic::{AtomicUsize, Ordering};

/// Who holds memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// Rows that are not in segments yet.
    Memtable,
    /// Tags and ids of series.
    SeriesIndex,
    /// Footers, directories and page indexes of open segments.
    SegmentIndex,
    /// The last-value cache.
    LastValues,
    /// Scans, and what queries do with their rows.
    Query,
    /// Compaction.
    Compaction,
    /// Recovery.
    Recovery,
}

impl Holder {
    /// Every holder.
    pub const ALL: [Self; 7] = [
        Self::Memtable,
        Self::SeriesIndex,
        Self::SegmentIndex,
        Self::LastValues,
        Self::Query,
        Self::Compaction,
        Self::Recovery,
    ];

    /// The holder's name in status and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Memtable => "memtable",
            Self::SeriesIndex => "series_index",
            Self::SegmentIndex => "segment_index",
            Self::LastValues => "last_values",
            Self::Query => "query",
            Self::Compaction => "compaction",
            Self::Recovery => "recovery",
        }
    }
}

/// One ceiling over everything; every holder draws on it.
#[derive(Debug)]
pub struct MemoryAccountant {
    limit: usize,
    used: AtomicUsize,
    by_holder: [AtomicUsize; Holder::ALL.len()],
}

impl MemoryAccountant {
    /// An accountant with nothing in use.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit: limit_bytes,
            used: AtomicUsize::new(0),
            by_holder: std::array::from_fn(|_| AtomicUsize::new(0)),
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
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes in use by one holder.
    #[must_use]
    pub fn used_by(&self, holder: Holder) -> usize {
        self.by_holder[holder as usize].load(Ordering::Relaxed)
    }

    /// Takes `bytes` if they fit below the limit; says whether they did.
    pub fn try_grow(&self, holder: Holder, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .is_ok();
        if taken {
            self.by_holder[holder as usize].fetch_add(bytes, Ordering::Relaxed);
        }
        taken
    }

    /// Takes `bytes` whether they fit or not: what exists already must be counted.
    pub fn grow(&self, holder: Holder, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.by_holder[holder as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives back `bytes` that were taken.
    ///
    /// # Panics
    /// In debug builds, if more is given back than was taken.
    pub fn shrink(&self, holder: Holder, bytes: usize) {
        let less = |used: usize| Some(used.saturating_sub(bytes));
        for counter in [&self.used, &self.by_holder[holder as usize]] {
            let before = counter
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
                .expect("the closure always gives a value");
            debug_assert!(
                before >= bytes,
                "{} gave back more than it took",
                holder.name()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_holds_for_those_who_ask_and_counts_those_who_do_not() {
        let memory = MemoryAccountant::new(100);
        assert!(memory.try_grow(Holder::Memtable, 60));
        assert!(!memory.try_grow(Holder::Query, 41));
        assert!(memory.try_grow(Holder::Query, 40));
        memory.grow(Holder::SeriesIndex, 5);
        assert_eq!(memory.used(), 105);
        memory.shrink(Holder::Memtable, 60);
        assert_eq!((memory.used(), memory.used_by(Holder::Memtable)), (45, 0));
        assert!(!memory.try_grow(Holder::Query, usize::MAX));
    }
}
