//! Small numbers as planes: the lowest bytes of all of them, then the next bytes, up to the last
//! that is not zero.
//!
//! ```text
//! u8   planes, 0 to 4
//! ...  as many bytes in each as there are numbers
//! ```
//!
//! Packed bits are smaller, but opaque to a compressor. Bytes at the same position have few likely
//! values, which an entropy coder such as Zstandard's exploits.

use crate::bytes::ByteReader;
use crate::error::{CodecError, Result};

/// Appends `numbers`.
pub(crate) fn put_planes(numbers: &[u32], out: &mut Vec<u8>) {
    let all = numbers.iter().fold(0, |all, number| all | number);
    let planes = (u32::BITS - all.leading_zeros()).div_ceil(8);
    out.push(planes as u8);
    for plane in 0..planes {
        out.extend(numbers.iter().map(|number| (number >> (8 * plane)) as u8));
    }
}

/// Reads `count` numbers written by [`put_planes`].
pub(crate) fn read_planes(reader: &mut ByteReader<'_>, count: usize) -> Result<Vec<u32>> {
    let planes = u32::from(reader.byte()?);
    if planes > 4 {
        return Err(CodecError::Damaged("a number has at most four bytes"));
    }
    let mut numbers = vec![0; count];
    for plane in 0..planes {
        let bytes = reader.take(count)?;
        for (number, byte) in numbers.iter_mut().zip(bytes) {
            *number |= u32::from(*byte) << (8 * plane);
        }
    }
    Ok(numbers)
}

/// Differences of neighbours with the sign in the lowest bit, so that close numbers give small
/// ones.
pub(crate) fn to_steps(numbers: &[u32]) -> Vec<u32> {
    let mut last = 0u32;
    let step = |number: &u32| {
        let step = number.wrapping_sub(last) as i32;
        last = *number;
        ((step << 1) ^ (step >> 31)) as u32
    };
    numbers.iter().map(step).collect()
}

/// Inverts [`to_steps`].
pub(crate) fn add_steps(steps: &mut [u32]) {
    let mut last = 0u32;
    for step in steps {
        last = last.wrapping_add(*step >> 1 ^ (*step & 1).wrapping_neg());
        *step = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_numbers_come_back(numbers in proptest::collection::vec(
            prop_oneof![0u32..9, 0u32..70_000, any::<u32>()], 0..300)) {
            let mut steps = to_steps(&numbers);
            let mut out = Vec::new();
            put_planes(&steps, &mut out);
            let mut reader = ByteReader::new(&out);
            let mut back = read_planes(&mut reader, numbers.len()).unwrap();
            reader.end().unwrap();
            prop_assert_eq!(&back, &steps);
            add_steps(&mut back);
            prop_assert_eq!(&back, &numbers);
            add_steps(&mut steps);
            prop_assert_eq!(steps, numbers);
        }
    }

    #[test]
    fn near_numbers_take_a_byte() {
        let numbers: Vec<u32> = (0..100).map(|at| 100_000 + at * 37 % 60).collect();
        let steps = to_steps(&numbers);
        let mut out = Vec::new();
        put_planes(&steps[1..], &mut out);
        assert_eq!(out.len(), 1 + 99);
        assert!(read_planes(&mut ByteReader::new(&[5]), 0).is_err());
        assert!(read_planes(&mut ByteReader::new(&[1, 7]), 2).is_err());
    }
}
