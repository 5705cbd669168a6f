//! Values to bytes and back: one place that knows which encoding does what for which type.
//!
//! Invariant: [`decode`] gives back exactly the values that [`encode`] was given, or an error; it
//! never panics, whatever the bytes, and allocates at most in proportion to its [`Limits`].

use crate::alp::{put_alp, read_alp};
use crate::bytes::Reader;
use crate::choose::choose;
use crate::compress::{choose_compressor, compress, decompress};
use crate::dictionary::{put_dictionary, read_dictionary};
use crate::error::{CodecError, Result};
use crate::integer::{Integer, put_delta, put_for, read_delta, read_for};
use crate::kinds::{Choice, Compressor, Encoding, Limits, OwnedValues, ValueType, Values};
use crate::plain::{Plain, put_bits, put_strings, read_bits, read_numbers, read_strings};
use crate::runs::{cut, expand, put_lengths, read_lengths};

/// What must be known beside the bytes to decode them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// How the values are encoded.
    pub encoding: Encoding,
    /// How the encoded bytes are compressed.
    pub compressor: Compressor,
    /// Encoded bytes before compression.
    pub body_bytes: u32,
}

/// Appends `values` as `choice` says, and as suits them where it leaves that open. An encoding that
/// cannot hold them gives PLAIN.
///
/// # Panics
/// If the encoded values take 4 GiB or more: callers bound their pages far below that.
pub fn encode(values: Values<'_>, choice: Choice, out: &mut Vec<u8>) -> Header {
    let start = out.len();
    let mut encoding = choice.encoding.unwrap_or_else(|| choose(values));
    if put(values, encoding, out).is_err() {
        out.truncate(start);
        encoding = Encoding::Plain;
        put(values, encoding, out).expect("PLAIN takes every type");
    }
    let body_bytes = u32::try_from(out.len() - start).expect("a page is far smaller than 4 GiB");
    // Packed bits do not compress; bytes and raw floats may.
    let is_packed = matches!(encoding, Encoding::For | Encoding::Delta | Encoding::Alp);
    let mut compressor = match choice.compressor {
        Some(compressor) => compressor,
        None if is_packed => Compressor::Uncompressed,
        None => choose_compressor(&out[start..]),
    };
    if compressor != Compressor::Uncompressed {
        let mut packed = Vec::new();
        let done = compress(compressor, &out[start..], &mut packed).is_ok();
        let pays = packed.len() + packed.len() / 16 < out.len() - start;
        if done && (pays || choice.compressor.is_some()) {
            out.truncate(start);
            out.extend_from_slice(&packed);
        } else {
            compressor = Compressor::Uncompressed;
        }
    }
    Header {
        encoding,
        compressor,
        body_bytes,
    }
}

/// Appends `values` as asked.
///
/// # Errors
/// If the encoding is not one for values of this type, or is only reserved.
///
/// # Panics
/// If the encoded values take 4 GiB or more.
pub fn encode_as(
    values: Values<'_>,
    encoding: Encoding,
    compressor: Compressor,
    out: &mut Vec<u8>,
) -> Result<Header> {
    let mut body = Vec::new();
    put(values, encoding, &mut body)?;
    let body_bytes = u32::try_from(body.len()).expect("a page is far smaller than 4 GiB");
    compress(compressor, &body, out)?;
    Ok(Header {
        encoding,
        compressor,
        body_bytes,
    })
}

/// Decodes `count` values of type `kind` from all of `bytes`.
///
/// # Errors
/// If the bytes are damaged, hold more than `limits` allow, or are encoded in a way that this
/// version does not know.
pub fn decode(
    kind: ValueType,
    header: Header,
    count: usize,
    bytes: &[u8],
    limits: Limits,
) -> Result<OwnedValues> {
    if count > limits.values {
        let (claimed, limit) = (count as u64, limits.values as u64);
        return Err(CodecError::Limit {
            what: "values",
            claimed,
            limit,
        });
    }
    if header.compressor == Compressor::Uncompressed {
        return read(kind, header.encoding, count, bytes, limits);
    }
    let len = limits.check_bytes(u64::from(header.body_bytes))?;
    let body = decompress(header.compressor, bytes, len)?;
    read(kind, header.encoding, count, &body, limits)
}

