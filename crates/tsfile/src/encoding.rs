//! Encodings of the values of a page.
//!
//! All encodings here are lossless. Decoding never panics. It allocates no more than [`BYTES_MAX`]
//! and the number of values that the page's times allow.

mod bits;
mod gorilla;
mod rle;
mod ts2diff;
mod word;

use crate::bytes::{Cursor, put_var_bytes};
use crate::error::{PartError, PartResult};
use crate::kinds::{ChunkEncoding, DataType, ValueShape};
use crate::values::{ByteValues, ColumnValues};

/// Largest total size of the texts of a page: a dictionary can refer to a long text many times.
const BYTES_MAX: usize = 64 << 20;

/// Decodes the `count` values of a page.
pub(crate) fn decode(
    encoding: ChunkEncoding,
    data_type: DataType,
    bytes: &[u8],
    count: usize,
) -> PartResult<ColumnValues> {
    use ChunkEncoding::{Dictionary, Gorilla, GorillaV1, Plain, Rle, Ts2Diff, Zigzag};
    if count == 0 {
        return Ok(ColumnValues::empty(data_type.shape()));
    }
    let mut cursor = Cursor::new(bytes);
    let floats32 = |values: Vec<i32>| values.into_iter().map(|v| f32::from_bits(v as u32));
    let floats64 = |values: Vec<i64>| values.into_iter().map(|v| f64::from_bits(v as u64));
    let values = match (encoding, data_type.shape()) {
        (Plain, shape) => plain(shape, &mut cursor, count)?,
        (Rle, ValueShape::Bool) => {
            let values: Vec<i32> = rle::decode(&mut cursor, count)?;
            ColumnValues::Bool(values.into_iter().map(|value| value != 0).collect())
        }
        (Rle, ValueShape::I32) => ColumnValues::I32(rle::decode(&mut cursor, count)?),
        (Rle, ValueShape::I64) => ColumnValues::I64(rle::decode(&mut cursor, count)?),
        (Rle, ValueShape::F32) => {
            let scale = FloatScale::read(&mut cursor, count)?;
            ColumnValues::F32(scale.floats32(&rle::decode(&mut cursor, count)?))
        }
        (Rle, ValueShape::F64) => {
            let scale = FloatScale::read(&mut cursor, count)?;
            ColumnValues::F64(scale.floats64(&rle::decode(&mut cursor, count)?))
        }
        (Ts2Diff, ValueShape::I32) => ColumnValues::I32(ts2diff::decode(bytes, count)?),
        (Ts2Diff, ValueShape::I64) => ColumnValues::I64(ts2diff::decode(bytes, count)?),
        (Ts2Diff, ValueShape::F32) => {
            let scale = FloatScale::read(&mut cursor, count)?;
            ColumnValues::F32(scale.floats32(&ts2diff::decode(cursor.rest(), count)?))
        }
        (Ts2Diff, ValueShape::F64) => {
            let scale = FloatScale::read(&mut cursor, count)?;
            ColumnValues::F64(scale.floats64(&ts2diff::decode(cursor.rest(), count)?))
        }
        (Gorilla, ValueShape::I32) => ColumnValues::I32(gorilla::decode(bytes, count)?),
        (Gorilla, ValueShape::I64) => ColumnValues::I64(gorilla::decode(bytes, count)?),
        (Gorilla, ValueShape::F32) => {
            ColumnValues::F32(floats32(gorilla::decode(bytes, count)?).collect())
        }
        (Gorilla, ValueShape::F64) => {
            ColumnValues::F64(floats64(gorilla::decode(bytes, count)?).collect())
        }
        (GorillaV1, ValueShape::F32) => {
            ColumnValues::F32(floats32(gorilla::decode_v1(bytes, count)?).collect())
        }
        (GorillaV1, ValueShape::F64) => {
            ColumnValues::F64(floats64(gorilla::decode_v1(bytes, count)?).collect())
        }
        (Zigzag, ValueShape::I32) => {
            let values = zigzag(&mut cursor, count)?;
            ColumnValues::I32(values.into_iter().map(|value| value as i32).collect())
        }
        (Zigzag, ValueShape::I64) => ColumnValues::I64(zigzag(&mut cursor, count)?),
        (Dictionary, ValueShape::Bytes) => ColumnValues::Bytes(dictionary(&mut cursor, count)?),
        (encoding, _) => {
            let what = format!("the encoding {encoding:?} of {data_type:?} values");
            return Err(PartError::Unsupported(what));
        }
    };
    if values.len() == count {
        return Ok(values);
    }
    Err(PartError::Wrong("a page has fewer values than times"))
}

