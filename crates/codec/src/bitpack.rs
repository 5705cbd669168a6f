//! Bit packing: whole blocks of 1,024 in the `FastLanes` order, shorter runs in row order.
//!
//! A block of `W`-bit values takes 128·`W` bytes: the crate `fastlanes` writes it as little-endian
//! words of the lane type (Afroozeh, Boncz: The `FastLanes` Compression Layout, 2023). Shorter runs
//! would waste space in that order, so they are stored consecutively, least significant bit first,
//! padded to a whole byte.

use crate::bytes::ByteReader;
use crate::error::{CodecError, Result};
use fastlanes::FoR;
use std::mem::MaybeUninit;

/// Values of a block.
pub(crate) const BLOCK: usize = 1024;

/// An unsigned integer type of which blocks consist.
pub(crate) trait PackedLane: FoR + std::fmt::Debug + Send + Sync + 'static {
    const BITS: u8;
    const ZERO: Self;
    /// As a signed number of this width, widened.
    fn signed(self) -> i64;
    /// As an unsigned number, widened.
    fn wide(self) -> u64;
    /// The low bits of `value`.
    fn narrow(value: u64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// The minimum and maximum as signed numbers of this width; for an empty slice, the maximum is
    /// before the minimum.
    fn extremes(values: &[Self]) -> (i64, i64);
    /// Reads `bytes` into `words` as little-endian words; their sizes must match.
    fn read_le<'a>(bytes: &[u8], words: &'a mut [MaybeUninit<Self>]) -> &'a [Self];
    fn write_le(words: &[Self], out: &mut Vec<u8>);
}

macro_rules! lane {
    ($unsigned:ty, $signed:ty) => {
        impl PackedLane for $unsigned {
            const BITS: u8 = <$unsigned>::BITS as u8;
            const ZERO: Self = 0;
            #[inline]
            fn signed(self) -> i64 {
                self as $signed as i64
            }
            #[inline]
            fn wide(self) -> u64 {
                self as u64
            }
            #[inline]
            fn narrow(value: u64) -> Self {
                value as Self
            }
            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline]
            fn extremes(values: &[Self]) -> (i64, i64) {
                // In the native width, so that a vector holds as many as possible.
                let (mut min, mut max) = (<$signed>::MAX, <$signed>::MIN);
                for value in values {
                    min = min.min(*value as $signed);
                    max = max.max(*value as $signed);
                }
                (min as i64, max as i64)
            }
            #[inline]
            fn read_le<'a>(bytes: &[u8], words: &'a mut [MaybeUninit<Self>]) -> &'a [Self] {
                let (chunks, _) = bytes.as_chunks::<{ size_of::<$unsigned>() }>();
                assert_eq!(chunks.len(), words.len(), "the bytes must fill the words");
                for (word, chunk) in words.iter_mut().zip(chunks) {
                    word.write(<$unsigned>::from_le_bytes(*chunk));
                }
                #[expect(unsafe_code, reason = "zeroing a block's words first would be wasted")]
                // SAFETY: there are as many chunks as words, so each word was written.
                unsafe {
                    words.assume_init_ref()
                }
            }
            #[inline]
            fn write_le(words: &[Self], out: &mut Vec<u8>) {
                out.reserve(size_of_val(words));
                out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            }
        }
    };
}
lane!(u32, i32);
lane!(u64, i64);

/// Bytes that `count` values of `width` bits take.
pub(crate) fn packed_bytes(count: usize, width: u8) -> usize {
    (count * usize::from(width)).div_ceil(8)
}

const WIDTH: CodecError = CodecError::Damaged("a bit width is larger than the values");

