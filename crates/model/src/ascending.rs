//! Cuts ascending numbers at equal distances, such as rows in time order into buckets.

use std::ops::Range;

/// How many numbers are compared at once.
const LANES: usize = 8;

/// Cuts the ascending `numbers` at `end`, `end + width`, `end + 2 * width` and so on. Passes each
/// piece that is not empty to the callback, with the number of cuts before it. `width` must be
/// positive, and there must be a cut after the last number.
#[inline]
pub fn cut_ascending(
    numbers: &[i64],
    end: i64,
    width: i64,
    mut see: impl FnMut(u32, Range<usize>),
) {
    let (mut at, mut end, mut cuts) = (0, end, 0u32);
    while let Some(next) = numbers.get(at) {
        let len = count_below(&numbers[at..], end);
        if len > 0 {
            see(cuts, at..at + len);
            at += len;
            cuts = cuts.saturating_add(1);
            end = end.saturating_add(width);
        } else {
            // Skip all empty pieces at once.
            let ahead = next.abs_diff(end) / width.unsigned_abs() + 1;
            cuts = cuts.saturating_add(u32::try_from(ahead).unwrap_or(u32::MAX));
            end = end.saturating_add_unsigned(ahead.saturating_mul(width.unsigned_abs()));
        }
    }
}

/// How many of the ascending `numbers` are below `end`. Searches by chunks of eight, of which the
/// last number decides.
#[inline]
fn count_below(numbers: &[i64], end: i64) -> usize {
    let (chunks, rest) = numbers.as_chunks::<LANES>();
    let is_below = |chunk: &&[i64; LANES]| chunk[LANES - 1] < end;
    let whole = chunks.iter().take_while(is_below).count();
    // Compare all numbers of a chunk: the position of the end is not predictable.
    let more = match chunks.get(whole) {
        Some(chunk) => chunk.iter().map(|number| usize::from(*number < end)).sum(),
        None => rest.iter().take_while(|number| **number < end).count(),
    };
    whole * LANES + more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(numbers: &[i64], end: i64, width: i64) -> Vec<(u32, Range<usize>)> {
        let mut found = Vec::new();
        cut_ascending(numbers, end, width, |cuts, piece| found.push((cuts, piece)));
        found
    }

    #[test]
    fn pieces_are_those_of_a_division() {
        let steps = [1, 3, 0, 7, 1, 1, 40, 2, 2, 2, 900];
        let mut number = -500;
        let numbers: Vec<i64> = (0..2000)
            .map(|at: usize| {
                number += steps[at % steps.len()] * i64::from(at % 90 < 60);
                number
            })
            .collect();
        for width in [1, 2, 10, 59, 1000, 1 << 40] {
            for end in [-499, -480, 0, 10_000] {
                for len in [0, 1, 7, 8, 9, 100, 2000] {
                    let mut at = 0;
                    let mut last = None;
                    for (cuts, piece) in pieces(&numbers[..len], end, width) {
                        assert!(piece.start == at && !piece.is_empty() && Some(cuts) > last);
                        for number in &numbers[piece.clone()] {
                            let expected = (number - end).div_euclid(width) + 1;
                            assert_eq!(i64::from(cuts), expected.max(0), "{number}");
                        }
                        (at, last) = (piece.end, Some(cuts));
                    }
                    assert_eq!(at, len, "every number is in a piece");
                }
            }
        }
    }

    #[test]
    fn the_last_cut_may_be_the_last_number_that_there_is() {
        let numbers = [i64::MIN, 0, i64::MAX - 1];
        assert_eq!(pieces(&numbers, i64::MAX, 5), [(0, 0..3)]);
        assert_eq!(
            pieces(&numbers, i64::MIN + 1, i64::MAX),
            [(0, 0..1), (2, 1..3)]
        );
    }
}
