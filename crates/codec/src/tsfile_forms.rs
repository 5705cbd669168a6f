//! The forms that values have in pages of Apache `TsFile`, byte for byte: `PLAIN`, `RLE`,
//! `TS_2DIFF`, `GORILLA` and `DICTIONARY`; and, only to read them, `GORILLA_V1` and `ZIGZAG`.
//!
//! What is written is what the Java writer of Apache `TsFile` writes for the same values. Pages of our
//! own segments ([`decode`]) must be such pages; pages of files ([`decode_foreign`]) may be whatever
//! its Java and C++ writers write. Values are exact: a page that a form cannot hold (floats that are no
//! decimals under `RLE` and `TS_2DIFF`, the end mark under `GORILLA`) is refused. Unsigned integers
//! stand as the signed ones with the same bits. An empty page has no bytes.
//!
//! `docs/formats/encodings.md` describes the bytes.

use crate::bytes::ByteReader;
use crate::error::{CodecError, Result};
use crate::kinds::{Encoding, ValueType};
use crate::plain::put_bits;
use crate::values::{DecodeLimits, OwnedValues, PageValues};
use floats::{DecimalFloat, DecimalHeader, put_decimals};
use word::TsFileInteger;

pub use foreign::{decode_foreign, decode_gorilla_v1, decode_times, decode_zigzag};

mod bits;
mod dictionary;
mod floats;
mod foreign;
mod gorilla;
mod gorilla_v1;
mod plain;
mod rle;
#[cfg(test)]
mod tests;
mod ts2diff;
mod word;

/// Appends `values` in the `TsFile` variant of `encoding`, `PLAIN` included.
///
/// # Errors
/// If `TsFile` does not have the encoding, or it cannot hold these values; `out` is then unchanged.
pub fn encode(values: PageValues<'_>, encoding: Encoding, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let done = put(values, encoding, out);
    if done.is_err() {
        out.truncate(start);
    }
    done
}

fn put(values: PageValues<'_>, encoding: Encoding, out: &mut Vec<u8>) -> Result<()> {
    if values.is_empty() && encoding.suits(values.value_type()) {
        return Ok(());
    }
    match (encoding, values) {
        (Encoding::Plain, PageValues::Bool(values)) => {
            out.extend(values.iter().map(|v| u8::from(*v)));
        }
        (Encoding::Plain, PageValues::I32(values)) => plain::put_varints(values, out),
        (Encoding::Plain, PageValues::I64(values)) => {
            out.extend(values.iter().flat_map(|value| value.to_be_bytes()));
        }
        (Encoding::Plain, PageValues::U64(values)) => {
            out.extend(values.iter().flat_map(|value| value.to_be_bytes()));
        }
        (Encoding::Plain, PageValues::F32(values)) => {
            out.extend(values.iter().flat_map(|value| value.to_be_bytes()));
        }
        (Encoding::Plain, PageValues::F64(values)) => {
            out.extend(values.iter().flat_map(|value| value.to_be_bytes()));
        }
        (Encoding::Plain, PageValues::Bytes { offsets, data }) => {
            for pair in offsets.windows(2) {
                plain::put_string(&data[pair[0] as usize..pair[1] as usize], out);
            }
        }
        (Encoding::Dictionary, PageValues::Bytes { offsets, data }) => {
            dictionary::put_dictionary(offsets, data, out);
        }
        (Encoding::Rle, PageValues::Bool(values)) => {
            let numbers: Vec<i32> = values.iter().map(|value| i32::from(*value)).collect();
            rle::put_rle(&numbers, out);
        }
        (_, PageValues::I32(values)) => put_words(values, i32::GORILLA_END, encoding, out)?,
        (_, PageValues::I64(values)) => put_words(values, i64::GORILLA_END, encoding, out)?,
        (_, PageValues::U64(values)) => {
            let signed: Vec<i64> = values.iter().map(|value| *value as i64).collect();
            put_words(&signed, i64::GORILLA_END, encoding, out)?;
        }
        (_, PageValues::F32(values)) => put_floats(values, encoding, out)?,
        (_, PageValues::F64(values)) => put_floats(values, encoding, out)?,
        _ => return Err(unsupported(encoding, values.value_type())),
    }
    Ok(())
}

fn unsupported(encoding: Encoding, kind: ValueType) -> CodecError {
    CodecError::Unsupported(encoding.name(), kind.name())
}

fn put_words<W: TsFileInteger>(
    values: &[W],
    end: W,
    encoding: Encoding,
    out: &mut Vec<u8>,
) -> Result<()> {
    match encoding {
        Encoding::Rle => rle::put_rle(values, out),
        Encoding::Ts2Diff => ts2diff::put_ts2diff(values, out),
        Encoding::Gorilla => gorilla::put_gorilla(values, end, out)?,
        _ => return Err(CodecError::Unsupported(encoding.name(), "pages of TsFile")),
    }
    Ok(())
}

fn put_floats<F: DecimalFloat>(values: &[F], encoding: Encoding, out: &mut Vec<u8>) -> Result<()> {
    let words = if encoding == Encoding::Gorilla {
        values.iter().map(|value| value.bits()).collect()
    } else {
        put_decimals(values, out)?
    };
    put_words(&words, F::GORILLA_END, encoding, out)
}

