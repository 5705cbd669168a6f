//! Tables: columns of values with a group key.
//!
//! Invariant: a column of the group key has the same value in every row (`FluxCells::Same`), so a
//! table without rows has its key, too.

use super::{FluxKind, FluxValue};
use marigram_influx::Budget;
use marigram_sql::SqlResult;
use std::cmp::Ordering;
use std::sync::Arc;

/// The values of a column.
#[derive(Clone, Debug)]
pub(crate) enum FluxCells {
    /// The same value in every row.
    Same(FluxValue),
    /// A value a row.
    Each(Vec<FluxValue>),
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct FluxColumn {
    /// Its name.
    pub name: Arc<str>,
    /// The type of its values.
    pub kind: FluxKind,
    /// Its values.
    pub cells: FluxCells,
}

impl FluxColumn {
    /// A column with a value a row.
    pub(crate) fn each(name: &str, kind: FluxKind, values: Vec<FluxValue>) -> Self {
        Self {
            name: name.into(),
            kind,
            cells: FluxCells::Each(values),
        }
    }

    /// A column with the same value in every row.
    pub(crate) fn same(name: &str, kind: FluxKind, value: FluxValue) -> Self {
        Self {
            name: name.into(),
            kind,
            cells: FluxCells::Same(value),
        }
    }

    /// The value of a row.
    pub(crate) fn value(&self, row: usize) -> &FluxValue {
        match &self.cells {
            FluxCells::Same(value) => value,
            FluxCells::Each(values) => values.get(row).unwrap_or(&FluxValue::Null),
        }
    }

    /// The column with only some rows.
    #[must_use]
    pub(crate) fn taken(&self, rows: &[usize]) -> Self {
        let cells = match &self.cells {
            FluxCells::Same(value) => FluxCells::Same(value.clone()),
            FluxCells::Each(_) => {
                FluxCells::Each(rows.iter().map(|row| self.value(*row).clone()).collect())
            }
        };
        Self {
            name: Arc::clone(&self.name),
            kind: self.kind,
            cells,
        }
    }

    /// Computes each value anew.
    pub(crate) fn change(&mut self, mut change: impl FnMut(&FluxValue) -> FluxValue) {
        match &mut self.cells {
            FluxCells::Same(value) => *value = change(value),
            FluxCells::Each(values) => {
                for value in values {
                    *value = change(value);
                }
            }
        }
    }

    fn bytes(&self) -> usize {
        let size = size_of::<FluxValue>();
        let values = match &self.cells {
            FluxCells::Same(value) => size + value.bytes(),
            FluxCells::Each(values) if self.kind == FluxKind::Text => {
                values.iter().map(|value| size + value.bytes()).sum()
            }
            FluxCells::Each(values) => values.len() * size,
        };
        size_of::<Self>() + values
    }
}

/// Memory of the statement, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct HeldBudget {
    budget: Budget,
    bytes: usize,
}

impl HeldBudget {
    /// Reserves memory.
    ///
    /// # Errors
    /// If it was not available.
    pub(crate) fn new(budget: &Budget, bytes: usize) -> SqlResult<Self> {
        let held = Self {
            budget: budget.clone(),
            bytes,
        };
        budget.keep(bytes)?;
        Ok(held)
    }

    /// Reserves more.
    ///
    /// # Errors
    /// If it was not available.
    pub(crate) fn grow(&mut self, bytes: usize) -> SqlResult<()> {
        self.bytes += bytes;
        self.budget.keep(bytes)
    }
}

impl Drop for HeldBudget {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct FluxTable {
    /// The columns, by distinct names.
    pub columns: Vec<FluxColumn>,
    /// The names of the columns of the group key.
    pub key: Vec<Arc<str>>,
    /// The number of rows.
    pub rows: usize,
    /// The first time that was asked for, and the first one behind.
    pub range: (i64, i64),
    /// Its memory.
    pub held: Option<Arc<HeldBudget>>,
}

/// Names and values of a group key, by name.
#[derive(Clone, Debug)]
pub(crate) struct FluxGroupKey(pub Vec<(Arc<str>, FluxValue)>);

impl PartialEq for FluxGroupKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for FluxGroupKey {}

impl PartialOrd for FluxGroupKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FluxGroupKey {
    fn cmp(&self, other: &Self) -> Ordering {
        for ((name, value), (name_b, value_b)) in self.0.iter().zip(&other.0) {
            let order = name.cmp(name_b).then_with(|| value.order(value_b));
            if order.is_ne() {
                return order;
            }
        }
        self.0.len().cmp(&other.0.len())
    }
}

impl FluxTable {
    /// A table without memory of its own.
    pub(crate) fn new(columns: Vec<FluxColumn>, key: Vec<Arc<str>>, rows: usize) -> Self {
        Self {
            columns,
            key,
            rows,
            range: (i64::MIN, i64::MAX),
            held: None,
        }
    }

    /// The same range and key for other columns.
    #[must_use]
    pub(crate) fn with_columns(&self, columns: Vec<FluxColumn>, rows: usize) -> Self {
        Self {
            columns,
            key: self.key.clone(),
            rows,
            range: self.range,
            held: None,
        }
    }

    /// A column by its name.
    pub(crate) fn column(&self, name: &str) -> Option<&FluxColumn> {
        self.columns.iter().find(|column| *column.name == *name)
    }

    /// The place of a column.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| *column.name == *name)
    }

    /// Whether a column belongs to the group key.
    pub(crate) fn is_key(&self, name: &str) -> bool {
        self.key.iter().any(|key| **key == *name)
    }

    /// The values of the group key, by name.
    pub(crate) fn group_key(&self) -> FluxGroupKey {
        let mut key: Vec<_> = self
            .key
            .iter()
            .map(|name| {
                let value = self.column(name).map(|column| column.value(0).clone());
                (Arc::clone(name), value.unwrap_or(FluxValue::Null))
            })
            .collect();
        key.sort_by(|a, b| a.0.cmp(&b.0));
        FluxGroupKey(key)
    }

    /// The table with only some rows, in this order.
    #[must_use]
    pub(crate) fn taken(&self, rows: &[usize]) -> Self {
        let columns = self.columns.iter().map(|column| column.taken(rows));
        self.with_columns(columns.collect(), rows.len())
    }

    /// The columns of the group key.
    pub(crate) fn key_columns(&self) -> Vec<FluxColumn> {
        let columns = self.columns.iter();
        let columns = columns.filter(|column| self.is_key(&column.name));
        columns.cloned().collect()
    }

    /// Replaces a column, or adds it behind the others. One whose values vary leaves the group key.
    pub(crate) fn put(&mut self, column: FluxColumn) {
        if matches!(column.cells, FluxCells::Each(_)) {
            self.key.retain(|key| *key != column.name);
        }
        match self.place(&column.name) {
            Some(place) => self.columns[place] = column,
            None => self.columns.push(column),
        }
    }

    /// Adds a column to the group key.
    pub(crate) fn put_key(&mut self, column: FluxColumn) {
        if !self.is_key(&column.name) {
            self.key.push(Arc::clone(&column.name));
        }
        self.put(column);
    }

    /// The bytes that it holds.
    pub(crate) fn bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(FluxColumn::bytes).sum();
        size_of::<Self>() + 16 * self.key.len() + columns
    }

    /// The table with its memory reserved.
    ///
    /// # Errors
    /// If memory was not available.
    pub(crate) fn accounted(mut self, budget: &Budget) -> SqlResult<Self> {
        self.held = Some(Arc::new(HeldBudget::new(budget, self.bytes())?));
        Ok(self)
    }
}
