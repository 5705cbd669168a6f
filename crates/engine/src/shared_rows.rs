//! Which series have rows with the same time in two sources: the result is cached as long as both
//! exist. Chunks and segments never change, so a result never becomes wrong.

use marigram_model::TableId;
use parking_lot::Mutex;
use roaring::RoaringBitmap;
use std::any::Any;
use std::sync::{Arc, Weak};

/// A chunk or a segment.
pub(crate) type SharedSource = Arc<dyn Any + Send + Sync>;

/// What is known about the rows that one source shares with others.
#[derive(Debug, Default)]
pub(crate) struct SharedRows(Mutex<Vec<SharedRowsEntry>>);

#[derive(Debug)]
struct SharedRowsEntry {
    other: Weak<dyn Any + Send + Sync>,
    table: TableId,
    found: Arc<Mutex<SharedSeries>>,
}

/// What was found about two sources.
#[derive(Debug, Default)]
pub(crate) struct SharedSeries {
    /// Series that were compared.
    pub(crate) known: RoaringBitmap,
    /// The series among `known` with a time that both sources have.
    pub(crate) shared: RoaringBitmap,
}

impl SharedSeries {
    /// Whether it is known for all of `series` that the sources share none of their rows.
    pub(crate) fn is_apart(&self, series: &RoaringBitmap) -> bool {
        let ends = series.min().zip(series.max());
        // Series usually have consecutive numbers, and nothing is shared.
        let is_known = ends.is_none_or(|(first, last)| {
            self.known.contains_range(first..=last) || self.known.is_superset(series)
        });
        is_known && self.shared.is_disjoint(series)
    }
}

impl SharedRows {
    /// What is known about `table`'s rows in this source and in `other`.
    pub(crate) fn with(&self, other: &SharedSource, table: TableId) -> Arc<Mutex<SharedSeries>> {
        let mut entries = self.0.lock();
        let same = |entry: &&SharedRowsEntry| {
            entry.table == table && std::ptr::addr_eq(entry.other.as_ptr(), Arc::as_ptr(other))
        };
        if let Some(entry) = entries.iter().find(same) {
            return Arc::clone(&entry.found);
        }
        entries.retain(|entry| entry.other.strong_count() > 0);
        let found = Arc::default();
        entries.push(SharedRowsEntry {
            other: Arc::downgrade(other),
            table,
            found: Arc::clone(&found),
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_apart_where_all_is_known_and_nothing_shared() {
        let found = |known: &[u32], shared: &[u32]| SharedSeries {
            known: known.iter().collect(),
            shared: shared.iter().collect(),
        };
        let series = |all: &[u32]| -> RoaringBitmap { all.iter().collect() };
        assert!(found(&[], &[]).is_apart(&series(&[])));
        assert!(!found(&[], &[]).is_apart(&series(&[3])));
        assert!(found(&[1, 2, 3, 4], &[4]).is_apart(&series(&[1, 3])));
        assert!(!found(&[1, 2, 3, 4], &[3]).is_apart(&series(&[1, 3])));
        assert!(found(&[1, 3], &[]).is_apart(&series(&[1, 3])));
        assert!(!found(&[1, 3], &[]).is_apart(&series(&[1, 2, 3])));
    }

    #[test]
    fn what_is_known_lasts_as_long_as_the_other_source() {
        let shared = SharedRows::default();
        let (a, b): (SharedSource, SharedSource) = (Arc::new(1), Arc::new(2));
        shared.with(&a, TableId(1)).lock().known.insert(7);
        shared.with(&a, TableId(2)).lock().known.insert(8);
        assert!(shared.with(&a, TableId(1)).lock().known.contains(7));
        drop(a);
        assert!(shared.with(&b, TableId(1)).lock().known.is_empty());
        assert_eq!(shared.0.lock().len(), 1);
    }
}
