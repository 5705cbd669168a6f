//! What the sessions of a target have written: for databases that must be told the span of the data
//! they are asked about, or that do not know rows, only values.

use marigram_lab::data::{Rows, Table};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// What was written into a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSeen {
    /// First time, nanoseconds.
    pub first_ns: i64,
    /// Last time, nanoseconds.
    pub last_ns: i64,
    /// Whether there were nulls.
    pub nulls: bool,
}

/// What was written, by the tables' names; shared by the sessions of a target.
#[derive(Debug, Default)]
pub struct Seen(Mutex<HashMap<String, TableSeen>>);

impl Seen {
    /// Takes note of rows that are about to be written.
    pub fn note(&self, table: &Table, rows: &Rows) {
        let times = rows.times.iter().copied();
        let (Some(first_ns), Some(last_ns)) = (times.clone().min(), times.max()) else {
            return;
        };
        let is_null = |present: &Vec<bool>| present.contains(&false);
        let mut columns = rows.columns.iter();
        let new = TableSeen {
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

    /// What was written into `table`; `None` when nothing was.
    pub fn of(&self, table: &Table) -> Option<TableSeen> {
        let tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tables.get(&table.name).copied()
    }

    /// Whether nulls were written into `table`.
    pub fn nulls(&self, table: &Table) -> bool {
        self.of(table).is_some_and(|seen| seen.nulls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_lab::data::{Column, Field, FieldKind, Values};
    use std::sync::Arc;

    #[test]
    fn spans_grow_and_nulls_stay() {
        let table = Table {
            name: "t".to_owned(),
            tags: Vec::new(),
            key: 0,
            fields: vec![Field {
                name: "f".to_owned(),
                kind: FieldKind::Bool,
            }],
            series: Arc::default(),
        };
        let rows = |times: &[i64], present: Option<Vec<bool>>| Rows {
            table: 0,
            series: vec![0; times.len()],
            times: times.to_vec(),
            columns: vec![Column {
                values: Values::Bool(vec![true; times.len()]),
                present,
            }],
        };
        let seen = Seen::default();
        assert_eq!(seen.of(&table), None);
        seen.note(&table, &rows(&[5, 3], Some(vec![true, false])));
        seen.note(&table, &rows(&[9], Some(vec![true])));
        seen.note(&table, &rows(&[], None));
        let all = TableSeen {
            first_ns: 3,
            last_ns: 9,
            nulls: true,
        };
        assert_eq!(seen.of(&table), Some(all));
        assert!(!seen.nulls(&table.suffixed("_2")));
    }
}
