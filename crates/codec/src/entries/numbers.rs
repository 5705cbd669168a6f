//! Distinct numbers: machines that repeat a cycle, set points, readings of few levels.
//!
//! ```text
//! varint  number of entries
//! u8      1: indices as DELTA, else as FOR; 2: entries as ALP
//! ...     entries: FOR for integers, PLAIN or ALP for floats
//! ...     u32 index of each value's entry
//! ```
//!
//! Entries stand in the order of their first appearance, so the indices of a cycle rise by one and
//! fall at its end: as differences they take next to nothing, however long the cycle is.

use crate::alp::{Float, put_alp, read_alp};
use crate::bitpack::Lane;
use crate::bytes::{Reader, put_varint};
use crate::error::{CodecError, Result};
use crate::integer::{self, Integer, put_delta, put_for, read_delta, read_for};
use crate::plain::{Plain, read_numbers};
use std::hash::{BuildHasher, RandomState};

/// Flag: the indices are differences.
const DELTA: u8 = 1;
/// Flag: the entries are decimals.
const ALP: u8 = 2;

/// A number that can be an entry.
pub(crate) trait Entry: Copy {
    /// The bits: equal for equal values, and only for them.
    fn key(self) -> u64;
    /// Appends entries; gives the flags that say how.
    fn put(entries: &[Self], out: &mut Vec<u8>) -> u8;
    fn read(reader: &mut Reader<'_>, count: usize, flags: u8) -> Result<Vec<Self>>;
}

macro_rules! entry {
    (integer $($value:ty),*) => {$(
        impl Entry for $value {
            fn key(self) -> u64 {
                self.lane().wide()
            }
            fn put(entries: &[Self], out: &mut Vec<u8>) -> u8 {
                put_for(entries, out);
                0
            }
            fn read(reader: &mut Reader<'_>, count: usize, flags: u8) -> Result<Vec<Self>> {
                if flags != 0 {
                    return Err(CodecError::Damaged("integers have no flag of floats"));
                }
                read_for(reader, count)
            }
        }
    )*};
    (float $($value:ty),*) => {$(
        impl Entry for $value {
            fn key(self) -> u64 {
                self.lane().wide()
            }
            fn put(entries: &[Self], out: &mut Vec<u8>) -> u8 {
                let mut packed = Vec::new();
                put_alp(entries, &mut packed);
                if packed.len() < size_of_val(entries) {
                    out.extend_from_slice(&packed);
                    return ALP;
                }
                Plain::put(entries, out);
                0
            }
            fn read(reader: &mut Reader<'_>, count: usize, flags: u8) -> Result<Vec<Self>> {
                if flags == ALP {
                    read_alp(reader, count)
                } else {
                    read_numbers(reader, count)
                }
            }
        }
    )*};
}
entry!(integer i32, i64, u64);
entry!(float f32, f64);

/// The distinct ones of `values`, in the order of their first appearance, and the index of each.
pub(crate) fn number<T: Entry>(values: &[T]) -> (Vec<T>, Vec<u32>) {
    let bits = (values.len() * 2).max(16).next_power_of_two().ilog2();
    // Multiplying by a random odd number hashes well enough, whatever somebody writes to slow us.
    let factor = RandomState::new().hash_one(0) | 1;
    // An entry's index and one; 0 is a free slot.
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

/// Appends `values`.
pub(crate) fn put_entries<T: Entry>(values: &[T], out: &mut Vec<u8>) {
    let (entries, indices) = number(values);
    put_varint(entries.len() as u64, out);
    let flags = out.len();
    out.push(0);
    out[flags] = T::put(&entries, out);
    let (frame, delta) = integer::estimate(&indices);
    // Prefix sums take time; they must save a fifth.
    if delta < frame - frame / 5 {
        out[flags] |= DELTA;
        put_delta(&indices, out);
    } else {
        put_for(&indices, out);
    }
}

/// Reads `count` values written by [`put_entries`].
pub(crate) fn read_entries<T: Entry>(reader: &mut Reader<'_>, count: usize) -> Result<Vec<T>> {
    let number = reader.count(count)?;
    let flags = reader.byte()?;
    if flags & !(DELTA | ALP) != 0 {
        return Err(CodecError::Damaged("it has flags that are not known"));
    }
    let entries = T::read(reader, number, flags & ALP)?;
    let indices: Vec<u32> = if flags & DELTA == 0 {
        read_for(reader, count)?
    } else {
        read_delta(reader, count)?
    };
    let largest = indices.iter().fold(0, |largest, index| largest.max(*index));
    if count > 0 && largest as usize >= entries.len() {
        let what = "a value names an entry that is not there";
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

    fn check<T: Entry>(values: &[T]) -> usize {
        let mut out = Vec::new();
        put_entries(values, &mut out);
        let mut reader = Reader::new(&out);
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
            let _ = read_entries::<f64>(&mut Reader::new(&bytes), count);
            let _ = read_entries::<i32>(&mut Reader::new(&bytes), count);
        }
    }
}
