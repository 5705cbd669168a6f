//! Time: i64 nanoseconds since the Unix epoch, UTC, and ranges and partitions of it.

/// One day, the default width of a partition.
pub const DAY_NS: i64 = 86_400_000_000_000;

/// A range of times that includes both ends, so that every i64 can be in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeRange {
    /// First time in the range, ns.
    pub min: i64,
    /// Last time in the range, ns. A range whose `max` is before its `min` is empty.
    pub max: i64,
}

impl TimeRange {
    /// All times.
    pub const ALL: Self = Self {
        min: i64::MIN,
        max: i64::MAX,
    };

    /// Whether no time is in the range.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.max < self.min
    }

    /// Whether `time` (ns) is in the range.
    #[must_use]
    pub fn contains(self, time: i64) -> bool {
        self.min <= time && time <= self.max
    }

    /// Whether the two ranges share a time.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        !self.intersect(other).is_empty()
    }

    /// Whether every time of `other` is in this range.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        other.is_empty() || (self.min <= other.min && other.max <= self.max)
    }

    /// The times that are in both ranges.
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        Self {
            min: self.min.max(other.min),
            max: self.max.min(other.max),
        }
    }

    /// The smallest range that covers both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }
}

/// Start (ns) of the partition of `width_ns` that contains `time`; partitions are counted from the
/// epoch. The first partition may begin before `i64::MIN`; its start saturates.
#[must_use]
pub fn partition_start(time: i64, width_ns: i64) -> i64 {
    debug_assert!(width_ns > 0, "a partition has a positive width");
    time.checked_sub(time.rem_euclid(width_ns))
        .unwrap_or(i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_counted_from_the_epoch_in_both_directions() {
        assert_eq!(partition_start(0, DAY_NS), 0);
        assert_eq!(partition_start(DAY_NS - 1, DAY_NS), 0);
        assert_eq!(partition_start(-1, DAY_NS), -DAY_NS);
        assert_eq!(partition_start(i64::MIN, DAY_NS), i64::MIN);
        assert!(partition_start(i64::MAX, DAY_NS) > i64::MAX - DAY_NS);
    }

    #[test]
    fn ranges_intersect_and_unite() {
        let a = TimeRange { min: 1, max: 5 };
        let b = TimeRange { min: 5, max: 9 };
        assert!(a.overlaps(b));
        assert_eq!(a.union(b), TimeRange { min: 1, max: 9 });
        assert!(!a.overlaps(TimeRange { min: 6, max: 9 }));
        assert!(TimeRange::ALL.covers(a));
        assert!(a.intersect(TimeRange { min: 6, max: 9 }).is_empty());
    }
}
