//! Counts rows, or values that are not null.

use super::{FoldOutput, FoldRows, SeriesFold, SlotStatistics, same};
use arrow::array::{Array, ArrayRef, Int64Array};
use datafusion::common::Result;
use std::any::Any;
use std::sync::Arc;

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct CountFold {
    /// Whether to count values instead of rows.
    values: bool,
    counts: Vec<i64>,
}

impl CountFold {
    /// Counts rows.
    pub(crate) fn rows() -> Self {
        Self::default()
    }

    /// Counts values of the argument that are not null.
    pub(crate) fn values() -> Self {
        Self {
            values: true,
            counts: Vec::new(),
        }
    }
}

impl SeriesFold for CountFold {
    fn resize(&mut self, slots: usize) {
        self.counts.resize(slots, 0);
    }

    fn can_take_page(&self, facts: &SlotStatistics<'_>) -> bool {
        !self.values || facts.whole || facts.stats.is_none_or(|stats| stats.nulls == 0)
    }

    fn take_page(&mut self, slot: usize, facts: &SlotStatistics<'_>) {
        let count = match facts.stats {
            _ if !self.values => facts.rows,
            Some(stats) => facts.rows - u64::from(stats.nulls),
            None => 0,
        };
        self.counts[slot] += count as i64;
    }

    fn take_rows(&mut self, rows: FoldRows<'_>) -> Result<()> {
        let nulls = match rows.args.first() {
            Some(Some(values)) if self.values => values.logical_nulls(),
            Some(None) if self.values => return Ok(()),
            _ => None,
        };
        for stretch in rows.stretches {
            let len = (stretch.end - stretch.start) as usize;
            let count = match &nulls {
                Some(nulls) => len - nulls.slice(stretch.start as usize, len).null_count(),
                None => len,
            };
            self.counts[stretch.slot as usize] += count as i64;
        }
        Ok(())
    }

    fn merge(&mut self, other: Box<dyn SeriesFold>, from: &[u32], to: &[u32]) -> Result<()> {
        let other: Self = same(other)?;
        for (from, to) in from.iter().zip(to) {
            self.counts[*to as usize] += other.counts[*from as usize];
        }
        Ok(())
    }

    fn finish(&mut self, _: FoldOutput, slots: &[u32]) -> Result<ArrayRef> {
        let counts = slots.iter().map(|slot| self.counts[*slot as usize]);
        Ok(Arc::new(Int64Array::from_iter_values(counts)))
    }

    fn size(&self) -> usize {
        self.counts.capacity() * size_of::<i64>()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
