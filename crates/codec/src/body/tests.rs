//! Round trips of every encoding and type, and decoding of arbitrary and damaged bytes.

use super::*;
use crate::error::CodecError;
use crate::plain::put_bits;
use proptest::prelude::*;
use std::ops::Range;

const LIMITS: DecodeLimits = DecodeLimits {
    values: 1 << 20,
    bytes: 1 << 24,
};

/// Owned values, so that strategies can generate them.
#[derive(Clone, Debug)]
enum Owned {
    Bool(Vec<bool>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bytes(Vec<i32>, Vec<u8>),
}

impl Owned {
    fn values(&self) -> PageValues<'_> {
        match self {
            Self::Bool(values) => PageValues::Bool(values),
            Self::I32(values) => PageValues::I32(values),
            Self::I64(values) => PageValues::I64(values),
            Self::U64(values) => PageValues::U64(values),
            Self::F32(values) => PageValues::F32(values),
            Self::F64(values) => PageValues::F64(values),
            Self::Bytes(offsets, data) => PageValues::Bytes { offsets, data },
        }
    }
}

fn strings(texts: &[Vec<u8>]) -> Owned {
    // Offsets that do not begin at 0, as in slices of larger arrays.
    let mut data = b"before".to_vec();
    let mut offsets = vec![data.len() as i32];
    for text in texts {
        data.extend_from_slice(text);
        offsets.push(data.len() as i32);
    }
    data.extend_from_slice(b"after");
    Owned::Bytes(offsets, data)
}

/// Checks that `part` contains the values of `whole` in `rows`.
fn assert_same_part(whole: &OwnedValues, rows: &Range<usize>, part: &OwnedValues) {
    let rows = rows.clone();
    match whole {
        OwnedValues::I32(all) => assert_same(PageValues::I32(&all[rows]), part),
        OwnedValues::I64(all) => assert_same(PageValues::I64(&all[rows]), part),
        OwnedValues::U64(all) => assert_same(PageValues::U64(&all[rows]), part),
        OwnedValues::F32(all) => assert_same(PageValues::F32(&all[rows]), part),
        OwnedValues::F64(all) => assert_same(PageValues::F64(&all[rows]), part),
        other => panic!("there are no parts of {other:?}"),
    }
}

/// Repeats each item a few times, so that there are runs and repetitions.
fn repeated<T: Clone + std::fmt::Debug>(
    item: impl Strategy<Value = T>,
) -> impl Strategy<Value = Vec<T>> {
    proptest::collection::vec(
        (item, prop_oneof![4 => Just(1usize), 1 => 1usize..300]),
        0..120,
    )
    .prop_map(|runs| {
        runs.into_iter()
            .flat_map(|(item, times)| std::iter::repeat_n(item, times))
            .collect()
    })
}

fn any_values() -> impl Strategy<Value = Owned> {
    prop_oneof![
        repeated(any::<bool>()).prop_map(Owned::Bool),
        repeated(prop_oneof![any::<i32>(), -50..50]).prop_map(Owned::I32),
        repeated(prop_oneof![any::<i64>(), -50i64..50]).prop_map(Owned::I64),
        repeated(prop_oneof![any::<u64>(), 0u64..50]).prop_map(Owned::U64),
        repeated(prop_oneof![
            any::<u32>().prop_map(f32::from_bits),
            Just(0.5),
            Just(-0.0)
        ])
        .prop_map(Owned::F32),
        repeated(prop_oneof![
            any::<u64>().prop_map(f64::from_bits),
            Just(21.7),
            Just(-0.0)
        ])
        .prop_map(Owned::F64),
        repeated(proptest::collection::vec(any::<u8>(), 0..12)).prop_map(|texts| strings(&texts)),
        repeated(prop_oneof![
            Just(b"on".to_vec()),
            Just(b"off".to_vec()),
            Just(Vec::new())
        ])
        .prop_map(|texts| strings(&texts)),
    ]
}

