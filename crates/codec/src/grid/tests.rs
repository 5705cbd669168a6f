//! Grids: round trips, cuts, and damaged bytes.

use super::*;
use proptest::prelude::*;

const SECOND: i64 = 1_000_000_000;

fn grids(values: &[i64]) -> NumberGrids {
    let mut bytes = Vec::new();
    assert!(put_grid(values, usize::MAX, &mut bytes));
    let mut reader = ByteReader::new(&bytes);
    let grids = read_grids(&mut reader, values.len()).unwrap();
    reader.end().unwrap();
    assert_eq!(grids.len(), values.len());
    assert_eq!(grids.values(0..grids.len() as u32), values);
    assert_eq!(
        read_grid(&mut ByteReader::new(&bytes), values.len()).unwrap(),
        values
    );
    grids
}

/// Times with some missing, of several devices one after another.
fn gappy(devices: i64, rows: i64, missing: impl Fn(i64, i64) -> bool) -> Vec<i64> {
    let all = (0..devices).flat_map(|device| (0..rows).map(move |row| (device, row)));
    all.filter(|(device, row)| !missing(*device, *row))
        .map(|(device, row)| 17 * (device + 1) + row * SECOND)
        .collect()
}

#[test]
fn each_part_tells_its_numbers_and_cuts_them_as_the_numbers_say() {
    for missing in [2, 3, 7, 50] {
        let times = gappy(5, 900, |device, row| {
            (row * row + device * 31) % missing == 1
        });
        let grids = grids(&times);
        assert_eq!(grids.step() % SECOND, 0);
        let all = times.len() as u32;
        for (from, to) in [(0, all), (0, 1), (all - 1, all), (100, 1500), (333, 334)] {
            let mut seen = from;
            for part in grids.parts(from, to) {
                assert_eq!(part.rows().start, seen, "parts follow each other");
                seen = part.rows().end;
                check(&part, &times);
            }
            assert_eq!(seen, to, "all rows are in a part");
        }
    }
}

#[test]
fn a_part_is_read_alone_and_cut_by_times() {
    let times = gappy(5, 900, |device, row| (row * row + device * 31) % 5 < 3);
    let mut bytes = Vec::new();
    assert!(put_grid(&times, usize::MAX, &mut bytes));
    let all = times.len();
    // The times of each device ascend.
    let ends = times
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| pair[0] >= pair[1]);
    let ends: Vec<usize> = ends.map(|(row, _)| row + 1).chain([all]).collect();
    let starts = [0].into_iter().chain(ends.iter().copied());
    for (start, end) in starts.zip(&ends) {
        for rows in [
            start..*end,
            start + 7..*end - 70,
            start + 100..start + 101,
            start..start,
        ] {
            let part = read_grid_part(&mut ByteReader::new(&bytes), all, &rows).unwrap();
            assert_eq!(part, times[rows.clone()]);
            for (min, max) in [
                (-1, i64::MAX),
                (0, 0),
                (100, 400),
                (899, 5000),
                (i64::MIN, 3),
                (9, 8),
            ] {
                let (min, max) = (min.saturating_mul(SECOND), max.saturating_mul(SECOND));
                let mut reader = ByteReader::new(&bytes);
                let (found, values) =
                    read_grid_within(&mut reader, all, &rows, (min, max)).unwrap();
                assert_eq!(values, times[found.clone()]);
                let asked = part.iter().filter(|time| (min..=max).contains(*time));
                assert!(values.iter().eq(asked));
                assert!(rows.start <= found.start && found.end <= rows.end);
            }
        }
    }
}

#[test]
fn no_numbers_are_found_in_a_hole() {
    // A word without any number separates two numbers.
    let times: Vec<i64> = (0..100)
        .chain(220..300)
        .map(|place| place * SECOND)
        .collect();
    let grids = grids(&times);
    for row in [0, 99, 100, 101, 180] {
        assert!(grids.values(row..row).is_empty());
    }
    let found = grids.within(0..180, 130 * SECOND, 200 * SECOND);
    assert_eq!(found, 100..100);
}

