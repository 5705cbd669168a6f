//! Count, sum, mean, minimum and maximum of numbers.

use super::numeric_type::NumericType;
use super::{FoldOutput, FoldRows, SeriesFold, SlotStatistics, same};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, PrimitiveArray};
use arrow::datatypes::DataType;
use arrow::util::bit_iterator::BitSliceIterator;
use datafusion::common::{Result, internal_err};
use marigram_functions::{NumericResult, parts_out_of_range, sum_parts};
use std::any::Any;
use std::sync::Arc;

/// The states; only those that were requested are kept.
#[derive(Debug)]
pub(crate) struct NumericFold<N: NumericType> {
    /// The type of minimum and maximum.
    kind: DataType,
    asked: NumericOutputs,
    counts: Vec<u64>,
    sums: Vec<N::Sum>,
    min: Vec<N::Native>,
    max: Vec<N::Native>,
}

/// The requested results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct NumericOutputs {
    sum: bool,
    min: bool,
    max: bool,
}

impl NumericOutputs {
    /// Whether the maximum is the only request.
    pub(crate) fn is_max_only(self) -> bool {
        self.max && !self.min && !self.sum
    }

    /// Whether the sum is the only request, apart from the count.
    fn is_sum_only(self) -> bool {
        self.sum && !self.min && !self.max
    }

    /// Adds a requested result.
    pub(crate) fn add(&mut self, answer: NumericResult) {
        match answer {
            NumericResult::Sum
            | NumericResult::Mean
            | NumericResult::SumHigh
            | NumericResult::SumLow => self.sum = true,
            NumericResult::Min => self.min = true,
            NumericResult::Max => self.max = true,
        }
    }
}

impl<N: NumericType> NumericFold<N> {
    /// Creates a fold for values of type `kind`.
    pub(crate) fn new(kind: DataType, asked: NumericOutputs) -> Self {
        Self {
            kind,
            asked,
            counts: Vec::new(),
            sums: Vec::new(),
            min: Vec::new(),
            max: Vec::new(),
        }
    }

    fn add(&mut self, slot: usize, values: &[N::Native]) {
        if values.is_empty() {
            return;
        }
        if self.asked.sum {
            self.sums[slot] += N::sum(values);
        }
        if self.asked.min {
            self.add_min(slot, N::min(values));
        }
        if self.asked.max {
            self.add_max(slot, N::max(values));
        }
        self.counts[slot] += values.len() as u64;
    }

    /// Must be called before the slot's count increases.
    fn add_min(&mut self, slot: usize, value: N::Native) {
        self.min[slot] = match self.counts[slot] {
            0 => value,
            _ => N::min(&[self.min[slot], value]),
        };
    }

    fn add_max(&mut self, slot: usize, value: N::Native) {
        self.max[slot] = match self.counts[slot] {
            0 => value,
            _ => N::max(&[self.max[slot], value]),
        };
    }

    fn natives(&self, values: &[N::Native], slots: &[u32]) -> ArrayRef {
        let all = slots.iter().map(|slot| {
            let slot = *slot as usize;
            (self.counts[slot] > 0).then(|| values[slot])
        });
        let array: PrimitiveArray<N::Arrow> = all.collect();
        Arc::new(array.with_data_type(self.kind.clone()))
    }
}

/// Passes each slice of values that are not null to a function, with its slot.
pub(super) fn each_slice<N: NumericType>(
    rows: FoldRows<'_>,
    mut see: impl FnMut(usize, &[N::Native]),
) -> Result<()> {
    let [values] = rows.args else {
        return internal_err!("numbers are folded of one argument");
    };
    let Some(values) = values else { return Ok(()) };
    let Some(values) = values.as_primitive_opt::<N::Arrow>() else {
        return internal_err!("values of {} are folded as others", values.data_type());
    };
    let all: &[N::Native] = values.values();
    let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0);
    for stretch in rows.stretches {
        let (slot, rows) = (stretch.slot as usize, stretch.rows());
        match nulls {
            None => see(slot, &all[rows]),
            Some(nulls) => {
                let bits = nulls.validity();
                let offset = nulls.offset() + rows.start;
                for (from, to) in BitSliceIterator::new(bits, offset, rows.len()) {
                    see(slot, &all[rows.start + from..rows.start + to]);
                }
            }
        }
    }
    Ok(())
}

/// The argument of rows without nulls.
fn without_nulls<'a, N: NumericType>(rows: &FoldRows<'a>) -> Option<&'a [N::Native]> {
    let [Some(values)] = rows.args else {
        return None;
    };
    let values = values.as_primitive_opt::<N::Arrow>()?;
    (values.null_count() == 0).then(|| &values.values()[..])
}

impl<N: NumericType> SeriesFold for NumericFold<N> {
    fn resize(&mut self, slots: usize) {
        self.counts.resize(slots, 0);
        if self.asked.sum {
            self.sums.resize(slots, N::Sum::default());
        }
        if self.asked.min {
            self.min.resize(slots, N::Native::default());
        }
        if self.asked.max {
            self.max.resize(slots, N::Native::default());
        }
    }