fn assert_same(values: PageValues<'_>, back: &OwnedValues) {
    match (values, back) {
        (PageValues::Bool(values), OwnedValues::Bool { bits, len }) => {
            let mut expected = Vec::new();
            put_bits(values, &mut expected);
            assert_eq!((values.len(), &expected), (*len, bits));
        }
        (PageValues::I32(values), OwnedValues::I32(back)) => assert_eq!(values, back),
        (PageValues::I64(values), OwnedValues::I64(back)) => assert_eq!(values, back),
        (PageValues::U64(values), OwnedValues::U64(back)) => assert_eq!(values, back),
        (PageValues::F32(values), OwnedValues::F32(back)) => {
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(values), bits(back));
        }
        (PageValues::F64(values), OwnedValues::F64(back)) => {
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(values), bits(back));
        }
        (
            PageValues::Bytes { offsets, data },
            OwnedValues::Bytes {
                offsets: back,
                data: bytes,
            },
        ) => {
            let first = offsets[0];
            let from_zero: Vec<i32> = offsets.iter().map(|offset| offset - first).collect();
            assert_eq!(&from_zero, back);
            let last = *offsets.last().unwrap();
            assert_eq!(&data[first as usize..last as usize], bytes);
        }
        _ => panic!("another type came back"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn chosen_encodings_give_back_every_value(owned in any_values()) {
        let values = owned.values();
        for goal in [EncodingGoal::Fast, EncodingGoal::Small] {
            let choice = EncodingChoice { goal, ..EncodingChoice::default() };
            let mut out = Vec::new();
            let header = encode(values, choice, &mut out);
            let mut again = Vec::new();
            assert_eq!(encode(values, choice, &mut again), header, "the choice is pure");
            assert_eq!(out, again);
            let back = decode(values.value_type(), header, values.len(), &out, LIMITS).unwrap();
            assert_same(values, &back);
        }
    }

    #[test]
    fn every_encoding_gives_back_every_value_or_refuses_the_type(
        owned in any_values(),
        ends in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let values = owned.values();
        let mut taken = 0;
        for encoding in Encoding::ALL {
            for compressor in Compressor::ALL {
                let mut out = Vec::new();
                let Ok(header) = encode_as(values, encoding, compressor, &mut out) else {
                    continue;
                };
                taken += 1;
                let kind = values.value_type();
                let back = decode(kind, header, values.len(), &out, LIMITS).unwrap();
                assert_same(values, &back);
                let (a, b) = (ends.0.index(values.len() + 1), ends.1.index(values.len() + 1));
                for rows in [a.min(b)..a.max(b), 0..values.len(), a..a] {
                    let part = decode_part(kind, header, values.len(), &out, LIMITS, &rows).unwrap();
                    if let Some(part) = part {
                        assert_same_part(&back, &rows, &part);
                    }
                }
            }
        }
        assert!(taken >= 6, "at least PLAIN and RUNS take every type");
    }

    #[test]
    fn damaged_bytes_never_panic(
        owned in any_values(),
        encoding in 0..Encoding::ALL.len(),
        compressor in prop_oneof![2 => Just(0), 1 => 0..Compressor::ALL.len()],
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        count in 0usize..9000,
    ) {
        let values = owned.values();
        let mut out = Vec::new();
        let encoding = Encoding::ALL[encoding];
        let compressor = Compressor::ALL[compressor];
        let Ok(header) = encode_as(values, encoding, compressor, &mut out) else {
            return Ok(());
        };
        if !out.is_empty() {
            let at = at.index(out.len());
            out[at] = byte;
        }
        let limits = DecodeLimits { values: 1 << 16, bytes: 1 << 20 };
        let _ = decode(values.value_type(), header, values.len(), &out, limits);
        let _ = decode(values.value_type(), header, count, &out, limits);
        let rows = count / 3..count / 2;
        let _ = decode_part(values.value_type(), header, count, &out, limits, &rows);
        out.truncate(at.index(out.len() + 1));
        let _ = decode(values.value_type(), header, values.len(), &out, limits);
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        encoding in 0..Encoding::ALL.len(),
        compressor in 0..Compressor::ALL.len(),
        count in 0usize..9000,
        body_bytes in any::<u32>(),
    ) {
        for kind in ValueType::ALL {
            let encoding = Encoding::ALL[encoding];
            let compressor = Compressor::ALL[compressor];
            let header = BodyHeader { encoding, compressor, body_bytes };
            let limits = DecodeLimits { values: 1 << 16, bytes: 1 << 20 };
            let _ = decode(kind, header, count, &bytes, limits);
            let rows = count / 3..count / 2;
            let _ = decode_part(kind, header, count, &bytes, limits, &rows);
        }
    }
}

#[test]
fn what_is_asked_for_is_done_or_gives_way_to_plain() {
    let wish = |encoding, compressor| EncodingChoice {
        encoding: Some(encoding),
        compressor: Some(compressor),
        goal: EncodingGoal::Fast,
    };
    let done = |values: PageValues<'_>, choice: EncodingChoice| {
        let mut out = b"before".to_vec();
        let header = encode(values, choice, &mut out);
        assert_eq!(out[..6], *b"before");
        let back = decode(values.value_type(), header, values.len(), &out[6..], LIMITS).unwrap();
        assert_same(values, &back);
        (header.encoding, header.compressor)
    };
    let decimals: Vec<f64> = (0..500).map(|n| f64::from(n % 50) / 10.0).collect();
    let wished = wish(Encoding::Ts2Diff, Compressor::Gzip);
    let expected = (Encoding::Ts2Diff, Compressor::Gzip);
    assert_eq!(done(PageValues::F64(&decimals), wished), expected);
    let odd = [0.1, -0.0, f64::NAN];
    for encoding in [
        Encoding::Ts2Diff,
        Encoding::Rle,
        Encoding::Gorilla,
        Encoding::Fsst,
    ] {
        let wished = wish(encoding, Compressor::Uncompressed);
        let expected = (Encoding::Plain, Compressor::Uncompressed);
        assert_eq!(done(PageValues::F64(&odd), wished), expected);
    }
    // A compressor that saves nothing is not used.
    let wished = wish(Encoding::Plain, Compressor::Zstd);
    let expected = (Encoding::Plain, Compressor::Uncompressed);
    assert_eq!(done(PageValues::I32(&[1]), wished), expected);
}

