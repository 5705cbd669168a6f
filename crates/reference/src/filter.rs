//! Conditions on columns, as SQLite evaluates them.

use crate::definition::{ReferenceColumn, ReferenceTable, ReferenceType};
use crate::error::{ReferenceError, Result};
use crate::input;
use crate::rows::column_at;
use crate::schema::comparable;
use crate::value::{Cell, cell, normalized};
use arrow::array::{Array, ArrayRef, AsArray};
use std::collections::HashSet;

/// Longer lists are not bound to the statement, but looked up for each row.
const LISTED_MAX: usize = 1000;
/// SQLite takes 32,766 parameters in all; two are the page's.
const PARAMETERS_MAX: usize = 30_000;

/// How a column is compared. A comparison with NULL holds for no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterOp {
    /// `=`
    Eq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
    /// `IN`
    In,
    /// `IS NULL`
    IsNull,
    /// `IS NOT NULL`
    IsNotNull,
}

/// A condition on a column. Values are ordered as in PostgreSQL with the collation `C`: NaN is greater than all
/// other numbers and equal to itself, and zero has no sign.
#[derive(Clone, Debug)]
pub struct ColumnFilter {
    /// The position of the column.
    pub column: usize,
    /// How it is compared.
    pub op: FilterOp,
    /// With what: one value, those of `IN`, or nothing for `IS NULL` and `IS NOT NULL`; of the column's type.
    pub values: ArrayRef,
}

impl ColumnFilter {
    /// Whether few rows are likely.
    pub(crate) fn is_point(&self) -> bool {
        self.op == FilterOp::Eq
    }
}

/// What filters become.
#[derive(Default)]
pub(crate) struct Conditions {
    /// Conditions in SQL; their parameters begin with the third.
    pub(crate) sql: Vec<String>,
    pub(crate) cells: Vec<Cell<'static>>,
    /// Lists in which values must be.
    pub(crate) lists: Vec<List>,
    /// Whether no row can match.
    pub(crate) is_never: bool,
}

/// A long list of values.
pub(crate) struct List {
    pub(crate) expression: String,
    integers: HashSet<i64>,
    reals: HashSet<u64>,
    others: HashSet<Vec<u8>>,
}

impl List {
    fn new(expression: String, cells: &[Cell<'_>]) -> Self {
        let mut list = Self {
            expression,
            integers: HashSet::new(),
            reals: HashSet::new(),
            others: HashSet::new(),
        };
        for cell in cells {
            match cell {
                Cell::Null => {}
                Cell::Integer(number) => drop(list.integers.insert(*number)),
                Cell::Real(number) => drop(list.reals.insert(real_bits(*number))),
                Cell::Text(text) => drop(list.others.insert(text.as_bytes().to_vec())),
                _ => drop(
                    list.others
                        .insert(cell.bytes().unwrap_or_default().to_vec()),
                ),
            }
        }
        list
    }

    pub(crate) fn contains(&self, cell: &Cell<'_>) -> bool {
        match cell {
            Cell::Null => false,
            Cell::Integer(number) => self.integers.contains(number),
            Cell::Real(number) => self.reals.contains(&real_bits(*number)),
            Cell::Text(text) => self.others.contains(text.as_bytes()),
            _ => cell
                .bytes()
                .is_some_and(|bytes| self.others.contains(bytes)),
        }
    }
}

/// The bits of a number, the same for both zeros.
fn real_bits(number: f64) -> u64 {
    if number == 0.0 { 0 } else { number.to_bits() }
}

/// The conditions of filters.
pub(crate) fn conditions(table: &ReferenceTable, filters: &[ColumnFilter]) -> Result<Conditions> {
    let mut conditions = Conditions::default();
    for filter in filters {
        let column = column_at(table, filter.column)?;
        let expression = comparable(column, "");
        let comparison = match filter.op {
            FilterOp::IsNull => {
                conditions.sql.push(format!("{expression} IS NULL"));
                continue;
            }
            FilterOp::IsNotNull => {
                conditions.sql.push(format!("{expression} IS NOT NULL"));
                continue;
            }
            FilterOp::In => {
                conditions.add_list(column, expression, &filter.values)?;
                continue;
            }
            FilterOp::Eq => "=",
            FilterOp::Lt => "<",
            FilterOp::LtEq => "<=",
            FilterOp::Gt => ">",
            FilterOp::GtEq => ">=",
        };
        if filter.values.len() != 1 {
            return Err(ReferenceError::new("XX000", "a comparison needs one value"));
        }
        let values = normalized(column, &filter.values)?;
        match compared(column, &values, 0)? {
            Cell::Null => conditions.is_never = true,
            cell => {
                conditions.cells.push(cell);
                let number = conditions.cells.len() + 2;
                conditions
                    .sql
                    .push(format!("{expression} {comparison} ?{number}"));
            }
        }
    }
    Ok(conditions)
}

impl Conditions {
    fn add_list(
        &mut self,
        column: &ReferenceColumn,
        expression: String,
        values: &ArrayRef,
    ) -> Result<()> {
        let values = normalized(column, values)?;
        let mut cells = Vec::with_capacity(values.len());
        for row in 0..values.len() {
            let cell = compared(column, &values, row)?;
            if !cell.is_null() {
                cells.push(cell);
            }
        }
        let Some(some) = cells.last().cloned() else {
            self.is_never = true;
            return Ok(());
        };
        if cells.len() > LISTED_MAX || self.cells.len() + LISTED_MAX > PARAMETERS_MAX {
            self.lists.push(List::new(expression, &cells));
            return Ok(());
        }
        // Few lengths of lists are few statements in the cache.
        cells.resize(cells.len().next_power_of_two(), some);
        let start = self.cells.len() + 3;
        let numbers: Vec<_> = (start..start + cells.len())
            .map(|number| format!("?{number}"))
            .collect();
        self.sql
            .push(format!("{expression} IN ({})", numbers.join(", ")));
        self.cells.append(&mut cells);
        Ok(())
    }
}

/// A value to compare a column with.
fn compared(column: &ReferenceColumn, values: &ArrayRef, row: usize) -> Result<Cell<'static>> {
    if values.is_null(row) {
        return Ok(Cell::Null);
    }
    let kind = column.kind;
    let cell = match kind {
        ReferenceType::Varchar(_) | ReferenceType::Char(_) => Cell::Text(input::compared_text(
            kind,
            values.as_string::<i32>().value(row),
        )?),
        _ => cell(kind, values, row)?,
    };
    Ok(cell.comparable(kind).into_owned())
}