    fn can_take_page(&self, facts: &SlotStatistics<'_>) -> bool {
        let Some(stats) = facts.stats else {
            return true;
        };
        if u64::from(stats.nulls) == facts.rows && facts.whole {
            return true;
        }
        let asked = self.asked;
        facts.whole
            && (!asked.sum || stats.sum.as_ref().and_then(N::sum_of).is_some())
            && (!asked.min || stats.min.as_ref().and_then(N::from_value).is_some())
            // A NaN among the values is the maximum of the statistics, or, with a sign, their
            // minimum.
            && (!(asked.max || asked.min)
                || [&stats.min, &stats.max]
                    .iter()
                    .all(|value| value.as_ref().and_then(N::from_value).is_some()))
    }

    fn take_page(&mut self, slot: usize, facts: &SlotStatistics<'_>) {
        let Some(stats) = facts.stats else { return };
        let values = facts.rows - u64::from(stats.nulls);
        if values == 0 {
            return;
        }
        if let Some(sum) = stats.sum.as_ref().and_then(N::sum_of)
            && self.asked.sum
        {
            self.sums[slot] += sum;
        }
        if let Some(min) = stats.min.as_ref().and_then(N::from_value)
            && self.asked.min
        {
            self.add_min(slot, min);
        }
        if let Some(max) = stats.max.as_ref().and_then(N::from_value)
            && self.asked.max
        {
            self.add_max(slot, max);
        }
        self.counts[slot] += values;
    }

    fn take_rows(&mut self, rows: FoldRows<'_>) -> Result<()> {
        if self.asked.is_sum_only()
            && let Some(values) = without_nulls::<N>(&rows)
        {
            let (sums, counts) = (&mut self.sums, &mut self.counts);
            N::sums_of(values, rows.stretches, |stretch, sum| {
                sums[stretch.slot as usize] += sum;
                counts[stretch.slot as usize] += stretch.rows().len() as u64;
            });
            return Ok(());
        }
        each_slice::<N>(rows, |slot, values| self.add(slot, values))
    }

    fn merge(&mut self, other: Box<dyn SeriesFold>, from: &[u32], to: &[u32]) -> Result<()> {
        let other: Self = same(other)?;
        for (from, to) in from.iter().zip(to) {
            let (from, to) = (*from as usize, *to as usize);
            if other.counts[from] == 0 {
                continue;
            }
            if self.asked.sum {
                self.sums[to] += other.sums[from];
            }
            if self.asked.min {
                self.add_min(to, other.min[from]);
            }
            if self.asked.max {
                self.add_max(to, other.max[from]);
            }
            self.counts[to] += other.counts[from];
        }
        Ok(())
    }

    fn finish(&mut self, answer: FoldOutput, slots: &[u32]) -> Result<ArrayRef> {
        let counts = slots.iter().map(|slot| self.counts[*slot as usize]);
        let answer = match answer {
            FoldOutput::Number(answer) => answer,
            FoldOutput::Count => {
                let counts = counts.map(|count| count as i64);
                return Ok(Arc::new(Int64Array::from_iter_values(counts)));
            }
            FoldOutput::Value | FoldOutput::Variance { .. } => {
                return internal_err!("numbers do not tell {answer:?}");
            }
        };
        Ok(match answer {
            NumericResult::Sum => {
                let sums = slots.iter().zip(counts);
                return N::sums(
                    sums.map(|(slot, count)| (count > 0).then(|| self.sums[*slot as usize]))
                        .collect(),
                );
            }
            NumericResult::Mean => {
                let sums = slots.iter().zip(counts);
                let means = sums.map(|(slot, count)| N::mean(self.sums[*slot as usize], count));
                Arc::new(means.collect::<Float64Array>())
            }
            NumericResult::SumHigh | NumericResult::SumLow => {
                let mut parts = Vec::with_capacity(slots.len());
                for (slot, count) in slots.iter().zip(counts) {
                    if count == 0 {
                        parts.push(None);
                        continue;
                    }
                    let Some(sum) = N::whole(self.sums[*slot as usize]) else {
                        return internal_err!("a sum of floats has no parts");
                    };
                    let (high, low) = sum_parts(sum).ok_or_else(parts_out_of_range)?;
                    parts.push(Some(match answer {
                        NumericResult::SumHigh => high,
                        _ => low,
                    }));
                }
                Arc::new(Int64Array::from(parts))
            }
            NumericResult::Min => self.natives(&self.min, slots),
            NumericResult::Max => self.natives(&self.max, slots),
        })
    }

    fn size(&self) -> usize {
        self.counts.capacity() * size_of::<u64>()
            + self.sums.capacity() * size_of::<N::Sum>()
            + (self.min.capacity() + self.max.capacity()) * size_of::<N::Native>()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