/// Packs `values - reference`, dropping bits above `width`.
pub(crate) fn pack<U: PackedLane>(values: &[U], reference: U, width: u8, out: &mut Vec<u8>) {
    debug_assert!(width <= U::BITS, "a width must be at most that of the lane");
    if width == 0 {
        return;
    }
    if values.len() == BLOCK {
        let mut offsets = [U::ZERO; BLOCK];
        for (offset, value) in offsets.iter_mut().zip(values) {
            *offset = value.minus(reference);
        }
        let mut packed = [U::ZERO; BLOCK];
        let words = BLOCK * usize::from(width) / usize::from(U::BITS);
        #[expect(unsafe_code, reason = "the safe form needs the width at compile time")]
        // SAFETY: `offsets` has 1,024 values, the output slice has exactly 1,024·width/bits words
        // and width is at most the lane's (asserted by the callee too).
        unsafe {
            U::unchecked_pack(usize::from(width), &offsets, &mut packed[..words]);
        }
        U::write_le(&packed[..words], out);
        return;
    }
    let mask = u64::MAX >> (64 - width);
    let (mut pending, mut filled) = (0u128, 0u32);
    out.reserve(packed_bytes(values.len(), width));
    for value in values {
        pending |= u128::from(value.minus(reference).wide() & mask) << filled;
        filled += u32::from(width);
        if filled >= 64 {
            out.extend_from_slice(&(pending as u64).to_le_bytes());
            pending >>= 64;
            filled -= 64;
        }
    }
    out.extend_from_slice(&pending.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// Unpacks `values.len()` values and adds `reference`.
pub(crate) fn unpack<U: PackedLane>(
    reader: &mut ByteReader<'_>,
    reference: U,
    width: u8,
    values: &mut [U],
) -> Result<()> {
    if width > U::BITS {
        return Err(WIDTH);
    }
    if width == 0 {
        values.fill(reference);
        return Ok(());
    }
    let packed = reader.take(packed_bytes(values.len(), width))?;
    if values.len() == BLOCK {
        let mut words = [MaybeUninit::uninit(); BLOCK];
        let words = &mut words[..BLOCK * usize::from(width) / usize::from(U::BITS)];
        let words = U::read_le(packed, words);
        #[expect(unsafe_code, reason = "the safe form needs the width at compile time")]
        // SAFETY: `words` has exactly 1,024·width/bits words, `values` has 1,024 entries, and width
        // was checked to be at most the lane's.
        unsafe {
            U::unchecked_unfor_pack(usize::from(width), words, reference, values);
        }
        return Ok(());
    }
    unpack_rows(packed, reference, width, values);
    Ok(())
}

/// Unpacks values in row order; each must have at least one bit.
fn unpack_rows<U: PackedLane>(packed: &[u8], reference: U, width: u8, values: &mut [U]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "without AVX2, a shift takes only one distance")]
        // SAFETY: the processor has AVX2.
        unsafe {
            unpack_rows_by_avx2(packed, reference, width, values);
        }
        return;
    }
    unpack_rows_by_any(packed, reference, width, values);
}

/// The same, compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn unpack_rows_by_avx2<U: PackedLane>(packed: &[u8], reference: U, width: u8, values: &mut [U]) {
    unpack_rows_by_any(packed, reference, width, values);
}

#[expect(
    clippy::inline_always,
    reason = "it must be compiled for the instruction set of its caller"
)]
#[inline(always)]
fn unpack_rows_by_any<U: PackedLane>(packed: &[u8], reference: U, width: u8, values: &mut [U]) {
    let bits = usize::from(width);
    if bits > WORD_BITS_MAX {
        unpack_wide(packed, reference, bits, values);
        return;
    }
    let read = unpack_words(packed, (reference, bits), 0, values);
    // Fewer than eight bytes are left: work on a copy that is padded with zeros.
    let bit = read * bits;
    let mut end = [0; 32];
    let rest = &packed[bit / 8..];
    end[..rest.len()].copy_from_slice(rest);
    unpack_words(&end, (reference, bits), bit % 8, &mut values[read..]);
}

/// The widest values that fit in eight bytes, whatever the bit at which they begin in the first
/// byte.
const WORD_BITS_MAX: usize = 57;

/// Unpacks values of the frame's width, the first of which begins at `bit`, while eight bytes are
/// available from their first byte on, and adds the frame's reference. Returns how many.
#[expect(clippy::inline_always, reason = "as `unpack_rows_by_any`")]
#[inline(always)]
fn unpack_words<U: PackedLane>(
    packed: &[u8],
    frame: (U, usize),
    bit: usize,
    values: &mut [U],
) -> usize {
    let (reference, bits) = frame;
    let by_eights = if bits <= 8 && bit == 0 {
        unpack_eights(packed, reference, bits, values)
    } else {
        0
    };
    let mask = u64::MAX >> (64 - bits);
    let mut read = by_eights;
    for value in &mut values[by_eights..] {
        let bit = bit + read * bits;
        let Some(bytes) = packed.get(bit / 8..).and_then(<[u8]>::first_chunk::<8>) else {
            break;
        };
        let word = u64::from_le_bytes(*bytes) >> (bit % 8);
        *value = U::narrow(word & mask).plus(reference);
        read += 1;
    }
    read
}

/// Shift distances of eight values of each width within their word. In memory, so that a processor
/// with such an instruction shifts all of them at once.
static EIGHT_SHIFTS: [[u64; 8]; 9] = {
    let mut shifts = [[0; 8]; 9];
    let mut at = 0;
    while at < 9 * 8 {
        shifts[at / 8][at % 8] = (at / 8 * (at % 8)) as u64;
        at += 1;
    }
    shifts
};

