//! Pages written by Apache `TsFile` (its Python package `tsfile` 2.5.0, which is the C++ library),
//! and by its Java library where the two differ.

use super::*;
use proptest::prelude::*;

const LIMITS: DecodeLimits = DecodeLimits {
    values: 1 << 20,
    bytes: 1 << 24,
};

fn bytes_of(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// Checks that `page` decodes to `values`.
fn reads(values: PageValues<'_>, encoding: Encoding, page: &[u8]) {
    let kind = values.value_type();
    let back = decode(kind, encoding, values.len(), page, LIMITS).unwrap();
    let mut again = Vec::new();
    crate::encode_as(
        values,
        Encoding::Plain,
        crate::Compressor::Uncompressed,
        &mut again,
    )
    .unwrap();
    let mut plain = Vec::new();
    match &back {
        OwnedValues::Bool { bits, .. } => plain.extend_from_slice(bits),
        back => {
            let view = match back {
                OwnedValues::I32(values) => PageValues::I32(values),
                OwnedValues::I64(values) => PageValues::I64(values),
                OwnedValues::U64(values) => PageValues::U64(values),
                OwnedValues::F32(values) => PageValues::F32(values),
                OwnedValues::F64(values) => PageValues::F64(values),
                OwnedValues::Bytes { offsets, data } => PageValues::Bytes { offsets, data },
                OwnedValues::Bool { .. } => panic!("matched above"),
            };
            let compressor = crate::Compressor::Uncompressed;
            crate::encode_as(view, Encoding::Plain, compressor, &mut plain).unwrap();
        }
    }
    assert_eq!(plain, again, "{} of {}", encoding.name(), kind.name());
}

/// Checks that `values` encode to this page, and decode from it.
fn encodes_to(values: PageValues<'_>, encoding: Encoding, hex: &str) {
    let page = bytes_of(hex);
    let mut out = Vec::new();
    encode(values, encoding, &mut out).unwrap();
    let kind = values.value_type().name();
    assert_eq!(out, page, "{} of {kind}", encoding.name());
    reads(values, encoding, &page);
}

/// Checks that `values` encode to a page with this length and CRC-32, and decode correctly.
fn has(values: PageValues<'_>, encoding: Encoding, len: usize, crc: u32) {
    let mut out = Vec::new();
    encode(values, encoding, &mut out).unwrap();
    let mut sum = flate2::Crc::new();
    sum.update(&out);
    let kind = values.value_type().name();
    let found = (out.len(), sum.sum());
    assert_eq!(found, (len, crc), "{} of {kind}", encoding.name());
    reads(values, encoding, &out);
}

const SMALL: [i32; 20] = [
    1, 2, 2, 3, 10, -5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 100, 101,
];
const DECIMALS: [f64; 7] = [1.5, 2.25, -3.5, 2.25, 2.25, 100.0, 0.25];

#[test]
fn short_pages_are_those_of_tsfile() {
    let wide = SMALL.map(i64::from);
    let single = DECIMALS.map(|value| value as f32);
    let (ints, longs) = (PageValues::I32(&SMALL), PageValues::I64(&wide));
    let (floats, doubles) = (PageValues::F32(&single), PageValues::F64(&DECIMALS));
    encodes_to(
        ints,
        Encoding::Plain,
        "0204040614090e0e0e0e0e0e0e0e0e0e0e0ec801ca01",
    );
    encodes_to(
        floats,
        Encoding::Plain,
        "3fc0000040100000c0600000401000004010000042c800003e800000",
    );
    encodes_to(
        doubles,
        Encoding::Plain,
        "3ff80000000000004002000000000000c00c0000000000004002000000000000400200000000000040590000\
         000000003fd0000000000000",
    );
    encodes_to(
        ints,
        Encoding::Ts2Diff,
        "0000001300000007fffffff100000001203c816006c78f1e3c78f1e3c78f1fb080",
    );
    encodes_to(
        longs,
        Encoding::Ts2Diff,
        "0000001300000007fffffffffffffff10000000000000001203c816006c78f1e3c78f1e3c78f1fb080",
    );
    encodes_to(
        floats,
        Encoding::Ts2Diff,
        "02000000060000000fffffd909000000964e8492e149b26f79a4c00000",
    );
    encodes_to(
        doubles,
        Encoding::Ts2Diff,
        "02000000060000000fffffffffffffd90900000000000000964e8492e149b26f79a4c00000",
    );
    encodes_to(
        ints,
        Encoding::Gorilla,
        "00000001fc1d3f07383fffffffe37ffffffe00080000018e00000001a000001940",
    );
    encodes_to(
        longs,
        Encoding::Gorilla,
        "0000000000000001fe074fe07381ffffffffffffffff8dfffffffffffffff800200000000000000638000000\
         0000000006800000000000006500",
    );
    encodes_to(
        floats,
        Encoding::Gorilla,
        "3fc00000c2affb81700f403b31ade15fc4d050",
    );
    encodes_to(
        doubles,
        Encoding::Gorilla,
        "3ff8000000000000c137ffdc03a003d001d9235bc13bfc4d00a0",
    );
    encodes_to(
        PageValues::Bool(&[true, false, true]),
        Encoding::Plain,
        "010001",
    );
}

#[test]
fn strings_are_those_of_tsfile() {
    let (offsets, data) = ([0, 2, 5, 7, 7], b"onoffon");
    let texts = PageValues::Bytes {
        offsets: &offsets,
        data,
    };
    encodes_to(texts, Encoding::Plain, "046f6e066f6666046f6e00");
    let offsets: Vec<i32> = [0, 2, 5, 7, 7]
        .into_iter()
        .chain((10..=37).step_by(3))
        .collect();
    let data = [&data[..], &b"off".repeat(10)].concat();
    let texts = PageValues::Bytes {
        offsets: &offsets,
        data: &data,
    };
    // The Java writer makes one run of the last ten values; the C++ writer does not use runs.
    reads(
        texts,
        Encoding::Dictionary,
        &bytes_of("06046f6e066f6666000702050612555550"),
    );
    let mut out = Vec::new();
    encode(texts, Encoding::Dictionary, &mut out).unwrap();
    assert_eq!(out[..10], bytes_of("06046f6e066f66660007")[..10]);
    reads(texts, Encoding::Dictionary, &out);
}

#[test]
fn long_pages_are_those_of_tsfile() {
    let ints: Vec<i32> = (0..300).map(|i| i * i * 7919 % 1000 - 300).collect();
    let longs: Vec<i64> = ints.iter().map(|v| i64::from(*v) * 3_000_000_000).collect();
    has(PageValues::I32(&ints), Encoding::Plain, 567, 0x7395_d3b0);
    has(PageValues::I64(&longs), Encoding::Plain, 2400, 0xe8a3_97d0);
    has(PageValues::I32(&ints), Encoding::Rle, 1221, 0xae26_0bea);
    has(PageValues::I64(&longs), Encoding::Rle, 2437, 0x50d9_165a);
    has(PageValues::I32(&ints), Encoding::Ts2Diff, 457, 0x19c7_e2ba);
    has(
        PageValues::I64(&longs),
        Encoding::Ts2Diff,
        1669,
        0xc8b7_228d,
    );
    has(PageValues::I32(&ints), Encoding::Gorilla, 1281, 0x4262_169b);
    has(
        PageValues::I64(&longs),
        Encoding::Gorilla,
        2148,
        0x89a0_1e5e,
    );
    let quarters: Vec<f32> = ints.iter().map(|v| *v as f32 / 4.0).collect();
    let cents: Vec<f64> = ints.iter().map(|v| f64::from(*v) / 100.0).collect();
    has(
        PageValues::F32(&quarters),
        Encoding::Plain,
        1200,
        0xb197_22d4,
    );
    has(PageValues::F64(&cents), Encoding::Plain, 2400, 0x1a14_d2e7);
    has(
        PageValues::F32(&quarters),
        Encoding::Ts2Diff,
        643,
        0x6039_5c9f,
    );
    has(PageValues::F64(&cents), Encoding::Ts2Diff, 482, 0x757f_26dd);
    has(
        PageValues::F32(&quarters),
        Encoding::Gorilla,
        756,
        0x5233_f681,
    );
    has(
        PageValues::F64(&cents),
        Encoding::Gorilla,
        2485,
        0x31a6_c26a,
    );

    let ints: Vec<i32> = (0..700i64).map(|i| (i * i * 7919 % 1000) as i32).collect();
    let longs: Vec<i64> = ints.iter().map(|v| i64::from(*v) * 3_000_000_000).collect();
    has(PageValues::I32(&ints), Encoding::Rle, 887, 0x153a_b920);
    has(PageValues::I64(&longs), Encoding::Rle, 3703, 0x9b60_065e);
    has(PageValues::I32(&ints), Encoding::Ts2Diff, 1051, 0xa0df_5706);
    has(
        PageValues::I64(&longs),
        Encoding::Ts2Diff,
        3875,
        0x36d5_d5fb,
    );
    has(PageValues::I32(&ints), Encoding::Gorilla, 1060, 0xbe92_6d80);
    has(
        PageValues::I64(&longs),
        Encoding::Gorilla,
        3077,
        0x20e4_db8b,
    );
    let texts: Vec<String> = ints.iter().map(|v| format!("s{}", v % 40)).collect();
    let mut offsets = vec![0];
    for text in &texts {
        offsets.push(offsets[offsets.len() - 1] + text.len() as i32);
    }
    let data = texts.concat();
    let texts = PageValues::Bytes {
        offsets: &offsets,
        data: data.as_bytes(),
    };
    has(texts, Encoding::Dictionary, 394, 0xb1e8_b40d);
    has(texts, Encoding::Plain, 2695, 0x74af_9620);
}

#[test]
fn floats_that_are_no_decimals_stand_as_they_do_in_tsfile() {
    encodes_to(
        PageValues::F64(&[
            1.25,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1e300,
            2f64.powi(60),
            0.5,
            -(2f64.powi(62)),
        ]),
        Encoding::Ts2Diff,
        "feffffff070841001e000200000007000000408000000000000000000000000000007dfff7ffffffffff837f\
         f80000000000000000000000000000fe47e43c8800759c11c81bc377ff8a6470000000000000323ffffffffff\
         fffce",
    );
    encodes_to(
        PageValues::F32(&[1.25, 2f32.powi(30), 0.5, -(2f32.powi(25))]),
        Encoding::Ts2Diff,
        "ffffffff07040502000000030000001fc00000320000007dfffffea200000001effffce0",
    );
}

#[test]
fn where_the_libraries_differ_the_bytes_are_those_of_java() {
    // The writer must use a run here; C++ packs it instead, and does not read runs.
    encodes_to(PageValues::I32(&[7; 20]), Encoding::Rle, "03032807");
    encodes_to(PageValues::I64(&[700; 20]), Encoding::Rle, "040a2802bc");
    encodes_to(PageValues::I32(&[300; 20]), Encoding::Rle, "0409282c01");
    encodes_to(PageValues::Bool(&[true; 20]), Encoding::Rle, "03012801");
    let mixed = [&[true, false, true][..], &[true; 12]].concat();
    encodes_to(PageValues::Bool(&mixed), Encoding::Rle, "05010507bffe");
    // A block of one value has no smallest difference.
    encodes_to(
        PageValues::I32(&[5]),
        Encoding::Ts2Diff,
        "00000000000000007fffffff00000005",
    );
    // The output of C++ can be read.
    reads(
        PageValues::I32(&SMALL),
        Encoding::Rle,
        &bytes_of(
            "63200704000000010000000200000002000000030000000afffffffb00000007000000070000000700000007\
             0000000700000007000000070000000700000007000000070000000700000007000000640000006500000000\
             000000000000000000000000",
        ),
    );
    let page = bytes_of("00000000000000000000000000000005");
    reads(PageValues::I32(&[5]), Encoding::Ts2Diff, &page);
    let numbers: Vec<i32> = (0..130).collect();
    let page = "0000008000000000000000010000000000000000000000000000000100000081";
    reads(
        PageValues::I32(&numbers),
        Encoding::Ts2Diff,
        &bytes_of(page),
    );
}

#[test]
fn differences_wrap() {
    encodes_to(
        PageValues::I64(&[i64::MIN, i64::MAX, 0, -1]),
        Encoding::Ts2Diff,
        "000000030000003f80000000000000018000000000000000fffffffffffffffc0000000000000003ffffffffff\
         fffff0",
    );
    encodes_to(
        PageValues::I32(&[i32::MIN, i32::MAX, 0, -1]),
        Encoding::Ts2Diff,
        "000000030000001f8000000180000000fffffffc00000003fffffff0",
    );
}

#[test]
fn pages_that_a_form_cannot_hold_are_refused() {
    let mut out = vec![1];
    let tiny = [0.5, 1e-30];
    for encoding in [Encoding::Rle, Encoding::Ts2Diff] {
        assert!(encode(PageValues::F64(&tiny), encoding, &mut out).is_err());
        assert!(encode(PageValues::F64(&[-0.0]), encoding, &mut out).is_err());
        let payload = f32::from_bits(0x7fc0_0001);
        assert!(encode(PageValues::F32(&[payload]), encoding, &mut out).is_err());
    }
    assert!(encode(PageValues::I64(&[0, i64::MIN]), Encoding::Gorilla, &mut out).is_err());
    assert!(encode(PageValues::F64(&[f64::NAN]), Encoding::Gorilla, &mut out).is_err());
    assert!(encode(PageValues::F64(&[1.0]), Encoding::Alp, &mut out).is_err());
    assert!(encode(PageValues::Bool(&[true]), Encoding::Gorilla, &mut out).is_err());
    assert_eq!(out, [1]);
    for encoding in [Encoding::Rle, Encoding::Ts2Diff, Encoding::Gorilla] {
        encode(PageValues::I32(&[]), encoding, &mut out).unwrap();
        reads(PageValues::I32(&[]), encoding, &[]);
    }
    assert_eq!(out, [1]);
}

#[test]
fn runs_and_groups_change_where_they_must() {
    for run in [7usize, 8, 9, 15, 16, 504, 505, 0x7fff, 0x8000, 0x8008] {
        for before in 0..9 {
            let noise = (0..before as i64).map(|n| n * 77 + 1);
            let mut values: Vec<i64> = noise.chain(std::iter::repeat_n(5, run)).collect();
            values.extend((0..600).map(|n| n % 3));
            let mut out = Vec::new();
            encode(PageValues::I64(&values), Encoding::Rle, &mut out).unwrap();
            reads(PageValues::I64(&values), Encoding::Rle, &out);
        }
    }
}

proptest! {
    #[test]
    fn decimals_come_back(
        values in proptest::collection::vec((-1_000_000i32..1_000_000, 0u8..4), 1..600),
    ) {
        let decimal = |(n, e): &(i32, u8)| f64::from(*n) / 10f64.powi(i32::from(*e));
        let doubles: Vec<f64> = values.iter().map(decimal).collect();
        for encoding in [Encoding::Rle, Encoding::Ts2Diff, Encoding::Gorilla] {
            let mut out = Vec::new();
            encode(PageValues::F64(&doubles), encoding, &mut out).unwrap();
            reads(PageValues::F64(&doubles), encoding, &out);
        }
    }

    #[test]
    fn damage_never_panics(
        numbers in proptest::collection::vec(any::<i16>(), 1..400),
        encoding in prop_oneof![
            Just(Encoding::Plain), Just(Encoding::Rle), Just(Encoding::Ts2Diff),
            Just(Encoding::Gorilla), Just(Encoding::Dictionary),
        ],
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        count in 0usize..9000,
    ) {
        let ints: Vec<i32> = numbers.iter().map(|n| i32::from(*n) / 100).collect();
        let mut out = Vec::new();
        let _ = encode(PageValues::I32(&ints), encoding, &mut out);
        for (at, byte) in changes {
            if !out.is_empty() {
                let at = at.index(out.len());
                out[at] = byte;
            }
        }
        for kind in ValueType::ALL {
            let _ = decode(kind, encoding, ints.len(), &out, LIMITS);
            let _ = decode(kind, encoding, count, &out, LIMITS);
        }
    }
}
