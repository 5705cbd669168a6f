//! Frame of reference and delta for integers: blocks after an optional common scale.
//!
//! Times are stored in nanoseconds but mostly come in seconds or milliseconds. Then all differences
//! share a factor, which is divided out once per page. The packed integers are `(value - base) /
//! scale`, or the differences of neighbours of these. All arithmetic wraps at the width of the
//! lane.

use crate::bitpack::{BLOCK, PackedLane};
use crate::block::{block_bytes, put_block, read_block, read_constant, skip_block};
use crate::bytes::{ByteReader, put_signed, put_varint};
use crate::error::{CodecError, Result};
use std::ops::Range;

/// The integers of a page: their type in memory, and the lane type as which they are packed.
pub(crate) trait PageInteger: Copy + PartialEq + Send + Sync + 'static {
    type Lane: PackedLane;
    fn lane(self) -> Self::Lane;
    fn value(lane: Self::Lane) -> Self;
    /// Views values as lanes.
    fn lanes(values: &mut [Self]) -> &mut [Self::Lane];
}

macro_rules! integer {
    ($value:ty, $lane:ty) => {
        impl PageInteger for $value {
            type Lane = $lane;
            #[inline]
            fn lane(self) -> $lane {
                self as $lane
            }
            #[inline]
            fn value(lane: $lane) -> Self {
                lane as Self
            }
            #[inline]
            fn lanes(values: &mut [Self]) -> &mut [$lane] {
                bytemuck::cast_slice_mut(values)
            }
        }
    };
}
integer!(u32, u32);
integer!(i32, u32);
integer!(i64, u64);
integer!(u64, u64);

/// What is subtracted from every value of a page, and the divisor of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IntegerScale {
    base: u64,
    factor: u64,
}

impl IntegerScale {
    const NONE: Self = Self { base: 0, factor: 1 };

    /// The largest common factor of all distances from the first value.
    fn from_values<T: PageInteger>(values: &[T]) -> Self {
        let Some(first) = values.first() else {
            return Self::NONE;
        };
        let base = first.lane().signed();
        let mut divisor = ExactDivisor::new(0);
        let mut last = 0;
        for value in values {
            // Distances that do not fit i64 have no common factor that wrapping would preserve.
            let Some(distance) = value.lane().signed().checked_sub(base) else {
                return Self::NONE;
            };
            let step = distance.wrapping_sub(last).unsigned_abs();
            last = distance;
            if !divisor.divides(step) {
                divisor = ExactDivisor::new(gcd(divisor.factor, step));
                if divisor.factor == 1 {
                    return Self::NONE;
                }
            }
        }
        if divisor.factor <= 1 || divisor.factor > i64::MAX as u64 {
            return Self::NONE;
        }
        Self {
            base: base as u64,
            factor: divisor.factor,
        }
    }

    fn put(self, out: &mut Vec<u8>) {
        put_varint(self.factor, out);
        if self.factor != 1 {
            put_signed(self.base as i64, out);
        }
    }

    fn read(reader: &mut ByteReader<'_>) -> Result<Self> {
        let factor = reader.varint()?;
        if factor == 0 || factor > i64::MAX as u64 {
            return Err(CodecError::Damaged("a scale is out of range"));
        }
        let base = if factor == 1 {
            0
        } else {
            reader.signed()? as u64
        };
        Ok(Self { base, factor })
    }

    /// Subtracts the base and divides; writes the results to `scaled`.
    fn divide<T: PageInteger>(self, values: &[T], scaled: &mut [T::Lane]) {
        if self.factor == 1 {
            for (slot, value) in scaled.iter_mut().zip(values) {
                *slot = value.lane();
            }
            return;
        }
        let divisor = ExactDivisor::new(self.factor);
        for (slot, value) in scaled.iter_mut().zip(values) {
            let distance = value.lane().signed().wrapping_sub(self.base as i64);
            let scaled = divisor.divide(distance.unsigned_abs()) as i64;
            let scaled = if distance < 0 {
                scaled.wrapping_neg()
            } else {
                scaled
            };
            *slot = T::Lane::narrow(scaled as u64);
        }
    }
}

/// Exact division by a constant, by the inverse of its odd part modulo 2^64 (Granlund, Montgomery
/// 1994).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExactDivisor {
    pub(crate) factor: u64,
    shift: u32,
    inverse: u64,
    quotient_max: u64,
}

