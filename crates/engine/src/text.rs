//! Counts the bytes of text in rows.
//!
//! A text may have a mebibyte, and an Arrow array holds less than 2 GiB of texts because its
//! offsets have 32 bits. So code that combines rows counts their texts as well as the rows. Columns
//! of other types are ignored: a table without texts only pays for checking its column types.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use std::ops::Range;

/// Bytes of text from which on a chunk accepts no more rows.
pub(crate) const CHUNK_TEXT_BYTES: usize = 256 << 20;
/// Approximate limit on the text bytes of rows that are combined for a reader or a segment.
pub(crate) const BATCH_TEXT_BYTES: usize = 64 << 20;

/// The offsets of the texts in a column of strings or bytes; `None` for other columns.
pub(crate) fn offsets(values: &dyn Array) -> Option<&[i32]> {
    match values.data_type() {
        DataType::Utf8 => Some(values.as_string::<i32>().offsets()),
        DataType::Binary => Some(values.as_binary::<i32>().offsets()),
        _ => None,
    }
}

/// Bytes of text in `rows` of a column.
pub(crate) fn bytes_in(values: &dyn Array, rows: Range<usize>) -> usize {
    offsets(values).map_or(0, |offsets| {
        (offsets[rows.end] - offsets[rows.start]) as usize
    })
}

/// Bytes of text in all of the given columns.
pub(crate) fn bytes_of<'a>(columns: impl IntoIterator<Item = &'a ArrayRef>) -> usize {
    let columns = columns.into_iter();
    columns
        .map(|values| bytes_in(values, 0..values.len()))
        .sum()
}

/// The end of the longest prefix of `rows` with at most `bytes` of text in these columns; at least
/// one row if there is one.
pub(crate) fn end_within<'a>(
    columns: impl IntoIterator<Item = &'a ArrayRef>,
    rows: Range<usize>,
    bytes: usize,
) -> usize {
    let texts: Vec<&[i32]> = columns
        .into_iter()
        .filter_map(|values| offsets(values))
        .collect();
    if texts.is_empty() || rows.is_empty() {
        return rows.end;
    }
    let until = |end: usize| -> usize {
        texts
            .iter()
            .map(|offsets| (offsets[end] - offsets[rows.start]) as usize)
            .sum()
    };
    if until(rows.end) <= bytes {
        return rows.end;
    }
    let (mut fits, mut over) = (rows.start + 1, rows.end);
    while fits + 1 < over {
        let middle = fits.midpoint(over);
        if until(middle) <= bytes {
            fits = middle;
        } else {
            over = middle;
        }
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BinaryArray, Int64Array, StringArray};
    use marigram_model::Limits;
    use std::sync::Arc;

    #[test]
    fn texts_are_counted_by_row_whatever_the_array_is_a_slice_of() {
        let words: ArrayRef = Arc::new(StringArray::from(vec![
            Some("a"),
            None,
            Some("four"),
            Some(""),
        ]));
        let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&b"xy"[..], b"", b"z", b"abc"]));
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
        assert_eq!(bytes_of([&words, &bytes, &numbers]), 5 + 6);
        assert_eq!(bytes_in(&words.slice(1, 2), 1..2), 4);
        assert_eq!(bytes_in(&numbers, 0..4), 0);
        let columns = [words, bytes, numbers];
        assert_eq!(end_within(&columns, 0..4, 100), 4);
        assert_eq!(
            end_within(&columns, 0..4, 7),
            2,
            "three rows have eight bytes"
        );
        assert_eq!(end_within(&columns, 0..4, 8), 3);
        assert_eq!(end_within(&columns, 2..4, 0), 3, "at least one row");
        assert_eq!(
            end_within(&columns[2..], 1..4, 0),
            4,
            "numbers are not bounded"
        );
        assert_eq!(end_within(&columns, 4..4, 0), 4);
    }

    /// Combined rows have at most the limit, plus what one more row or part adds. The total must be
    /// far below what 32-bit offsets can address.
    #[test]
    fn the_bounds_keep_arrays_far_below_two_gibibytes() {
        let offsets_max = i32::MAX as usize;
        // A batch at its limit, and then the texts of one row.
        assert!(BATCH_TEXT_BYTES + Limits::VALUE_BYTES_MAX < offsets_max / 2);
        // A chunk, written as one part that is cut at the limit.
        assert!(CHUNK_TEXT_BYTES + Limits::VALUE_BYTES_MAX < offsets_max / 2);
        // The rows of a page, as many as a batch at the limit has.
        const { assert!(BATCH_TEXT_BYTES <= CHUNK_TEXT_BYTES) };
    }
}