/// Decodes `count` values from all of `bytes`, which are the values of a `TsFile` page.
///
/// # Errors
/// If the bytes are damaged, contain more than `limits` allow, or `TsFile` does not have the
/// encoding.
pub fn decode(
    kind: ValueType,
    encoding: Encoding,
    count: usize,
    bytes: &[u8],
    limits: DecodeLimits,
) -> Result<OwnedValues> {
    limits.check_values(count)?;
    let mut reader = ByteReader::new(bytes);
    let values = read(kind, encoding, count, &mut reader, limits)?;
    reader.end()?;
    Ok(values)
}

/// What a decoder takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strictness {
    /// What is written here; anything else is damage.
    Own,
    /// What the libraries of the format read.
    Foreign,
}

/// As [`decode`], from a reader, and without a look at `limits.values`.
pub(crate) fn read(
    kind: ValueType,
    encoding: Encoding,
    count: usize,
    reader: &mut ByteReader<'_>,
    limits: DecodeLimits,
) -> Result<OwnedValues> {
    read_as(kind, encoding, count, reader, limits, Strictness::Own)
}

fn read_as(
    kind: ValueType,
    encoding: Encoding,
    count: usize,
    reader: &mut ByteReader<'_>,
    limits: DecodeLimits,
    strictness: Strictness,
) -> Result<OwnedValues> {
    let is_plain = encoding == Encoding::Plain;
    Ok(match kind {
        ValueType::Bool => {
            let truths = match encoding {
                Encoding::Plain => plain::read_truths(reader, count, strictness)?,
                Encoding::Rle => truths(&rle::read_rle::<i32>(reader, count)?, strictness)?,
                _ => return Err(unsupported(encoding, kind)),
            };
            let mut bits = Vec::with_capacity(count.div_ceil(8));
            put_bits(&truths, &mut bits);
            OwnedValues::Bool { bits, len: count }
        }
        ValueType::I32 if is_plain => OwnedValues::I32(plain::read_varints(reader, count)?),
        ValueType::I32 => OwnedValues::I32(read_words(
            reader,
            i32::GORILLA_END,
            encoding,
            count,
            strictness,
        )?),
        ValueType::I64 if is_plain => {
            let pieces = plain::read_pieces(reader, count)?.iter();
            OwnedValues::I64(pieces.map(|piece| i64::from_be_bytes(*piece)).collect())
        }
        ValueType::I64 => OwnedValues::I64(read_words(
            reader,
            i64::GORILLA_END,
            encoding,
            count,
            strictness,
        )?),
        ValueType::U64 if is_plain => {
            let pieces = plain::read_pieces(reader, count)?.iter();
            OwnedValues::U64(pieces.map(|piece| u64::from_be_bytes(*piece)).collect())
        }
        ValueType::U64 => {
            let words = read_words(reader, i64::GORILLA_END, encoding, count, strictness)?;
            OwnedValues::U64(words.into_iter().map(|word| word as u64).collect())
        }
        ValueType::F32 if is_plain => {
            let pieces = plain::read_pieces(reader, count)?.iter();
            OwnedValues::F32(pieces.map(|piece| f32::from_be_bytes(*piece)).collect())
        }
        ValueType::F32 => OwnedValues::F32(read_floats(reader, encoding, count, strictness)?),
        ValueType::F64 if is_plain => {
            let pieces = plain::read_pieces(reader, count)?.iter();
            OwnedValues::F64(pieces.map(|piece| f64::from_be_bytes(*piece)).collect())
        }
        ValueType::F64 => OwnedValues::F64(read_floats(reader, encoding, count, strictness)?),
        ValueType::Bytes => {
            let (offsets, data) = match encoding {
                Encoding::Plain => plain::read_strings(reader, count, limits, strictness)?,
                Encoding::Dictionary => {
                    dictionary::read_dictionary(reader, count, limits, strictness)?
                }
                _ => return Err(unsupported(encoding, kind)),
            };
            OwnedValues::Bytes { offsets, data }
        }
    })
}

fn truths(numbers: &[i32], strictness: Strictness) -> Result<Vec<bool>> {
    let truth = |number: &i32| match number {
        0 => Ok(false),
        1 => Ok(true),
        _ if strictness == Strictness::Foreign => Ok(true),
        _ => Err(CodecError::Damaged("a truth value is neither 0 nor 1")),
    };
    numbers.iter().map(truth).collect()
}

fn read_words<W: TsFileInteger>(
    reader: &mut ByteReader<'_>,
    end: W,
    encoding: Encoding,
    count: usize,
    strictness: Strictness,
) -> Result<Vec<W>> {
    match encoding {
        Encoding::Rle => rle::read_rle(reader, count),
        Encoding::Ts2Diff => ts2diff::read_ts2diff(reader, count),
        Encoding::Gorilla => gorilla::read_gorilla(reader, end, count, strictness),
        _ => Err(CodecError::Unsupported(encoding.name(), "pages of TsFile")),
    }
}

fn read_floats<F: DecimalFloat>(
    reader: &mut ByteReader<'_>,
    encoding: Encoding,
    count: usize,
    strictness: Strictness,
) -> Result<Vec<F>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if encoding == Encoding::Gorilla {
        let words = read_words(reader, F::GORILLA_END, encoding, count, strictness)?;
        return Ok(words.into_iter().map(F::from_bits).collect());
    }
    let decimals = DecimalHeader::read(reader, count, strictness)?;
    let words = read_words(reader, encoding_end::<F>(), encoding, count, strictness)?;
    Ok(decimals.join(words))
}

/// `RLE` and `TS_2DIFF` have no end mark, so any word will do.
fn encoding_end<F: DecimalFloat>() -> F::Word {
    F::GORILLA_END
}