/// Decodes the times of a page, as many as its bytes contain, up to `count_max`.
pub(crate) fn decode_times(
    encoding: ChunkEncoding,
    bytes: &[u8],
    count_max: usize,
) -> PartResult<Vec<i64>> {
    let times = match encoding {
        ChunkEncoding::Ts2Diff => ts2diff::decode(bytes, count_max)?,
        ChunkEncoding::Plain => {
            let words = bytes.chunks_exact(8);
            if !words.remainder().is_empty() {
                return Err(PartError::Short);
            }
            words
                .map(|word| Cursor::new(word).i64())
                .collect::<PartResult<_>>()?
        }
        other => {
            return Err(PartError::Unsupported(format!(
                "the encoding {other:?} of times"
            )));
        }
    };
    if times.len() > count_max {
        return Err(PartError::Wrong("a page holds too many rows"));
    }
    Ok(times)
}

fn plain(shape: ValueShape, cursor: &mut Cursor<'_>, count: usize) -> PartResult<ColumnValues> {
    // Every value takes at least one byte.
    if count > cursor.rest().len() {
        return Err(PartError::Short);
    }
    let each = 0..count;
    Ok(match shape {
        ValueShape::Bool => ColumnValues::Bool(
            each.map(|_| Ok(cursor.byte()? != 0))
                .collect::<PartResult<_>>()?,
        ),
        ValueShape::I32 => {
            ColumnValues::I32(each.map(|_| cursor.ivar()).collect::<PartResult<_>>()?)
        }
        ValueShape::I64 => {
            ColumnValues::I64(each.map(|_| cursor.i64()).collect::<PartResult<_>>()?)
        }
        ValueShape::F32 => ColumnValues::F32(
            each.map(|_| Ok(f32::from_bits(cursor.i32()? as u32)))
                .collect::<PartResult<_>>()?,
        ),
        ValueShape::F64 => ColumnValues::F64(
            each.map(|_| Ok(f64::from_bits(cursor.i64()? as u64)))
                .collect::<PartResult<_>>()?,
        ),
        ValueShape::Bytes => {
            let mut values = ByteValues::default();
            for _ in each {
                values.push(cursor.var_bytes()?.unwrap_or_default());
            }
            ColumnValues::Bytes(values)
        }
    })
}

/// `ZIGZAG`: the length in bytes, the number of values, the values.
fn zigzag(cursor: &mut Cursor<'_>, count: usize) -> PartResult<Vec<i64>> {
    let len = cursor.uvar()? as usize;
    let _ = cursor.uvar()?;
    let mut packed = Cursor::new(cursor.take(len)?);
    if count > len {
        return Err(PartError::Short);
    }
    let value = |_| {
        let value = packed.uvar64()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    };
    (0..count).map(value).collect()
}

