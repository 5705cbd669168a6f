//! Linear interpolation between two values.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int32Type, Int64Type, UInt64Type};
use datafusion::common::{Result, internal_err};
use std::sync::Arc;

/// The source of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum FillSource {
    /// No value.
    Nothing,
    /// The value of a row.
    Row(u32),
    /// A value between two rows: their indexes, the time since the first, and the time between
    /// them.
    Between(u32, u32, i128, i128),
}

/// The values for `spots`.
///
/// # Errors
/// If they are not numbers.
pub(super) fn draw(values: &ArrayRef, spots: &[FillSource]) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Int32 => typed::<Int32Type>(values, spots, |from, to, done, all| {
            let value = whole(i128::from(from), i128::from(to), done, all);
            i32::try_from(value).unwrap_or(to)
        }),
        DataType::Int64 => typed::<Int64Type>(values, spots, |from, to, done, all| {
            let value = whole(i128::from(from), i128::from(to), done, all);
            i64::try_from(value).unwrap_or(to)
        }),
        DataType::UInt64 => typed::<UInt64Type>(values, spots, |from, to, done, all| {
            let value = whole(i128::from(from), i128::from(to), done, all);
            u64::try_from(value).unwrap_or(to)
        }),
        DataType::Float32 => typed::<Float32Type>(values, spots, |from, to, done, all| {
            real(f64::from(from), f64::from(to), done, all) as f32
        }),
        DataType::Float64 => typed::<Float64Type>(values, spots, real),
        other => return internal_err!("no lines are drawn between values of type {other}"),
    })
}

fn typed<T: ArrowPrimitiveType>(
    values: &ArrayRef,
    spots: &[FillSource],
    line: impl Fn(T::Native, T::Native, i128, i128) -> T::Native,
) -> ArrayRef {
    let values = values.as_primitive::<T>();
    let at = |row: u32| {
        let row = row as usize;
        values.is_valid(row).then(|| values.value(row))
    };
    let drawn = spots.iter().map(|spot| match *spot {
        FillSource::Nothing => None,
        FillSource::Row(row) => at(row),
        FillSource::Between(from, to, done, all) => Some(line(at(from)?, at(to)?, done, all)),
    });
    Arc::new(drawn.collect::<PrimitiveArray<T>>())
}

fn real(from: f64, to: f64, done: i128, all: i128) -> f64 {
    let part = done as f64 / all as f64;
    let rise = to - from;
    if rise.is_finite() {
        from + rise * part
    } else {
        // The difference of finite numbers may be infinite.
        from * (1.0 - part) + to * part
    }
}

/// The nearest whole number, rounded half up.
fn whole(from: i128, to: i128, done: i128, all: i128) -> i128 {
    let exact = (to - from)
        .checked_mul(done)
        .and_then(|rise| rise.checked_mul(2)?.checked_add(all))
        .map(|twice| from + twice.div_euclid(2 * all));
    exact.unwrap_or_else(|| real(from as f64, to as f64, done, all) as i128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_rounded_to_the_nearest() {
        assert_eq!(whole(0, 10, 1, 4), 3);
        assert_eq!(whole(0, 10, 1, 3), 3);
        assert_eq!(whole(10, 0, 1, 4), 8);
        assert_eq!(whole(-10, 0, 3, 4), -2);
        let (least, most) = (i128::from(i64::MIN), i128::from(u64::MAX));
        assert_eq!(whole(least, least, 5, 7), least);
        assert_eq!(whole(most, most, 5, 7), most);
        assert_eq!(whole(0, most, 1, 1), most);
        let all = i128::from(u64::MAX);
        assert!(whole(least, most, all / 2, all) < most);
    }

    #[test]
    fn real_numbers_stay_between_their_neighbours() {
        let close = |left: f64, right: f64| (left - right).abs() < 1e-12;
        assert!(close(real(1.0, 3.0, 1, 4), 1.5));
        assert!(close(real(0.1, 0.1, 1, 3), 0.1));
        assert!(real(f64::MIN, f64::MAX, 1, 2).abs() < 1.0);
        assert!(real(f64::NAN, 1.0, 1, 2).is_nan());
    }
}