#[test]
fn encodings_take_the_types_that_they_suit() {
    let offsets = [0, 1];
    let values = [
        PageValues::Bool(&[true]),
        PageValues::I32(&[1]),
        PageValues::I64(&[1]),
        PageValues::U64(&[1]),
        PageValues::F32(&[1.0]),
        PageValues::F64(&[1.0]),
        PageValues::Bytes {
            offsets: &offsets,
            data: b"x",
        },
    ];
    for encoding in Encoding::ALL {
        assert_eq!(Encoding::from_number(encoding as u8), Some(encoding));
        assert_eq!(
            Encoding::from_name(&encoding.name().to_lowercase()),
            Some(encoding)
        );
        for values in values {
            let kind = values.value_type();
            let taken = encode_as(values, encoding, Compressor::Uncompressed, &mut Vec::new());
            assert_eq!(
                taken.is_ok(),
                encoding.suits(kind),
                "{encoding:?} of {kind:?}"
            );
        }
    }
    for compressor in Compressor::ALL {
        assert_eq!(Compressor::from_number(compressor as u8), Some(compressor));
        assert_eq!(
            Compressor::from_name(&compressor.name().to_lowercase()),
            Some(compressor)
        );
    }
    assert_eq!(Encoding::from_name("auto"), None);
}

/// A random walk of `count` steps, mostly short ones, among some levels.
fn walk(levels: &[f64], count: usize) -> Vec<f64> {
    let mut at = levels.len() / 2;
    let mut state = 5u64;
    let step = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // Each step is half as likely as the previous one.
        let far = (state >> 32).trailing_zeros() as usize;
        let up = state >> 63 == 1 && at + far < levels.len();
        at = if up { at + far } else { at.saturating_sub(far) };
        levels[at]
    };
    (0..count).map(step).collect()
}

fn chosen(values: &[f64]) -> (BodyHeader, usize) {
    let mut out = Vec::new();
    let header = encode(PageValues::F64(values), EncodingChoice::default(), &mut out);
    let back = decode(ValueType::F64, header, values.len(), &out, LIMITS).unwrap();
    assert_same(PageValues::F64(values), &back);
    (header, out.len())
}

#[test]
fn near_places_among_uneven_levels_are_left_to_an_entropy_coder() {
    let levels: Vec<f64> = (0..300)
        .map(|level| f64::from(level * 0x2b).sqrt())
        .collect();
    let (header, bytes) = chosen(&walk(&levels, 8192));
    let expected = (Encoding::Entries, Compressor::Zstd);
    assert_eq!((header.encoding, header.compressor), expected);
    // A step has some 2.5 bits of entropy.
    assert!(bytes < 8192 * 3 / 8 + 300 * 8, "{bytes}");
    // With a requested compressor, there is nothing to choose.
    let choice = EncodingChoice {
        compressor: Some(Compressor::Lz4),
        ..EncodingChoice::default()
    };
    let header = encode(
        PageValues::F64(&walk(&levels, 8192)),
        choice,
        &mut Vec::new(),
    );
    assert_ne!(header.compressor, Compressor::Zstd);
}

#[test]
fn few_values_of_which_some_repeat_are_entries_where_that_is_smaller() {
    // Singles written with sixteen digits, some of them rounded: neither decimals nor singles, but
    // similar to one another, which only shows when they are sorted.
    let level = |level: i32| {
        let single = f64::from((30_000 + level * 27) as f32 / 1000.0);
        format!("{single:.14}").parse::<f64>().unwrap()
    };
    let mut state = 5u64;
    let picks = (0..1036).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as i32 % 620
    });
    let values: Vec<f64> = picks.map(level).collect();
    let (header, bytes) = chosen(&values);
    assert_eq!(header.encoding, Encoding::Entries);
    assert!(bytes < 1036 * 4, "{bytes}");
}

#[test]
fn limits_are_kept() {
    let values = [5i64; 1000];
    let mut out = Vec::new();
    let header = encode(
        PageValues::I64(&values),
        EncodingChoice::default(),
        &mut out,
    );
    let tight = DecodeLimits {
        values: 999,
        bytes: 1 << 20,
    };
    let refused = decode(ValueType::I64, header, 1000, &out, tight);
    assert_eq!(
        refused,
        Err(CodecError::Limit {
            what: "values",
            claimed: 1000,
            limit: 999
        })
    );

    let owned = strings(&vec![b"0123456789".to_vec(); 1000]);
    let mut out = Vec::new();
    let header = encode(owned.values(), EncodingChoice::default(), &mut out);
    assert!(out.len() < 100);
    let tight = DecodeLimits {
        values: 1000,
        bytes: 9999,
    };
    let refused = decode(ValueType::Bytes, header, 1000, &out, tight);
    assert_eq!(
        refused,
        Err(CodecError::Limit {
            what: "bytes",
            claimed: 10_000,
            limit: 9999
        })
    );
}
