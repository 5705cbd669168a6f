//! Floats that are not decimals (`ALP_RD`; Afroozeh, Kuffo, Boncz 2023): the left bits, which vary
//! little, go into a dictionary of up to eight entries; the right bits are packed directly.
//!
//! ```text
//! u8           right bits, at least the width of a float less 16
//! u8           entries of the dictionary, 1 to 8
//! [u16]        the entries
//! blocks of up to 1,024 values:
//!   varint     exceptions x
//!   if x > 0:  list(x) of the values between one exception and the one before; list(x) of left bits
//!   packed     number of each value's entry, as few bits as hold the largest; lane of 32 bits
//!   packed     right bits; lane of the float's width
//! ```

use crate::alp::{AlpFloat, gaps};
use crate::bitpack::{BLOCK, PackedLane, bits_of, pack};
use crate::bitpack::{put_list, read_list, unpack};
use crate::block::places;
use crate::bytes::{ByteReader, put_varint};
use crate::error::{CodecError, Result};
use crate::integer::block_lens;

/// Most bits of a left part.
const LEFT_BITS_MAX: u8 = 16;
/// Entries of the dictionary.
const ENTRIES_MAX: usize = 8;
/// Number of values examined to find the cut.
const SAMPLE: usize = 256;
/// Bits of an exception in addition to those of every value.
const EXCEPTION_BITS: usize = 28;

/// The position at which floats are cut, and the left parts in the dictionary.
struct AlpRdCut {
    right: u8,
    entries: Vec<u16>,
}

impl AlpRdCut {
    /// Bits of an entry's index.
    fn index_bits(&self) -> u8 {
        bits_of(self.entries.len().saturating_sub(1) as u64)
    }

    /// The cut for which the sample takes the fewest bits, and the bits of all `count` values.
    fn search<F: AlpFloat>(sample: &[F], count: usize) -> (Self, usize) {
        let bits = F::Lane::BITS;
        let mut best = (
            Self {
                right: bits - 1,
                entries: vec![0],
            },
            usize::MAX,
        );
        let mut lefts: Vec<u16> = Vec::with_capacity(sample.len());
        for right in (bits - LEFT_BITS_MAX)..bits {
            lefts.clear();
            lefts.extend(sample.iter().map(|value| left(*value, right)));
            let (entries, covered) = most_frequent(&mut lefts);
            let cut = Self { right, entries };
            let each = usize::from(right + cut.index_bits());
            let outside = (lefts.len() - covered) * count / lefts.len().max(1);
            let size = each * count + outside * EXCEPTION_BITS;
            if size < best.1 {
                best = (cut, size);
            }
        }
        best
    }
}

/// The most frequent of `lefts`, as many as justify wider indices, and how many values they cover.
fn most_frequent(lefts: &mut [u16]) -> (Vec<u16>, usize) {
    lefts.sort_unstable();
    let mut kinds: Vec<(usize, u16)> = lefts
        .chunk_by(|a, b| a == b)
        .map(|same| (same.len(), same[0]))
        .collect();
    kinds.sort_unstable_by(|a, b| b.cmp(a));
    kinds.truncate(ENTRIES_MAX);
    let cost = |entries: usize| {
        let covered: usize = kinds[..entries].iter().map(|kind| kind.0).sum();
        let index = usize::from(bits_of(entries as u64 - 1));
        (
            index * lefts.len() + (lefts.len() - covered) * EXCEPTION_BITS,
            covered,
        )
    };
    let sizes = [1, 2, 4, 8].map(|size| size.min(kinds.len()));
    let best = sizes
        .into_iter()
        .filter(|entries| *entries > 0)
        .min_by_key(|entries| cost(*entries).0);
    let entries = best.unwrap_or(0);
    let covered = if entries == 0 { 0 } else { cost(entries).1 };
    let mut entries: Vec<u16> = kinds[..entries].iter().map(|kind| kind.1).collect();
    if entries.is_empty() {
        entries.push(0);
    }
    (entries, covered)
}

fn left<F: AlpFloat>(value: F, right: u8) -> u16 {
    (value.lane().wide() >> right) as u16
}

fn sample_of<F: AlpFloat>(values: &[F]) -> Vec<F> {
    let count = values.len().min(SAMPLE);
    (0..count)
        .map(|at| values[at * values.len() / count])
        .collect()
}

/// Appends `values`.
pub(crate) fn put_alp_rd<F: AlpFloat>(values: &[F], out: &mut Vec<u8>) {
    let (cut, _) = AlpRdCut::search(&sample_of(values), values.len());
    out.push(cut.right);
    out.push(cut.entries.len() as u8);
    out.extend(cut.entries.iter().flat_map(|entry| entry.to_le_bytes()));
    let mut indices = [0u32; BLOCK];
    let mut rights = [F::Lane::ZERO; BLOCK];
    for block in values.chunks(BLOCK) {
        let (mut places, mut lefts) = (Vec::new(), Vec::new());
        for (at, value) in block.iter().enumerate() {
            let left = left(*value, cut.right);
            rights[at] = value.lane();
            indices[at] = match cut.entries.iter().position(|entry| *entry == left) {
                Some(index) => index as u32,
                None => {
                    places.push(at as u16);
                    lefts.push(u64::from(left));
                    0
                }
            };
        }
        put_varint(places.len() as u64, out);
        if !places.is_empty() {
            put_list(&gaps(&places), out);
            put_list(&lefts, out);
        }
        pack(&indices[..block.len()], 0, cut.index_bits(), out);
        let rights = &mut rights[..block.len()];
        let mask = F::Lane::narrow((1 << cut.right) - 1);
        for right in rights.iter_mut() {
            *right = *right & mask;
        }
        pack(rights, F::Lane::ZERO, cut.right, out);
    }
}