fn dictionary(cursor: &mut Cursor<'_>, count: usize) -> PartResult<ByteValues> {
    let entries = usize::try_from(cursor.ivar()?);
    let entries = entries.map_err(|_| PartError::Wrong("a dictionary's size is negative"))?;
    if entries > cursor.rest().len() {
        return Err(PartError::Short);
    }
    let entries = (0..entries).map(|_| Ok(cursor.var_bytes()?.unwrap_or_default()));
    let entries = entries.collect::<PartResult<Vec<_>>>()?;
    let codes: Vec<i32> = rle::decode(cursor, count)?;
    let mut values = ByteValues::default();
    for code in codes {
        let entry = usize::try_from(code)
            .ok()
            .and_then(|code| entries.get(code));
        values.push(entry.ok_or(PartError::Wrong("a code is in no dictionary"))?);
        if values.bytes_total() > BYTES_MAX {
            return Err(PartError::Wrong("a page's texts take too many bytes"));
        }
    }
    Ok(values)
}

/// How the floats of `RLE` and `TS_2DIFF`, which encode integers, derive from these: each is the
/// integer divided by a power of ten. Floats that would not fit are the integer itself or its bits.
struct FloatScale<'a> {
    divisor: f64,
    scaled: Option<&'a [u8]>,
    raw: Option<&'a [u8]>,
}

impl<'a> FloatScale<'a> {
    const SOME_RAW: u32 = i32::MAX as u32 - 1;
    const SOME_UNSCALED: u32 = i32::MAX as u32;

    fn read(cursor: &mut Cursor<'a>, count: usize) -> PartResult<Self> {
        let mut first = cursor.uvar()?;
        let (mut scaled, mut raw) = (None, None);
        if first == Self::SOME_RAW || first == Self::SOME_UNSCALED {
            let marks = cursor.uvar()? as usize;
            if marks < count {
                return Err(PartError::Wrong("there are fewer marks than values"));
            }
            let len = marks / 8 + 1;
            scaled = Some(cursor.take(len)?);
            if first == Self::SOME_RAW {
                raw = Some(cursor.take(len)?);
            }
            first = cursor.uvar()?;
        }
        Ok(Self {
            divisor: 10f64.powf(f64::from(first)),
            scaled,
            raw,
        })
    }

    fn marked(marks: Option<&[u8]>, at: usize) -> Option<bool> {
        marks.map(|marks| marks[at / 8] & (1 << (at % 8)) != 0)
    }

    fn divisor(&self, at: usize) -> f64 {
        match Self::marked(self.scaled, at) {
            Some(false) => 1.0,
            _ => self.divisor,
        }
    }

    fn floats32(&self, values: &[i32]) -> Vec<f32> {
        let float = |(at, value): (usize, &i32)| match Self::marked(self.raw, at) {
            Some(true) => f32::from_bits(*value as u32),
            _ => (f64::from(*value) / self.divisor(at)) as f32,
        };
        values.iter().enumerate().map(float).collect()
    }

    fn floats64(&self, values: &[i64]) -> Vec<f64> {
        let float = |(at, value): (usize, &i64)| match Self::marked(self.raw, at) {
            Some(true) => f64::from_bits(*value as u64),
            _ => *value as f64 / self.divisor(at),
        };
        values.iter().enumerate().map(float).collect()
    }
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
        ColumnValues::I32(values) => ts2diff::encode(values, out),
        ColumnValues::I64(values) => ts2diff::encode(values, out),
        ColumnValues::Bool(values) => out.extend(values.iter().map(|value| u8::from(*value))),
        ColumnValues::F32(values) => {
            out.extend(
                values
                    .iter()
                    .flat_map(|value| value.to_bits().to_be_bytes()),
            );
        }
        ColumnValues::F64(values) => {
            out.extend(
                values
                    .iter()
                    .flat_map(|value| value.to_bits().to_be_bytes()),
            );
        }
        ColumnValues::Bytes(values) => values.iter().for_each(|v| put_var_bytes(Some(v), out)),
    }
}

/// Appends times as `TS_2DIFF`.
pub(crate) fn encode_times(times: &[i64], out: &mut Vec<u8>) {
    ts2diff::encode(times, out);
}

#[cfg(test)]
mod tests;
