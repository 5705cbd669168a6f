//! Distinct numbers, for machines that repeat a cycle, set points, and readings with few levels.
//!
//! ```text
//! varint  number of entries
//! u8      1: indices as DELTA, else as FOR; 2: entries as ALP; 4: entries ascend; 8: indices in
//!         planes, with 1 their differences
//! ...     entries: FOR for integers, PLAIN or ALP for floats; where they ascend, DELTA for integers,
//!         DELTA of their ordered bits or ALP_DELTA for floats
//! ...     u32 index of each value's entry
//! ```
//!
//! If the entries are in the order of their first appearance, the indices of a cycle rise by one
//! and fall at its end: as differences they take next to nothing, however long the cycle is.
//! Otherwise the entries ascend: then they take less themselves, and values that change little have
//! close indices.

use super::planes::{add_steps, put_planes, read_planes, to_steps};
use crate::alp::{AlpFloat, AlpPacking, put_alp, read_alp};
use crate::bitpack::PackedLane;
use crate::bytes::{ByteReader, put_varint};
use crate::error::{CodecError, Result};
use crate::integer::{self, PageInteger, put_delta, put_for, read_delta, read_for};
use crate::plain::{PlainNumber, read_numbers};
use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};

/// Flag: the indices are differences.
const DELTA: u8 = 1;
/// Flag: the entries are decimals.
const ALP: u8 = 2;
/// Flag: the entries ascend.
const ASCENDING: u8 = 4;
/// Flag: the indices are in planes, one byte position after another.
const PLANES: u8 = 8;

/// A number that can be an entry.
pub(crate) trait NumberEntry: Copy {
    /// The bits: equal for equal values, and only for them.
    fn key(self) -> u64;
    /// A total order.
    fn order(&self, other: &Self) -> Ordering;
    /// Appends entries, which ascend if `flags` say so; returns the flags of their representation.
    fn put(entries: &[Self], flags: u8, out: &mut Vec<u8>) -> u8;
    fn read(reader: &mut ByteReader<'_>, count: usize, flags: u8) -> Result<Vec<Self>>;
}

/// Converts the bits of floats to integers with the same order, and back.
trait OrderedBits {
    fn flip(self) -> Self;
}

macro_rules! entry {
    (integer $($value:ty),*) => {$(
        impl NumberEntry for $value {
            fn key(self) -> u64 {
                self.lane().wide()
            }
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }
            fn put(entries: &[Self], flags: u8, out: &mut Vec<u8>) -> u8 {
                if flags & ASCENDING == 0 {
                    put_for(entries, out);
                } else {
                    put_delta(entries, out);
                }
                flags
            }
            fn read(reader: &mut ByteReader<'_>, count: usize, flags: u8) -> Result<Vec<Self>> {
                match flags {
                    0 => read_for(reader, count),
                    ASCENDING => read_delta(reader, count),
                    _ => Err(CodecError::Damaged("integers have no flag of floats")),
                }
            }
        }
    )*};
    (float $($value:ty as $bits:ty),*) => {$(
        impl OrderedBits for $bits {
            fn flip(self) -> Self {
                self ^ (self >> (Self::BITS - 1) & Self::MAX)
            }
        }

        impl NumberEntry for $value {
            fn key(self) -> u64 {
                self.lane().wide()
            }
            fn order(&self, other: &Self) -> Ordering {
                self.total_cmp(other)
            }
            fn put(entries: &[Self], flags: u8, out: &mut Vec<u8>) -> u8 {
                let (mut decimal, mut bits) = (Vec::new(), Vec::new());
                if flags & ASCENDING == 0 {
                    put_alp(entries, AlpPacking::Frame, &mut decimal);
                    PlainNumber::put(entries, &mut bits);
                } else {
                    put_alp(entries, AlpPacking::Steps, &mut decimal);
                    let ordered = |entry: &Self| (entry.to_bits() as $bits).flip();
                    put_delta(&entries.iter().map(ordered).collect::<Vec<_>>(), &mut bits);
                }
                if decimal.len() < bits.len() {
                    out.extend_from_slice(&decimal);
                    return flags | ALP;
                }
                out.extend_from_slice(&bits);
                flags
            }
            fn read(reader: &mut ByteReader<'_>, count: usize, flags: u8) -> Result<Vec<Self>> {
                if flags & ASCENDING == 0 {
                    return if flags & ALP == 0 {
                        read_numbers(reader, count)
                    } else {
                        read_alp(reader, AlpPacking::Frame, count)
                    };
                }
                if flags & ALP != 0 {
                    return read_alp(reader, AlpPacking::Steps, count);
                }
                let ordered: Vec<$bits> = read_delta(reader, count)?;
                let value = |bits: &$bits| Self::from_bits(bits.flip() as _);
                Ok(ordered.iter().map(value).collect())
            }
        }
    )*};
}
entry!(integer i32, i64, u64);
entry!(float f32 as i32, f64 as i64);

