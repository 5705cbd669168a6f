//! Statistics of pages, chunks and series: written for other readers, and skipped when reading,
//! except for the number of rows.

use crate::bytes::{Cursor, TsFileBytes as _, put_i32, put_i64, put_long_bytes, put_uvar};
use crate::error::PartResult;
use crate::kinds::{DataType, VECTOR};
use crate::values::ColumnValues;

/// Skips statistics of values of type `number`.
pub(crate) fn skip(cursor: &mut Cursor<'_>, number: u8) -> PartResult<()> {
    cursor.varint32()?;
    cursor.take(16)?;
    if number == VECTOR {
        return Ok(());
    }
    match DataType::from_number(number)? {
        DataType::Boolean => cursor.take(10).map(drop),
        DataType::Int32 | DataType::Date | DataType::Float => cursor.take(24).map(drop),
        DataType::Int64 | DataType::Timestamp | DataType::Double => cursor.take(40).map(drop),
        DataType::Text => (0..2).try_for_each(|_| cursor.long_bytes().map(drop)),
        DataType::String => (0..4).try_for_each(|_| cursor.long_bytes().map(drop)),
        DataType::Blob => Ok(()),
    }
}

/// Statistics of written values, in time order.
#[derive(Clone, Debug)]
pub(crate) struct ChunkStatistics {
    count: u32,
    start: i64,
    end: i64,
    typed: TypedStatistics,
}

#[derive(Clone, Debug)]
enum TypedStatistics {
    /// Only times: for the time column and for blobs.
    None,
    Bool(Option<(bool, bool)>, i64),
    I32(Option<ValueRange<i32>>, i64),
    I64(Option<ValueRange<i64>>, f64),
    F32(Option<ValueRange<f32>>, f64),
    F64(Option<ValueRange<f64>>, f64),
    /// With or without minimum and maximum.
    Bytes(Option<ValueRange<Vec<u8>>>, bool),
}

#[derive(Clone, Debug)]
struct ValueRange<T> {
    min: T,
    max: T,
    first: T,
    last: T,
}

impl<T: Clone + PartialOrd> ValueRange<T> {
    /// A NaN counts as minimum and maximum only until there is another value.
    fn widen(range: &mut Option<Self>, value: T) {
        let is_value = |value: &T| value.partial_cmp(value).is_some();
        match range {
            None => {
                *range = Some(Self {
                    min: value.clone(),
                    max: value.clone(),
                    first: value.clone(),
                    last: value,
                });
            }
            Some(range) => {
                if value < range.min || !is_value(&range.min) {
                    range.min = value.clone();
                }
                if value > range.max || !is_value(&range.max) {
                    range.max = value.clone();
                }
                range.last = value;
            }
        }
    }

    fn merge(range: &mut Option<Self>, later: Option<Self>) {
        if let Some(later) = later {
            if range.is_none() {
                *range = Some(later);
                return;
            }
            Self::widen(range, later.min);
            Self::widen(range, later.max);
            Self::widen(range, later.last);
        }
    }
}

impl ChunkStatistics {
    /// Statistics for the times of a time column.
    pub(crate) fn for_times() -> Self {
        Self::with(TypedStatistics::None)
    }

    /// Statistics for values of a type.
    pub(crate) fn new(data_type: DataType) -> Self {
        Self::with(match data_type {
            DataType::Boolean => TypedStatistics::Bool(None, 0),
            DataType::Int32 | DataType::Date => TypedStatistics::I32(None, 0),
            DataType::Int64 | DataType::Timestamp => TypedStatistics::I64(None, 0.0),
            DataType::Float => TypedStatistics::F32(None, 0.0),
            DataType::Double => TypedStatistics::F64(None, 0.0),
            DataType::Text => TypedStatistics::Bytes(None, false),
            DataType::String => TypedStatistics::Bytes(None, true),
            DataType::Blob => TypedStatistics::None,
        })
    }

    fn with(typed: TypedStatistics) -> Self {
        Self {
            count: 0,
            start: 0,
            end: 0,
            typed,
        }
    }

    /// Number of values.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Adds values and their times, which ascend and come after the earlier ones.
    pub(crate) fn add(&mut self, times: &[i64], values: Option<&ColumnValues>) {
        let (Some(first), Some(last)) = (times.first(), times.last()) else {
            return;
        };
        if self.count == 0 {
            self.start = *first;
        }
        self.end = *last;
        self.count += times.len() as u32;
        match (&mut self.typed, values) {
            (TypedStatistics::Bool(range, sum), Some(ColumnValues::Bool(values))) => {
                for value in values {
                    *range = Some((range.map_or(*value, |(first, _)| first), *value));
                    *sum += i64::from(*value);
                }
            }
            (TypedStatistics::I32(range, sum), Some(ColumnValues::I32(values))) => {
                for value in values {
                    ValueRange::widen(range, *value);
                    *sum += i64::from(*value);
                }
            }
            (TypedStatistics::I64(range, sum), Some(ColumnValues::I64(values))) => {
                for value in values {
                    ValueRange::widen(range, *value);
                    *sum += *value as f64;
                }
            }
            (TypedStatistics::F32(range, sum), Some(ColumnValues::F32(values))) => {
                for value in values {
                    ValueRange::widen(range, *value);
                    *sum += f64::from(*value);
                }
            }
            (TypedStatistics::F64(range, sum), Some(ColumnValues::F64(values))) => {
                for value in values {
                    ValueRange::widen(range, *value);
                    *sum += *value;
                }
            }
            (TypedStatistics::Bytes(range, _), Some(ColumnValues::Bytes(values))) => {
                for value in values.iter() {
                    ValueRange::widen(range, value.to_vec());
                }
            }
            _ => {}
        }
    }

