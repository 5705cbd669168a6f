//! Statistics of a page: computed from its values, written into and read from the page index.

use crate::error::{BlockDamage, IndexReader};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use marigram_codec::bytes::{put_signed, put_varint};
use marigram_model::{FieldType, FieldValue, sum_i32, sum_i64, sum_u64};
use std::cmp::Ordering;

/// Longest string or bytes value that is kept as a statistic, bytes.
const TEXT_BYTES_MAX: usize = 64;

/// Statistics over the values of a page that are not null. For the time column, `min` and `max` are
/// times.
///
/// Floats are in total order (-0.0 before 0.0, NaN beyond the infinities by its sign). Strings and
/// bytes over 64 bytes leave `min` and `max`, or `first` and `last`, out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageStats {
    /// Rows that are null.
    pub nulls: u32,
    /// Least value.
    pub min: Option<FieldValue>,
    /// Greatest value.
    pub max: Option<FieldValue>,
    /// Sum: of signed integers as I64, of unsigned ones as U64, of floats as F64 added in row
    /// order. `None` where it does not fit, and for types without a sum.
    pub sum: Option<FieldValue>,
    /// First value in row order that is not null, with its time.
    pub first: Option<(i64, FieldValue)>,
    /// Last value in row order that is not null, with its time.
    pub last: Option<(i64, FieldValue)>,
}

impl PageStats {
    /// Statistics of `values`, whose rows have the times `times`.
    pub(crate) fn from_values(values: &dyn Array, times: &[i64]) -> Self {
        let nulls = values.null_count() as u32;
        let Some((first, last)) = first_and_last(values) else {
            return Self {
                nulls,
                ..Self::default()
            };
        };
        let at = |row| {
            FieldValue::from_array(values, row)
                .filter(fits)
                .map(|value| (times[row], value))
        };
        let mut stats = Self {
            nulls,
            first: at(first),
            last: at(last),
            ..Self::default()
        };
        stats.add_extremes(values, first);
        debug_assert!(stats.is_consistent(values.len()), "{stats:?}");
        stats
    }

    /// Whether the statistics may be those of `rows` rows. Queries skip and answer pages by them alone,
    /// so wrong ones are wrong answers.
    fn is_consistent(&self, rows: usize) -> bool {
        let is_between = |(_, value): &(i64, FieldValue)| {
            let above = |min: &FieldValue| min.total_cmp(value) != Some(Ordering::Greater);
            let below = |max: &FieldValue| max.total_cmp(value) != Some(Ordering::Less);
            self.min.as_ref().is_none_or(above) && self.max.as_ref().is_none_or(below)
        };
        let mut ends = self.first.iter().chain(&self.last);
        self.nulls as usize <= rows && ends.all(is_between)
    }