fn check(part: &GridPart<'_>, times: &[i64]) {
    let rows = part.rows();
    let own = &times[rows.start as usize..rows.end as usize];
    for row in rows.clone() {
        assert_eq!(part.get(row), times[row as usize]);
    }
    let (first, last) = (own[0], own[own.len() - 1]);
    let beside = [
        first.saturating_sub(1),
        first.saturating_add(1),
        last.saturating_add(1),
    ];
    let bounds = [i64::MIN, first, last, i64::MAX].into_iter().chain(beside);
    let between =
        (0..20).map(|at| first.saturating_add((last.saturating_sub(first)) / 20 * at + 3));
    for bound in bounds.chain(between) {
        let expected = rows.start + own.partition_point(|time| *time < bound) as u32;
        assert_eq!(part.row_at(bound), expected, "{bound}");
    }
    for (ahead, width) in [(1, 1), (7, 60), (60, 60), (0, 3), (3000, 60), (5, 1 << 30)] {
        let (end, width) = (first.saturating_add(ahead * SECOND), width * SECOND);
        if width % part.grids.step() != 0 {
            continue;
        }
        let (mut at, mut cuts) = (0, 0);
        part.cut(end, width, |before, rows| {
            assert!(!rows.is_empty() && before >= cuts);
            cuts = before + 1;
            assert_eq!(rows.start as usize, part.rows().start as usize + at);
            let next = end + i64::from(before) * width;
            assert!(own[at] >= next - width || before == 0);
            at += own[at..].partition_point(|time| *time < next);
            assert_eq!(rows.end as usize, part.rows().start as usize + at);
        });
        assert_eq!(at, own.len(), "everything is in a piece");
    }
}

#[test]
fn each_series_may_have_a_phase_of_its_own() {
    let times = gappy(9, 700, |device, row| (row + device) % 4 == 1);
    assert_eq!(grids(&times).step(), SECOND);
}

#[test]
fn no_grid_reaches_farther_than_a_number_of_64_bits() {
    let far = 6_000_000_000_000_000_000;
    for values in [
        vec![-far, 0, far],
        vec![i64::MIN, -1, i64::MAX - 1],
        vec![-far, -1, far - 2, far],
    ] {
        grids(&values);
    }
}

#[test]
fn gaps_cost_a_bit_a_place() {
    let times = gappy(1, 8192, |_, row| row % 3 == 1);
    let mut bytes = Vec::new();
    assert!(put_grid(&times, usize::MAX, &mut bytes));
    assert!(bytes.len() < 8192 / 8 + 30, "{}", bytes.len());
}

#[test]
fn what_takes_too_much_is_refused_and_leaves_nothing() {
    let irregular: Vec<i64> = (0..8000).map(|row| row * 1000 + row * row % 13).collect();
    let mut out = vec![7];
    assert!(!put_grid(&irregular, irregular.len(), &mut out));
    let times = gappy(1, 8192, |_, row| row % 3 == 1);
    assert!(!put_grid(&times, 1000, &mut out));
    assert_eq!(out, [7]);
    assert!(put_grid(&times, 1100, &mut out));
}

#[test]
fn extremes_come_back() {
    grids(&[i64::MIN, i64::MAX, 0, -1, i64::MIN, i64::MIN, i64::MAX]);
    grids(&[i64::MIN, i64::MIN + 4096, i64::MIN + 8192]);
    grids(&[0, i64::MIN, i64::MAX]);
    grids(&[i64::MAX, i64::MAX - 10, i64::MAX]);
    grids(&[5]);
    grids(&[5, 5, 5]);
    grids(&(0..200).collect::<Vec<_>>());
    assert!(grids(&[]).is_empty());
}

