//! Decimal floats as integers (ALP; Afroozeh, Kuffo, Boncz: Adaptive Lossless floating-Point
//! Compression, SIGMOD 2023), with one change. A float that was parsed from decimal digits is the
//! correctly rounded quotient of two exact integers. So dividing by a power of ten reproduces it
//! bit for bit, whereas multiplying by the inverse misses some values. Multiplication remains
//! available for values that were computed so, and for f32, where it is exact in f64.
//!
//! Doubles that were decimals in single precision before (from a sensor's driver, or a widened
//! column of f32) are not decimals any more, but they are the singles nearest to decimals. Rounding
//! the quotient to f32 reproduces them.
//!
//! Each block has its own power, and that of the previous block is tried first. A value that does
//! not decode to exactly the same bits (NaN, -0.0, infinities, …) is stored unencoded, as an
//! exception.
//!
//! The integers are stored in frames of reference, or as differences of neighbours, because most
//! measured quantities change little between readings.

use crate::bitpack::{BLOCK, PackedLane, list_bytes, put_list, read_list, skip_list, span};
use crate::block::{block_bytes, places, put_block, read_block, skip_block};
use crate::bytes::{ByteReader, put_signed, put_varint, signed_len};
use crate::error::Result;
use crate::integer::{block_lens, each_block};
pub(crate) use float::AlpFloat;
use power::{PowerOfTen, WithPower};
use std::ops::Range;

mod float;
mod power;

/// Set in a block's first byte if exceptions follow.
const EXCEPTIONS: u8 = 0x80;
/// Number of values tried to find a power.
const SAMPLE: usize = 32;
/// Bits per value from which on the search also tests whether doubles were singles.
const WIDE_BITS: usize = 28;

/// How the integers of blocks are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AlpPacking {
    /// In a frame of reference.
    Frame,
    /// The first one, then differences of neighbours.
    Steps,
}

/// The integers of a block, and the positions of values that they do not reproduce.
struct ScaledBlock<F: AlpFloat> {
    integers: [F::Lane; BLOCK],
    exceptions: Vec<u16>,
}

/// Scales values, and notes which ones decode correctly.
struct AlpScaler<'a, F: AlpFloat> {
    values: &'a [F],
    up: f64,
    integers: &'a mut [F::Lane],
    exact: &'a mut [bool],
}

impl<F: AlpFloat> WithPower<F, ()> for AlpScaler<'_, F> {
    #[inline]
    fn run(self, back: impl Fn(F::Lane) -> F) {
        let slots = self.integers.iter_mut().zip(self.exact).zip(self.values);
        for ((integer, exact), value) in slots {
            *integer = value.scale(self.up);
            *exact = back(*integer).same(*value) & F::allowed(*integer);
        }
    }
}

fn scale_block<F: AlpFloat>(values: &[F], power: PowerOfTen) -> ScaledBlock<F> {
    let mut scaled = ScaledBlock::<F> {
        integers: [F::Lane::ZERO; BLOCK],
        exceptions: Vec::new(),
    };
    let mut exact = [false; BLOCK];
    power.with(AlpScaler {
        values,
        up: power.up(),
        integers: &mut scaled.integers,
        exact: &mut exact,
    });
    let exact = &exact[..values.len()];
    if exact.iter().all(|exact| *exact) {
        return scaled;
    }
    // Exceptions repeat the previous value, so that they widen neither a frame nor a step.
    let mut filler = exact
        .iter()
        .position(|exact| *exact)
        .map_or(F::Lane::ZERO, |at| scaled.integers[at]);
    for (at, exact) in exact.iter().enumerate() {
        if *exact {
            filler = scaled.integers[at];
        } else {
            scaled.integers[at] = filler;
            scaled.exceptions.push(at as u16);
        }
    }
    scaled
}

/// The power for which the sample takes the fewest bits, and that number of bits.
fn search<F: AlpFloat>(sample: &[F]) -> (PowerOfTen, usize) {
    let best = search_powers(sample, false);
    // Only for doubles, and only if they take more bits than decimals of single precision would.
    let were_singles = F::BYTES == 8
        && best.1 > sample.len() * WIDE_BITS
        && sample.iter().all(|value| value.single().same(*value));
    if were_singles {
        let singles = search_powers(sample, true);
        if singles.1 < best.1 {
            return singles;
        }
    }
    best
}

