//! Round trips of decimal and unusual floats, and the size of decimals.

use super::power::POWERS;
use super::*;
use proptest::prelude::*;

/// Bytes of the packed values; they must decode correctly.
fn packed<F: AlpFloat + std::fmt::Debug>(values: &[F], packing: AlpPacking) -> usize {
    let mut out = Vec::new();
    put_alp(values, packing, &mut out);
    let mut reader = ByteReader::new(&out);
    let back = read_alp::<F>(&mut reader, packing, values.len()).unwrap();
    reader.end().unwrap();
    assert_eq!(back.len(), values.len());
    for (at, (a, b)) in values.iter().zip(&back).enumerate() {
        assert!(a.same(*b), "value {at}: {a:?} came back as {b:?}");
    }
    out.len()
}

/// Bytes in frames; the values must decode correctly from both packings.
fn check<F: AlpFloat + std::fmt::Debug>(values: &[F]) -> usize {
    packed(values, AlpPacking::Steps);
    packed(values, AlpPacking::Frame)
}

#[test]
fn steps_take_what_neighbours_differ_by_and_exceptions_are_no_steps() {
    // A random walk in steps of up to seven tenths, over more than a hundred times that range.
    let mut tenths = 0;
    let mut values: Vec<f64> = (0..4096)
        .map(|i| {
            tenths += i * 7919 % 15 - 6;
            f64::from(tenths) / 10.0
        })
        .collect();
    let (frame, steps) = (
        packed(&values, AlpPacking::Frame),
        packed(&values, AlpPacking::Steps),
    );
    assert!(steps <= 4096 * 4 / 8 + 64, "{steps}");
    assert!(steps * 2 < frame, "{steps} in steps, {frame} in a frame");
    let estimated = estimate(&values);
    assert!(estimated.0.abs_diff(frame) < frame / 4, "{estimated:?}");
    assert!(estimated.1.abs_diff(steps) < steps / 4, "{estimated:?}");
    for at in (500..4096).step_by(64) {
        values[at] = f64::NAN;
    }
    let with_gaps = packed(&values, AlpPacking::Steps);
    assert!(
        with_gaps < steps + 57 * 12,
        "{with_gaps} with gaps, {steps} without"
    );
}

#[test]
fn decimals_have_no_exceptions() {
    let values: Vec<f64> = (0..4096)
        .map(|i| f64::from(i * 7919 % 500_000) / 1e4)
        .collect();
    assert!(check(&values) <= 4096 * 19 / 8 + 64, "{}", check(&values));
    let narrow: Vec<f32> = values.iter().map(|value| *value as f32).collect();
    assert!(check(&narrow) <= 4096 * 19 / 8 + 64, "{}", check(&narrow));
}

#[test]
fn values_made_by_multiplying_are_found_too() {
    let values: Vec<f64> = (0..4096)
        .map(|i| f64::from(i * 7919 % 5000) * 0.1)
        .collect();
    assert!(check(&values) <= 4096 * 13 / 8 + 64, "{}", check(&values));
}

#[test]
fn doubles_that_were_singles_are_decimals_too() {
    let values: Vec<f64> = (0..4096)
        .map(|i| f64::from((f64::from(i * 7919 % 40_000) / 1e3) as f32))
        .collect();
    assert!(check(&values) <= 4096 * 16 / 8 + 64, "{}", check(&values));
}

#[test]
fn every_kind_of_float_comes_back_with_every_bit() {
    let mut values: Vec<f64> = (0..3000).map(|i| f64::from(i) / 10.0).collect();
    let odd = [
        f64::NAN,
        -f64::NAN,
        f64::from_bits(0x7ff0_0000_0000_0001),
        f64::from_bits(0xfff8_dead_beef_0001),
        -0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        1e300,
        std::f64::consts::PI,
        2f64.powi(51),
        -(2f64.powi(51)),
        2f64.powi(53),
    ];
    for (at, value) in odd.iter().enumerate() {
        values[at * 199] = *value;
    }
    check(&values);
    check(&odd);
    check(&odd.map(|value| value as f32));
    check(&[
        f32::from_bits(0x7f80_0001),
        f32::from_bits(0xffc0_1234),
        -0.0,
        16_777_217.0,
    ]);
    check(&vec![f64::NAN; 1025]);
    check::<f64>(&[]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_doubles_come_back(
        values in proptest::collection::vec(
            prop_oneof![
                8 => (-100_000i32..100_000, 0u8..6).prop_map(|(n, e)| {
                    f64::from(n) / POWERS[usize::from(e)]
                }),
                1 => any::<u64>().prop_map(f64::from_bits),
            ],
            0..2500,
        ),
    ) {
        check(&values);
        check(&values.iter().map(|v| *v as f32).collect::<Vec<_>>());
    }

    #[test]
    fn any_singles_come_back(values in proptest::collection::vec(any::<u32>(), 0..1500)) {
        check(&values.into_iter().map(f32::from_bits).collect::<Vec<_>>());
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        count in 0usize..3000,
    ) {
        for packing in [AlpPacking::Frame, AlpPacking::Steps] {
            let _ = read_alp::<f64>(&mut ByteReader::new(&bytes), packing, count);
            let _ = read_alp::<f32>(&mut ByteReader::new(&bytes), packing, count);
        }
    }
}