/// The body of one grid.
fn body(factor: u64, first: i64, rows: u64, empty: u64, words: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(factor, &mut out);
    put_varint(1, &mut out);
    put_signed(first, &mut out);
    put_signed(0, &mut out);
    put_varint(rows, &mut out);
    put_varint(empty, &mut out);
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    out
}

#[test]
fn a_grid_that_is_not_as_it_says_is_damaged() {
    let read = |body: &[u8], count| read_grids(&mut ByteReader::new(body), count);
    assert!(read(&body(1, 0, 3, 1, &[0b1011]), 3).is_ok());
    // Too few and too many bits, none at the first and the last place, one after the last.
    for bits in [0b1001, 0b1111, 0b1110, 0b0111, 0b10011] {
        assert!(read(&body(1, 0, 3, 1, &[bits]), 3).is_err(), "{bits:b}");
    }
    assert!(read(&body(0, 0, 3, 1, &[0b1011]), 3).is_err());
    assert!(read(&body(u64::MAX, 0, 3, 1, &[0b1011]), 3).is_err());
    assert!(read(&body(1, 0, 3, 1, &[0b1011]), 4).is_err());
    assert!(read(&body(1, 0, 3, 1, &[]), 3).is_err());
    assert!(read(&body(1, 0, 0, 0, &[]), 1).is_err());
    assert!(read(&body(1, 0, 3, u64::MAX, &[0b1011]), 3).is_err());
    assert!(read(&body(1, i64::MAX - 2, 3, 1, &[0b1011]), 3).is_err());
    assert!(read(&body(1 << 62, 0, 3, 1, &[0b1011]), 3).is_err());
}

proptest! {
    #[test]
    fn any_integers_come_back(
        start in any::<i64>(),
        factor in prop_oneof![Just(1i64), Just(1000), Just(SECOND), any::<i64>()],
        steps in proptest::collection::vec(
            prop_oneof![9 => 0i64..20, 3 => -100i64..300, 1 => any::<i64>()],
            0..1000,
        ),
    ) {
        let mut value = start;
        let mut values = vec![start];
        for step in steps {
            value = value.wrapping_add(step.wrapping_mul(factor));
            values.push(value);
        }
        let found = grids(&values);
        for part in found.parts(0, values.len() as u32) {
            let own = &values[part.rows().start as usize..part.rows().end as usize];
            prop_assert!(own.is_sorted());
            let bound = own[own.len() / 2];
            let expected = own.partition_point(|value| *value < bound) as u32;
            prop_assert_eq!(part.row_at(bound), part.rows().start + expected);
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        count in 0usize..3000,
        part in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let _ = read_grid(&mut ByteReader::new(&bytes), count);
        let (from, to) = (part.0.index(count + 1), part.1.index(count + 1));
        let _ = read_grid_part(&mut ByteReader::new(&bytes), count, &(from.min(to)..from.max(to)));
    }

    #[test]
    fn damaged_grids_are_told_or_are_grids(
        missing in 2i64..9,
        place in any::<prop::sample::Index>(),
        bit in 0u32..8,
    ) {
        let times = gappy(3, 400, |device, row| (row + device) % missing == 0);
        let mut bytes = Vec::new();
        prop_assert!(put_grid(&times, usize::MAX, &mut bytes));
        let at = place.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let rows = 300..500;
        if let Ok(found) = read_around(&mut ByteReader::new(&bytes), times.len(), &rows) {
            let values = found.values(300..500);
            prop_assert_eq!(values.len(), 200);
            let within = found.within(300..500, values[20], values[80]);
            prop_assert!(found.values(within).len() <= 200);
        }
        if let Ok(found) = read_grids(&mut ByteReader::new(&bytes), times.len()) {
            let each = found.values(0..found.len() as u32);
            for part in found.parts(0, times.len() as u32) {
                check(&part, &each);
            }
        }
    }
}