impl ExactDivisor {
    pub(crate) fn new(factor: u64) -> Self {
        if factor == 0 {
            return Self {
                factor,
                shift: 0,
                inverse: 0,
                quotient_max: 0,
            };
        }
        let shift = factor.trailing_zeros();
        let odd = factor >> shift;
        let mut inverse = odd;
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        }
        Self {
            factor,
            shift,
            inverse,
            quotient_max: u64::MAX / odd,
        }
    }

    /// `number / factor`, if there is no remainder.
    pub(crate) fn divide(self, number: u64) -> u64 {
        (number >> self.shift).wrapping_mul(self.inverse)
    }

    pub(crate) fn divides(self, number: u64) -> bool {
        if self.factor == 0 {
            return number == 0;
        }
        let low = number & ((1u64 << self.shift) - 1);
        low == 0 && self.divide(number) <= self.quotient_max
    }
}

pub(crate) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Appends `values` in frames of reference.
pub(crate) fn put_for<T: PageInteger>(values: &[T], out: &mut Vec<u8>) {
    let scale = IntegerScale::from_values(values);
    scale.put(out);
    let mut scaled = [T::Lane::ZERO; BLOCK];
    for block in values.chunks(BLOCK) {
        let scaled = &mut scaled[..block.len()];
        scale.divide(block, scaled);
        put_block(scaled, out);
    }
}

/// Reads the values in `rows` out of `count` values written by [`put_for`].
pub(crate) fn read_for_part<T: PageInteger>(
    reader: &mut ByteReader<'_>,
    count: usize,
    rows: &Range<usize>,
) -> Result<Vec<T>> {
    let scale = IntegerScale::read(reader)?;
    let base = T::Lane::narrow(scale.base);
    let factor = T::Lane::narrow(scale.factor);
    let mut values = Vec::with_capacity(rows.len());
    let mut block = [T::Lane::ZERO; BLOCK];
    each_block(count, rows, |len, wanted| {
        let Some(wanted) = wanted else {
            return skip_block::<T::Lane>(reader, len);
        };
        read_block(reader, &mut block[..len])?;
        let scaled = block[wanted].iter();
        values.extend(scaled.map(|value| T::value(base.plus(value.times(factor)))));
        Ok(())
    })?;
    Ok(values)
}

/// Iterates over the blocks of `count` values, up to the last one that contains some of `rows`: the
/// length of each, and which of its values are in `rows`, if any.
pub(crate) fn each_block(
    count: usize,
    rows: &Range<usize>,
    mut see: impl FnMut(usize, Option<Range<usize>>) -> Result<()>,
) -> Result<()> {
    let mut from = 0;
    for len in block_lens(count) {
        if from >= rows.end {
            break;
        }
        let wanted = rows.start.max(from)..rows.end.min(from + len);
        let wanted = (!wanted.is_empty()).then(|| wanted.start - from..wanted.end - from);
        see(len, wanted)?;
        from += len;
    }
    Ok(())
}

/// Reads `count` values written by [`put_for`].
pub(crate) fn read_for<T: PageInteger>(
    reader: &mut ByteReader<'_>,
    count: usize,
) -> Result<Vec<T>> {
    let scale = IntegerScale::read(reader)?;
    let base = T::Lane::narrow(scale.base);
    let factor = T::Lane::narrow(scale.factor);
    let mut values = vec![T::value(T::Lane::ZERO); count];
    for block in T::lanes(&mut values).chunks_mut(BLOCK) {
        read_block(reader, block)?;
        if scale.factor != 1 {
            for slot in block {
                *slot = base.plus(slot.times(factor));
            }
        }
    }
    Ok(values)
}

/// Appends `values` as differences of neighbours.
pub(crate) fn put_delta<T: PageInteger>(values: &[T], out: &mut Vec<u8>) {
    let Some(first) = values.first() else { return };
    let scale = IntegerScale::from_values(values);
    put_varint(scale.factor, out);
    put_signed(first.lane().signed(), out);
    let scale = IntegerScale {
        base: first.lane().signed() as u64,
        ..scale
    };
    let mut scaled = [T::Lane::ZERO; BLOCK + 1];
    for from in (0..values.len() - 1).step_by(BLOCK) {
        let block = &values[from..(from + BLOCK + 1).min(values.len())];
        let scaled = &mut scaled[..block.len()];
        scale.divide(block, scaled);
        for at in 0..block.len() - 1 {
            scaled[at] = scaled[at + 1].minus(scaled[at]);
        }
        put_block(&scaled[..block.len() - 1], out);
    }
}

