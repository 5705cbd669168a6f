//! `percentile_agg(value)`, `uddsketch(buckets, error, value)`: a sketch from which percentiles are
//! estimated with a bounded relative error (Epicoco, Melle, Cafaro, Pulimeno and Morleo, *`UDDSketch`*,
//! 2020). It has a bounded number of buckets of logarithmic width; when there are too many, neighbours
//! are joined, which doubles the width and so about doubles the error.

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, ListArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields, Float64Type, Int64Type};
use datafusion::common::{Result, exec_err};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Buckets of a sketch if a statement does not say how many.
pub(crate) const BUCKETS: usize = 200;
/// The relative error of a sketch if a statement does not say.
pub(crate) const ERROR: f64 = 0.001;
/// The most buckets: 64 KB per group.
pub(crate) const BUCKETS_MAX: usize = 1_000;
/// The fewest that joining neighbours can reach: two of each sign, and zero.
const BUCKETS_MIN: usize = 5;
/// How often neighbours can be joined: by then, all values of a sign are in two buckets.
const JOINS_MAX: i64 = 64;

/// A bucket, in the order of its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SketchBucket {
    Negative(Reverse<i64>),
    Zero,
    Positive(i64),
}

impl SketchBucket {
    /// Two bits for the sign, the rest for the number.
    fn to_bits(self) -> i64 {
        match self {
            Self::Zero => 0,
            Self::Positive(number) => (number << 2) | 1,
            Self::Negative(Reverse(number)) => (number << 2) | 2,
        }
    }

    fn from_bits(bits: i64) -> Self {
        match bits & 3 {
            1 => Self::Positive(bits >> 2),
            2 => Self::Negative(Reverse(bits >> 2)),
            _ => Self::Zero,
        }
    }

    /// The bucket of twice the width.
    fn doubled(self) -> Self {
        let half = |number: i64| (number + 1).div_euclid(2);
        match self {
            Self::Zero => Self::Zero,
            Self::Positive(number) => Self::Positive(half(number)),
            Self::Negative(Reverse(number)) => Self::Negative(Reverse(half(number))),
        }
    }
}

/// The sketch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PercentileSketch {
    /// The relative error at the beginning.
    first_error: f64,
    /// How often buckets were joined.
    joins: i64,
    /// The most buckets.
    buckets_max: usize,
    /// Sum of the values.
    sum: f64,
    counts: BTreeMap<SketchBucket, i64>,
}

impl PercentileSketch {
    /// An empty sketch.
    pub(crate) fn new(buckets_max: usize, error: f64) -> Self {
        Self {
            first_error: error,
            joins: 0,
            buckets_max: buckets_max.max(BUCKETS_MIN),
            sum: 0.0,
            counts: BTreeMap::new(),
        }
    }

    /// The relative error of an estimate.
    pub(crate) fn error(&self) -> f64 {
        (0..self.joins).fold(self.first_error, |error, _| {
            2.0 * error / (1.0 + error * error)
        })
    }

    /// The quotient of the ends of a bucket.
    fn growth(&self) -> f64 {
        let error = self.error();
        (1.0 + error) / (1.0 - error)
    }

    fn bucket(&self, value: f64) -> SketchBucket {
        let number = || {
            let size = value.abs().clamp(f64::MIN_POSITIVE, f64::MAX);
            (size.ln() / self.growth().ln()).ceil() as i64
        };
        if value == 0.0 {
            SketchBucket::Zero
        } else if value > 0.0 {
            SketchBucket::Positive(number())
        } else {
            SketchBucket::Negative(Reverse(number()))
        }
    }

    /// Adds a value; NaN is no value.
    pub(crate) fn add(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        self.sum += value;
        *self.counts.entry(self.bucket(value)).or_default() += 1;
        while self.counts.len() > self.buckets_max {
            self.widen();
        }
    }

    /// Joins neighbours.
    fn widen(&mut self) {
        self.joins += 1;
        let mut wider = BTreeMap::new();
        for (bucket, count) in std::mem::take(&mut self.counts) {
            *wider.entry(bucket.doubled()).or_default() += count;
        }
        self.counts = wider;
    }

