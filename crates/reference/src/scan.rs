//! Reads rows: pages in the order of row ids, and rows by their ids.

use crate::definition::ReferenceTable;
use crate::error::{ReferenceError, Result};
use crate::filter::{ColumnFilter, Conditions, conditions};
use crate::rows::{RowsBuilder, column_at};
use crate::value::Cell;
use arrow::array::RecordBatch;
use rusqlite::{Connection, Row};
use std::fmt::Write;

/// A page ends early after this many bytes.
const PAGE_BYTES_MAX: usize = 32 << 20;
/// More bytes than this in one batch are refused: Arrow's offsets have 31 bits.
const BATCH_BYTES_MAX: usize = 1 << 30;
/// Room for this many rows is made before any is read.
const ROWS_EXPECTED_MAX: usize = 1024;

/// Which rows to read.
#[derive(Clone, Debug)]
pub struct ReferenceScanRequest {
    /// Positions of the columns to read.
    pub columns: Vec<usize>,
    /// Whether a column `rowid` follows them.
    pub with_row_id: bool,
    /// Conditions, all of which must hold.
    pub filters: Vec<ColumnFilter>,
    /// Rows with greater ids than this; `i64::MIN` or 0 for the first page.
    pub after: i64,
    /// At most this many rows.
    pub rows_max: usize,
}

/// Rows in the order of their ids.
#[derive(Clone, Debug)]
pub struct ScanPage {
    /// The rows.
    pub rows: RecordBatch,
    /// Where the next page begins (its `after`); `None` if there are no more rows.
    pub last: Option<i64>,
}

/// Reads a page.
pub(crate) fn scan(
    connection: &Connection,
    table: &ReferenceTable,
    request: &ReferenceScanRequest,
) -> Result<ScanPage> {
    let expected = request.rows_max.min(ROWS_EXPECTED_MAX);
    let is_point = request.filters.iter().any(ColumnFilter::is_point);
    let expected = if is_point { expected.min(4) } else { expected };
    let mut builder = RowsBuilder::new(table, &request.columns, request.with_row_id, expected)?;
    let conditions = conditions(table, &request.filters)?;
    let mut last = None;
    if request.rows_max > 0 && !conditions.is_never {
        last = read_page(connection, table, request, &conditions, &mut builder)?;
    }
    Ok(ScanPage {
        rows: builder.finish()?,
        last,
    })
}

fn read_page(
    connection: &Connection,
    table: &ReferenceTable,
    request: &ReferenceScanRequest,
    conditions: &Conditions,
    builder: &mut RowsBuilder<'_>,
) -> Result<Option<i64>> {
    let sql = page_sql(table, request, conditions)?;
    let mut statement = connection.prepare_cached(&sql)?;
    statement.raw_bind_parameter(1, request.after)?;
    // Rows that the lists leave out are not counted, so there is no limit with lists.
    let limit = if conditions.lists.is_empty() {
        request.rows_max as i64
    } else {
        -1
    };
    statement.raw_bind_parameter(2, limit)?;
    for (number, cell) in conditions.cells.iter().enumerate() {
        statement.raw_bind_parameter(number + 3, cell)?;
    }
    let lists_start = request.columns.len() + 1;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        if !is_listed(row, conditions, lists_start)? {
            continue;
        }
        let row_id = row.get(request.columns.len())?;
        builder.push(row, row_id)?;
        if builder.rows() >= request.rows_max || builder.bytes > PAGE_BYTES_MAX {
            return Ok(Some(row_id));
        }
    }
    Ok(None)
}

/// `SELECT` of the columns, the row id, and the columns of the lists.
fn page_sql(
    table: &ReferenceTable,
    request: &ReferenceScanRequest,
    conditions: &Conditions,
) -> Result<String> {
    let mut sql = String::with_capacity(128);
    sql.push_str("SELECT ");
    for position in &request.columns {
        let _ = write!(sql, "c{}, ", column_at(table, *position)?.id);
    }
    sql.push('r');
    for list in &conditions.lists {
        sql.push_str(", ");
        sql.push_str(&list.expression);
    }
    let _ = write!(sql, " FROM t{} WHERE r > ?1", table.id);
    for condition in &conditions.sql {
        sql.push_str(" AND ");
        sql.push_str(condition);
    }
    sql.push_str(" ORDER BY r LIMIT ?2");
    Ok(sql)
}

fn is_listed(row: &Row<'_>, conditions: &Conditions, start: usize) -> Result<bool> {
    for (number, list) in conditions.lists.iter().enumerate() {
        if !list.contains(&Cell::stored(row.get_ref(start + number)?)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads rows by their ids, in the order of the ids, with all columns.
pub(crate) fn fetch(
    connection: &Connection,
    table: &ReferenceTable,
    row_ids: &[i64],
) -> Result<RecordBatch> {
    let positions: Vec<_> = (0..table.columns.len()).collect();
    let expected = row_ids.len().min(ROWS_EXPECTED_MAX);
    let mut builder = RowsBuilder::new(table, &positions, false, expected)?;
    let mut sql = "SELECT ".to_owned();
    for column in &table.columns {
        let _ = write!(sql, "c{}, ", column.id);
    }
    let _ = write!(sql, "r FROM t{} WHERE r = ?1", table.id);
    let mut statement = connection.prepare_cached(&sql)?;
    for row_id in row_ids {
        let mut rows = statement.query([row_id])?;
        let Some(row) = rows.next()? else {
            let message = format!("relation \"{}\" has no row {row_id}", table.name);
            return Err(ReferenceError::new("XX000", message));
        };
        builder.push(row, *row_id)?;
        if builder.bytes > BATCH_BYTES_MAX {
            return Err(ReferenceError::new(
                "54000",
                "the rows take more than 1 GiB",
            ));
        }
    }
    builder.finish()
}
