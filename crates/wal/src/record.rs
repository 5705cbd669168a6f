//! Records: entries as bytes, framed (`docs/formats/wal.md`).
//!
//! Encoding copies whole buffers, because the writing thread waits for it. Decoding checks every
//! number against the bytes that are there before it uses it.

use crate::entry::{DeleteEntry, WalEntry, WriteEntry};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, BinaryType, ByteArrayType, Float32Type, Float64Type, Int32Type, Int64Type,
    TimestampNanosecondType, UInt64Type, Utf8Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, GenericByteArray, PrimitiveArray};
use arrow_buffer::{
    ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer,
};
use marigram_codec::bytes::{BoundedReader, ReadError};
use marigram_codec::frame;
use marigram_model::{
    ColumnId, DeletedRows, FieldType, SeriesId, SeriesTimeRange, TableId, TagKey, TimeRange,
};
use std::sync::Arc;

// Buffers go to disk as they are in memory, and the format is little-endian.
const _: () = assert!(
    cfg!(target_endian = "little"),
    "the log is written little-endian"
);

const WRITE: u8 = 1;
const DELETE: u8 = 2;
const DROP_TABLE: u8 = 3;

/// Which rows a delete covers.
const OF_TABLE: u8 = 0;
const OF_SERIES: u8 = 1;
const OF_RANGES: u8 = 2;

/// Bytes of a range of a delete: series, first and last time.
const RANGE_BYTES: usize = 20;

/// Bytes of a column besides its validity and values: id, type, whether it has nulls.
const COLUMN_HEAD_BYTES: usize = 6;

/// Why a payload is not a record. Its checksum was right, so this is not a torn write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the record is not well formed: {0}")]
pub struct RecordError(&'static str);

type Result<T> = std::result::Result<T, RecordError>;

impl From<ReadError> for RecordError {
    fn from(error: ReadError) -> Self {
        Self(error.reason())
    }
}

/// Encodes an entry with its sequence as a WAL record (framed), appending to `out`. Done by the
/// writing thread, outside all locks except the one that orders sequences.
///
/// # Panics
/// If a column is of a type that no field has or has not one value a row, or if the record would
/// have 4 GiB or more: the engine bounds and checks what it writes.
pub fn encode_record(sequence: u64, entry: &WalEntry, out: &mut Vec<u8>) {
    frame::write_with(out, |out| {
        let (kind, table) = match entry {
            WalEntry::Write(write) => (WRITE, write.table),
            WalEntry::Delete(delete) => (DELETE, delete.table),
            WalEntry::DropTable(table) => (DROP_TABLE, *table),
        };
        out.push(kind);
        out.extend_from_slice(&sequence.to_le_bytes());
        out.extend_from_slice(&table.0.to_le_bytes());
        match entry {
            WalEntry::Write(write) => encode_write(write, out),
            WalEntry::Delete(delete) => encode_delete(delete, out),
            WalEntry::DropTable(_) => {}
        }
    });
}

fn encode_write(write: &WriteEntry, out: &mut Vec<u8>) {
    let rows = write.times.len();
    assert_eq!(write.series.len(), rows, "each row has a series");
    let values: usize = write
        .columns
        .iter()
        .map(|(_, values)| values.get_buffer_memory_size())
        .sum();
    out.reserve(values + rows * 12 + 64);
    push_count(rows, out);
    push_count(write.new_series.len(), out);
    push_count(write.columns.len(), out);
    for (id, key) in &write.new_series {
        out.extend_from_slice(&id.0.to_le_bytes());
        push_count(key.as_bytes().len(), out);
        out.extend_from_slice(key.as_bytes());
    }
    out.extend_from_slice(write.series.inner().as_slice());
    out.extend_from_slice(write.times.inner().as_slice());
    for (id, values) in &write.columns {
        assert_eq!(
            values.len(),
            rows,
            "each row has a value or null in each column"
        );
        encode_column(*id, values, out);
    }
}

fn encode_delete(delete: &DeleteEntry, out: &mut Vec<u8>) {
    out.extend_from_slice(&delete.range.min.to_le_bytes());
    out.extend_from_slice(&delete.range.max.to_le_bytes());
    match &delete.rows {
        DeletedRows::Table => out.push(OF_TABLE),
        DeletedRows::Series(series) => {
            out.push(OF_SERIES);
            push_count(series.len(), out);
            for id in &**series {
                out.extend_from_slice(&id.0.to_le_bytes());
            }
        }
        DeletedRows::Ranges(ranges) => {
            out.push(OF_RANGES);
            push_count(ranges.len(), out);
            for SeriesTimeRange { series, range } in &**ranges {
                out.extend_from_slice(&series.0.to_le_bytes());
                out.extend_from_slice(&range.min.to_le_bytes());
                out.extend_from_slice(&range.max.to_le_bytes());
            }
        }
    }
}

fn encode_column(id: ColumnId, values: &ArrayRef, out: &mut Vec<u8>) {
    let kind = FieldType::from_arrow(values.data_type()).expect("columns are of field types");
    let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0);
    out.extend_from_slice(&id.0.to_le_bytes());
    out.push(kind as u8);
    out.push(u8::from(nulls.is_some()));
    if let Some(nulls) = nulls {
        push_bits(nulls.inner(), out);
    }
    match kind {
        FieldType::Bool => push_bits(values.as_boolean().values(), out),
        FieldType::I32 => push_values::<Int32Type>(values, out),
        FieldType::I64 => push_values::<Int64Type>(values, out),
        FieldType::U64 => push_values::<UInt64Type>(values, out),
        FieldType::F32 => push_values::<Float32Type>(values, out),
        FieldType::F64 => push_values::<Float64Type>(values, out),
        FieldType::Timestamp => push_values::<TimestampNanosecondType>(values, out),
        FieldType::String => push_texts::<Utf8Type>(values, out),
        FieldType::Bytes => push_texts::<BinaryType>(values, out),
    }
}