    /// Adds the values of another sketch.
    ///
    /// # Errors
    /// If it has another error.
    pub(crate) fn merge(&mut self, mut other: Self) -> Result<()> {
        if (self.first_error - other.first_error).abs() > f64::EPSILON {
            return exec_err!("rollup: sketches with different errors cannot be joined");
        }
        while self.joins < other.joins {
            self.widen();
        }
        while other.joins < self.joins {
            other.widen();
        }
        self.sum += other.sum;
        for (bucket, count) in other.counts {
            *self.counts.entry(bucket).or_default() += count;
        }
        while self.counts.len() > self.buckets_max {
            self.widen();
        }
        Ok(())
    }

    /// Number of values.
    pub(crate) fn count(&self) -> i64 {
        self.counts.values().sum()
    }

    /// The mean of the values.
    pub(crate) fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum / count as f64)
    }

    /// An estimate of the value at a fraction of the way through the sorted values.
    pub(crate) fn percentile(&self, fraction: f64) -> Option<f64> {
        let mut rest = ((self.count() as f64 * fraction) as i64).saturating_add(1);
        let mut found = None;
        for (bucket, count) in &self.counts {
            found = Some(*bucket);
            rest -= count;
            if rest <= 0 {
                break;
            }
        }
        found.map(|bucket| self.value(bucket))
    }

    /// The value that stands for all of a bucket.
    fn value(&self, bucket: SketchBucket) -> f64 {
        let size = |number: i64| (1.0 + self.error()) * self.growth().powf(number as f64 - 1.0);
        match bucket {
            SketchBucket::Zero => 0.0,
            SketchBucket::Positive(number) => size(number),
            SketchBucket::Negative(Reverse(number)) => -size(number),
        }
    }

    /// An estimate of the fraction of values below one.
    pub(crate) fn rank(&self, value: f64) -> Option<f64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let own = self.bucket(value);
        let below: i64 = self.counts.range(..own).map(|(_, count)| count).sum();
        let half = self
            .counts
            .get(&own)
            .map_or(0.0, |count| *count as f64 / 2.0);
        Some((below as f64 + half) / total as f64)
    }

    /// The bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.counts.len() * 2 * size_of::<(SketchBucket, i64)>()
    }
}

fn list() -> DataType {
    DataType::new_list(DataType::Int64, true)
}

/// The columns of a sketch.
pub(crate) fn fields() -> Fields {
    Fields::from(vec![
        Field::new("error", DataType::Float64, true),
        Field::new("joins", DataType::Int64, true),
        Field::new("size", DataType::Int64, true),
        Field::new("sum", DataType::Float64, true),
        Field::new("buckets", list(), true),
        Field::new("counts", list(), true),
    ])
}

/// Sketches as a column.
pub(crate) fn to_array(sketches: &[Option<PercentileSketch>]) -> Result<ArrayRef> {
    let all = || sketches.iter().map(Option::as_ref);
    let floats = |value: fn(&PercentileSketch) -> f64| -> ArrayRef {
        Arc::new(
            all()
                .map(|sketch| sketch.map(value))
                .collect::<Float64Array>(),
        )
    };
    let numbers = |value: fn(&PercentileSketch) -> i64| -> ArrayRef {
        Arc::new(
            all()
                .map(|sketch| sketch.map(value))
                .collect::<Int64Array>(),
        )
    };
    let lists = |value: fn((&SketchBucket, &i64)) -> i64| -> Result<ArrayRef> {
        let sizes = all().map(|sketch| sketch.map_or(0, |sketch| sketch.counts.len()));
        let items = all()
            .flatten()
            .flat_map(|sketch| sketch.counts.iter().map(value));
        let items: Int64Array = items.collect::<Vec<i64>>().into();
        let field = Arc::new(Field::new_list_field(DataType::Int64, true));
        let offsets = OffsetBuffer::from_lengths(sizes);
        Ok(Arc::new(ListArray::try_new(
            field,
            offsets,
            Arc::new(items),
            None,
        )?))
    };
    let valid: NullBuffer = all().map(|sketch| sketch.is_some()).collect();
    let columns = vec![
        floats(|sketch| sketch.first_error),
        numbers(|sketch| sketch.joins),
        numbers(|sketch| sketch.buckets_max as i64),
        floats(|sketch| sketch.sum),
        lists(|(bucket, _)| bucket.to_bits())?,
        lists(|(_, count)| *count)?,
    ];
    Ok(Arc::new(StructArray::try_new(
        fields(),
        columns,
        Some(valid),
    )?))
}