    /// Statistics of all of some pages together, given with their numbers of rows; `first` and `last`
    /// are left out, since pages of several series have no order of time.
    pub(crate) fn total<'a>(pages: impl Iterator<Item = (u32, &'a Self)>) -> Self {
        let mut total = Self::default();
        let mut is_first = true;
        for (rows, page) in pages {
            total.nulls = total.nulls.saturating_add(page.nulls);
            if page.nulls >= rows {
                continue;
            }
            if is_first {
                (total.min, total.max, total.sum) =
                    (page.min.clone(), page.max.clone(), page.sum.clone());
                is_first = false;
                continue;
            }
            let pick = |own: &mut Option<FieldValue>, other: &Option<FieldValue>, keep| {
                *own = match (own.take(), other) {
                    (Some(own), Some(other)) if own.total_cmp(other) == Some(keep) => Some(own),
                    (Some(_), Some(other)) => Some(other.clone()),
                    _ => None,
                };
            };
            pick(&mut total.min, &page.min, Ordering::Less);
            pick(&mut total.max, &page.max, Ordering::Greater);
            total.sum = match (&total.sum, &page.sum) {
                (Some(FieldValue::I64(a)), Some(FieldValue::I64(b))) => {
                    a.checked_add(*b).map(FieldValue::I64)
                }
                (Some(FieldValue::U64(a)), Some(FieldValue::U64(b))) => {
                    a.checked_add(*b).map(FieldValue::U64)
                }
                (Some(FieldValue::F64(a)), Some(FieldValue::F64(b))) => {
                    Some(FieldValue::F64(a + b))
                }
                _ => None,
            };
        }
        total
    }

    /// Least, greatest and sum of values of which that of row `first` is not null.
    fn add_extremes(&mut self, values: &dyn Array, first: usize) {
        match FieldType::from_arrow(values.data_type()) {
            Some(FieldType::Bool) => self.add_bool(values.as_boolean()),
            Some(FieldType::I32) => {
                let (min, max, sum) = integers(values.as_primitive::<Int32Type>(), first, |run| {
                    sum_i32(run).into()
                });
                self.set(FieldValue::I32(min), FieldValue::I32(max));
                self.sum = i64::try_from(sum).ok().map(FieldValue::I64);
            }
            Some(FieldType::I64) => {
                let (min, max, sum) = integers(values.as_primitive::<Int64Type>(), first, sum_i64);
                self.set(FieldValue::I64(min), FieldValue::I64(max));
                self.sum = i64::try_from(sum).ok().map(FieldValue::I64);
            }
            Some(FieldType::U64) => {
                let (min, max, sum) = integers(values.as_primitive::<UInt64Type>(), first, sum_u64);
                self.set(FieldValue::U64(min), FieldValue::U64(max));
                self.sum = u64::try_from(sum).ok().map(FieldValue::U64);
            }
            Some(FieldType::Timestamp) => {
                let (min, max, _) = integers(
                    values.as_primitive::<TimestampNanosecondType>(),
                    first,
                    |_| 0,
                );
                self.set(FieldValue::Timestamp(min), FieldValue::Timestamp(max));
            }
            Some(FieldType::F32) => {
                let values = values.as_primitive::<Float32Type>();
                let (min, max, sum) = floats(values, first, |value| key_f32(value.to_bits()));
                let float = |key: i32| FieldValue::F32(f32::from_bits(key_f32(key as u32) as u32));
                self.set(float(min), float(max));
                self.sum = Some(FieldValue::F64(sum));
            }
            Some(FieldType::F64) => {
                let values = values.as_primitive::<Float64Type>();
                let (min, max, sum) = floats(values, first, |value| key_f64(value.to_bits()));
                let float = |key: i64| FieldValue::F64(f64::from_bits(key_f64(key as u64) as u64));
                self.set(float(min), float(max));
                self.sum = Some(FieldValue::F64(sum));
            }
            Some(FieldType::String) => {
                let values = values.as_string::<i32>();
                let (min, max) = (values.iter().flatten().min(), values.iter().flatten().max());
                if let Some((min, max)) = min.zip(max) {
                    self.set(
                        FieldValue::String(min.into()),
                        FieldValue::String(max.into()),
                    );
                }
            }
            Some(FieldType::Bytes) => {
                let values = values.as_binary::<i32>();
                let (min, max) = (values.iter().flatten().min(), values.iter().flatten().max());
                if let Some((min, max)) = min.zip(max) {
                    self.set(FieldValue::Bytes(min.into()), FieldValue::Bytes(max.into()));
                }
            }
            None => {}
        }
    }

    fn set(&mut self, min: FieldValue, max: FieldValue) {
        if fits(&min) && fits(&max) {
            (self.min, self.max) = (Some(min), Some(max));
        }
    }

    fn add_bool(&mut self, values: &BooleanArray) {
        let all_true = values.false_count() == 0;
        let any_true = values.true_count() > 0;
        self.set(FieldValue::Bool(all_true), FieldValue::Bool(any_true));
    }

    /// Appends the statistics.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_varint(u64::from(self.nulls), out);
        let parts = [
            self.min.is_some() && self.max.is_some(),
            self.sum.is_some(),
            self.first.is_some(),
            self.last.is_some(),
        ];
        out.push(
            parts
                .iter()
                .rev()
                .fold(0, |flags, part| flags << 1 | u8::from(*part)),
        );
        if let Some((min, max)) = self.min.as_ref().zip(self.max.as_ref()) {
            write_value(min, out);
            write_value(max, out);
        }
        if let Some(sum) = &self.sum {
            write_value(sum, out);
        }
        for (time, value) in [&self.first, &self.last].into_iter().flatten() {
            put_signed(*time, out);
            write_value(value, out);
        }
    }

    /// Reads the statistics of a page of `kind`.
    pub(crate) fn read(kind: FieldType, reader: &mut IndexReader<'_>) -> Result<Self, BlockDamage> {
        let mut stats = Self {
            nulls: reader.varint32()?,
            ..Self::default()
        };
        let flags = reader.byte()?;
        if flags > 0b1111 {
            return Err(BlockDamage::from("unknown statistics"));
        }
        if flags & 1 != 0 {
            stats.min = Some(read_value(kind, reader)?);
            stats.max = Some(read_value(kind, reader)?);
        }
        if flags & 2 != 0 {
            let kind = match kind {
                FieldType::I32 | FieldType::I64 => FieldType::I64,
                FieldType::U64 => FieldType::U64,
                FieldType::F32 | FieldType::F64 => FieldType::F64,
                _ => return Err(BlockDamage::from("a sum of values that have none")),
            };
            stats.sum = Some(read_value(kind, reader)?);
        }
        if flags & 4 != 0 {
            stats.first = Some((reader.signed()?, read_value(kind, reader)?));
        }
        if flags & 8 != 0 {
            stats.last = Some((reader.signed()?, read_value(kind, reader)?));
        }
        Ok(stats)
    }
}

