//! One page: a self-describing header, a bitmap of nulls where there are any, encoded values.

use crate::error::BlockDamage;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, PrimitiveArray, StringArray,
    new_null_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use marigram_codec::{
    BodyHeader, Compressor, DecodeLimits, Encoding, EncodingChoice, OwnedValues, PageValues,
    RegularIntegers, crc32c,
};
use marigram_model::{FieldType, TimeRange};
use std::ops::Range;
use std::sync::Arc;

/// Bytes before the bitmap and the values.
const HEADER_BYTES: usize = 20;
/// Bit of the flags: a bitmap of the rows that are not null follows the header.
const HAS_NULLS: u8 = 1;
/// Maximum size of the values of a page after decompression, bytes. The writer stays far below.
const DECODED_BYTES_MAX: usize = 1 << 26;

/// How a page is stored, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageInfo {
    /// Encoding of the values.
    pub encoding: Encoding,
    /// Compressor of the encoded bytes.
    pub compressor: Compressor,
    /// Bytes in the file, header included.
    pub encoded_bytes: u32,
    /// Bytes that the values take in memory, those of nulls included; of strings and bytes, with
    /// offsets of four bytes.
    pub raw_bytes: u32,
}

impl PageInfo {
    /// Encoding and, where there is one, compressor: `FOR`, `PLAIN+LZ4`.
    #[must_use]
    pub fn form(&self) -> String {
        let encoding = self.encoding.name();
        if self.compressor == Compressor::Uncompressed {
            return encoding.to_owned();
        }
        format!("{encoding}+{}", self.compressor.name())
    }
}

/// Values without nulls: borrowed, or copied if there are nulls to leave out.
enum DenseValues<'a> {
    Bool(Vec<bool>),
    I32(GatheredValues<'a, i32>),
    I64(GatheredValues<'a, i64>),
    U64(GatheredValues<'a, u64>),
    F32(GatheredValues<'a, f32>),
    F64(GatheredValues<'a, f64>),
    Bytes {
        offsets: GatheredValues<'a, i32>,
        data: GatheredValues<'a, u8>,
    },
}

type GatheredValues<'a, T> = std::borrow::Cow<'a, [T]>;

impl DenseValues<'_> {
    fn values(&self) -> PageValues<'_> {
        match self {
            Self::Bool(values) => PageValues::Bool(values),
            Self::I32(values) => PageValues::I32(values),
            Self::I64(values) => PageValues::I64(values),
            Self::U64(values) => PageValues::U64(values),
            Self::F32(values) => PageValues::F32(values),
            Self::F64(values) => PageValues::F64(values),
            Self::Bytes { offsets, data } => PageValues::Bytes { offsets, data },
        }
    }
}

/// Appends a page of times, stored as `choice` says.
pub(crate) fn encode_times(
    times: &ArrayRef,
    choice: EncodingChoice,
    out: &mut Vec<u8>,
) -> Result<(), BlockDamage> {
    encode_by(times, out, |values, out| match values {
        PageValues::I64(times) => marigram_codec::encode_times(times, choice, out),
        values => marigram_codec::encode(values, choice, out),
    })
}

/// Appends a page of `values`, stored as `choice` says.
pub(crate) fn encode_page(
    values: &ArrayRef,
    choice: EncodingChoice,
    out: &mut Vec<u8>,
) -> Result<(), BlockDamage> {
    let encode = |values: PageValues<'_>, out: &mut _| marigram_codec::encode(values, choice, out);
    encode_by(values, out, encode)
}

fn encode_by(
    values: &ArrayRef,
    out: &mut Vec<u8>,
    encode: impl FnOnce(PageValues<'_>, &mut Vec<u8>) -> BodyHeader,
) -> Result<(), BlockDamage> {
    let kind = FieldType::from_arrow(values.data_type()).ok_or_else(|| {
        BlockDamage(format!(
            "values of type {} have no place in a segment",
            values.data_type()
        ))
    })?;
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0);
    if let Some(nulls) = nulls {
        let rows = values.len();
        out.extend_from_slice(&nulls.inner().sliced()[..rows.div_ceil(8)]);
        if let Some(last) = out.last_mut().filter(|_| !rows.is_multiple_of(8)) {
            *last &= (1 << (rows % 8)) - 1;
        }
    }
    let dense = dense(kind, values, nulls);
    let header = encode(dense.values(), out);
    let body_bytes = (out.len() - start - HEADER_BYTES) as u32;
    out[start] = header.encoding as u8;
    out[start + 1] = header.compressor as u8;
    out[start + 2] = if nulls.is_some() { HAS_NULLS } else { 0 };
    out[start + 3] = kind as u8;
    out[start + 4..start + 8].copy_from_slice(&(values.len() as u32).to_le_bytes());
    out[start + 8..start + 12].copy_from_slice(&header.body_bytes.to_le_bytes());
    out[start + 12..start + 16].copy_from_slice(&body_bytes.to_le_bytes());
    let checksum = checksum(&out[start..]);
    out[start + 16..start + 20].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

fn checksum(page: &[u8]) -> u32 {
    crc32c([&page[..16], &page[HEADER_BYTES..]])
}

fn dense<'a>(kind: FieldType, values: &'a ArrayRef, nulls: Option<&NullBuffer>) -> DenseValues<'a> {
    fn numbers<'a, T: ArrowPrimitiveType>(
        values: &'a PrimitiveArray<T>,
        nulls: Option<&NullBuffer>,
    ) -> GatheredValues<'a, T::Native> {
        match nulls {
            None => GatheredValues::Borrowed(values.values()),
            Some(nulls) => {
                let mut dense = Vec::with_capacity(values.len() - nulls.null_count());
                for (from, to) in nulls.valid_slices() {
                    dense.extend_from_slice(&values.values()[from..to]);
                }
                dense.into()
            }
        }
    }
    match kind {
        FieldType::Bool => {
            let values = values.as_boolean().values();
            DenseValues::Bool(match nulls {
                None => values.iter().collect(),
                Some(nulls) => nulls.valid_indices().map(|row| values.value(row)).collect(),
            })
        }
        FieldType::I32 => DenseValues::I32(numbers(values.as_primitive::<Int32Type>(), nulls)),
        FieldType::I64 => DenseValues::I64(numbers(values.as_primitive::<Int64Type>(), nulls)),
        FieldType::U64 => DenseValues::U64(numbers(values.as_primitive::<UInt64Type>(), nulls)),
        FieldType::F32 => DenseValues::F32(numbers(values.as_primitive::<Float32Type>(), nulls)),
        FieldType::F64 => DenseValues::F64(numbers(values.as_primitive::<Float64Type>(), nulls)),
        FieldType::Timestamp => DenseValues::I64(numbers(
            values.as_primitive::<TimestampNanosecondType>(),
            nulls,
        )),
        FieldType::String => {
            let values = values.as_string::<i32>();
            strings(values.offsets(), values.value_data(), nulls)
        }
        FieldType::Bytes => {
            let values = values.as_binary::<i32>();
            strings(values.offsets(), values.value_data(), nulls)
        }
    }
}