    /// Adds the statistics of later values.
    pub(crate) fn merge(&mut self, later: Self) {
        if later.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = later;
            return;
        }
        self.end = later.end;
        self.count += later.count;
        match (&mut self.typed, later.typed) {
            (TypedStatistics::Bool(Some(range), sum), TypedStatistics::Bool(Some(later), more)) => {
                range.1 = later.1;
                *sum += more;
            }
            (TypedStatistics::I32(range, sum), TypedStatistics::I32(later, more)) => {
                ValueRange::merge(range, later);
                *sum += more;
            }
            (TypedStatistics::I64(range, sum), TypedStatistics::I64(later, more)) => {
                ValueRange::merge(range, later);
                *sum += more;
            }
            (TypedStatistics::F32(range, sum), TypedStatistics::F32(later, more)) => {
                ValueRange::merge(range, later);
                *sum += more;
            }
            (TypedStatistics::F64(range, sum), TypedStatistics::F64(later, more)) => {
                ValueRange::merge(range, later);
                *sum += more;
            }
            (TypedStatistics::Bytes(range, _), TypedStatistics::Bytes(later, _)) => {
                ValueRange::merge(range, later);
            }
            _ => {}
        }
    }

    /// Appends the statistics; a range without values is written as zeros.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_uvar(self.count, out);
        put_i64(self.start, out);
        put_i64(self.end, out);
        match &self.typed {
            TypedStatistics::None => {}
            TypedStatistics::Bool(range, sum) => {
                let (first, last) = range.unwrap_or_default();
                out.extend([u8::from(first), u8::from(last)]);
                put_i64(*sum, out);
            }
            TypedStatistics::I32(range, sum) => {
                put_range(range.as_ref(), 0, |value, out| put_i32(*value, out), out);
                put_i64(*sum, out);
            }
            TypedStatistics::I64(range, sum) => {
                put_range(range.as_ref(), 0, |value, out| put_i64(*value, out), out);
                put_i64(sum.to_bits() as i64, out);
            }
            TypedStatistics::F32(range, sum) => {
                let put = |value: &f32, out: &mut Vec<u8>| put_i32(value.to_bits() as i32, out);
                put_range(range.as_ref(), 0.0, put, out);
                put_i64(sum.to_bits() as i64, out);
            }
            TypedStatistics::F64(range, sum) => {
                let put = |value: &f64, out: &mut Vec<u8>| put_i64(value.to_bits() as i64, out);
                put_range(range.as_ref(), 0.0, put, out);
                put_i64(sum.to_bits() as i64, out);
            }
            TypedStatistics::Bytes(range, has_extremes) => {
                let part = |pick: fn(&ValueRange<Vec<u8>>) -> &Vec<u8>| {
                    range.as_ref().map(pick).map_or(&[][..], Vec::as_slice)
                };
                put_long_bytes(part(|range| &range.first), out);
                put_long_bytes(part(|range| &range.last), out);
                if *has_extremes {
                    put_long_bytes(part(|range| &range.min), out);
                    put_long_bytes(part(|range| &range.max), out);
                }
            }
        }
    }
}

fn put_range<T>(
    range: Option<&ValueRange<T>>,
    zero: T,
    put: impl Fn(&T, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let of = |pick: fn(&ValueRange<T>) -> &T| range.map_or(&zero, pick);
    for value in [
        of(|r| &r.min),
        of(|r| &r.max),
        of(|r| &r.first),
        of(|r| &r.last),
    ] {
        put(value, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_skipped() {
        let cases = [
            (DataType::Boolean, ColumnValues::Bool(vec![true, false])),
            (DataType::Int32, ColumnValues::I32(vec![3, -4])),
            (DataType::Int64, ColumnValues::I64(vec![3, -4])),
            (DataType::Float, ColumnValues::F32(vec![f32::NAN, 2.0])),
            (DataType::Double, ColumnValues::F64(vec![1.0, f64::NAN])),
            (
                DataType::Text,
                ColumnValues::Bytes(["b", "a"].into_iter().collect()),
            ),
            (
                DataType::String,
                ColumnValues::Bytes(["b", "a"].into_iter().collect()),
            ),
            (
                DataType::Blob,
                ColumnValues::Bytes(["b", "a"].into_iter().collect()),
            ),
        ];
        for (data_type, values) in cases {
            let mut statistics = ChunkStatistics::new(data_type);
            statistics.add(&[1, 2], Some(&values));
            statistics.merge(statistics.clone());
            assert_eq!(statistics.count(), 4);
            for statistics in [statistics, ChunkStatistics::new(data_type)] {
                let mut out = Vec::new();
                statistics.put(&mut out);
                let mut cursor = Cursor::new(&out);
                skip(&mut cursor, data_type.number()).unwrap();
                assert!(cursor.is_empty(), "{data_type:?}");
            }
        }
    }

    #[test]
    fn extremes_leave_out_what_is_no_number() {
        let mut range = None;
        for value in [f64::NAN, 3.0, f64::NAN, -1.0] {
            ValueRange::widen(&mut range, value);
        }
        let range = range.unwrap();
        assert_eq!((range.min, range.max, range.last), (-1.0, 3.0, -1.0));
        assert!(range.first.is_nan());
    }
}
