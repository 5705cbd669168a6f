//! Equidistant integers, such as regular times: read from the stored differences without listing
//! each of them.

use crate::block::read_constant;
use crate::bytes::ByteReader;
use crate::error::Result;
use crate::integer::{DeltaHead, block_lens};

/// Equidistant numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progression {
    /// The first of them.
    pub first: i64,
    /// The distance between two of them.
    pub step: i64,
    /// How many there are, at least one.
    pub len: u32,
}

impl Progression {
    /// Number `at` of them; `at` must be below `len`.
    pub fn get(self, at: u32) -> i64 {
        let distance = self.step.wrapping_mul(i64::from(at));
        self.first.wrapping_add(distance)
    }
}

/// How many progressions to allocate at once.
const OFTEN: usize = 64;

/// Reads `count` integers written by [`put_delta`](crate::integer::put_delta) as progressions;
/// `None` if there would be more than `most`; then the input has not been fully checked.
pub(crate) fn read_progressions(
    reader: &mut ByteReader<'_>,
    count: usize,
    most: usize,
) -> Result<Option<Vec<Progression>>> {
    if count == 0 {
        return Ok(Some(Vec::new()));
    }
    let DeltaHead { factor, first } = DeltaHead::read(reader)?;
    let mut last = first;
    let mut current = Progression {
        first,
        step: 0,
        len: 1,
    };
    let mut all = Vec::with_capacity(most.min(OFTEN));
    for len in block_lens(count - 1) {
        let Some(block) = read_constant(reader, len)? else {
            return Ok(None);
        };
        for (step, len) in block.stretches(len) {
            let step = step.wrapping_mul(factor as i64);
            if current.len > 1 && current.step != step {
                all.push(current);
                if all.len() >= most {
                    return Ok(None);
                }
                let first = last.wrapping_add(step);
                current = Progression {
                    first,
                    step,
                    len: 0,
                };
            }
            current.step = step;
            current.len += len as u32;
            last = last.wrapping_add(step.wrapping_mul(len as i64));
        }
    }
    all.push(current);
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::integer::{put_delta, read_delta};
    use proptest::prelude::*;

    fn progressions(values: &[i64]) -> Option<Vec<Progression>> {
        let mut bytes = Vec::new();
        put_delta(values, &mut bytes);
        let mut reader = ByteReader::new(&bytes);
        let found = read_progressions(&mut reader, values.len(), values.len()).unwrap();
        if let Some(found) = &found {
            reader.end().unwrap();
            let all = found
                .iter()
                .flat_map(|found| (0..found.len).map(|at| found.get(at)));
            assert_eq!(all.collect::<Vec<_>>(), values);
            assert!(found.iter().all(|found| found.len > 0));
        }
        found
    }

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn regular_times_are_one_progression() {
        let times: Vec<i64> = (0..8192).map(|row| 17 + row * SECOND).collect();
        let one = Progression {
            first: 17,
            step: SECOND,
            len: 8192,
        };
        assert_eq!(progressions(&times), Some(vec![one]));
        assert_eq!(progressions(&[]), Some(Vec::new()));
        assert_eq!(progressions(&[5]).map(|found| found.len()), Some(1));
        assert_eq!(
            progressions(&vec![7; 3000]).map(|found| found.len()),
            Some(1)
        );
    }

    #[test]
    fn each_of_many_series_is_one() {
        let times: Vec<i64> = (0..8000).map(|row| 17 + row % 500 * SECOND).collect();
        assert_eq!(progressions(&times).map(|found| found.len()), Some(16));
    }

    #[test]
    fn irregular_times_are_none() {
        let times: Vec<i64> = (0..8000).map(|row| row * 1000 + row * row % 13).collect();
        assert_eq!(progressions(&times), None);
    }

    #[test]
    fn no_more_than_asked_for() {
        let times: Vec<i64> = (0..8000).map(|row| row % 500).collect();
        let mut bytes = Vec::new();
        put_delta(&times, &mut bytes);
        let read = |most| read_progressions(&mut ByteReader::new(&bytes), times.len(), most);
        assert_eq!(read(15).unwrap(), None);
        assert_eq!(read(16).unwrap().map(|found| found.len()), Some(16));
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_was_put(
            start in any::<i64>(),
            runs in proptest::collection::vec((prop_oneof![Just(SECOND), any::<i64>()], 1usize..700), 0..9),
        ) {
            let mut value = start;
            let mut values = vec![start];
            for (step, len) in runs {
                for _ in 0..len {
                    value = value.wrapping_add(step);
                    values.push(value);
                }
            }
            progressions(&values);
            let mut bytes = Vec::new();
            put_delta(&values, &mut bytes);
            prop_assert_eq!(read_delta::<i64>(&mut ByteReader::new(&bytes), values.len()).unwrap(), values);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            count in 0usize..3000,
        ) {
            let each = read_delta::<i64>(&mut ByteReader::new(&bytes), count);
            let found = read_progressions(&mut ByteReader::new(&bytes), count, count);
            if let Ok(Some(found)) = found {
                let all = found.iter().flat_map(|found| (0..found.len).map(|at| found.get(at)));
                prop_assert_eq!(each.unwrap(), all.collect::<Vec<_>>());
            }
        }
    }
}