fn strings<'a>(offsets: &'a [i32], data: &'a [u8], nulls: Option<&NullBuffer>) -> DenseValues<'a> {
    let Some(nulls) = nulls else {
        return DenseValues::Bytes {
            offsets: GatheredValues::Borrowed(offsets),
            data: GatheredValues::Borrowed(data),
        };
    };
    let (mut dense_offsets, mut dense) = (vec![0], Vec::new());
    for row in nulls.valid_indices() {
        dense.extend_from_slice(&data[offsets[row] as usize..offsets[row + 1] as usize]);
        dense_offsets.push(dense.len() as i32);
    }
    DenseValues::Bytes {
        offsets: dense_offsets.into(),
        data: dense.into(),
    }
}

/// A page whose header and checksum were checked.
struct CheckedPage<'a> {
    header: BodyHeader,
    nulls: Option<NullBuffer>,
    body: &'a [u8],
}

fn open_page(bytes: &[u8], kind: FieldType, rows: usize) -> Result<CheckedPage<'_>, BlockDamage> {
    let (head, rest) = bytes
        .split_first_chunk::<HEADER_BYTES>()
        .ok_or("the page is shorter than its header")?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if word(12) as usize != rest.len() {
        return Err(BlockDamage::from(
            "the page's length differs from its index",
        ));
    }
    if checksum(bytes) != word(16) {
        return Err(BlockDamage::from("the page's checksum is wrong"));
    }
    let encoding = Encoding::from_number(head[0]).ok_or("no encoding has this number")?;
    let compressor = Compressor::from_number(head[1]).ok_or("no compressor has this number")?;
    if head[3] != kind as u8 || word(4) as usize != rows {
        return Err(BlockDamage::from(
            "the page's type or number of rows differs from its index",
        ));
    }
    if !encoding.suits(kind.value_type()) {
        let name = encoding.name();
        return Err(BlockDamage(format!(
            "values of type {kind} cannot be {name}"
        )));
    }
    let header = BodyHeader {
        encoding,
        compressor,
        body_bytes: word(8),
    };
    let (nulls, body) = match head[2] {
        0 => (None, rest),
        HAS_NULLS => {
            let (bits, body) = rest
                .split_at_checked(rows.div_ceil(8))
                .ok_or("the bitmap of nulls is cut off")?;
            let bits = BooleanBuffer::new(Buffer::from(bits), 0, rows);
            (Some(NullBuffer::new(bits)), body)
        }
        _ => return Err(BlockDamage::from("the page has flags that are not known")),
    };
    Ok(CheckedPage {
        header,
        nulls,
        body,
    })
}