/// The sketch in a row of a column; `None` if it is null.
///
/// # Errors
/// If the column holds no sketches.
pub(crate) fn from_array(column: &ArrayRef, row: usize) -> Result<Option<PercentileSketch>> {
    let wrong = "percentiles are estimated from percentile_agg, uddsketch or tdigest";
    let Some(structs) = column.as_struct_opt().filter(|it| *it.fields() == fields()) else {
        return exec_err!("{wrong}");
    };
    if structs.is_null(row) {
        return Ok(None);
    }
    let float = |at: usize| structs.column(at).as_primitive::<Float64Type>().value(row);
    let number = |at: usize| structs.column(at).as_primitive::<Int64Type>().value(row);
    let numbers = |at: usize| {
        let items = structs.column(at).as_list::<i32>().value(row);
        items.as_primitive::<Int64Type>().values().to_vec()
    };
    let buckets = numbers(4).into_iter().map(SketchBucket::from_bits);
    Ok(Some(PercentileSketch {
        first_error: float(0),
        joins: number(1).clamp(0, JOINS_MAX),
        buckets_max: usize::try_from(number(2))
            .unwrap_or(BUCKETS)
            .clamp(BUCKETS_MIN, BUCKETS_MAX),
        sum: float(3),
        counts: buckets.zip(numbers(5)).collect(),
    }))
}

/// Adds the values of a sketch to a state.
pub(crate) fn merge(
    state: &mut Option<PercentileSketch>,
    next: Option<PercentileSketch>,
) -> Result<()> {
    match (state.as_mut(), next) {
        (_, None) => {}
        (Some(before), Some(next)) => before.merge(next)?,
        (None, next) => *state = next,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_the_error() {
        let mut sketch = PercentileSketch::new(BUCKETS, ERROR);
        for value in 1..=10_000 {
            sketch.add(f64::from(value));
        }
        let error = sketch.error();
        assert!(error < 0.05, "{error}");
        for percent in [1, 25, 50, 90, 99] {
            let exact = f64::from(percent) * 100.0;
            let found = sketch.percentile(f64::from(percent) / 100.0).unwrap();
            assert!(
                (found / exact - 1.0).abs() <= error * 1.5,
                "{percent}: {found}"
            );
            let rank = sketch.rank(exact).unwrap();
            assert!(
                (rank - f64::from(percent) / 100.0).abs() < 0.05,
                "{percent}: {rank}"
            );
        }
    }

    #[test]
    fn a_sketch_of_few_buckets_or_of_many_joins_ends() {
        let mut sketch = PercentileSketch::new(2, 0.001);
        for value in [0.5, 2.0, 700.0, 0.0, -1.0, -900.0] {
            sketch.add(value);
        }
        assert_eq!(sketch.count(), 6);
        sketch.joins = i64::MAX;
        let column = to_array(&[Some(sketch)]).unwrap();
        let read = from_array(&column, 0).unwrap().unwrap();
        assert!(read.error() <= 1.0);
    }

    #[test]
    fn joined_sketches_are_those_of_all_values() {
        let values = |from: i32| (from..from + 1_000).map(|value| f64::from(value - 500));
        let sketch = |values: &mut dyn Iterator<Item = f64>| {
            let mut sketch = PercentileSketch::new(50, 0.01);
            values.for_each(|value| sketch.add(value));
            sketch
        };
        let mut joined = sketch(&mut values(0));
        joined.merge(sketch(&mut values(1_000))).unwrap();
        let all = sketch(&mut values(0).chain(values(1_000)));
        assert_eq!(joined.count(), 2_000);
        assert_eq!(joined.mean(), all.mean());
        assert_eq!(joined.percentile(0.5), all.percentile(0.5));
        let column = to_array(&[Some(joined.clone()), None]).unwrap();
        assert_eq!(from_array(&column, 0).unwrap(), Some(joined));
        assert_eq!(from_array(&column, 1).unwrap(), None);
    }
}
