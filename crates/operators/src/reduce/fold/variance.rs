//! Variance and standard deviation: keeps the count, the mean, and the sum of squared differences
//! from the mean.
//!
//! Each slice is read twice, for its mean and for the differences from it, and then merged into the
//! state: this is as exact as adding one number after the other, and faster.

use super::numeric::each_slice;
use super::numeric_type::NumericType;
use super::{FoldOutput, FoldRows, SeriesFold, SlotStatistics, same};
use arrow::array::{ArrayRef, Float64Array};
use datafusion::common::{Result, internal_err};
use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct VarianceFold<N: NumericType> {
    slots: Vec<VarianceMoments>,
    number: PhantomData<N>,
}

#[derive(Clone, Copy, Debug, Default)]
struct VarianceMoments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl VarianceMoments {
    /// Merges another state by the pairwise form of Chan, Golub and `LeVeque`.
    fn add(&mut self, other: Self) {
        let count = self.count + other.count;
        if other.count == 0.0 {
            return;
        }
        let apart = other.mean - self.mean;
        self.squares += other.squares + apart * apart * self.count * other.count / count;
        self.mean += apart * other.count / count;
        self.count = count;
    }
}

impl<N: NumericType> VarianceFold<N> {
    /// Creates a fold without values.
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            number: PhantomData,
        }
    }
}

impl<N: NumericType> SeriesFold for VarianceFold<N> {
    fn resize(&mut self, slots: usize) {
        self.slots.resize(slots, VarianceMoments::default());
    }

    fn can_take_page(&self, facts: &SlotStatistics<'_>) -> bool {
        // A page's statistics have its sum, but not its squares.
        facts.stats.is_none()
    }

    fn take_page(&mut self, _: usize, _: &SlotStatistics<'_>) {}

    fn take_rows(&mut self, rows: FoldRows<'_>) -> Result<()> {
        each_slice::<N>(rows, |slot, values| {
            if values.is_empty() {
                return;
            }
            let count = values.len() as f64;
            let mean = N::to_f64(N::sum(values)) / count;
            let squares = N::squares(values, mean);
            self.slots[slot].add(VarianceMoments {
                count,
                mean,
                squares,
            });
        })
    }

    fn merge(&mut self, other: Box<dyn SeriesFold>, from: &[u32], to: &[u32]) -> Result<()> {
        let other: Self = same(other)?;
        for (from, to) in from.iter().zip(to) {
            self.slots[*to as usize].add(other.slots[*from as usize]);
        }
        Ok(())
    }

    fn finish(&mut self, answer: FoldOutput, slots: &[u32]) -> Result<ArrayRef> {
        let FoldOutput::Variance { sample, root } = answer else {
            return internal_err!("moments do not tell {answer:?}");
        };
        let less = if sample { 1.0 } else { 0.0 };
        let variances = slots.iter().map(|slot| {
            let VarianceMoments { count, squares, .. } = self.slots[*slot as usize];
            let variance = (count > less).then(|| squares / (count - less))?;
            Some(if root { variance.sqrt() } else { variance })
        });
        Ok(Arc::new(variances.collect::<Float64Array>()))
    }

    fn size(&self) -> usize {
        self.slots.capacity() * size_of::<VarianceMoments>()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
