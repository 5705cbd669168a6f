//! Sets of times: ascending ranges that neither overlap nor touch.

use crate::TimeRange;

/// A set of times, as the fewest ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TimeSet {
    /// Ascending; between any two of them, at least one time is in neither.
    ranges: Vec<TimeRange>,
}

impl TimeSet {
    /// The set of the times in a range.
    #[must_use]
    pub fn from_range(range: TimeRange) -> Self {
        Self {
            ranges: if range.is_empty() {
                Vec::new()
            } else {
                vec![range]
            },
        }
    }

    /// The union of ranges in any order.
    #[must_use]
    pub fn from_ranges(ranges: impl IntoIterator<Item = TimeRange>) -> Self {
        let filled = ranges.into_iter().filter(|range| !range.is_empty());
        let mut all: Vec<_> = filled.collect();
        all.sort_unstable_by_key(|range| range.min);
        all.dedup_by(|next, last| {
            let joined = next.min <= last.max.saturating_add(1);
            if joined {
                last.max = last.max.max(next.max);
            }
            joined
        });
        Self { ranges: all }
    }

    /// The ranges of the set, ascending.
    #[must_use]
    pub fn ranges(&self) -> &[TimeRange] {
        &self.ranges
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether `time` (ns) is in the set.
    #[must_use]
    pub fn contains(&self, time: i64) -> bool {
        let at = self.ranges.partition_point(|range| range.max < time);
        self.ranges.get(at).is_some_and(|range| range.min <= time)
    }

    /// Adds the times of a range.
    pub fn insert(&mut self, range: TimeRange) {
        if range.is_empty() {
            return;
        }
        let before = |other: &TimeRange| other.max.saturating_add(1) < range.min;
        let start = self.ranges.partition_point(before);
        let reaches = |other: &TimeRange| other.min <= range.max.saturating_add(1);
        let count = self.ranges[start..].partition_point(reaches);
        let joined = self.ranges[start..start + count]
            .iter()
            .fold(range, |all, other| all.union(*other));
        self.ranges.splice(start..start + count, [joined]);
    }

    /// The times that are in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::from_ranges(self.ranges.iter().chain(&other.ranges).copied())
    }

    /// The times that are in both sets.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let (mut both, mut at) = (Vec::new(), 0);
        for range in &self.ranges {
            while other.ranges.get(at).is_some_and(|o| o.max < range.min) {
                at += 1;
            }
            let reached = other.ranges[at..].iter().take_while(|o| o.min <= range.max);
            both.extend(reached.map(|o| o.intersect(*range)));
        }
        Self { ranges: both }
    }

    /// The times of this set that are not in `other`.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.intersect(&other.complement())
    }

    /// The times that are not in this set.
    #[must_use]
    pub fn complement(&self) -> Self {
        let (mut gaps, mut next) = (Vec::new(), Some(i64::MIN));
        for range in &self.ranges {
            let Some(min) = next else { break };
            if let Some(max) = range.min.checked_sub(1).filter(|max| *max >= min) {
                gaps.push(TimeRange { min, max });
            }
            next = range.max.checked_add(1);
        }
        gaps.extend(next.map(|min| TimeRange { min, max: i64::MAX }));
        Self { ranges: gaps }
    }

    /// Fills the smallest gaps until at most `max` ranges (at least one) are left; the result
    /// contains all times of the set, and some more.
    pub fn coarsen(&mut self, max: usize) {
        let excess = self.ranges.len().saturating_sub(max.max(1));
        if excess == 0 {
            return;
        }
        let gap = |pair: &[TimeRange]| pair[1].min.abs_diff(pair[0].max);
        let mut gaps: Vec<(u64, usize)> = self.ranges.windows(2).map(gap).zip(1..).collect();
        gaps.select_nth_unstable(excess - 1);
        let filled: std::collections::HashSet<usize> =
            gaps[..excess].iter().map(|(_, at)| *at).collect();
        let mut kept: Vec<TimeRange> = Vec::with_capacity(max.max(1));
        for (at, range) in self.ranges.iter().enumerate() {
            match kept.last_mut().filter(|_| filled.contains(&at)) {
                Some(last) => last.max = range.max,
                None => kept.push(*range),
            }
        }
        self.ranges = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ranges over few times, so that they touch, including the ends of the time range.
    fn ranges() -> impl Strategy<Value = Vec<TimeRange>> {
        let end = prop_oneof![8 => -6_i64..=6, 1 => Just(i64::MIN), 1 => Just(i64::MAX)];
        let range = (end.clone(), end).prop_map(|(min, max)| TimeRange { min, max });
        proptest::collection::vec(range, 0..6)
    }

    fn probes() -> impl Iterator<Item = i64> {
        (-8..=8).chain([i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX])
    }

    fn is_tight(set: &TimeSet) -> bool {
        let apart = |pair: &[TimeRange]| pair[0].max < pair[1].min - 1;
        set.ranges.iter().all(|range| !range.is_empty()) && set.ranges.windows(2).all(apart)
    }

    proptest! {
        #[test]
        fn sets_are_what_their_times_say(a in ranges(), b in ranges(), max in 1_usize..4) {
            let (set, other) = (
                TimeSet::from_ranges(a.iter().copied()),
                TimeSet::from_ranges(b.iter().copied()),
            );
            let mut inserted = TimeSet::default();
            for range in &a {
                inserted.insert(*range);
            }
            prop_assert_eq!(&inserted, &set);
            let mut coarse = set.clone();
            coarse.coarsen(max);
            prop_assert!(coarse.ranges.len() <= max);
            let all = [
                set.union(&other), set.intersect(&other), set.minus(&other), set.complement(), coarse,
            ];
            for made in &all {
                prop_assert!(is_tight(made), "{made:?}");
            }
            for time in probes() {
                let holds = |ranges: &[TimeRange]| ranges.iter().any(|r| r.contains(time));
                let (in_a, in_b) = (holds(&a), holds(&b));
                prop_assert_eq!(set.contains(time), in_a);
                prop_assert_eq!(all[0].contains(time), in_a || in_b);
                prop_assert_eq!(all[1].contains(time), in_a && in_b);
                prop_assert_eq!(all[2].contains(time), in_a && !in_b);
                prop_assert_eq!(all[3].contains(time), !in_a);
                prop_assert!(all[4].contains(time) || !in_a);
            }
        }
    }

    #[test]
    fn the_smallest_gaps_are_filled_first() {
        let range = |min, max| TimeRange { min, max };
        let mut set = TimeSet::from_ranges([range(0, 1), range(4, 5), range(100, 101)]);
        set.coarsen(2);
        assert_eq!(set.ranges(), [range(0, 5), range(100, 101)]);
    }
}
