//! Blocks of up to 1,024 integers: a reference, packed distances from it, and patches.
//!
//! A value far from the others would widen its whole block, so it is stored separately as a patch
//! (PFOR; Zukowski, Héman, Nes, Boncz 2006). A small sample suggests reference and width, and
//! counting confirms them. Arithmetic wraps, so that every choice decodes exactly.

use crate::bitpack::{BLOCK, PackedLane, bits_of, list_bytes, pack, packed_bytes};
use crate::bitpack::{put_list, read_list, skip_list, skip_packed, span, unpack};
use crate::bytes::{ByteReader, put_signed, put_varint, signed_len};
use crate::error::{CodecError, Result};
use smallvec::SmallVec;

/// Set in a block's first byte if patches follow.
const PATCHED: u8 = 0x80;
/// Number of values examined to find where most of a block is.
const SAMPLE: usize = 64;
/// Bits that a patch must save beyond its own, because patching slows down decoding.
const PATCH_PENALTY_BITS: usize = 12;

/// How to pack a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockPlan {
    reference: i64,
    width: u8,
    patches: usize,
}

/// Appends `values`, at most [`BLOCK`] of them, as a block.
pub(crate) fn put_block<U: PackedLane>(values: &[U], out: &mut Vec<u8>) {
    debug_assert!(values.len() <= BLOCK, "a block has at most 1,024 values");
    let plan = plan(values);
    let reference = U::narrow(plan.reference as u64);
    if plan.patches == 0 {
        out.push(plan.width);
        put_signed(plan.reference, out);
        pack(values, reference, plan.width, out);
        return;
    }
    out.push(plan.width | PATCHED);
    put_signed(plan.reference, out);
    let (gaps, patched) = patches(values, plan);
    put_varint(gaps.len() as u64, out);
    // The first gap is separate: if patches come at regular intervals, all other gaps are equal.
    put_varint(gaps[0], out);
    put_list(&gaps[1..], out);
    put_list(&patched, out);
    let mut inliers = [U::ZERO; BLOCK];
    let inliers = &mut inliers[..values.len()];
    inliers.copy_from_slice(values);
    let mut next = 0;
    for gap in gaps {
        next += gap as usize;
        inliers[next] = reference;
        next += 1;
    }
    pack(inliers, reference, plan.width, out);
}

/// Bytes that [`put_block`] would append.
pub(crate) fn block_bytes<U: PackedLane>(values: &[U]) -> usize {
    let plan = plan(values);
    plan_bytes(values, plan)
}

fn plan_bytes<U: PackedLane>(values: &[U], plan: BlockPlan) -> usize {
    let packed = 1 + signed_len(plan.reference) + packed_bytes(values.len(), plan.width);
    if plan.patches == 0 {
        return packed;
    }
    let (gaps, patched) = patches(values, plan);
    packed + 3 + list_bytes(&gaps[1..]) + list_bytes(&patched)
}

/// Reads a block into `values`, whose length is the block's.
pub(crate) fn read_block<U: PackedLane>(
    reader: &mut ByteReader<'_>,
    values: &mut [U],
) -> Result<()> {
    let head = reader.byte()?;
    let reference = U::narrow(reader.signed()? as u64);
    if head & PATCHED == 0 {
        return unpack(reader, reference, head, values);
    }
    let mut patches = BlockPatches::default();
    patches.read(reader, values.len())?;
    unpack(reader, reference, head & !PATCHED, values)?;
    for (at, patch) in patches.all() {
        values[at] = U::narrow(patch);
    }
    Ok(())
}

/// Skips a block of `len` values.
pub(crate) fn skip_block<U: PackedLane>(reader: &mut ByteReader<'_>, len: usize) -> Result<()> {
    let head = reader.byte()?;
    reader.signed()?;
    if head & PATCHED != 0 {
        let patches = reader.count(len)?;
        reader.varint()?;
        skip_list(reader, patches.saturating_sub(1))?;
        skip_list(reader, patches)?;
    }
    skip_packed::<U>(reader, head & !PATCHED, len)
}

/// The patches of a block. There are usually few, which need no allocation.
#[derive(Default)]
struct BlockPatches {
    gaps: SmallVec<[u64; 32]>,
    patched: SmallVec<[u64; 32]>,
}

impl BlockPatches {
    /// Reads the patches of a block of `len` values in place, because moving them would be slow.
    fn read(&mut self, reader: &mut ByteReader<'_>, len: usize) -> Result<()> {
        let count = reader.count(len)?;
        if count == 0 {
            return Err(CodecError::Damaged("a patched block has no patches"));
        }
        self.gaps.resize(count, 0);
        self.patched.resize(count, 0);
        self.gaps[0] = reader.varint()?;
        read_list(reader, &mut self.gaps[1..])?;
        read_list(reader, &mut self.patched)?;
        each_place(&self.gaps, len, |_| {})
    }