/// The data before the blocks of [`put_delta`].
pub(crate) struct DeltaHead {
    pub(crate) factor: u64,
    pub(crate) first: i64,
}

impl DeltaHead {
    pub(crate) fn read(reader: &mut ByteReader<'_>) -> Result<Self> {
        let factor = reader.varint()?;
        if factor == 0 || factor > i64::MAX as u64 {
            return Err(CodecError::Damaged("a scale is out of range"));
        }
        let first = reader.signed()?;
        Ok(Self { factor, first })
    }
}

/// Reads `count` values written by [`put_delta`].
pub(crate) fn read_delta<T: PageInteger>(
    reader: &mut ByteReader<'_>,
    count: usize,
) -> Result<Vec<T>> {
    read_delta_to(reader, count, count)
}

/// Reads the values in `rows` out of `count` values written by [`put_delta`]; it must also read the
/// values before them.
pub(crate) fn read_delta_part<T: PageInteger>(
    reader: &mut ByteReader<'_>,
    count: usize,
    rows: &Range<usize>,
) -> Result<Vec<T>> {
    let mut values = read_delta_to(reader, count, rows.end)?;
    values.truncate(rows.end);
    values.drain(..rows.start.min(rows.end));
    Ok(values)
}

/// Reads `count` values, at least up to index `end`.
fn read_delta_to<T: PageInteger>(
    reader: &mut ByteReader<'_>,
    count: usize,
    end: usize,
) -> Result<Vec<T>> {
    let mut values = Vec::with_capacity(count.min(end.saturating_add(BLOCK)));
    if count == 0 {
        return Ok(values);
    }
    let DeltaHead { factor, first } = DeltaHead::read(reader)?;
    let narrow = T::Lane::narrow(factor);
    let mut last = T::Lane::narrow(first as u64);
    values.push(T::value(last));
    let mut steps = [T::Lane::ZERO; BLOCK];
    for len in block_lens(count - 1) {
        if values.len() >= end {
            break;
        }
        if let Some(block) = read_constant(reader, len)? {
            for (step, len) in block.stretches(len) {
                let step = T::Lane::narrow(step as u64).times(narrow);
                last = put_steps(last, step, len, &mut values);
            }
            continue;
        }
        let steps = &mut steps[..len];
        read_block(reader, steps)?;
        let mut sum = last;
        if factor == 1 {
            for step in steps.iter_mut() {
                sum = sum.plus(*step);
                *step = sum;
            }
        } else {
            for step in steps.iter_mut() {
                sum = sum.plus(step.times(narrow));
                *step = sum;
            }
        }
        last = sum;
        values.extend(steps.iter().map(|slot| T::value(*slot)));
    }
    Ok(values)
}

/// Appends `len` equidistant values that follow `last`; returns the last of them.
fn put_steps<T: PageInteger>(
    last: T::Lane,
    step: T::Lane,
    len: usize,
    values: &mut Vec<T>,
) -> T::Lane {
    const LANES: usize = 8;
    let number = |at: usize| last.plus(step.times(T::Lane::narrow(at as u64)));
    let mut lanes: [T::Lane; LANES] = std::array::from_fn(|at| number(at + 1));
    let stride = step.times(T::Lane::narrow(LANES as u64));
    for _ in 0..len / LANES {
        values.extend_from_slice(&lanes.map(T::value));
        lanes = lanes.map(|lane| lane.plus(stride));
    }
    values.extend(lanes[..len % LANES].iter().map(|lane| T::value(*lane)));
    number(len)
}

/// Lengths of the blocks of `count` values.
pub(crate) fn block_lens(count: usize) -> impl Iterator<Item = usize> {
    (0..count)
        .step_by(BLOCK)
        .map(move |from| (count - from).min(BLOCK))
}