/// Checks a page of `rows` rows as far as possible without decoding it.
pub(crate) fn check_page(bytes: &[u8], kind: FieldType, rows: usize) -> Result<(), BlockDamage> {
    open_page(bytes, kind, rows).map(drop)
}

/// Decodes a page of `rows` rows.
pub(crate) fn decode_page(
    bytes: &[u8],
    kind: FieldType,
    rows: usize,
) -> Result<ArrayRef, BlockDamage> {
    decode_opened(open_page(bytes, kind, rows)?, kind, rows)
}

/// Decodes the rows `part` of a page of `rows` rows, and as few others as possible.
pub(crate) fn decode_part(
    bytes: &[u8],
    kind: FieldType,
    rows: usize,
    part: &Range<usize>,
) -> Result<ArrayRef, BlockDamage> {
    decode_opened_part(open_page(bytes, kind, rows)?, kind, rows, part)
}

/// Decodes the times in `range` among the rows `part` of a page of `rows` times, and returns their
/// rows. The times of `part` must ascend.
pub(crate) fn decode_times_within(
    bytes: &[u8],
    rows: usize,
    part: &Range<usize>,
    range: TimeRange,
) -> Result<(Range<usize>, ScalarBuffer<i64>), BlockDamage> {
    let page = open_page(bytes, FieldType::I64, rows)?;
    if page.nulls.is_none() {
        let (header, limits) = (page.header, limits(rows));
        let bounds = (range.min, range.max);
        let found = marigram_codec::decode_within(header, rows, page.body, limits, part, bounds);
        if let Some((within, times)) = found.map_err(|error| BlockDamage(error.to_string()))? {
            return Ok((within, times.into()));
        }
    }
    let times = decode_opened_part(page, FieldType::I64, rows, part)?;
    let times = times.as_primitive_opt::<Int64Type>();
    let times = times.ok_or("a page of times holds others")?.values();
    let from = times.partition_point(|time| *time < range.min);
    let len = times[from..].partition_point(|time| *time <= range.max);
    let within = part.start + from..part.start + from + len;
    Ok((within, times.slice(from, len)))
}

fn decode_opened_part(
    page: CheckedPage<'_>,
    kind: FieldType,
    rows: usize,
    part: &Range<usize>,
) -> Result<ArrayRef, BlockDamage> {
    if page.nulls.is_none() {
        let (header, limits) = (page.header, limits(rows));
        let kind_of_values = kind.value_type();
        let found =
            marigram_codec::decode_part(kind_of_values, header, rows, page.body, limits, part);
        if let Some(values) = found.map_err(|error| BlockDamage(error.to_string()))? {
            return to_array(kind, values, None, part.len());
        }
    }
    let all = decode_opened(page, kind, rows)?;
    Ok(all.slice(part.start, part.len()))
}

fn limits(rows: usize) -> DecodeLimits {
    DecodeLimits {
        values: rows,
        bytes: DECODED_BYTES_MAX,
    }
}

fn decode_opened(
    page: CheckedPage<'_>,
    kind: FieldType,
    rows: usize,
) -> Result<ArrayRef, BlockDamage> {
    let count = rows - page.nulls.as_ref().map_or(0, NullBuffer::null_count);
    if count == 0 {
        return Ok(new_null_array(&kind.data_type(), rows));
    }
    let values = marigram_codec::decode(
        kind.value_type(),
        page.header,
        count,
        page.body,
        limits(rows),
    )
    .map_err(|error| BlockDamage(error.to_string()))?;
    to_array(kind, values, page.nulls, rows)
}

/// The times of a page.
#[derive(Clone, Debug)]
pub enum PageTimes {
    /// Each of them, ns.
    Each(ScalarBuffer<i64>),
    /// They are equally spaced, or on grids; none of them was materialized.
    Regular(RegularIntegers),
}

/// Decodes a page of `rows` times.
pub(crate) fn decode_times(bytes: &[u8], rows: usize) -> Result<PageTimes, BlockDamage> {
    let page = open_page(bytes, FieldType::I64, rows)?;
    if page.nulls.is_none() {
        let found = marigram_codec::decode_regular(page.header, rows, page.body, limits(rows));
        if let Some(times) = found.map_err(|error| BlockDamage(error.to_string()))? {
            return Ok(PageTimes::Regular(times));
        }
    }
    let times = decode_opened(page, FieldType::I64, rows)?;
    let times = times.as_primitive_opt::<Int64Type>();
    let times = times.ok_or("a page of times holds others")?;
    Ok(PageTimes::Each(times.values().clone()))
}

/// How the values of a page are encoded and compressed.
pub(crate) fn page_header(
    bytes: &[u8],
    kind: FieldType,
    rows: usize,
) -> Result<BodyHeader, BlockDamage> {
    Ok(open_page(bytes, kind, rows)?.header)
}

