//! A binary heap of cursors by their heads, with direct access to the second smallest.
//!
//! `std`'s heap does not provide that: it would need a pop and a push for every slice.

use super::key::{CursorHead, RowKey};

/// Smallest head first.
#[derive(Debug, Default)]
pub(super) struct CursorHeap {
    entries: Vec<(CursorHead, u32)>,
}

impl CursorHeap {
    pub(super) fn new(entries: impl Iterator<Item = (CursorHead, u32)>) -> Self {
        let mut heap = Self {
            entries: entries.collect(),
        };
        for at in (0..heap.entries.len() / 2).rev() {
            heap.sink(at);
        }
        heap
    }

    /// The smallest head and its cursor.
    pub(super) fn first(&self) -> Option<(CursorHead, u32)> {
        self.entries.first().copied()
    }

    /// The key of the second smallest head.
    pub(super) fn second_key(&self) -> Option<RowKey> {
        let left = self.entries.get(1)?.0.key;
        Some(
            self.entries
                .get(2)
                .map_or(left, |right| left.min(right.0.key)),
        )
    }

    /// The second smallest head and its cursor.
    pub(super) fn second(&self) -> Option<(CursorHead, u32)> {
        self.entries.get(self.second_place()).copied()
    }

    fn second_place(&self) -> usize {
        match (self.entries.get(1), self.entries.get(2)) {
            (Some(left), Some(right)) if right.0.before(left.0) => 2,
            _ => 1,
        }
    }

    /// Replaces the second cursor's head by one that is not before the old one, or removes it.
    pub(super) fn replace_second(&mut self, head: Option<CursorHead>) {
        let at = self.second_place();
        let Some(second) = self.entries.get_mut(at) else {
            return;
        };
        match head {
            Some(head) => second.0 = head,
            // The entry moved here from the end is still below the first one, so it can only sink.
            None => drop(self.entries.swap_remove(at)),
        }
        self.sink(at);
    }

    /// Replaces the first cursor's head, or removes it.
    pub(super) fn replace_first(&mut self, head: Option<CursorHead>) {
        match head {
            Some(head) => {
                if let Some(first) = self.entries.first_mut() {
                    first.0 = head;
                }
            }
            None => {
                if !self.entries.is_empty() {
                    self.entries.swap_remove(0);
                }
            }
        }
        self.sink(0);
    }

    pub(super) fn push(&mut self, head: CursorHead, cursor: u32) {
        self.entries.push((head, cursor));
        let mut at = self.entries.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if !self.entries[at].0.before(self.entries[parent].0) {
                break;
            }
            self.entries.swap(at, parent);
            at = parent;
        }
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let mut smallest = at;
            for child in [2 * at + 1, 2 * at + 2] {
                let less = self
                    .entries
                    .get(child)
                    .is_some_and(|entry| entry.0.before(self.entries[smallest].0));
                if less {
                    smallest = child;
                }
            }
            if smallest == at {
                return;
            }
            self.entries.swap(at, smallest);
            at = smallest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_model::SeriesId;

    #[test]
    fn heads_come_out_in_order_and_the_second_is_known() {
        let head = |time: i64, exact| CursorHead {
            key: RowKey::new(SeriesId(1), time),
            exact,
        };
        let times = [5, 3, 9, 3, 7, 1, 8];
        let mut heap = CursorHeap::new(
            times
                .iter()
                .enumerate()
                .map(|(at, t)| (head(*t, at % 2 == 0), at as u32)),
        );
        heap.push(head(4, true), 100);
        let mut sorted: Vec<i64> = times.into_iter().chain([4]).collect();
        sorted.sort_unstable();
        for (at, time) in sorted.iter().enumerate() {
            let (first, _) = heap.first().unwrap();
            assert_eq!(first.key.time(), *time);
            let second = heap.second_key().map(RowKey::time);
            assert_eq!(second, sorted.get(at + 1).copied());
            heap.replace_first(None);
        }
        assert!(heap.first().is_none());
    }

    #[test]
    fn the_second_is_replaced_in_its_place() {
        let head = |time: i64| CursorHead {
            key: RowKey::new(SeriesId(1), time),
            exact: true,
        };
        let times = [1, 2, 3, 10, 11, 4, 5];
        let heads = times.iter().enumerate();
        let mut heap = CursorHeap::new(heads.map(|(at, time)| (head(*time), at as u32)));
        let mut expected: Vec<i64> = vec![1, 3, 4, 5, 10, 11, 20];
        assert_eq!(heap.second(), Some((head(2), 1)));
        heap.replace_second(Some(head(20)));
        assert_eq!(heap.second(), Some((head(3), 2)));
        heap.replace_second(None);
        expected.retain(|time| *time != 3);
        for time in expected {
            assert_eq!(heap.first().map(|first| first.0), Some(head(time)));
            heap.replace_first(None);
        }
        heap.replace_second(None);
    }

    #[test]
    fn of_equal_keys_the_one_to_be_opened_comes_first() {
        let key = RowKey::new(SeriesId(1), 1);
        let heap = CursorHeap::new(
            [
                (CursorHead { key, exact: true }, 0),
                (CursorHead { key, exact: false }, 1),
            ]
            .into_iter(),
        );
        assert_eq!(heap.first().unwrap().1, 1);
    }
}