fn search_powers<F: AlpFloat>(sample: &[F], single: bool) -> (PowerOfTen, usize) {
    let mut best = (PowerOfTen::NONE, usize::MAX);
    for exponent in 0..=F::EXPONENT_MAX {
        for multiply in [F::MULTIPLY_FIRST, !F::MULTIPLY_FIRST] {
            let power = PowerOfTen {
                exponent,
                multiply,
                single,
            };
            let scaled = scale_sample(sample, power);
            let bits = scaled.0 * (F::BYTES * 8 + 12) + (sample.len() - scaled.0) * scaled.1;
            if bits < best.1 {
                best = (power, bits);
            }
            if scaled.0 == 0 {
                return best;
            }
        }
    }
    best
}

/// Number of exceptions in the sample for a power, and the width of the others.
fn scale_sample<F: AlpFloat>(sample: &[F], power: PowerOfTen) -> (usize, usize) {
    let mut integers = [F::Lane::ZERO; SAMPLE];
    let mut exact = [false; SAMPLE];
    power.with(AlpScaler {
        values: sample,
        up: power.up(),
        integers: &mut integers,
        exact: &mut exact,
    });
    let mut kept = 0;
    for at in 0..sample.len() {
        if exact[at] {
            integers[kept] = integers[at];
            kept += 1;
        }
    }
    (sample.len() - kept, usize::from(span(&integers[..kept]).1))
}

fn sample_of<F: AlpFloat>(values: &[F]) -> Vec<F> {
    let count = values.len().min(SAMPLE);
    (0..count)
        .map(|at| values[at * values.len() / count])
        .collect()
}

/// Replaces all integers but the first by differences of neighbours.
fn to_steps<L: PackedLane>(integers: &mut [L]) {
    for at in (1..integers.len()).rev() {
        integers[at] = integers[at].minus(integers[at - 1]);
    }
}

fn put_one<F: AlpFloat>(
    values: &[F],
    power: PowerOfTen,
    packing: AlpPacking,
    scaled: &mut ScaledBlock<F>,
    out: &mut Vec<u8>,
) {
    let integers = &mut scaled.integers[..values.len()];
    if scaled.exceptions.is_empty() {
        out.push(power.number());
    } else {
        out.push(power.number() | EXCEPTIONS);
        put_varint(scaled.exceptions.len() as u64, out);
        put_list(&gaps(&scaled.exceptions), out);
        let raw: Vec<F> = scaled
            .exceptions
            .iter()
            .map(|at| values[usize::from(*at)])
            .collect();
        F::put(&raw, out);
    }
    match packing {
        AlpPacking::Frame => put_block(integers, out),
        AlpPacking::Steps => {
            to_steps(integers);
            put_signed(integers[0].signed(), out);
            put_block(&integers[1..], out);
        }
    }
}

pub(crate) fn gaps(places: &[u16]) -> Vec<u64> {
    let mut next = 0;
    let gap = |at: &u16| {
        let gap = u64::from(*at - next);
        next = at + 1;
        gap
    };
    places.iter().map(gap).collect()
}

/// Appends `values`, with their integers packed as `packing` says.
pub(crate) fn put_alp<F: AlpFloat>(values: &[F], packing: AlpPacking, out: &mut Vec<u8>) {
    let mut power = search(&sample_of(values)).0;
    for block in values.chunks(BLOCK) {
        let mut scaled = scale_block(block, power);
        if scaled.exceptions.len() > block.len() / 16 {
            let other = search(&sample_of(block)).0;
            if other != power {
                let again = scale_block(block, other);
                if again.exceptions.len() < scaled.exceptions.len() {
                    (power, scaled) = (other, again);
                }
            }
        }
        put_one(block, power, packing, &mut scaled, out);
    }
}

/// Converts integers to floats and appends them.
struct AppendFloats<'a, F: AlpFloat> {
    integers: &'a [F::Lane],
    values: &'a mut Vec<F>,
}

impl<F: AlpFloat> WithPower<F, ()> for AppendFloats<'_, F> {
    #[inline]
    fn run(self, back: impl Fn(F::Lane) -> F) {
        let floats = self.integers.iter().map(|integer| back(*integer));
        self.values.extend(floats);
    }
}

/// Reads the integers of a block.
fn read_integers<L: PackedLane>(
    reader: &mut ByteReader<'_>,
    packing: AlpPacking,
    integers: &mut [L],
) -> Result<()> {
    if packing == AlpPacking::Frame {
        return read_block(reader, integers);
    }
    let Some((first, steps)) = integers.split_first_mut() else {
        return Ok(());
    };
    *first = L::narrow(reader.signed()? as u64);
    read_block(reader, steps)?;
    let mut sum = *first;
    for step in steps {
        sum = sum.plus(*step);
        *step = sum;
    }
    Ok(())
}