fn put(values: Values<'_>, encoding: Encoding, out: &mut Vec<u8>) -> Result<()> {
    match (encoding, values) {
        (Encoding::Plain, Values::Bool(values)) => put_bits(values, out),
        (Encoding::Plain, Values::I32(values)) => Plain::put(values, out),
        (Encoding::Plain, Values::I64(values)) => Plain::put(values, out),
        (Encoding::Plain, Values::U64(values)) => Plain::put(values, out),
        (Encoding::Plain, Values::F32(values)) => Plain::put(values, out),
        (Encoding::Plain, Values::F64(values)) => Plain::put(values, out),
        (Encoding::Plain, Values::Bytes { offsets, data }) => put_strings(offsets, data, out),
        (Encoding::For, Values::I32(values)) => put_for(values, out),
        (Encoding::For, Values::I64(values)) => put_for(values, out),
        (Encoding::For, Values::U64(values)) => put_for(values, out),
        (Encoding::Delta, Values::I32(values)) => put_delta(values, out),
        (Encoding::Delta, Values::I64(values)) => put_delta(values, out),
        (Encoding::Delta, Values::U64(values)) => put_delta(values, out),
        (Encoding::Alp, Values::F32(values)) => put_alp(values, out),
        (Encoding::Alp, Values::F64(values)) => put_alp(values, out),
        (Encoding::Entries, Values::Bytes { offsets, data }) => {
            put_dictionary(offsets, data, out);
        }
        (Encoding::Runs, values) => put_runs(values, out),
        (encoding, values) => {
            return Err(CodecError::Unsupported(
                encoding.name(),
                values.value_type().name(),
            ));
        }
    }
    Ok(())
}

fn put_runs(values: Values<'_>, out: &mut Vec<u8>) {
    fn pick<T: Copy>(values: &[T], same: impl Fn(&T, &T) -> bool, out: &mut Vec<u8>) -> Vec<T> {
        let (starts, lengths) = cut(values.len(), |a, b| same(&values[a], &values[b]));
        put_lengths(&lengths, out);
        starts.into_iter().map(|start| values[start]).collect()
    }
    match values {
        Values::Bool(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_bits(&picked, out);
        }
        Values::I32(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_for(&picked, out);
        }
        Values::I64(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_for(&picked, out);
        }
        Values::U64(values) => {
            let picked = pick(values, |a, b| a == b, out);
            put_for(&picked, out);
        }
        Values::F32(values) => {
            let picked = pick(values, |a, b| a.to_bits() == b.to_bits(), out);
            Plain::put(&picked, out);
        }
        Values::F64(values) => {
            let picked = pick(values, |a, b| a.to_bits() == b.to_bits(), out);
            Plain::put(&picked, out);
        }
        Values::Bytes { offsets, data } => {
            let value = |at: usize| &data[offsets[at] as usize..offsets[at + 1] as usize];
            let count = offsets.len().saturating_sub(1);
            let (starts, lengths) = cut(count, |a, b| value(a) == value(b));
            put_lengths(&lengths, out);
            let mut picked_offsets = vec![0];
            let mut picked = Vec::new();
            for start in starts {
                picked.extend_from_slice(value(start));
                picked_offsets.push(picked.len() as i32);
            }
            put_strings(&picked_offsets, &picked, out);
        }
    }
}

fn read(
    kind: ValueType,
    encoding: Encoding,
    count: usize,
    body: &[u8],
    limits: Limits,
) -> Result<OwnedValues> {
    let mut reader = Reader::new(body);
    let values = read_values(kind, encoding, count, &mut reader, limits)?;
    reader.end()?;
    Ok(values)
}

