//! Columns of tables and of answers: their types, and cells out of text.

use crate::time::parse_rfc3339;
use anyhow::{Context, Result};
use marigram_lab::data::{FieldKind, Table, Tag, TagKind};
use marigram_lab::question::{Ask, Cell, Question, Select, Selection};

/// The type of a column of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CellKind {
    /// Text, or a tag.
    Text,
    /// A time.
    Time,
    /// A number or a boolean.
    Number,
}

/// The columns of the answer to `select`, in order.
#[must_use]
pub fn kinds(table: &Table, select: &Select) -> Vec<CellKind> {
    let field = |index: &usize| match table.fields[*index].kind {
        FieldKind::Text => CellKind::Text,
        _ => CellKind::Number,
    };
    match &select.what {
        Selection::Rows(fields) | Selection::Last(fields) => [CellKind::Text, CellKind::Time]
            .into_iter()
            .chain(fields.iter().map(field))
            .collect(),
        Selection::Aggregates(aggregates) => {
            let mut all = vec![CellKind::Text; select.by.len()];
            all.extend(select.bucket_ns.map(|_| CellKind::Time));
            all.extend(aggregates.iter().map(|_| CellKind::Number));
            all
        }
    }
}

/// The number of tags at the beginning of each row of the answer.
#[must_use]
pub fn leading_tags(question: &Question) -> usize {
    match &question.ask {
        Ask::Sql(_) => 0,
        Ask::Select(select) => match select.what {
            Selection::Rows(_) | Selection::Last(_) => 1,
            Selection::Aggregates(_) => select.by.len(),
        },
    }
}

/// A tag that came as a number, as text; other cells as they are.
#[must_use]
pub fn as_tag(cell: Cell) -> Cell {
    match cell {
        Cell::Number(number) => Cell::Text(number.to_string()),
        other => other,
    }
}

/// The type of the column in which an integer or text tag is stored at least cost: 32 bits where all
/// values fit.
#[must_use]
pub fn tag_type(table: &Table, tag: usize) -> FieldKind {
    match table.tags[tag].kind {
        TagKind::Text => FieldKind::Text,
        TagKind::Integer if is_i32(table, tag) => FieldKind::I32,
        TagKind::Integer => FieldKind::I64,
    }
}

/// The number that the text `value` of an integer tag stands for.
pub fn tag_number(tag: &Tag, value: &str) -> Result<i64> {
    let number = value.parse();
    number.with_context(|| format!("{} is {value:?}, no integer", tag.name))
}

/// Whether every value of the integer tag `tag` fits 32 bits.
fn is_i32(table: &Table, tag: usize) -> bool {
    let mut values = table
        .series
        .iter()
        .filter_map(|values| values[tag].as_ref());
    values.all(|value| value.parse::<i32>().is_ok())
}

/// Whether some device has no tag `tag`.
#[must_use]
pub fn is_optional(table: &Table, tag: usize) -> bool {
    table.series.iter().any(|values| values[tag].is_none())
}

/// Parses a cell from a database's text.
pub fn parse(text: &str, kind: CellKind) -> Result<Cell> {
    Ok(match kind {
        CellKind::Text => Cell::Text(text.to_owned()),
        CellKind::Time => {
            let ns = parse_rfc3339(text).with_context(|| format!("a time: {text:?}"))?;
            Cell::Time(ns)
        }
        CellKind::Number => match text {
            "true" => Cell::Number(1.0),
            "false" => Cell::Number(0.0),
            _ => Cell::Number(
                text.parse()
                    .with_context(|| format!("a number: {text:?}"))?,
            ),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_numbers() {
        assert_eq!(
            parse("true", CellKind::Number).expect("true"),
            Cell::Number(1.0)
        );
        assert!(parse("maybe", CellKind::Number).is_err());
    }
}
