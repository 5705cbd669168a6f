//! Cells that are written in a way of their own: truth values, bytes, tags of a type, and whole numbers in
//! another form than theirs.

use super::CsvValue;
use crate::import::ReadPlanOptions;
use crate::import::csv_plan::{CsvColumn, CsvPlan};
use marigram_model::{FieldType, TagType};
use marigram_tabular::cell::{read_f64, read_integer};
use marigram_tabular::layout::ColumnLayout;
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

/// In a column that is BOOLEAN in the table, the words are those of PostgreSQL, in any case, and so are 0 and
/// 1.
pub(crate) fn truth(cell: &str) -> Option<bool> {
    let is = |words: [&str; 5]| words.iter().any(|word| word.eq_ignore_ascii_case(cell));
    if is(["true", "t", "yes", "y", "on"]) || cell == "1" {
        return Some(true);
    }
    (is(["false", "f", "no", "n", "off"]) || cell == "0").then_some(false)
}

/// The type that each column has as a tag of an existing table.
pub(super) fn tag_types(reading: &ReadPlanOptions, plan: &CsvPlan) -> Vec<TagType> {
    let known = reading.known.as_ref().map(ColumnLayout::tag_types);
    let known = known.and_then(Result::ok).unwrap_or_default();
    let types = plan.columns.iter().map(|column| {
        let kind = known.iter().find(|(name, _)| *name == column.name);
        kind.map_or(TagType::String, |(_, kind)| *kind)
    });
    types.collect()
}

/// The value of a tag. One that is a number in the table takes whole numbers in any notation, `5.0` and `05` as
/// well, because they name the series 5.
pub(super) fn tag_value<'a>(
    cell: &'a str,
    column: &CsvColumn,
    kind: TagType,
) -> Result<CsvValue<'a>, String> {
    let text = cell.trim();
    let (value, field) = match kind {
        TagType::String => return Ok(CsvValue::Text(cell)),
        TagType::I64 => (
            whole(text, column, false).map(CsvValue::I64),
            FieldType::I64,
        ),
        TagType::Bool => (truth(text).map(CsvValue::Bool), FieldType::Bool),
    };
    value.ok_or_else(|| {
        let reason = not_whole(text, column, field).unwrap_or_else(|| format!("is not {kind}"));
        format!("column '{}': '{text}' {reason}", column.name)
    })
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