/// The distinct `values` in the order of their first appearance, and the index of each value.
pub(crate) fn number<T: NumberEntry>(values: &[T]) -> (Vec<T>, Vec<u32>) {
    let bits = (values.len() * 2).max(16).next_power_of_two().ilog2();
    // Multiplication by a random odd number is a good enough hash, even against crafted values.
    let factor = RandomState::new().hash_one(0) | 1;
    // An entry's index plus one; 0 is a free slot.
    let mut slots = vec![0u32; 1 << bits];
    let mut entries: Vec<T> = Vec::new();
    let mut indices = Vec::with_capacity(values.len());
    for value in values {
        let key = value.key();
        let mut at = (key.wrapping_mul(factor) >> (64 - bits)) as usize;
        loop {
            let slot = slots[at];
            if slot == 0 {
                entries.push(*value);
                slots[at] = entries.len() as u32;
                indices.push(slots[at] - 1);
                break;
            }
            if entries[slot as usize - 1].key() == key {
                indices.push(slot - 1);
                break;
            }
            at = (at + 1) & (slots.len() - 1);
        }
    }
    (entries, indices)
}

/// The entries in ascending order, and the values' indices in that order.
pub(crate) fn ascending<T: NumberEntry>(entries: &[T], indices: &[u32]) -> (Vec<T>, Vec<u32>) {
    let mut order: Vec<u32> = (0..entries.len() as u32).collect();
    order.sort_unstable_by(|a, b| entries[*a as usize].order(&entries[*b as usize]));
    let mut places = vec![0; entries.len()];
    for (place, index) in order.iter().enumerate() {
        places[*index as usize] = place as u32;
    }
    let sorted = order.iter().map(|index| entries[*index as usize]);
    let indices = indices.iter().map(|index| places[*index as usize]);
    (sorted.collect(), indices.collect())
}

/// Appends entries, which ascend if `flags` say so, and the values' indices.
fn put_form<T: NumberEntry>(entries: &[T], indices: &[u32], flags: u8, out: &mut Vec<u8>) {
    put_varint(entries.len() as u64, out);
    let head = out.len();
    out.push(0);
    out[head] = T::put(entries, flags, out);
    let (frame, delta) = integer::estimate(indices);
    // Prefix sums take time; they must save a fifth.
    if delta < frame - frame / 5 {
        out[head] |= DELTA;
        put_delta(indices, out);
    } else {
        put_for(indices, out);
    }
}

/// Appends `values`.
pub(crate) fn put_entries<T: NumberEntry>(values: &[T], out: &mut Vec<u8>) {
    let (entries, indices) = number(values);
    let start = out.len();
    put_form(&entries, &indices, 0, out);
    let (sorted, places) = ascending(&entries, &indices);
    let mut in_order = Vec::with_capacity(out.len() - start);
    put_form(&sorted, &places, ASCENDING, &mut in_order);
    // If both are about the same size, a compressor finds more in the order of appearance.
    if in_order.len() + in_order.len() / 50 < out.len() - start {
        out.truncate(start);
        out.extend_from_slice(&in_order);
    }
}

/// Appends `values` with their indices in planes, for a compressor that encodes likely bytes in few
/// bits.
pub(crate) fn put_entries_in_planes<T: NumberEntry>(values: &[T], out: &mut Vec<u8>) {
    let (entries, indices) = number(values);
    let (sorted, places) = ascending(&entries, &indices);
    put_varint(sorted.len() as u64, out);
    let head = out.len();
    out.push(0);
    out[head] = T::put(&sorted, ASCENDING, out) | PLANES;
    let (frame, delta) = integer::estimate(&places);
    if delta < frame {
        out[head] |= DELTA;
        put_planes(&to_steps(&places), out);
    } else {
        put_planes(&places, out);
    }
}

fn read_indices(reader: &mut ByteReader<'_>, count: usize, flags: u8) -> Result<Vec<u32>> {
    match (flags & PLANES, flags & DELTA) {
        (0, 0) => read_for(reader, count),
        (0, _) => read_delta(reader, count),
        (_, delta) => {
            let mut indices = read_planes(reader, count)?;
            if delta != 0 {
                add_steps(&mut indices);
            }
            Ok(indices)
        }
    }
}

