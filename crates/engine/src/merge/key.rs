//! The position of a row in the order (series, time), as one number that compares quickly.

use marigram_model::SeriesId;

/// A (series, time), in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowKey(u128);

/// Flips the sign bit, so that times compare as unsigned numbers.
const SIGN: u64 = 1 << 63;

impl RowKey {
    /// After every row.
    pub(super) const END: Self = Self(u128::MAX);

    pub(super) fn new(series: SeriesId, time: i64) -> Self {
        Self(u128::from(series.0) << 64 | u128::from(time as u64 ^ SIGN))
    }

    /// The series; [`END`](Self::END) is after every series and gives `None`.
    pub(super) fn series(self) -> Option<SeriesId> {
        u32::try_from(self.0 >> 64).ok().map(SeriesId)
    }

    /// The time, ns.
    pub(super) fn time(self) -> i64 {
        (self.0 as u64 ^ SIGN) as i64
    }
}

/// The position of a cursor: at a row, or somewhere not before `key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CursorHead {
    pub(super) key: RowKey,
    /// Whether there is a row with this key.
    pub(super) exact: bool,
}

impl CursorHead {
    /// Order in the heap: among equal keys, what must still be opened comes first.
    pub(super) fn before(self, other: Self) -> bool {
        (self.key, self.exact) < (other.key, other.exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_by_series_then_time_and_give_both_back() {
        let sorted = [
            (0, i64::MIN),
            (0, -1),
            (0, 0),
            (0, i64::MAX),
            (1, i64::MIN),
            (u32::MAX, i64::MAX),
        ];
        let keys: Vec<RowKey> = sorted
            .iter()
            .map(|(series, time)| RowKey::new(SeriesId(*series), *time))
            .collect();
        assert!(keys.is_sorted());
        assert!(*keys.last().unwrap() < RowKey::END);
        for (key, (series, time)) in keys.iter().zip(sorted) {
            assert_eq!((key.series(), key.time()), (Some(SeriesId(series)), time));
        }
        assert_eq!(RowKey::END.series(), None);
    }
}