    /// The patches as ascending positions, all within the block, and values.
    fn all(&self) -> impl Iterator<Item = (usize, u64)> {
        let mut next = 0;
        let patches = self.gaps.iter().zip(&self.patched);
        patches.map(move |(gap, patch)| {
            let at = next + *gap as usize;
            next = at + 1;
            (at, *patch)
        })
    }
}

/// Positions below `len` that are separated by `gaps`.
pub(crate) fn places(gaps: &[u64], len: usize) -> Result<Vec<usize>> {
    let mut places = Vec::with_capacity(gaps.len());
    each_place(gaps, len, |at| places.push(at))?;
    Ok(places)
}

/// Calls `see` for each of the [`places`].
fn each_place(gaps: &[u64], len: usize, mut see: impl FnMut(usize)) -> Result<()> {
    let mut next = 0u64;
    for gap in gaps {
        let at = next.checked_add(*gap).filter(|at| *at < len as u64);
        let at = at.ok_or(CodecError::Damaged("an exception is outside its block"))?;
        next = at + 1;
        see(at as usize);
    }
    Ok(())
}

/// A block in which all values except the patches are equal.
#[derive(Debug)]
pub(crate) struct ConstantBlock {
    pub(crate) value: i64,
    /// Patches as ascending positions and values.
    pub(crate) patches: Vec<(usize, u64)>,
}

impl ConstantBlock {
    /// The values of a block of `len`, each with the length of its run.
    pub(crate) fn stretches(&self, len: usize) -> impl Iterator<Item = (i64, usize)> {
        let mut next = 0;
        let before = self.patches.iter().flat_map(move |(at, patch)| {
            let constant = (self.value, at - next);
            next = at + 1;
            [constant, (*patch as i64, 1)]
        });
        let rest = len - self.patches.last().map_or(0, |(at, _)| at + 1);
        before
            .chain(std::iter::once((self.value, rest)))
            .filter(|(_, len)| *len > 0)
    }
}

/// Reads a block of `len` values if all of them except patches are equal; otherwise reads nothing.
pub(crate) fn read_constant(
    reader: &mut ByteReader<'_>,
    len: usize,
) -> Result<Option<ConstantBlock>> {
    let mut ahead = *reader;
    let head = ahead.byte()?;
    if head & !PATCHED != 0 {
        return Ok(None);
    }
    let value = ahead.signed()?;
    let patches = match head {
        0 => Vec::new(),
        _ => {
            let mut patches = BlockPatches::default();
            patches.read(&mut ahead, len)?;
            patches.all().collect()
        }
    };
    *reader = ahead;
    Ok(Some(ConstantBlock { value, patches }))
}

/// Gaps between patched positions, and the patched values, sign-extended.
fn patches<U: PackedLane>(values: &[U], plan: BlockPlan) -> (Vec<u64>, Vec<u64>) {
    let mut gaps = Vec::with_capacity(plan.patches);
    let mut patched = Vec::with_capacity(plan.patches);
    let reference = U::narrow(plan.reference as u64);
    let mut next = 0;
    for (at, value) in values.iter().enumerate() {
        if is_outside(value.minus(reference).wide(), plan.width) {
            gaps.push((at - next) as u64);
            patched.push(value.signed() as u64);
            next = at + 1;
        }
    }
    (gaps, patched)
}

#[inline]
fn is_outside(distance: u64, width: u8) -> bool {
    width < 64 && distance >> width != 0
}

/// Finds reference and width. Uses patches only if they save more than they cost.
fn plan<U: PackedLane>(values: &[U]) -> BlockPlan {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "comparisons take half of the time")]
        // SAFETY: the processor has AVX2.
        return unsafe { plan_by_avx2(values) };
    }
    plan_by_any(values)
}

/// The same, compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn plan_by_avx2<U: PackedLane>(values: &[U]) -> BlockPlan {
    plan_by_any(values)
}

