//! Converts the values of a column to another type, where they convert exactly.

use crate::definition::{ReferenceTable, ReferenceType};
use crate::error::{ReferenceError, Result};
use crate::input;
use crate::scan::{ReferenceScanRequest, scan};
use crate::text;
use crate::value::{Cell, cell};
use arrow::array::{Array, ArrayRef};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use rusqlite::Connection;
use std::borrow::Cow;

/// Rows that are converted at a time.
const ROWS: usize = 4096;

/// Converts a column of a table, whose definition still has the old type.
pub(crate) fn convert(
    connection: &Connection,
    table: &ReferenceTable,
    name: &str,
    kind: ReferenceType,
) -> Result<()> {
    let position = table.columns.iter().position(|column| column.name == name);
    let Some((position, column)) =
        position.and_then(|position| table.columns.get(position).map(|column| (position, column)))
    else {
        return Err(ReferenceError::no_column(name, &table.name));
    };
    let from = column.kind;
    if from == kind {
        return Ok(());
    }
    if !is_convertible(from, kind) {
        let message = format!("column \"{name}\" cannot be cast automatically to type {kind}");
        return Err(ReferenceError::new("42804", message));
    }
    let sql = format!("UPDATE t{} SET c{} = ?1 WHERE r = ?2", table.id, column.id);
    let mut request = ReferenceScanRequest {
        columns: vec![position],
        with_row_id: true,
        filters: Vec::new(),
        after: i64::MIN,
        rows_max: ROWS,
    };
    loop {
        let page = scan(connection, table, &request)?;
        let mut statement = connection.prepare_cached(&sql)?;
        let ids = cell_ids(&page.rows);
        let old = page.rows.column(0);
        let new = if is_text(kind) {
            None
        } else {
            Some(cast(old, from, kind)?)
        };
        for (row, id) in ids.iter().enumerate() {
            let value = match &new {
                Some(new) => cell(kind, new, row)?,
                None => text_cell(&cell(from, old, row)?, from, kind)?,
            };
            statement.raw_bind_parameter(1, value)?;
            statement.raw_bind_parameter(2, id)?;
            statement.raw_execute()?;
        }
        match page.last {
            Some(last) => request.after = last,
            None => return Ok(()),
        }
    }
}

/// The row ids of a page, which stand behind its column.
fn cell_ids(rows: &arrow::array::RecordBatch) -> Vec<i64> {
    use arrow::array::AsArray;
    let ids = rows
        .columns()
        .get(1)
        .and_then(|ids| ids.as_primitive_opt::<arrow::datatypes::Int64Type>());
    ids.map_or_else(Vec::new, |ids| ids.values().to_vec())
}

fn is_text(kind: ReferenceType) -> bool {
    matches!(
        kind,
        ReferenceType::Text | ReferenceType::Varchar(_) | ReferenceType::Char(_)
    )
}

fn is_number(kind: ReferenceType) -> bool {
    use ReferenceType as T;
    matches!(
        kind,
        T::Int2 | T::Int4 | T::Int8 | T::Float4 | T::Float8 | T::Numeric { .. }
    )
}

/// Whether PostgreSQL converts a type to another without being told how.
fn is_convertible(from: ReferenceType, to: ReferenceType) -> bool {
    use ReferenceType as T;
    is_text(to)
        || (is_number(from) && is_number(to))
        || matches!(
            (from, to),
            (T::Date, T::Timestamp | T::TimestampTz)
                | (T::Timestamp, T::TimestampTz | T::Date)
                | (T::TimestampTz, T::Timestamp | T::Date)
                | (T::Json, T::Jsonb)
                | (T::Jsonb, T::Json)
        )
}

fn text_cell<'a>(old: &Cell<'_>, from: ReferenceType, to: ReferenceType) -> Result<Cell<'a>> {
    if old.is_null() {
        return Ok(Cell::Null);
    }
    let mut value = text::text(from, old);
    match from {
        // As PostgreSQL's casts do: `boolean` is spelled out, and the filling of `char(n)` goes.
        ReferenceType::Bool => value = (if value == "t" { "true" } else { "false" }).into(),
        ReferenceType::Char(_) => value.truncate(value.trim_end_matches(' ').len()),
        _ => {}
    }
    Ok(Cell::Text(Cow::Owned(
        input::text(to, &value)?.into_owned(),
    )))
}

/// Casts values, and back, to see that nothing is lost.
fn cast(old: &ArrayRef, from: ReferenceType, to: ReferenceType) -> Result<ArrayRef> {
    let (source, target) = (from.data_type(), to.data_type());
    if source == target {
        return Ok(old.clone());
    }
    let out_of_range = || ReferenceError::new("22003", format!("{to} out of range"));
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let via = |array: &ArrayRef, target: &DataType| cast_with_options(array, target, &options);
    let new = via(old, &target).map_err(|_| out_of_range())?;
    let back = via(&new, &source).map_err(|_| out_of_range())?;
    let same = not_distinct(old, &back)?;
    if same.true_count() == old.len() {
        return Ok(new);
    }
    let first = (0..old.len()).find(|row| !same.value(*row)).unwrap_or(0);
    let value = text::text(from, &cell(from, old, first)?);
    let message = format!("value \"{value}\" cannot be converted to type {to} exactly");
    Err(ReferenceError::new("22003", message))
}