/// Reads `count` values written by [`put_entries`] or [`put_entries_in_planes`].
pub(crate) fn read_entries<T: NumberEntry>(
    reader: &mut ByteReader<'_>,
    count: usize,
) -> Result<Vec<T>> {
    let number = reader.count(count)?;
    let flags = reader.byte()?;
    if flags & !(DELTA | ALP | ASCENDING | PLANES) != 0 {
        return Err(CodecError::Damaged("it has flags that are not known"));
    }
    let entries = T::read(reader, number, flags & (ALP | ASCENDING))?;
    let indices = read_indices(reader, count, flags)?;
    let largest = indices.iter().fold(0, |largest, index| largest.max(*index));
    if count > 0 && largest as usize >= entries.len() {
        let what = "a value refers to a missing entry";
        return Err(CodecError::Damaged(what));
    }
    Ok(indices
        .iter()
        .map(|index| entries[*index as usize])
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check<T: NumberEntry>(values: &[T]) -> usize {
        check_put(values, put_entries_in_planes);
        check_put(values, put_entries)
    }

    fn check_put<T: NumberEntry>(values: &[T], put: fn(&[T], &mut Vec<u8>)) -> usize {
        let mut out = Vec::new();
        put(values, &mut out);
        let mut reader = ByteReader::new(&out);
        let back = read_entries::<T>(&mut reader, values.len()).unwrap();
        reader.end().unwrap();
        let keys = |values: &[T]| values.iter().map(|value| value.key()).collect::<Vec<_>>();
        assert_eq!(keys(values), keys(&back));
        out.len()
    }

    #[test]
    fn a_cycle_takes_little_more_than_its_values() {
        let wave = |n: u32| (f64::from(n % 1000) * 0.0063).sin();
        let values: Vec<f64> = (0..8192).map(wave).collect();
        assert!(check(&values) < 1000 * 8 + 200, "{}", check(&values));
        let decimals: Vec<f64> = (0..8192).map(|n| f64::from(n * 37 % 1000) / 10.0).collect();
        assert!(check(&decimals) < 1000 * 2, "{}", check(&decimals));
        let steps: Vec<i64> = (0..8192).map(|n| n * n % 13 * 1_000_003).collect();
        assert!(check(&steps) < 8192 / 2 + 100, "{}", check(&steps));
    }

    #[test]
    fn what_changes_little_in_uneven_steps_has_near_indices() {
        // A converter with 4,096 uneven steps, and a random walk on them.
        let mut level = 2000i32;
        let mut levels = Vec::new();
        for at in 0..8192 {
            level = (level + at * 7919 % 31 - 15).clamp(0, 4095);
            levels.push(level);
        }
        let uneven = |level: &i32| (f64::from(*level) * 0.000_731).exp();
        let values: Vec<f64> = levels.iter().map(uneven).collect();
        let (entries, _) = number(&values);
        let most = 8192 * 6 / 8 + entries.len() * 7 + 200;
        assert!(check(&values) < most, "{} for {most}", check(&values));
        let negative: Vec<f32> = values.iter().map(|value| 5.0 - *value as f32).collect();
        assert!(check(&negative) < 8192 * 6 / 8 + entries.len() * 4 + 200);
        check(&levels.iter().map(|level| level * level).collect::<Vec<_>>());
    }

    #[test]
    fn odd_values_come_back() {
        check(&[f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY]);
        check(&[f32::from_bits(0x7f80_0001), -0.0, 0.0]);
        check(&[i64::MIN, i64::MAX, i64::MIN]);
        check::<u64>(&[]);
        check(&[7i32]);
    }

    proptest! {
        #[test]
        fn any_values_come_back(values in proptest::collection::vec(any::<u64>(), 0..50),
            picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..2000)) {
            let picked: Vec<u64> = picks
                .iter()
                .filter(|_| !values.is_empty())
                .map(|pick| *pick.get(&values))
                .collect();
            check(&picked);
            check(&picked.iter().map(|bits| f64::from_bits(*bits)).collect::<Vec<_>>());
            check(&picked.iter().map(|bits| f32::from_bits(*bits as u32)).collect::<Vec<_>>());
            check(&picked.iter().map(|bits| *bits as i32).collect::<Vec<_>>());
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            count in 0usize..3000,
        ) {
            let _ = read_entries::<f64>(&mut ByteReader::new(&bytes), count);
            let _ = read_entries::<i32>(&mut ByteReader::new(&bytes), count);
        }
    }
}