/// How a page is stored; decodes only strings and bytes.
pub(crate) fn page_info(
    bytes: &[u8],
    kind: FieldType,
    rows: usize,
) -> Result<PageInfo, BlockDamage> {
    let page = open_page(bytes, kind, rows)?;
    let raw_bytes = match kind {
        FieldType::Bool => rows.div_ceil(8),
        FieldType::I32 | FieldType::F32 => rows * 4,
        FieldType::I64 | FieldType::U64 | FieldType::F64 | FieldType::Timestamp => rows * 8,
        FieldType::String | FieldType::Bytes => {
            let values = decode_page(bytes, kind, rows)?;
            let buffers = values.to_data();
            buffers.buffers().iter().map(Buffer::len).sum()
        }
    };
    Ok(PageInfo {
        encoding: page.header.encoding,
        compressor: page.header.compressor,
        encoded_bytes: bytes.len() as u32,
        raw_bytes: raw_bytes as u32,
    })
}

fn to_array(
    kind: FieldType,
    values: OwnedValues,
    nulls: Option<NullBuffer>,
    rows: usize,
) -> Result<ArrayRef, BlockDamage> {
    Ok(match (kind, values) {
        (FieldType::Bool, OwnedValues::Bool { bits, len }) => {
            let dense = BooleanBuffer::new(Buffer::from_vec(bits), 0, len);
            let values = match &nulls {
                None => dense,
                Some(nulls) => {
                    let mut spread = vec![false; rows];
                    for (at, row) in nulls.valid_indices().enumerate() {
                        spread[row] = dense.value(at);
                    }
                    BooleanBuffer::from(spread)
                }
            };
            Arc::new(BooleanArray::new(values, nulls))
        }
        (FieldType::I32, OwnedValues::I32(values)) => spread::<Int32Type>(values, nulls, rows),
        (FieldType::I64, OwnedValues::I64(values)) => spread::<Int64Type>(values, nulls, rows),
        (FieldType::Timestamp, OwnedValues::I64(values)) => {
            spread::<TimestampNanosecondType>(values, nulls, rows)
        }
        (FieldType::U64, OwnedValues::U64(values)) => spread::<UInt64Type>(values, nulls, rows),
        (FieldType::F32, OwnedValues::F32(values)) => spread::<Float32Type>(values, nulls, rows),
        (FieldType::F64, OwnedValues::F64(values)) => spread::<Float64Type>(values, nulls, rows),
        (FieldType::String, OwnedValues::Bytes { offsets, data }) => {
            let offsets = spread_offsets(offsets, nulls.as_ref(), rows)?;
            let array = StringArray::try_new(offsets, Buffer::from_vec(data), nulls);
            Arc::new(array.map_err(|error| BlockDamage(error.to_string()))?)
        }
        (FieldType::Bytes, OwnedValues::Bytes { offsets, data }) => {
            let offsets = spread_offsets(offsets, nulls.as_ref(), rows)?;
            let array = BinaryArray::try_new(offsets, Buffer::from_vec(data), nulls);
            Arc::new(array.map_err(|error| BlockDamage(error.to_string()))?)
        }
        _ => return Err(BlockDamage::from("the page holds values of another type")),
    })
}

/// Puts dense values in their rows.
fn spread<T: ArrowPrimitiveType>(
    dense: Vec<T::Native>,
    nulls: Option<NullBuffer>,
    rows: usize,
) -> ArrayRef {
    let values = match &nulls {
        None => dense,
        Some(nulls) => {
            let mut values = vec![T::Native::default(); rows];
            let mut rest = dense.as_slice();
            for (from, to) in nulls.valid_slices() {
                let (run, after) = rest.split_at(to - from);
                values[from..to].copy_from_slice(run);
                rest = after;
            }
            values
        }
    };
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls))
}

/// Offsets of dense values as offsets of rows: a null takes no bytes.
fn spread_offsets(
    dense: Vec<i32>,
    nulls: Option<&NullBuffer>,
    rows: usize,
) -> Result<OffsetBuffer<i32>, BlockDamage> {
    let offsets = match nulls {
        None => dense,
        Some(nulls) => {
            let mut dense = dense.into_iter();
            let mut end = dense.next().ok_or("strings without offsets")?;
            let mut offsets = Vec::with_capacity(rows + 1);
            offsets.push(end);
            for row in 0..rows {
                if nulls.is_valid(row) {
                    end = dense.next().ok_or("strings with too few offsets")?;
                }
                offsets.push(end);
            }
            offsets
        }
    };
    if offsets.len() != rows + 1 || offsets[0] < 0 || offsets.windows(2).any(|p| p[0] > p[1]) {
        return Err(BlockDamage::from("offsets of strings are not ascending"));
    }
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}
