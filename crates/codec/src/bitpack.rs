//! Bit packing: whole blocks of 1,024 in the `FastLanes` order, anything shorter in row order.
//!
//! A block of `W`-bit values takes 128·`W` bytes: the crate `fastlanes` writes it as little-endian
//! words of the lane type (Afroozeh, Boncz: The `FastLanes` Compression Layout, 2023). Shorter runs
//! would waste space in that order, so they stand one after the other, lowest bit first, padded to
//! a whole byte.

use crate::bytes::Reader;
use crate::error::{CodecError, Result};
use fastlanes::FoR;
use std::mem::MaybeUninit;

/// Values of a block.
pub(crate) const BLOCK: usize = 1024;

/// An unsigned integer that blocks are made of.
pub(crate) trait Lane: FoR + std::fmt::Debug + Send + Sync + 'static {
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
    /// The least and the greatest as signed numbers of this width; of none, the greatest before the
    /// least.
    fn extremes(values: &[Self]) -> (i64, i64);
    /// The words that `bytes` are, in `words`, of which there are as many.
    fn read_le<'a>(bytes: &[u8], words: &'a mut [MaybeUninit<Self>]) -> &'a [Self];
    fn write_le(words: &[Self], out: &mut Vec<u8>);
}

macro_rules! lane {
    ($unsigned:ty, $signed:ty) => {
        impl Lane for $unsigned {
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
                // In the width itself, of which a vector holds most.
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
                assert_eq!(chunks.len(), words.len(), "bytes are as many words");
                for (word, chunk) in words.iter_mut().zip(chunks) {
                    word.write(<$unsigned>::from_le_bytes(*chunk));
                }
                #[expect(unsafe_code, reason = "a block's words need not be zeros first")]
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

/// Packs `values - reference`, whose bits above `width` are dropped.
pub(crate) fn pack<U: Lane>(values: &[U], reference: U, width: u8, out: &mut Vec<u8>) {
    debug_assert!(width <= U::BITS, "a width is at most that of the lane");
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
pub(crate) fn unpack<U: Lane>(
    reader: &mut Reader<'_>,
    reference: U,
    width: u8,
    values: &mut [U],
) -> Result<()> {
    if width > U::BITS {
        return Err(CodecError::Damaged("a bit width is larger than the values"));
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

/// Unpacks values of at most eight bits by eights, which take as many bytes as they have bits each;
/// gives what is left.
fn unpack_eights<'a, U: Lane>(
    packed: &'a [u8],
    reference: U,
    bits: usize,
    values: &'a mut [U],
) -> (&'a [u8], &'a mut [U]) {
    let mask = (1 << bits) - 1;
    // Eight bytes are read at the first byte of each.
    let readable = packed.len().saturating_sub(7).div_ceil(bits);
    let eights = readable.min(values.len() / 8);
    let (whole, rest) = values.split_at_mut(eights * 8);
    let (whole, _) = whole.as_chunks_mut::<8>();
    for (at, eight) in whole.iter_mut().enumerate() {
        let Some(bytes) = packed[at * bits..].first_chunk::<8>() else {
            break;
        };
        let word = u64::from_le_bytes(*bytes);
        for (at, value) in eight.iter_mut().enumerate() {
            *value = U::narrow(word >> (at * bits) & mask).plus(reference);
        }
    }
    (&packed[eights * bits..], rest)
}

fn unpack_rows<U: Lane>(packed: &[u8], reference: U, width: u8, values: &mut [U]) {
    let bits = usize::from(width);
    let mask = u64::MAX >> (64 - width);
    let (packed, values) = match bits {
        1..=8 => unpack_eights(packed, reference, bits, values),
        _ => (packed, values),
    };
    // As long as eight (sixteen, for very wide values) bytes can be read at a value's first byte,
    // no care is needed; the last few are read from a copy that is followed by zeros.
    let whole = if bits <= 57 {
        let whole = packed.len().saturating_sub(8) * 8 / bits;
        let whole = whole.min(values.len());
        for (at, value) in values[..whole].iter_mut().enumerate() {
            let bit = at * bits;
            let Some(chunk) = packed[bit / 8..].first_chunk::<8>() else {
                break;
            };
            let word = u64::from_le_bytes(*chunk) >> (bit % 8);
            *value = U::narrow(word & mask).plus(reference);
        }
        whole
    } else {
        0
    };
    for (at, value) in values.iter_mut().enumerate().skip(whole) {
        let bit = at * bits;
        let rest = &packed[bit / 8..];
        let mut chunk = [0u8; 16];
        let len = rest.len().min(16);
        chunk[..len].copy_from_slice(&rest[..len]);
        let word = (u128::from_le_bytes(chunk) >> (bit % 8)) as u64;
        *value = U::narrow(word & mask).plus(reference);
    }
}

/// A short list of numbers: its smallest (signed), a width, and the packed rest.
pub(crate) fn put_list(values: &[u64], out: &mut Vec<u8>) {
    let (min, width) = span(values);
    crate::bytes::put_signed(min, out);
    out.push(width);
    pack(values, min as u64, width, out);
}

/// Reads a list of `values.len()` numbers written by [`put_list`].
pub(crate) fn read_list(reader: &mut Reader<'_>, values: &mut [u64]) -> Result<()> {
    let min = reader.signed()?;
    let width = reader.byte()?;
    unpack(reader, min as u64, width, values)
}

/// Bytes that [`put_list`] takes.
pub(crate) fn list_bytes(values: &[u64]) -> usize {
    let (min, width) = span(values);
    crate::bytes::signed_len(min) + 1 + packed_bytes(values.len(), width)
}

/// Smallest value in signed order, and the bits of the largest distance from it.
#[inline]
pub(crate) fn span<U: Lane>(values: &[U]) -> (i64, u8) {
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

    fn round_trip<U: Lane>(seed: u64) {
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
                unpack(&mut Reader::new(&out), U::narrow(77), width, &mut back).unwrap();
                assert_eq!(values, back, "{count} values of {width} bits");
                if !out.is_empty() {
                    let cut = &out[..out.len() - 1];
                    assert!(unpack(&mut Reader::new(cut), U::ZERO, width, &mut back).is_err());
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
        assert!(unpack(&mut Reader::new(&[0; 99]), 0, 33, &mut values).is_err());
        let mut values = [0u64; 1024];
        assert!(unpack(&mut Reader::new(&[0; 99]), 0, 255, &mut values).is_err());
    }
}