/// Reads `count` values written by [`put_alp_rd`].
pub(crate) fn read_alp_rd<F: AlpFloat>(
    reader: &mut ByteReader<'_>,
    count: usize,
) -> Result<Vec<F>> {
    let cut = read_cut::<F>(reader)?;
    let mut table = [F::Lane::ZERO; ENTRIES_MAX];
    for (slot, entry) in table.iter_mut().zip(&cut.entries) {
        *slot = F::Lane::narrow(u64::from(*entry) << cut.right);
    }
    let mut values = Vec::with_capacity(count);
    let mut indices = [0u32; BLOCK];
    let mut rights = [F::Lane::ZERO; BLOCK];
    for len in block_lens(count) {
        let exceptions = reader.count(len)?;
        let (mut gaps, mut lefts) = (vec![0; exceptions], vec![0; exceptions]);
        if exceptions > 0 {
            read_list(reader, &mut gaps)?;
            read_list(reader, &mut lefts)?;
        }
        let (indices, rights) = (&mut indices[..len], &mut rights[..len]);
        unpack(reader, 0, cut.index_bits(), indices)?;
        unpack(reader, F::Lane::ZERO, cut.right, rights)?;
        let from = values.len();
        // An index past the last entry has an empty left part: wrong, but it only occurs in a
        // damaged page.
        let pairs = indices.iter().zip(rights.iter());
        values.extend(
            pairs.map(|(index, right)| F::from_lane(table[*index as usize % ENTRIES_MAX] | *right)),
        );
        for (at, left) in places(&gaps, len)?.into_iter().zip(lefts) {
            values[from + at] = F::from_lane(F::Lane::narrow(left << cut.right) | rights[at]);
        }
    }
    Ok(values)
}

fn read_cut<F: AlpFloat>(reader: &mut ByteReader<'_>) -> Result<AlpRdCut> {
    let right = reader.byte()?;
    let entries = usize::from(reader.byte()?);
    let bits = F::Lane::BITS;
    if !(bits - LEFT_BITS_MAX..bits).contains(&right) || !(1..=ENTRIES_MAX).contains(&entries) {
        return Err(CodecError::Damaged(
            "the position at which floats are cut is impossible",
        ));
    }
    let (pairs, _) = reader.take(entries * 2)?.as_chunks::<2>();
    let entries = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
    Ok(AlpRdCut { right, entries })
}

/// Estimates the bytes that [`put_alp_rd`] takes for all of `values`.
pub(crate) fn estimate<F: AlpFloat>(values: &[F]) -> usize {
    let (_, bits) = AlpRdCut::search(&sample_of(values), values.len());
    let blocks = values.len().div_ceil(BLOCK);
    bits.div_ceil(8).saturating_add(18 + blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check<F: AlpFloat + std::fmt::Debug>(values: &[F]) -> usize {
        let mut out = Vec::new();
        put_alp_rd(values, &mut out);
        let mut reader = ByteReader::new(&out);
        let back = read_alp_rd::<F>(&mut reader, values.len()).unwrap();
        reader.end().unwrap();
        assert_eq!(back.len(), values.len());
        for (at, (a, b)) in values.iter().zip(&back).enumerate() {
            assert!(a.same(*b), "value {at}: {a:?} came back as {b:?}");
        }
        out.len()
    }

    #[test]
    fn values_that_were_computed_lose_their_common_bits() {
        let values: Vec<f64> = (0..8192).map(|n| 50.0 + f64::from(n).sin()).collect();
        assert!(check(&values) < 8192 * 8 * 9 / 10, "{}", check(&values));
        let size = check(&values);
        assert!(size.abs_diff(estimate(&values)) < size / 50);
    }

    #[test]
    fn odd_floats_come_back() {
        check::<f64>(&[]);
        check::<f32>(&[]);
        check(&[f64::NAN, -0.0, f64::INFINITY, f64::MIN, 1e-310]);
        check(&[f32::from_bits(0x7f80_0001), -0.0, 1.5]);
        check(&vec![-f64::NAN; 2000]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_floats_come_back(
            values in proptest::collection::vec(
                prop_oneof![9 => (1.0f64..3.0).prop_map(f64::to_bits), 1 => any::<u64>()],
                0..2500,
            ),
        ) {
            let doubles: Vec<f64> = values.iter().map(|bits| f64::from_bits(*bits)).collect();
            check(&doubles);
            check(&doubles.iter().map(|value| *value as f32).collect::<Vec<_>>());
            check(&values.iter().map(|bits| f32::from_bits(*bits as u32)).collect::<Vec<_>>());
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            right in 16u8..64,
            count in 0usize..3000,
        ) {
            let bytes = [&[right, 2][..], &bytes].concat();
            let _ = read_alp_rd::<f64>(&mut ByteReader::new(&bytes), count);
            let _ = read_alp_rd::<f32>(&mut ByteReader::new(&bytes), count);
        }
    }
}
