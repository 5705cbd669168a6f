//! What the sessions of a target have written. Some databases need the time span of the data in their
//! queries, and some know values but no rows.

use marigram_lab::data::{Rows, Table};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// What was written into a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableHistory {
    /// First time, nanoseconds.
    pub first_ns: i64,
    /// Last time, nanoseconds.
    pub last_ns: i64,
    /// Whether there were nulls.
    pub nulls: bool,
}

/// What was written, by name of table; the sessions of a target share it.
#[derive(Debug, Default)]
pub(crate) struct WriteHistory(Mutex<HashMap<String, TableHistory>>);

impl WriteHistory {
    /// Records rows that are about to be written.
    pub(crate) fn record(&self, table: &Table, rows: &Rows) {
        let times = rows.times.iter().copied();
        let (Some(first_ns), Some(last_ns)) = (times.clone().min(), times.max()) else {
            return;
        };
        let is_null = |present: &Vec<bool>| present.contains(&false);
        let mut columns = rows.columns.iter();
        let new = TableHistory {
            first_ns,
            last_ns,
            nulls: columns.any(|column| column.present.as_ref().is_some_and(is_null)),
        };
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match tables.get_mut(&table.name) {
            Some(old) => {
                old.first_ns = old.first_ns.min(new.first_ns);
                old.last_ns = old.last_ns.max(new.last_ns);
                old.nulls |= new.nulls;
            }
            None => {
                tables.insert(table.name.clone(), new);
            }
        }
    }

    /// What was written into `table`; `None` if nothing was.
    pub(crate) fn table(&self, table: &Table) -> Option<TableHistory> {
        let tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tables.get(&table.name).copied()
    }

    /// Whether nulls were written into `table`.
    pub(crate) fn has_nulls(&self, table: &Table) -> bool {
        self.table(table).is_some_and(|history| history.nulls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_lab::data::{Column, FieldKind, Values};

    #[test]
    fn spans_grow_and_nulls_stay() {
        let table = Table::new("t", &[], 0, &[("f", FieldKind::Bool)], Vec::new());
        let rows = |times: &[i64], present: Option<Vec<bool>>| Rows {
            table: 0,
            series: vec![0; times.len()],
            times: times.to_vec(),
            columns: vec![Column {
                values: Values::Bool(vec![true; times.len()]),
                present,
            }],
        };
        let history = WriteHistory::default();
        assert_eq!(history.table(&table), None);
        history.record(&table, &rows(&[5, 3], Some(vec![true, false])));
        history.record(&table, &rows(&[9], Some(vec![true])));
        history.record(&table, &rows(&[], None));
        let all = TableHistory {
            first_ns: 3,
            last_ns: 9,
            nulls: true,
        };
        assert_eq!(history.table(&table), Some(all));
        assert!(!history.has_nulls(&table.suffixed("_2")));
    }
}
