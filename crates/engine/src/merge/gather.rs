//! Assembles a column of a batch from slices of blocks.
//!
//! Numbers are copied slice by slice into one buffer of the right size; a single slice is passed on
//! without a copy; texts, bytes and truth values go through Arrow's kernels.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt64Type,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_buffer::{NullBufferBuilder, ScalarBuffer};
use marigram_model::FieldType;
use std::sync::Arc;

/// Rows of one block; `block` is [`NO_BLOCK`] for rows without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockSlice {
    pub(super) block: u32,
    pub(super) start: u32,
    pub(super) len: u32,
}

/// Stands for rows without a value.
pub(super) const NO_BLOCK: u32 = u32::MAX;

/// Parts shorter than this on average are gathered row by row.
const SHORT_ROWS: usize = 8;

/// Adds rows to a list of parts; rows that continue the last part extend it.
pub(super) fn extend(parts: &mut Vec<BlockSlice>, part: BlockSlice) {
    if let Some(last) = parts.last_mut() {
        let goes_on = part.block == NO_BLOCK || last.start + last.len == part.start;
        if last.block == part.block && goes_on {
            last.len += part.len;
            return;
        }
    }
    parts.push(part);
}

/// The times of `parts`; `times` returns those of a block.
pub(super) fn times<'a>(
    parts: &[BlockSlice],
    rows: usize,
    times: impl Fn(u32) -> &'a ScalarBuffer<i64>,
) -> ScalarBuffer<i64> {
    if let [part] = parts {
        return times(part.block).slice(part.start as usize, part.len as usize);
    }
    let mut all = Vec::with_capacity(rows);
    for part in parts {
        let times = &times(part.block)[part.start as usize..][..part.len as usize];
        append(&mut all, times);
    }
    all.into()
}

/// The values of `parts`; `column` returns the column of a block, if it has one.
pub(super) fn column<'a>(
    kind: FieldType,
    parts: &[BlockSlice],
    rows: usize,
    column: impl Fn(u32) -> Option<&'a ArrayRef>,
) -> ArrayRef {
    let column = |part: &BlockSlice| {
        if part.block == NO_BLOCK {
            None
        } else {
            column(part.block)
        }
    };
    if let [part] = parts
        && let Some(array) = column(part)
    {
        let whole = part.start == 0 && part.len as usize == array.len();
        return if whole {
            array.clone()
        } else {
            array.slice(part.start as usize, part.len as usize)
        };
    }
    if parts.iter().all(|part| column(part).is_none()) {
        return kind.nulls(rows);
    }
    match kind {
        FieldType::I32 => numbers::<Int32Type>(parts, rows, column),
        FieldType::I64 => numbers::<Int64Type>(parts, rows, column),
        FieldType::U64 => numbers::<UInt64Type>(parts, rows, column),
        FieldType::F32 => numbers::<Float32Type>(parts, rows, column),
        FieldType::F64 => numbers::<Float64Type>(parts, rows, column),
        FieldType::Timestamp => numbers::<TimestampNanosecondType>(parts, rows, column),
        FieldType::Bool | FieldType::String | FieldType::Bytes => {
            if rows < parts.len() * SHORT_ROWS {
                row_by_row(kind, parts, rows, column)
            } else {
                slice_by_slice(kind, parts, column)
            }
        }
    }
}

fn numbers<'a, T: ArrowPrimitiveType>(
    parts: &[BlockSlice],
    rows: usize,
    column: impl Fn(&BlockSlice) -> Option<&'a ArrayRef>,
) -> ArrayRef {
    // Each block's array is looked up only once: there are many more parts than blocks.
    let mut blocks: Vec<Option<&PrimitiveArray<T>>> = Vec::new();
    let mut has_nulls = false;
    for part in parts {
        let at = part.block as usize;
        if part.block == NO_BLOCK {
            has_nulls = true;
        } else if blocks.get(at).is_none_or(Option::is_none) {
            blocks.resize(blocks.len().max(at + 1), None);
            blocks[at] = column(part).map(AsArray::as_primitive::<T>);
            has_nulls |= blocks[at].is_none_or(|array| array.nulls().is_some());
        }
    }
    let array = |part: &BlockSlice| blocks.get(part.block as usize).copied().flatten();
    let mut values: Vec<T::Native> = Vec::with_capacity(rows);
    for part in parts {
        let (start, len) = (part.start as usize, part.len as usize);
        match array(part) {
            Some(array) => append(&mut values, &array.values()[start..start + len]),
            None => values.resize(values.len() + len, T::Native::default()),
        }
    }
    let nulls = has_nulls.then(|| {
        let mut nulls = NullBufferBuilder::new(rows);
        for part in parts {
            let (start, len) = (part.start as usize, part.len as usize);
            match array(part).map(PrimitiveArray::nulls) {
                None => nulls.append_n_nulls(len),
                Some(None) => nulls.append_n_non_nulls(len),
                Some(Some(valid)) if len == 1 => nulls.append(valid.is_valid(start)),
                Some(Some(valid)) => nulls.append_buffer(&valid.slice(start, len)),
            }
        }
        nulls
    });
    let nulls = nulls.and_then(|mut nulls| nulls.finish());
    Arc::new(PrimitiveArray::<T>::new(values.into(), nulls))
}

/// Appends values, usually few: calling `memcpy` would take longer than copying them.
fn append<T: Copy>(all: &mut Vec<T>, values: &[T]) {
    if values.len() < SHORT_ROWS {
        for value in values {
            all.push(*value);
        }
    } else {
        all.extend_from_slice(values);
    }
}

fn slice_by_slice<'a>(
    kind: FieldType,
    parts: &[BlockSlice],
    column: impl Fn(&BlockSlice) -> Option<&'a ArrayRef>,
) -> ArrayRef {
    let slices: Vec<ArrayRef> = parts
        .iter()
        .map(|part| match column(part) {
            Some(array) => array.slice(part.start as usize, part.len as usize),
            None => kind.nulls(part.len as usize),
        })
        .collect();
    let slices: Vec<&dyn Array> = slices.iter().map(AsRef::as_ref).collect();
    arrow_select::concat::concat(&slices).expect("blocks hold arrays of the column's type")
}

fn row_by_row<'a>(
    kind: FieldType,
    parts: &[BlockSlice],
    rows: usize,
    column: impl Fn(&BlockSlice) -> Option<&'a ArrayRef>,
) -> ArrayRef {
    let null = kind.nulls(1);
    let mut arrays: Vec<&dyn Array> = vec![&null];
    let mut places: Vec<(u32, usize)> = vec![(NO_BLOCK, 0)];
    let mut picks = Vec::with_capacity(rows);
    for part in parts {
        let known = places
            .iter()
            .rev()
            .take(16)
            .find(|place| place.0 == part.block);
        let at = match (known, column(part)) {
            (Some(place), _) => place.1,
            (None, None) => 0,
            (None, Some(array)) => {
                arrays.push(array);
                places.push((part.block, arrays.len() - 1));
                arrays.len() - 1
            }
        };
        let row = |row: u32| if at == 0 { (0, 0) } else { (at, row as usize) };
        picks.extend((part.start..part.start + part.len).map(row));
    }
    arrow_select::interleave::interleave(&arrays, &picks)
        .expect("blocks hold arrays of the column's type")
}