fn push_count(count: usize, out: &mut Vec<u8>) {
    let count = u32::try_from(count).expect("counts in a record are below 2^32");
    out.extend_from_slice(&count.to_le_bytes());
}

fn push_values<T: ArrowPrimitiveType>(values: &ArrayRef, out: &mut Vec<u8>) {
    out.extend_from_slice(values.as_primitive::<T>().values().inner().as_slice());
}

/// Bits from the lowest of the first byte on; bits after the last one are zero.
fn push_bits(bits: &BooleanBuffer, out: &mut Vec<u8>) {
    let bytes = bits.len().div_ceil(8);
    out.extend_from_slice(&bits.sliced().as_slice()[..bytes]);
    let used = bits.len() % 8;
    if used > 0
        && let Some(last) = out.last_mut()
    {
        *last &= (1 << used) - 1;
    }
}

/// The end of each value within the bytes, then the bytes.
fn push_texts<T: ByteArrayType<Offset = i32>>(values: &ArrayRef, out: &mut Vec<u8>) {
    let values = values.as_bytes::<T>();
    let offsets = values.value_offsets();
    let (first, last) = (offsets[0], offsets[offsets.len() - 1]);
    if first == 0 {
        out.extend_from_slice(&values.offsets().inner().inner().as_slice()[size_of::<i32>()..]);
    } else {
        out.extend(
            offsets[1..]
                .iter()
                .flat_map(|end| (end - first).to_le_bytes()),
        );
    }
    out.extend_from_slice(&values.value_data()[first as usize..last as usize]);
}

/// Decodes the payload of a record: its sequence and its entry.
///
/// # Errors
/// If the bytes are not a record; never panics, and allocates about as much as there are bytes.
pub fn decode_record(payload: &[u8]) -> Result<(u64, WalEntry)> {
    let mut input = RecordInput::new(payload);
    let kind = input.byte()?;
    let sequence = input.u64()?;
    let table = TableId(input.u32()?);
    let entry = match kind {
        WRITE => WalEntry::Write(decode_write(table, &mut input)?),
        DELETE => WalEntry::Delete(decode_delete(table, &mut input)?),
        DROP_TABLE => WalEntry::DropTable(table),
        _ => return Err(RecordError("no kind of entry has this number")),
    };
    input.end()?;
    Ok((sequence, entry))
}

fn decode_write(table: TableId, input: &mut RecordInput<'_>) -> Result<WriteEntry> {
    let rows = input.u32()? as usize;
    let series_count = input.u32()? as usize;
    let column_count = input.u32()? as usize;
    let mut new_series = Vec::with_capacity(series_count.min(input.remaining() / 8));
    for _ in 0..series_count {
        let id = SeriesId(input.u32()?);
        if new_series.last().is_some_and(|(last, _)| *last >= id) {
            return Err(RecordError("new series are not ascending"));
        }
        let len = input.u32()? as usize;
        let key = TagKey::from_bytes(input.take(len)?);
        new_series.push((id, key.map_err(|_| RecordError("a tag key is damaged"))?));
    }
    let series = values(rows, input)?;
    let times = values(rows, input)?;
    let mut columns = Vec::with_capacity(column_count.min(input.remaining() / COLUMN_HEAD_BYTES));
    for _ in 0..column_count {
        columns.push(decode_column(rows, input)?);
    }
    Ok(WriteEntry {
        table,
        new_series,
        series,
        times,
        columns,
    })
}

