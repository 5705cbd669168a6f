//! Encoded values decode to themselves, and damage is an error.

use super::*;
use proptest::prelude::*;

fn come_back(values: &ColumnValues, data_type: DataType) {
    let mut out = Vec::new();
    encode(values, &mut out);
    let back = decode(written(data_type), data_type, &out, values.len()).unwrap();
    // NaNs compare equal only by their bits.
    assert_eq!(format!("{back:?}"), format!("{values:?}"));
}

proptest! {
    #[test]
    fn integers_come_back(values in prop::collection::vec(any::<i32>(), 0..400)) {
        come_back(&ColumnValues::I32(values), DataType::Int32);
    }

    #[test]
    fn slow_integers_come_back(start in any::<i64>(), steps in prop::collection::vec(-3i64..900, 0..400)) {
        let mut value = start;
        let values = steps.iter().map(|step| { value = value.wrapping_add(*step); value });
        come_back(&ColumnValues::I64(values.collect()), DataType::Int64);
    }

    #[test]
    fn long_integers_come_back(values in prop::collection::vec(any::<i64>(), 0..400)) {
        let mut out = Vec::new();
        encode_times(&values, &mut out);
        prop_assert_eq!(decode_times(ChunkEncoding::Ts2Diff, &out, 400), Ok(values.clone()));
        come_back(&ColumnValues::I64(values), DataType::Timestamp);
    }

    #[test]
    fn floats_come_back(bits in prop::collection::vec(any::<u64>(), 0..200)) {
        let wide = bits.iter().map(|bits| f64::from_bits(*bits)).collect();
        come_back(&ColumnValues::F64(wide), DataType::Double);
        let narrow = bits.iter().map(|bits| f32::from_bits(*bits as u32)).collect();
        come_back(&ColumnValues::F32(narrow), DataType::Float);
    }

    #[test]
    fn decimal_floats_come_back(values in prop::collection::vec(-5000i32..5000, 0..200)) {
        let floats = values.iter().map(|value| f64::from(*value) / 100.0).collect();
        come_back(&ColumnValues::F64(floats), DataType::Double);
        let floats = values.iter().map(|value| *value as f32 / 10.0).collect();
        come_back(&ColumnValues::F32(floats), DataType::Float);
    }

    #[test]
    fn any_bytes_are_values_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), number in 0u8..16, kind in 0u8..12, count in 0usize..3000) {
        if let (Ok(encoding), Ok(kind)) = (ChunkEncoding::from_number(number), DataType::from_number(kind))
            && let Ok(values) = decode(encoding, kind, &bytes, count)
        {
            prop_assert_eq!(values.len(), count);
        }
    }
}

#[test]
fn special_floats_come_back() {
    let odd = f64::from_bits(0x7ff8_0000_0000_0001);
    let values = vec![0.0, -0.0, f64::INFINITY, odd, f64::MIN_POSITIVE];
    come_back(&ColumnValues::F64(values), DataType::Double);
    let nan = ColumnValues::F32(vec![1.0, f32::NAN, 2.0]);
    come_back(&nan, DataType::Float);
    come_back(&ColumnValues::Bool(vec![true, false]), DataType::Boolean);
    let texts = ColumnValues::Bytes(["", "ü\0", "long"].into_iter().collect());
    come_back(&texts, DataType::String);
}

#[test]
fn runs_and_groups_of_eight_are_read() {
    // Width 3: a run of four fives, then a group of eight of which two are valid.
    let packed = [0b0010_1000, 0, 0];
    let part = [&[3, 4 << 1, 5, (1 << 1) | 1, 2], &packed[..]].concat();
    let bytes = [&[part.len() as u8], &part[..]].concat();
    let values = decode(ChunkEncoding::Rle, DataType::Int32, &bytes, 6).unwrap();
    assert_eq!(values, ColumnValues::I32(vec![5, 5, 5, 5, 1, 2]));
    let values = decode(ChunkEncoding::Rle, DataType::Boolean, &bytes, 6).unwrap();
    assert_eq!(values, ColumnValues::Bool(vec![true; 6]));
    assert!(decode(ChunkEncoding::Rle, DataType::Int32, &bytes, 5).is_err());
    assert!(decode(ChunkEncoding::Rle, DataType::Int32, &bytes, 7).is_err());
}

#[test]
fn a_wide_run_of_longs_has_its_highest_byte_first() {
    // As the Java library of the format writes it; runs of ints have their lowest byte first.
    let part = [16, 4 << 1, 0x12, 0x34];
    let bytes = [&[part.len() as u8], &part[..]].concat();
    let values = decode(ChunkEncoding::Rle, DataType::Int64, &bytes, 4).unwrap();
    assert_eq!(values, ColumnValues::I64(vec![0x1234; 4]));
    let values = decode(ChunkEncoding::Rle, DataType::Int32, &bytes, 4).unwrap();
    assert_eq!(values, ColumnValues::I32(vec![0x3412; 4]));
    let scaled = [&[2], &bytes[..]].concat();
    let values = decode(ChunkEncoding::Rle, DataType::Double, &scaled, 4).unwrap();
    assert_eq!(values, ColumnValues::F64(vec![46.6; 4]));
}

#[test]
fn old_forms_are_read() {
    // ZIGZAG: bytes, values, then 1, -1, 64.
    let zigzag = [4, 3, 2, 1, 0x80, 0x01];
    let values = decode(ChunkEncoding::Zigzag, DataType::Int32, &zigzag, 3).unwrap();
    assert_eq!(values, ColumnValues::I32(vec![1, -1, 64]));
    assert!(decode(ChunkEncoding::Zigzag, DataType::Int32, &zigzag, 5).is_err());
    // GORILLA_V1: 1.0 lowest byte first; the same; then all but the bits of 1.0.
    let mut v1 = 1f32.to_bits().to_le_bytes().to_vec();
    // 0; 10 and seven bits (those that 1.0 spans), of which the lowest is set.
    v1.extend([0b0100_0000, 0b0100_0000]);
    let values = decode(ChunkEncoding::GorillaV1, DataType::Float, &v1, 3).unwrap();
    let flipped = f32::from_bits(1f32.to_bits() ^ 1 << 23);
    assert_eq!(values, ColumnValues::F32(vec![1.0, 1.0, flipped]));
    let refused = decode(ChunkEncoding::GorillaV1, DataType::Int32, &v1, 3).unwrap_err();
    assert!(matches!(refused, PartError::Unsupported(_)));
}

#[test]
fn pages_that_other_libraries_write_are_read() {
    // A text that is not there, and a truth value that is neither 0 nor 1.
    let texts = decode(ChunkEncoding::Plain, DataType::Text, &[1, 2, b'x'], 2).unwrap();
    assert_eq!(texts, ColumnValues::Bytes(["", "x"].into_iter().collect()));
    let truths = decode(ChunkEncoding::Plain, DataType::Boolean, &[2, 0], 2).unwrap();
    assert_eq!(truths, ColumnValues::Bool(vec![true, false]));
    // The value that ends a page of GORILLA, among the values.
    let end = [i32::MIN.to_be_bytes().as_slice(), &[0]].concat();
    let values = decode(ChunkEncoding::Gorilla, DataType::Int32, &end, 3).unwrap();
    assert_eq!(values, ColumnValues::I32(vec![i32::MIN; 3]));
}