/// Estimates, from up to three blocks, the bytes that [`put_for`] and [`put_delta`] take for all of
/// `values`.
pub(crate) fn estimate<T: PageInteger>(values: &[T]) -> (usize, usize) {
    let blocks = values.len().div_ceil(BLOCK);
    let picks: &[usize] = match blocks {
        0 => return (0, 0),
        1 => &[0],
        2 => &[0, 1],
        _ => &[0, blocks / 2, blocks - 2],
    };
    let (mut frame, mut delta, mut seen) = (0, 0, 0);
    let mut scaled = [T::Lane::ZERO; BLOCK];
    for pick in picks {
        let block = &values[pick * BLOCK..((pick + 1) * BLOCK).min(values.len())];
        let scaled = &mut scaled[..block.len()];
        // The scale of the block is close enough, and the same for both.
        IntegerScale::from_values(block).divide(block, scaled);
        frame += block_bytes(scaled);
        for at in (1..scaled.len()).rev() {
            scaled[at] = scaled[at].minus(scaled[at - 1]);
        }
        delta += block_bytes(&scaled[1..]);
        seen += block.len();
    }
    let whole = |bytes: usize| (bytes as u64 * values.len() as u64 / seen as u64) as usize;
    (whole(frame) + 2, whole(delta) + 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check<T: PageInteger + std::fmt::Debug>(values: &[T]) -> (usize, usize) {
        let mut frame = Vec::new();
        put_for(values, &mut frame);
        let mut reader = ByteReader::new(&frame);
        assert_eq!(read_for::<T>(&mut reader, values.len()).unwrap(), values);
        reader.end().unwrap();
        let mut delta = Vec::new();
        put_delta(values, &mut delta);
        let mut reader = ByteReader::new(&delta);
        assert_eq!(read_delta::<T>(&mut reader, values.len()).unwrap(), values);
        reader.end().unwrap();
        (frame.len(), delta.len())
    }

    const T0: i64 = 1_704_067_200_000_000_000;

    #[test]
    fn regular_times_cost_next_to_nothing() {
        let times: Vec<i64> = (0..8192).map(|i| T0 + i * 1_000_000_000).collect();
        assert!(check(&times).1 < 64, "{:?}", check(&times));
    }

    #[test]
    fn short_regular_series_in_one_page_cost_next_to_nothing() {
        let times: Vec<i64> = (0..8192).map(|i| T0 + i % 30 * 1_000_000_000).collect();
        assert!(check(&times).1 < 160, "{:?}", check(&times));
    }

    #[test]
    fn milliseconds_with_jitter_do_not_pay_for_nanoseconds() {
        let times: Vec<i64> = (0..8192i64)
            .map(|i| T0 + (i * 1000 + i * i % 13) * 1_000_000)
            .collect();
        assert!(check(&times).1 < 8192 * 6 / 8, "{:?}", check(&times));
    }

    #[test]
    fn extremes_come_back() {
        check(&[i64::MIN, i64::MAX, 0, -1, i64::MIN, i64::MIN, i64::MAX]);
        check(&[u64::MAX, 0, u64::MAX / 2]);
        check(&[i32::MIN, i32::MAX, 0]);
        check(&[i64::MIN, i64::MIN + 4096, i64::MIN + 8192]);
        check(&[i64::MIN, 0]);
        check(&[0, i64::MIN]);
        check::<i64>(&[]);
        check(&[7i64]);
    }

    #[test]
    fn exact_division_is_exact() {
        for factor in [
            1u64,
            2,
            3,
            10,
            1000,
            1 << 40,
            1_000_000_000,
            u64::MAX,
            3 << 61,
        ] {
            let divisor = ExactDivisor::new(factor);
            for times in [0u64, 1, 2, 7, 1 << 20] {
                let Some(product) = factor.checked_mul(times) else {
                    continue;
                };
                assert!(divisor.divides(product), "{factor} divides {product}");
                assert_eq!(divisor.divide(product), times);
                let beside = product.wrapping_add(1);
                assert_eq!(
                    divisor.divides(beside),
                    beside % factor == 0,
                    "{factor} {beside}"
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_integers_come_back(
            start in any::<i64>(),
            factor in prop_oneof![Just(1i64), Just(1000), Just(1_000_000_000), any::<i64>()],
            steps in proptest::collection::vec(prop_oneof![9 => 0i64..20, 1 => any::<i64>()], 0..3000),
        ) {
            let mut value = start;
            let values: Vec<i64> = steps
                .iter()
                .map(|step| { value = value.wrapping_add(step.wrapping_mul(factor)); value })
                .collect();
            check(&values);
            check(&values.iter().map(|v| *v as i32).collect::<Vec<_>>());
            check(&values.iter().map(|v| *v as u64).collect::<Vec<_>>());
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            count in 0usize..3000,
        ) {
            let _ = read_for::<i64>(&mut ByteReader::new(&bytes), count);
            let _ = read_delta::<i32>(&mut ByteReader::new(&bytes), count);
        }
    }
}
