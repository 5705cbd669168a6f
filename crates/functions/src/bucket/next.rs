//! Steps from bucket to bucket, for gap filling.

use super::{BucketError, BucketWidth, TimeBuckets};
use marigram_model::DAY_NS;

impl TimeBuckets {
    /// The start of the bucket after the one that holds `time`; `None` after the last possible
    /// time.
    ///
    /// # Errors
    /// Those of [`floor`](Self::floor).
    pub fn next(&mut self, time: i64) -> Result<Option<i64>, BucketError> {
        let start = self.floor(time)?;
        if let Some(ns) = self.fixed_ns() {
            return Ok(start.checked_add(ns));
        }
        let known = self.last.filter(|(known, _)| *known == start);
        let end = known.map(|(_, end)| end).filter(|end| *end > time);
        match self.width {
            BucketWidth::Fixed(ns) if ns < DAY_NS => {
                // When clocks are set back, the bucket may be longer than its width.
                match end {
                    Some(end) if self.floor(end)? != start => Ok(Some(end)),
                    end => self.search(end.unwrap_or(time), start, ns),
                }
            }
            _ => Ok(end.filter(|end| *end != i64::MAX)),
        }
    }

    /// Searches for the first time after `inside` that is not in the bucket of `start`, by
    /// bisection; for times near a clock change, where buckets are shorter or longer than their
    /// width.
    fn search(
        &mut self,
        mut inside: i64,
        start: i64,
        width: i64,
    ) -> Result<Option<i64>, BucketError> {
        let mut outside = inside;
        while self.floor(outside)? == start {
            inside = outside;
            match outside.checked_add(width) {
                Some(later) => outside = later,
                None => return Ok(None),
            }
        }
        while outside - inside > 1 {
            let middle = inside + (outside - inside) / 2;
            if self.floor(middle)? == start {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        Ok(Some(outside))
    }

    /// The approximate number of buckets from one time to another; it is seldom too low.
    pub fn count(&self, first: i64, last: i64) -> u64 {
        let width = match self.width {
            BucketWidth::Fixed(ns) => ns,
            BucketWidth::Months(months) => i64::from(months) * 28 * DAY_NS,
        };
        let count = (i128::from(last) - i128::from(first)) / i128::from(width.max(1)) + 1;
        u64::try_from(count).unwrap_or_default()
    }
}