fn fits(value: &FieldValue) -> bool {
    match value {
        FieldValue::String(text) => text.len() <= TEXT_BYTES_MAX,
        FieldValue::Bytes(bytes) => bytes.len() <= TEXT_BYTES_MAX,
        _ => true,
    }
}

/// First and last row that is not null.
fn first_and_last(values: &dyn Array) -> Option<(usize, usize)> {
    let rows = values.len();
    match values.nulls() {
        None => (rows > 0).then(|| (0, rows - 1)),
        Some(nulls) => {
            let first = (0..rows).find(|row| nulls.is_valid(*row))?;
            Some((first, (0..rows).rfind(|row| nulls.is_valid(*row))?))
        }
    }
}

/// Calls `each` with every stretch of values that are not null, in row order: whole slices, so
/// that what is done with them is a loop without branches.
fn stretches<T: ArrowPrimitiveType>(
    values: &PrimitiveArray<T>,
    mut each: impl FnMut(&[T::Native]),
) {
    match values.nulls() {
        None => each(values.values()),
        Some(nulls) => nulls
            .valid_slices()
            .for_each(|(from, to)| each(&values.values()[from..to])),
    }
}

/// Least, greatest and sum of values of which at least one, that of row `first`, is not null.
fn integers<T>(
    values: &PrimitiveArray<T>,
    first: usize,
    add: impl Fn(&[T::Native]) -> i128,
) -> (T::Native, T::Native, i128)
where
    T: ArrowPrimitiveType,
    T::Native: Ord + Copy,
{
    let first = values.value(first);
    let (mut min, mut max, mut sum) = (first, first, 0i128);
    stretches(values, |run| {
        (min, max) = run.iter().fold((min, max), |(min, max), value| {
            (min.min(*value), max.max(*value))
        });
        sum += add(run);
    });
    (min, max, sum)
}

/// Least and greatest by the order of integer keys, and the sum in row order, of floats of which at
/// least one, that of row `first`, is not null.
fn floats<T, K>(
    values: &PrimitiveArray<T>,
    first: usize,
    key: impl Fn(T::Native) -> K,
) -> (K, K, f64)
where
    T: ArrowPrimitiveType,
    T::Native: Copy + Into<f64>,
    K: Ord + Copy,
{
    let first = key(values.value(first));
    let (mut min, mut max, mut sum) = (first, first, 0.0);
    stretches(values, |run| {
        (min, max) = run.iter().fold((min, max), |(min, max), value| {
            let key = key(*value);
            (min.min(key), max.max(key))
        });
        sum = run.iter().fold(sum, |sum, value| sum + (*value).into());
    });
    (min, max, sum)
}