#[expect(
    clippy::inline_always,
    reason = "it must be compiled for the instruction set of its caller"
)]
#[inline(always)]
fn plan_by_any<U: PackedLane>(values: &[U]) -> BlockPlan {
    let (min, full) = span(values);
    let whole = BlockPlan {
        reference: min,
        width: full,
        patches: 0,
    };
    let n = values.len();
    if full <= 1 || n < 16 {
        return whole;
    }
    let mut sample = [0i64; SAMPLE];
    let count = n.min(SAMPLE);
    let sample = &mut sample[..count];
    for (i, slot) in sample.iter_mut().enumerate() {
        // Aperiodic positions, so that a period in the values does not mislead.
        let jitter = (i as u32).wrapping_mul(0x9E37_79B1) as usize >> 16;
        let (from, to) = (i * n / count, (i + 1) * n / count);
        *slot = values[from + jitter % (to - from)].signed();
    }
    sample.sort_unstable();
    let patch_bits = 11 + usize::from(full) + PATCH_PENALTY_BITS;
    let mut best = (usize::from(full) * n * 31 / 32, whole);
    let mut tried = u8::MAX;
    for outside in [0, 1, 2, 3, 4, 6, 8, 12, 16, 24] {
        if outside * 2 >= count {
            break;
        }
        let (low, width) = narrowest(sample, count - outside);
        let estimate = usize::from(width) * n + outside * n / count * patch_bits;
        if width == tried || width >= full || estimate >= best.0 {
            continue;
        }
        tried = width;
        for wider in [width, width + 1] {
            if wider >= full {
                break;
            }
            let reference = spread(low, wider, sample, count - outside, min);
            let patches = count_outside(values, reference, wider);
            let cost = usize::from(wider) * n + patches * patch_bits;
            if cost < best.0 {
                best = (
                    cost,
                    BlockPlan {
                        reference,
                        width: wider,
                        patches,
                    },
                );
            }
        }
    }
    best.1
}

/// Start and width of the narrowest interval that contains `keep` values of the sorted sample.
fn narrowest(sample: &[i64], keep: usize) -> (i64, u8) {
    let mut best = (sample[0], u64::MAX);
    for pair in 0..=sample.len() - keep {
        let spread = sample[pair + keep - 1].wrapping_sub(sample[pair]) as u64;
        if spread < best.1 {
            best = (sample[pair], spread);
        }
    }
    (best.0, bits_of(best.1))
}

/// Reference of a window of `width` bits around the interval that begins at `low`. The remaining
/// room is divided between both sides, for values that the sample did not contain.
fn spread(low: i64, width: u8, sample: &[i64], keep: usize, min: i64) -> i64 {
    if width == 0 {
        return low;
    }
    let from = sample.partition_point(|value| *value < low);
    let high = sample[(from + keep - 1).min(sample.len() - 1)];
    let window = u64::MAX >> (64 - width);
    let room = window.saturating_sub(high.wrapping_sub(low) as u64);
    low.saturating_sub((room / 2) as i64).max(min)
}

#[expect(clippy::inline_always, reason = "as `plan_by_any`")]
#[inline(always)]
fn count_outside<U: PackedLane>(values: &[U], reference: i64, width: u8) -> usize {
    let reference = U::narrow(reference as u64);
    if width >= U::BITS {
        return 0;
    }
    let limit = U::narrow(1u64 << width);
    values
        .iter()
        .map(|value| usize::from(value.minus(reference) >= limit))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check<U: PackedLane>(values: &[U]) -> usize {
        let mut out = Vec::new();
        put_block(values, &mut out);
        assert!(out.len().abs_diff(block_bytes(values)) <= 2);
        let mut back = vec![U::ZERO; values.len()];
        let mut reader = ByteReader::new(&out);
        read_block(&mut reader, &mut back).unwrap();
        reader.end().unwrap();
        assert_eq!(values, back);
        out.len()
    }

    #[test]
    fn outliers_on_both_sides_do_not_widen_a_block() {
        let mut values: Vec<u64> = (0..1024).map(|i| 1000 + i * 7 % 16).collect();
        let narrow = check(&values);
        values[3] = u64::MAX - 5;
        values[700] = 1 << 50;
        values[701] = 0;
        assert!(check(&values) < narrow + 60);
    }

    #[test]
    fn jumps_at_regular_places_cost_next_to_nothing() {
        let values: Vec<u64> = (0..1024)
            .map(|i| if i % 30 == 29 { (-29i64) as u64 } else { 1 })
            .collect();
        assert!(check(&values) < 16, "{}", check(&values));
    }

    #[test]
    fn extremes_come_back() {
        check::<u64>(&[]);
        check(&[u64::MAX]);
        check(&[i64::MIN as u64, i64::MAX as u64, 0, u64::MAX]);
        check(&vec![0x8000_0000u32; 1024]);
        let wild: Vec<u64> = (0..1024u64)
            .map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15))
            .collect();
        check(&wild);
    }

    proptest! {
        #[test]
        fn any_block_comes_back(
            base in any::<u64>(),
            width in 0u32..64,
            values in proptest::collection::vec((any::<u64>(), 0u8..40), 0..1025),
        ) {
            let values: Vec<u64> = values
                .into_iter()
                .map(|(value, far)| {
                    let value = if far == 0 { value } else { value >> (64 - width).min(63) };
                    value.wrapping_add(base)
                })
                .collect();
            check(&values);
            let narrow: Vec<u32> = values.iter().map(|value| *value as u32).collect();
            check(&narrow);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut values = [0u64; 1024];
            let _ = read_block(&mut ByteReader::new(&bytes), &mut values);
            let _ = read_block(&mut ByteReader::new(&bytes), &mut values[..77]);
        }
    }
}