/// [`unpack_words`] for values of at most eight bits, eight at a time: they take as many bytes as
/// each value has bits.
#[expect(clippy::inline_always, reason = "as `unpack_rows_by_any`")]
#[inline(always)]
fn unpack_eights<U: PackedLane>(
    packed: &[u8],
    reference: U,
    bits: usize,
    values: &mut [U],
) -> usize {
    let mask = (1 << bits) - 1;
    let shifts = &EIGHT_SHIFTS[bits];
    let (eights, _) = values.as_chunks_mut::<8>();
    let mut read = 0;
    for (at, eight) in eights.iter_mut().enumerate() {
        let Some(bytes) = packed.get(at * bits..).and_then(<[u8]>::first_chunk::<8>) else {
            break;
        };
        let word = u64::from_le_bytes(*bytes);
        let wide = shifts.map(|shift| word >> (shift % 64) & mask);
        for (value, wide) in eight.iter_mut().zip(wide) {
            *value = U::narrow(wide).plus(reference);
        }
        read += 8;
    }
    read
}

/// Unpacks values of more than [`WORD_BITS_MAX`] bits.
fn unpack_wide<U: PackedLane>(packed: &[u8], reference: U, bits: usize, values: &mut [U]) {
    let mask = u64::MAX >> (64 - bits);
    for (at, value) in values.iter_mut().enumerate() {
        let bit = at * bits;
        let rest = &packed[bit / 8..];
        let mut chunk = [0; 16];
        let len = rest.len().min(16);
        chunk[..len].copy_from_slice(&rest[..len]);
        let word = (u128::from_le_bytes(chunk) >> (bit % 8)) as u64;
        *value = U::narrow(word & mask).plus(reference);
    }
}

/// Appends a short list of numbers: its minimum (signed), a width, and the packed differences.
pub(crate) fn put_list(values: &[u64], out: &mut Vec<u8>) {
    let (min, width) = span(values);
    crate::bytes::put_signed(min, out);
    out.push(width);
    pack(values, min as u64, width, out);
}

/// Reads a list of `values.len()` numbers written by [`put_list`].
pub(crate) fn read_list(reader: &mut ByteReader<'_>, values: &mut [u64]) -> Result<()> {
    let min = reader.signed()?;
    let width = reader.byte()?;
    unpack(reader, min as u64, width, values)
}

/// Skips what [`read_list`] reads.
pub(crate) fn skip_list(reader: &mut ByteReader<'_>, count: usize) -> Result<()> {
    reader.signed()?;
    let width = reader.byte()?;
    skip_packed::<u64>(reader, width, count)
}

/// Skips what [`unpack`] reads.
pub(crate) fn skip_packed<U: PackedLane>(
    reader: &mut ByteReader<'_>,
    width: u8,
    count: usize,
) -> Result<()> {
    if width > U::BITS {
        return Err(WIDTH);
    }
    reader.take(packed_bytes(count, width)).map(drop)
}

/// Bytes that [`put_list`] takes.
pub(crate) fn list_bytes(values: &[u64]) -> usize {
    let (min, width) = span(values);
    crate::bytes::signed_len(min) + 1 + packed_bytes(values.len(), width)
}

/// The minimum in signed order, and the bits of the largest distance from it.
#[inline]
pub(crate) fn span<U: PackedLane>(values: &[U]) -> (i64, u8) {
    let (min, max) = U::extremes(values);
    if min > max {
        return (0, 0);
    }
    (min, bits_of(max.wrapping_sub(min) as u64))
}

/// Bits that `value` needs.
pub(crate) fn bits_of(value: u64) -> u8 {
    (64 - value.leading_zeros()) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<U: PackedLane>(seed: u64) {
        for count in [0usize, 1, 2, 7, 9, 63, 64, 65, 1000, 1023, 1024] {
            for width in 0..=U::BITS {
                let mask = if width == 0 {
                    0
                } else {
                    u64::MAX >> (64 - width)
                };
                let mut state = seed;
                let values: Vec<U> = (0..count)
                    .map(|_| {
                        state = state
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1);
                        U::narrow((state ^ (state >> 31)) & mask).plus(U::narrow(77))
                    })
                    .collect();
                let mut out = Vec::new();
                pack(&values, U::narrow(77), width, &mut out);
                assert_eq!(out.len(), packed_bytes(count, width));
                let mut back = vec![U::ZERO; count];
                unpack(&mut ByteReader::new(&out), U::narrow(77), width, &mut back).unwrap();
                assert_eq!(values, back, "{count} values of {width} bits");
                if !out.is_empty() {
                    let cut = &out[..out.len() - 1];
                    assert!(unpack(&mut ByteReader::new(cut), U::ZERO, width, &mut back).is_err());
                }
            }
        }
    }

    #[test]
    fn every_width_and_length_comes_back() {
        round_trip::<u32>(5);
        round_trip::<u64>(9);
    }

    #[test]
    fn widths_beyond_the_lane_are_errors() {
        let mut values = [0u32; 3];
        assert!(unpack(&mut ByteReader::new(&[0; 99]), 0, 33, &mut values).is_err());
        let mut values = [0u64; 1024];
        assert!(unpack(&mut ByteReader::new(&[0; 99]), 0, 255, &mut values).is_err());
    }
}