fn decode_delete(table: TableId, input: &mut RecordInput<'_>) -> Result<DeleteEntry> {
    let range = time_range(input)?;
    let rows = match input.byte()? {
        OF_TABLE => DeletedRows::Table,
        OF_SERIES => {
            let count = input.u32()? as usize;
            let ids: ScalarBuffer<u32> = values(count, input)?;
            DeletedRows::Series(ids.iter().copied().map(SeriesId).collect())
        }
        OF_RANGES => {
            let count = input.u32()? as usize;
            let mut ranges = Vec::with_capacity(count.min(input.remaining() / RANGE_BYTES));
            for _ in 0..count {
                ranges.push(SeriesTimeRange {
                    series: SeriesId(input.u32()?),
                    range: time_range(input)?,
                });
            }
            DeletedRows::Ranges(ranges.into())
        }
        _ => return Err(RecordError("no kind of deleted rows has this number")),
    };
    let order = rows.check(range);
    order.map_err(|_| RecordError("the rows of a delete are out of order"))?;
    Ok(DeleteEntry { table, rows, range })
}

fn time_range(input: &mut RecordInput<'_>) -> Result<TimeRange> {
    Ok(TimeRange {
        min: input.i64()?,
        max: input.i64()?,
    })
}

fn decode_column(rows: usize, input: &mut RecordInput<'_>) -> Result<(ColumnId, ArrayRef)> {
    let id = ColumnId(input.u32()?);
    let kind = FieldType::from_number(input.byte()?)
        .ok_or(RecordError("no field type has this number"))?;
    let nulls = if input.flag()? {
        Some(NullBuffer::new(bits(rows, input)?))
    } else {
        None
    };
    let values: ArrayRef = match kind {
        FieldType::Bool => Arc::new(BooleanArray::new(bits(rows, input)?, nulls)),
        FieldType::I32 => primitive::<Int32Type>(rows, nulls, input)?,
        FieldType::I64 => primitive::<Int64Type>(rows, nulls, input)?,
        FieldType::U64 => primitive::<UInt64Type>(rows, nulls, input)?,
        FieldType::F32 => primitive::<Float32Type>(rows, nulls, input)?,
        FieldType::F64 => primitive::<Float64Type>(rows, nulls, input)?,
        FieldType::Timestamp => primitive::<TimestampNanosecondType>(rows, nulls, input)?,
        FieldType::String => texts::<Utf8Type>(rows, nulls, input)?,
        FieldType::Bytes => texts::<BinaryType>(rows, nulls, input)?,
    };
    Ok((id, values))
}

fn primitive<T: ArrowPrimitiveType>(
    rows: usize,
    nulls: Option<NullBuffer>,
    input: &mut RecordInput<'_>,
) -> Result<ArrayRef> {
    Ok(Arc::new(PrimitiveArray::<T>::new(
        values(rows, input)?,
        nulls,
    )))
}

fn texts<T: ByteArrayType<Offset = i32>>(
    rows: usize,
    nulls: Option<NullBuffer>,
    input: &mut RecordInput<'_>,
) -> Result<ArrayRef> {
    let ends = input.take(rows.checked_mul(size_of::<i32>()).ok_or(ReadError::Short)?)?;
    let mut offsets = Vec::with_capacity(rows + 1);
    offsets.push(0_i32);
    let mut last = 0;
    for end in ends.as_chunks::<4>().0 {
        let end = i32::from_le_bytes(*end);
        if end < last {
            return Err(RecordError("the ends of values go back"));
        }
        last = end;
        offsets.push(end);
    }
    let bytes = Buffer::from(input.take(last as usize)?);
    let array = GenericByteArray::<T>::try_new(OffsetBuffer::new(offsets.into()), bytes, nulls);
    Ok(Arc::new(
        array.map_err(|_| RecordError("text is not UTF-8"))?,
    ))
}

/// The rest of a record, not yet decoded.
type RecordInput<'a> = BoundedReader<'a, RecordError>;

fn values<T: ArrowNativeType>(
    count: usize,
    input: &mut RecordInput<'_>,
) -> Result<ScalarBuffer<T>> {
    let bytes = input.take(count.checked_mul(size_of::<T>()).ok_or(ReadError::Short)?)?;
    Ok(ScalarBuffer::new(Buffer::from(bytes), 0, count))
}

fn bits(count: usize, input: &mut RecordInput<'_>) -> Result<BooleanBuffer> {
    let bytes = input.take(count.div_ceil(8))?;
    Ok(BooleanBuffer::new(Buffer::from(bytes), 0, count))
}
