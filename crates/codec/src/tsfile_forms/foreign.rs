//! Pages of files that others have written: what the libraries of the format read is read here, too.

use super::gorilla_v1::read_gorilla_v1;
use super::{Strictness, plain, read_as, ts2diff, unsupported};
use crate::bytes::ByteReader;
use crate::error::{CodecError, Result};
use crate::kinds::{Encoding, ValueType};
use crate::values::{DecodeLimits, OwnedValues};

/// Decodes `count` values of a page of a file.
///
/// # Errors
/// If the bytes are damaged, hold more than `limits` allow, or the encoding is none of `TsFile`.
pub fn decode_foreign(
    kind: ValueType,
    encoding: Encoding,
    count: usize,
    bytes: &[u8],
    limits: DecodeLimits,
) -> Result<OwnedValues> {
    limits.check_values(count)?;
    let mut reader = ByteReader::new(bytes);
    let strictness = Strictness::Foreign;
    let values = read_as(kind, encoding, count, &mut reader, limits, strictness)?;
    if encoding == Encoding::Ts2Diff {
        // Its blocks go on to the end: more of them are more values.
        reader.end()?;
    }
    Ok(values)
}

/// Decodes `count` floats of a page of a file before version 3, encoded as `GORILLA_V1`.
///
/// # Errors
/// If the bytes are damaged, the values are no floats, or more than `limits` allow.
pub fn decode_gorilla_v1(
    kind: ValueType,
    count: usize,
    bytes: &[u8],
    limits: DecodeLimits,
) -> Result<OwnedValues> {
    limits.check_values(count)?;
    let mut reader = ByteReader::new(bytes);
    Ok(match kind {
        ValueType::F32 => {
            let words = read_gorilla_v1::<i32>(&mut reader, count)?.into_iter();
            OwnedValues::F32(words.map(|word| f32::from_bits(word as u32)).collect())
        }
        ValueType::F64 => {
            let words = read_gorilla_v1::<i64>(&mut reader, count)?.into_iter();
            OwnedValues::F64(words.map(|word| f64::from_bits(word as u64)).collect())
        }
        _ => return Err(CodecError::Unsupported("GORILLA_V1", kind.name())),
    })
}

/// Decodes `count` integers of a page of a file, encoded as `ZIGZAG`: the length in bytes, the number
/// of values, the values as signed varints.
///
/// # Errors
/// If the bytes are damaged, the values are no signed integers, or more than `limits` allow.
pub fn decode_zigzag(
    kind: ValueType,
    count: usize,
    bytes: &[u8],
    limits: DecodeLimits,
) -> Result<OwnedValues> {
    limits.check_values(count)?;
    let mut reader = ByteReader::new(bytes);
    let len = reader.count(reader.remaining())?;
    let _ = reader.varint()?;
    let mut reader = ByteReader::new(reader.take(len)?);
    // None takes less than a byte.
    if count > len {
        return Err(CodecError::Damaged("it ends early"));
    }
    let values = (0..count).map(|_| reader.signed());
    Ok(match kind {
        ValueType::I32 => OwnedValues::I32(
            values
                .map(|value| Ok(value? as i32))
                .collect::<Result<_>>()?,
        ),
        ValueType::I64 => OwnedValues::I64(values.collect::<Result<_>>()?),
        _ => return Err(CodecError::Unsupported("ZIGZAG", kind.name())),
    })
}

/// Decodes the times of a page of a file: as many as its bytes hold, at most `count_max`.
///
/// # Errors
/// If the bytes are damaged, hold more, or the encoding is neither `PLAIN` nor `TS_2DIFF`.
pub fn decode_times(encoding: Encoding, bytes: &[u8], count_max: usize) -> Result<Vec<i64>> {
    let mut reader = ByteReader::new(bytes);
    match encoding {
        Encoding::Ts2Diff => ts2diff::read_ts2diff_to_end(&mut reader, count_max),
        Encoding::Plain => {
            let count = bytes.len() / size_of::<i64>();
            if count > count_max {
                return Err(CodecError::Damaged("it holds more values than it should"));
            }
            let pieces = plain::read_pieces(&mut reader, count)?.iter();
            let times = pieces.map(|piece| i64::from_be_bytes(*piece)).collect();
            reader.end()?;
            Ok(times)
        }
        other => Err(unsupported(other, ValueType::I64)),
    }
}
