//! Cells that are written in a way of their own: truth values, bytes, and whole numbers in another form
//! than theirs.

use crate::import::csv_plan::CsvColumn;
use marigram_model::FieldType;
use marigram_tabular::cell::{read_bool, read_f64, read_integer};
use std::str::FromStr;

/// A whole number, also as `5.0` or `1e3`; a number with a fraction, or beyond the type, is none. Cells
/// of an export are as exports write them.
pub(crate) fn whole<T: FromStr + TryFrom<i128>>(
    cell: &str,
    column: &CsvColumn,
    exact: bool,
) -> Option<T> {
    if exact {
        return cell.parse().ok();
    }
    T::try_from(read_integer(cell, column.decimal)?).ok()
}

/// Why a number is no value of a type of whole numbers; `None` if the cell is no number at all.
pub(crate) fn not_whole(cell: &str, column: &CsvColumn, kind: FieldType) -> Option<String> {
    if !matches!(kind, FieldType::I32 | FieldType::I64 | FieldType::U64) {
        return None;
    }
    if read_integer(cell, column.decimal).is_some() {
        return Some(format!("is beyond {kind}"));
    }
    let number = read_f64(cell, column.decimal)?;
    Some(if number.fract() == 0.0 {
        format!("is beyond {kind}")
    } else {
        format!("has a fraction, which {kind} would lose")
    })
}

/// In a column that is BOOLEAN in the table, 0 and 1 are truth values as well.
pub(crate) fn truth(cell: &str) -> Option<bool> {
    match cell {
        "0" => Some(false),
        "1" => Some(true),
        other => read_bool(other),
    }
}

/// Bytes, written as `\x` and two hexadecimal digits for each byte.
pub(crate) fn bytes(cell: &str) -> Option<Vec<u8>> {
    let digits = cell.strip_prefix("\\x")?.as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let text = std::str::from_utf8(pair)
            .ok()
            .filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(text, 16).ok()
    });
    pairs.collect()
}