fn read_values(
    kind: ValueType,
    encoding: Encoding,
    count: usize,
    reader: &mut Reader<'_>,
    limits: Limits,
) -> Result<OwnedValues> {
    let unsupported = || CodecError::Unsupported(encoding.name(), kind.name());
    Ok(match kind {
        ValueType::Bool => {
            let bits = match encoding {
                Encoding::Plain => read_bits(reader, count)?,
                Encoding::Runs => {
                    let lengths = read_lengths(reader, count)?;
                    let bits = read_bits(reader, lengths.len())?;
                    spread_bits(&bits, &lengths, count)
                }
                _ => return Err(unsupported()),
            };
            OwnedValues::Bool { bits, len: count }
        }
        ValueType::I32 => OwnedValues::I32(read_integers(encoding, count, reader, unsupported)?),
        ValueType::I64 => OwnedValues::I64(read_integers(encoding, count, reader, unsupported)?),
        ValueType::U64 => OwnedValues::U64(read_integers(encoding, count, reader, unsupported)?),
        ValueType::F32 => OwnedValues::F32(match encoding {
            Encoding::Plain => read_numbers(reader, count)?,
            Encoding::Alp => read_alp(reader, count)?,
            Encoding::Runs => read_float_runs(reader, count)?,
            _ => return Err(unsupported()),
        }),
        ValueType::F64 => OwnedValues::F64(match encoding {
            Encoding::Plain => read_numbers(reader, count)?,
            Encoding::Alp => read_alp(reader, count)?,
            Encoding::Runs => read_float_runs(reader, count)?,
            _ => return Err(unsupported()),
        }),
        ValueType::Bytes => {
            let (offsets, data) = match encoding {
                Encoding::Plain => read_strings(reader, count, limits)?,
                Encoding::Entries => read_dictionary(reader, count, limits)?,
                Encoding::Runs => read_string_runs(reader, count, limits)?,
                _ => return Err(unsupported()),
            };
            OwnedValues::Bytes { offsets, data }
        }
    })
}

fn read_integers<T: Integer + Plain>(
    encoding: Encoding,
    count: usize,
    reader: &mut Reader<'_>,
    unsupported: impl Fn() -> CodecError,
) -> Result<Vec<T>> {
    match encoding {
        Encoding::Plain => read_numbers(reader, count),
        Encoding::For => read_for(reader, count),
        Encoding::Delta => read_delta(reader, count),
        Encoding::Runs => {
            let lengths = read_lengths(reader, count)?;
            let values = read_for(reader, lengths.len())?;
            Ok(expand(&values, &lengths, count))
        }
        _ => Err(unsupported()),
    }
}

fn read_float_runs<T: Plain>(reader: &mut Reader<'_>, count: usize) -> Result<Vec<T>> {
    let lengths = read_lengths(reader, count)?;
    let values = read_numbers(reader, lengths.len())?;
    Ok(expand(&values, &lengths, count))
}

fn read_string_runs(
    reader: &mut Reader<'_>,
    count: usize,
    limits: Limits,
) -> Result<(Vec<i32>, Vec<u8>)> {
    let lengths = read_lengths(reader, count)?;
    let (run_offsets, run_data) = read_strings(reader, lengths.len(), limits)?;
    let widths = run_offsets
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as u64);
    let bytes: u64 = widths
        .zip(&lengths)
        .map(|(width, rows)| width * u64::from(*rows))
        .sum();
    if bytes > i32::MAX as u64 {
        return Err(CodecError::Damaged("strings take 2 GiB or more"));
    }
    let mut data = Vec::with_capacity(limits.check_bytes(bytes)?);
    let mut offsets = Vec::with_capacity(count + 1);
    offsets.push(0);
    for (pair, rows) in run_offsets.windows(2).zip(lengths) {
        let value = &run_data[pair[0] as usize..pair[1] as usize];
        for _ in 0..rows {
            data.extend_from_slice(value);
            offsets.push(data.len() as i32);
        }
    }
    Ok((offsets, data))
}

/// Each bit as often as its run is long.
fn spread_bits(bits: &[u8], lengths: &[u32], count: usize) -> Vec<u8> {
    let mut out = vec![0; count.div_ceil(8)];
    let mut row = 0;
    for (run, length) in lengths.iter().enumerate() {
        let end = row + *length as usize;
        if bits[run / 8] >> (run % 8) & 1 == 1 {
            while row < end && row % 8 != 0 {
                out[row / 8] |= 1 << (row % 8);
                row += 1;
            }
            let bytes = (end - row) / 8;
            out[row / 8..row / 8 + bytes].fill(0xff);
            row += bytes * 8;
            while row < end {
                out[row / 8] |= 1 << (row % 8);
                row += 1;
            }
        }
        row = end;
    }
    out
}

#[cfg(test)]
mod tests;
