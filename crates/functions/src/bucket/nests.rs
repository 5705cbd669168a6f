//! Whether each bucket of one kind lies entirely within one of another kind.

use super::{BucketWidth, TimeBuckets};
use marigram_model::DAY_NS;

impl TimeBuckets {
    /// Whether each of these buckets lies entirely within one of the `coarser`. If that depends on
    /// the history of a zone, this is true only if both are placed in the same way.
    pub fn nests_in(&self, coarser: &Self) -> bool {
        match (self.width, coarser.width) {
            (BucketWidth::Fixed(fine), BucketWidth::Fixed(wide))
                if self.zone.is_none() && coarser.zone.is_none() =>
            {
                wide % fine == 0 && self.begins_at(coarser.origin_ns, fine)
            }
            // A month begins at the start of a day.
            (BucketWidth::Fixed(fine), BucketWidth::Months(_))
                if self.zone.is_none() && coarser.zone.is_none() =>
            {
                DAY_NS % fine == 0 && self.begins_at(coarser.origin_ns, fine)
            }
            (BucketWidth::Fixed(a), BucketWidth::Fixed(b)) => a == b && self.is_placed_as(coarser),
            (BucketWidth::Months(fine), BucketWidth::Months(wide)) => {
                wide % fine == 0 && self.is_placed_as(coarser)
            }
            (BucketWidth::Fixed(_), BucketWidth::Months(_))
            | (BucketWidth::Months(_), BucketWidth::Fixed(_)) => false,
        }
    }

    /// The start of one of the buckets if they have a fixed width, ns; otherwise the epoch.
    pub fn origin_ns(&self) -> i64 {
        match self.fixed_ns() {
            Some(_) => self.origin_ns,
            None => 0,
        }
    }

    fn begins_at(&self, time: i64, width: i64) -> bool {
        (i128::from(time) - i128::from(self.origin_ns)) % i128::from(width) == 0
    }

    fn is_placed_as(&self, other: &Self) -> bool {
        self.origin_ns == other.origin_ns && self.zone == other.zone
    }
}

#[cfg(test)]
mod tests {
    use super::super::TimeBuckets;
    use crate::duration::parse_interval;
    use crate::time_zones::find_zone;

    fn buckets(width: &str, origin: Option<i64>, zone: Option<&str>) -> TimeBuckets {
        let zone = zone.map(|zone| find_zone(zone).unwrap());
        TimeBuckets::new(parse_interval(width).unwrap(), origin, zone).unwrap()
    }

    /// Whether, for the times of some years, each fine bucket lies within one coarser bucket.
    fn nest_in_fact(fine: &mut TimeBuckets, coarser: &mut TimeBuckets) -> bool {
        let (mut time, end) = (1_500_000_000_000_000_000, 1_600_000_000_000_000_000);
        time = coarser.floor(time).unwrap();
        while time < end {
            if fine.floor(time).unwrap() != time {
                return false;
            }
            time = coarser.next(time).unwrap().unwrap();
        }
        true
    }

    #[test]
    fn buckets_that_are_said_to_nest_do() {
        let kinds = [
            buckets("1m", None, None),
            buckets("10m", None, None),
            buckets("15m", None, None),
            buckets("1h", None, None),
            buckets("1h", Some(1_000_000_000), None),
            buckets("7h", None, None),
            buckets("1d", None, None),
            buckets("1d", None, Some("Europe/Berlin")),
            buckets("1w", None, None),
            buckets("1 month", None, None),
            buckets("3 months", None, None),
            buckets("1 year", None, Some("America/New_York")),
        ];
        let (mut said, mut missed) = (0, 0);
        for fine in &kinds {
            for coarser in &kinds {
                let in_fact = nest_in_fact(&mut fine.clone(), &mut coarser.clone());
                if fine.nests_in(coarser) {
                    said += 1;
                    assert!(in_fact, "{fine:?} in {coarser:?}");
                } else {
                    missed += usize::from(in_fact);
                }
            }
        }
        assert!(said > 30, "{said}");
        assert!(missed < 12, "{missed}");
    }
}