/// Reads `count` values written by [`put_alp`] with the same packing.
pub(crate) fn read_alp<F: AlpFloat>(
    reader: &mut ByteReader<'_>,
    packing: AlpPacking,
    count: usize,
) -> Result<Vec<F>> {
    let mut values = Vec::with_capacity(count);
    let mut integers = [F::Lane::ZERO; BLOCK];
    for len in block_lens(count) {
        read_one(
            reader,
            packing,
            &mut integers[..len],
            &(0..len),
            &mut values,
        )?;
    }
    Ok(values)
}

/// Reads the values in `rows` out of `count` values written by [`put_alp`].
pub(crate) fn read_alp_part<F: AlpFloat>(
    reader: &mut ByteReader<'_>,
    packing: AlpPacking,
    count: usize,
    rows: &Range<usize>,
) -> Result<Vec<F>> {
    let mut values = Vec::with_capacity(rows.len());
    let mut integers = [F::Lane::ZERO; BLOCK];
    each_block(count, rows, |len, wanted| {
        let Some(wanted) = wanted else {
            return skip_one::<F>(reader, packing, len);
        };
        read_one(reader, packing, &mut integers[..len], &wanted, &mut values)
    })?;
    Ok(values)
}

/// Reads the values in `wanted` from a block, and appends them to `values`; `integers` has the
/// length of the block.
fn read_one<F: AlpFloat>(
    reader: &mut ByteReader<'_>,
    packing: AlpPacking,
    integers: &mut [F::Lane],
    wanted: &Range<usize>,
    values: &mut Vec<F>,
) -> Result<()> {
    let len = integers.len();
    let head = reader.byte()?;
    let power = PowerOfTen::from_number(head & !EXCEPTIONS)?;
    let (mut gaps, mut raw) = (Vec::new(), Vec::new());
    if head & EXCEPTIONS != 0 {
        let count = reader.count(len)?;
        gaps.resize(count, 0);
        read_list(reader, &mut gaps)?;
        raw = F::read(reader.take(count * F::BYTES)?);
    }
    read_integers(reader, packing, integers)?;
    let from = values.len();
    let integers = &integers[wanted.clone()];
    power.with(AppendFloats { integers, values });
    let block = &mut values[from..];
    for (at, value) in places(&gaps, len)?.into_iter().zip(raw) {
        if wanted.contains(&at) {
            block[at - wanted.start] = value;
        }
    }
    Ok(())
}

/// Skips a block of `len` values.
fn skip_one<F: AlpFloat>(
    reader: &mut ByteReader<'_>,
    packing: AlpPacking,
    len: usize,
) -> Result<()> {
    if reader.byte()? & EXCEPTIONS != 0 {
        let count = reader.count(len)?;
        skip_list(reader, count)?;
        reader.take(count * F::BYTES)?;
    }
    if packing == AlpPacking::Frame {
        return skip_block::<F::Lane>(reader, len);
    }
    reader.signed()?;
    skip_block::<F::Lane>(reader, len - 1)
}

/// Estimates, from up to two blocks, the bytes that [`put_alp`] takes for all of `values` in frames
/// and in steps.
pub(crate) fn estimate<F: AlpFloat>(values: &[F]) -> (usize, usize) {
    if values.is_empty() {
        return (0, 0);
    }
    let power = search(&sample_of(values)).0;
    let blocks = values.len().div_ceil(BLOCK);
    let picks: &[usize] = if blocks == 1 { &[0] } else { &[0, blocks / 2] };
    let (mut heads, mut frames, mut steps, mut seen) = (0, 0, 0, 0);
    for pick in picks {
        let block = &values[pick * BLOCK..((pick + 1) * BLOCK).min(values.len())];
        let mut scaled = scale_block(block, power);
        let integers = &mut scaled.integers[..block.len()];
        frames += block_bytes(integers);
        to_steps(integers);
        steps += signed_len(integers[0].signed()) + block_bytes(&integers[1..]);
        heads += 1;
        if !scaled.exceptions.is_empty() {
            heads += 2 + list_bytes(&gaps(&scaled.exceptions)) + scaled.exceptions.len() * F::BYTES;
        }
        seen += block.len();
    }
    let whole = |bytes: usize| (bytes as u64 * values.len() as u64 / seen as u64) as usize;
    (whole(heads + frames), whole(heads + steps))
}

#[cfg(test)]
mod tests;
