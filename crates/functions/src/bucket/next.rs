//! From bucket to bucket, where gaps are filled.

use super::{BucketError, BucketWidth, TimeBuckets};
use marigram_model::DAY_NS;

impl TimeBuckets {
    /// Where the bucket after the one that holds `time` begins; `None` after the last time there is.
    ///
    /// # Errors
    /// As [`floor`](Self::floor).
    pub fn next(&mut self, time: i64) -> Result<Option<i64>, BucketError> {
        let start = self.floor(time)?;
        if let Some(ns) = self.fixed_ns() {
            return Ok(start.checked_add(ns));
        }
        let known = self.last.filter(|(known, _)| *known == start);
        let end = known.map(|(_, end)| end).filter(|end| *end > time);
        match self.width {
            BucketWidth::Fixed(ns) if ns < DAY_NS => {
                // Where clocks are set back, the bucket may go on after its width.
                match end {
                    Some(end) if self.floor(end)? != start => Ok(Some(end)),
                    end => self.search(end.unwrap_or(time), start, ns),
                }
            }
            _ => Ok(end.filter(|end| *end != i64::MAX)),
        }
    }

    /// The first time after `inside` that is not in the bucket of `start`, by halves: near a change
    /// of clocks, where buckets are shorter or longer than they are wide.
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

    /// About how many buckets there are from one time to another; seldom more.
    pub fn count(&self, first: i64, last: i64) -> u64 {
        let width = match self.width {
            BucketWidth::Fixed(ns) => ns,
            BucketWidth::Months(months) => i64::from(months) * 28 * DAY_NS,
        };
        let count = (i128::from(last) - i128::from(first)) / i128::from(width.max(1)) + 1;
        u64::try_from(count).unwrap_or_default()
    }
}