/// The float's bits as an integer whose order is [`f64::total_cmp`]'s; its own inverse.
fn key_f64(bits: u64) -> i64 {
    let bits = bits as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The float's bits as an integer whose order is [`f32::total_cmp`]'s; its own inverse.
fn key_f32(bits: u32) -> i32 {
    let bits = bits as i32;
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

fn write_value(value: &FieldValue, out: &mut Vec<u8>) {
    match value {
        FieldValue::Bool(truth) => out.push(u8::from(*truth)),
        FieldValue::I32(number) => put_signed(i64::from(*number), out),
        FieldValue::I64(number) | FieldValue::Timestamp(number) => put_signed(*number, out),
        FieldValue::U64(number) => put_varint(*number, out),
        FieldValue::F32(number) => out.extend_from_slice(&number.to_le_bytes()),
        FieldValue::F64(number) => out.extend_from_slice(&number.to_le_bytes()),
        FieldValue::String(text) => write_bytes(text.as_bytes(), out),
        FieldValue::Bytes(bytes) => write_bytes(bytes, out),
    }
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn read_value(kind: FieldType, reader: &mut IndexReader<'_>) -> Result<FieldValue, BlockDamage> {
    Ok(match kind {
        FieldType::Bool => FieldValue::Bool(reader.byte()? != 0),
        FieldType::I32 => FieldValue::I32(
            i32::try_from(reader.signed()?).map_err(|_| "a number is longer than 32 bits")?,
        ),
        FieldType::I64 => FieldValue::I64(reader.signed()?),
        FieldType::Timestamp => FieldValue::Timestamp(reader.signed()?),
        FieldType::U64 => FieldValue::U64(reader.varint()?),
        FieldType::F32 => FieldValue::F32(f32::from_le_bytes(reader.array()?)),
        FieldType::F64 => FieldValue::F64(f64::from_le_bytes(reader.array()?)),
        FieldType::String => {
            let len = reader.varint_count(1)?;
            let text = str::from_utf8(reader.take(len)?).map_err(|_| "text is not UTF-8")?;
            FieldValue::String(text.to_owned())
        }
        FieldType::Bytes => {
            let len = reader.varint_count(1)?;
            FieldValue::Bytes(reader.take(len)?.to_vec())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Float32Array, Float64Array, Int64Array, UInt64Array};

    #[test]
    fn floats_are_in_total_order_and_nulls_do_not_count() {
        let values = [
            None,
            Some(0.0),
            Some(-0.0),
            Some(f64::NAN),
            Some(-f64::NAN),
            None,
            Some(-1.5),
        ];
        let stats =
            PageStats::from_values(&Float64Array::from_iter(values), &[1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(stats.nulls, 2);
        assert_eq!(stats.min, Some(FieldValue::F64(-f64::NAN)));
        assert_eq!(stats.max, Some(FieldValue::F64(f64::NAN)));
        assert_eq!(stats.first, Some((2, FieldValue::F64(0.0))));
        assert_eq!(stats.last, Some((7, FieldValue::F64(-1.5))));
        let stats = PageStats::from_values(&Float32Array::from(vec![0.0, -0.0, 2.5]), &[1, 2, 3]);
        assert_eq!(stats.min, Some(FieldValue::F32(-0.0)));
        assert_eq!(stats.max, Some(FieldValue::F32(2.5)));
        assert_eq!(stats.sum, Some(FieldValue::F64(2.5)));
    }

    #[test]
    fn sums_that_do_not_fit_are_left_out() {
        let stats = PageStats::from_values(&Int64Array::from(vec![i64::MAX, 1]), &[1, 2]);
        assert_eq!(stats.sum, None);
        let stats = PageStats::from_values(&Int64Array::from(vec![i64::MAX, 1, -1]), &[1, 2, 3]);
        assert_eq!(stats.sum, Some(FieldValue::I64(i64::MAX)));
        let stats = PageStats::from_values(&UInt64Array::from(vec![u64::MAX]), &[1]);
        assert_eq!(stats.sum, Some(FieldValue::U64(u64::MAX)));
    }
}
