//! Encodings of the values of a page: what the file says, in the words of `marigram-codec`, which holds
//! the encodings themselves.
//!
//! All encodings here are lossless. Decoding never panics. It allocates no more than [`BYTES_MAX`]
//! and the number of values that the page's times allow.

use crate::bytes::put_var_bytes;
use crate::error::{PartError, PartResult};
use crate::kinds::{ChunkEncoding, DataType, ValueShape};
use crate::values::{ByteValues, ColumnValues};
use marigram_codec::{
    CodecError, DecodeLimits, Encoding, OwnedValues, PageValues, ValueType, tsfile_forms,
};

/// Largest total size of the texts of a page: a dictionary can refer to a long text many times.
const BYTES_MAX: usize = 64 << 20;

/// An encoding as `marigram-codec` knows it; `None` for one of those that are only read here.
fn codec_encoding(encoding: ChunkEncoding) -> Option<Encoding> {
    Some(match encoding {
        ChunkEncoding::Plain => Encoding::Plain,
        ChunkEncoding::Dictionary => Encoding::Dictionary,
        ChunkEncoding::Rle => Encoding::Rle,
        ChunkEncoding::Ts2Diff => Encoding::Ts2Diff,
        ChunkEncoding::Gorilla => Encoding::Gorilla,
        ChunkEncoding::GorillaV1 | ChunkEncoding::Zigzag => return None,
    })
}

fn value_type(shape: ValueShape) -> ValueType {
    match shape {
        ValueShape::Bool => ValueType::Bool,
        ValueShape::I32 => ValueType::I32,
        ValueShape::I64 => ValueType::I64,
        ValueShape::F32 => ValueType::F32,
        ValueShape::F64 => ValueType::F64,
        ValueShape::Bytes => ValueType::Bytes,
    }
}

/// An error in the words of this crate; `what` could not be decoded.
fn part_error(error: CodecError, what: impl FnOnce() -> String) -> PartError {
    match error {
        CodecError::Damaged(what) => PartError::Wrong(what),
        CodecError::Limit { .. } => PartError::Wrong("a page holds more than it may"),
        _ => PartError::Unsupported(what()),
    }
}

/// The `count` values of a page.
pub(crate) fn decode(
    encoding: ChunkEncoding,
    data_type: DataType,
    bytes: &[u8],
    count: usize,
) -> PartResult<ColumnValues> {
    if count == 0 {
        return Ok(ColumnValues::empty(data_type.shape()));
    }
    let kind = value_type(data_type.shape());
    let limits = DecodeLimits {
        values: count,
        bytes: BYTES_MAX,
    };
    let values = match (encoding, codec_encoding(encoding)) {
        (_, Some(encoding)) => tsfile_forms::decode_foreign(kind, encoding, count, bytes, limits),
        (ChunkEncoding::Zigzag, _) => tsfile_forms::decode_zigzag(kind, count, bytes, limits),
        (_, None) => tsfile_forms::decode_gorilla_v1(kind, count, bytes, limits),
    };
    let what = || format!("the encoding {encoding:?} of {data_type:?} values");
    match values.map_err(|error| part_error(error, what))? {
        OwnedValues::Bool { bits, len } => {
            let bit = |at: usize| bits[at / 8] >> (at % 8) & 1 == 1;
            Ok(ColumnValues::Bool((0..len).map(bit).collect()))
        }
        OwnedValues::I32(values) => Ok(ColumnValues::I32(values)),
        OwnedValues::I64(values) => Ok(ColumnValues::I64(values)),
        OwnedValues::F32(values) => Ok(ColumnValues::F32(values)),
        OwnedValues::F64(values) => Ok(ColumnValues::F64(values)),
        OwnedValues::Bytes { offsets, data } => {
            Ok(ColumnValues::Bytes(ByteValues::from_parts(data, &offsets)))
        }
        OwnedValues::U64(_) => Err(PartError::Wrong("a file holds no unsigned integers")),
    }
}

/// Decodes the times of a page, as many as its bytes contain, up to `count_max`.
pub(crate) fn decode_times(
    encoding: ChunkEncoding,
    bytes: &[u8],
    count_max: usize,
) -> PartResult<Vec<i64>> {
    let what = || format!("the encoding {encoding:?} of times");
    let known = codec_encoding(encoding).ok_or_else(|| PartError::Unsupported(what()))?;
    let times = tsfile_forms::decode_times(known, bytes, count_max);
    times.map_err(|error| part_error(error, what))
}

/// The encoding for writing values: lossless, and the same for all chunks of a series, because a
/// library of the format decodes them all with the encoding of the first. `GORILLA` would end a
/// page at a NaN, so floats are written plain.
pub(crate) fn written(data_type: DataType) -> ChunkEncoding {
    match data_type.shape() {
        ValueShape::I32 | ValueShape::I64 => ChunkEncoding::Ts2Diff,
        ValueShape::Bool | ValueShape::F32 | ValueShape::F64 | ValueShape::Bytes => {
            ChunkEncoding::Plain
        }
    }
}

/// Appends values in the encoding that [`written`] selects for their type.
pub(crate) fn encode(values: &ColumnValues, out: &mut Vec<u8>) {
    match values {
        ColumnValues::Bool(values) => put(PageValues::Bool(values), Encoding::Plain, out),
        ColumnValues::I32(values) => put(PageValues::I32(values), Encoding::Ts2Diff, out),
        ColumnValues::I64(values) => put(PageValues::I64(values), Encoding::Ts2Diff, out),
        ColumnValues::F32(values) => put(PageValues::F32(values), Encoding::Plain, out),
        ColumnValues::F64(values) => put(PageValues::F64(values), Encoding::Plain, out),
        ColumnValues::Bytes(values) => values.iter().for_each(|v| put_var_bytes(Some(v), out)),
    }
}

/// Appends times as `TS_2DIFF`.
pub(crate) fn encode_times(times: &[i64], out: &mut Vec<u8>) {
    put(PageValues::I64(times), Encoding::Ts2Diff, out);
}

fn put(values: PageValues<'_>, encoding: Encoding, out: &mut Vec<u8>) {
    tsfile_forms::encode(values, encoding, out).expect("these encodings hold every value");
}

#[cfg(test)]
mod tests;
