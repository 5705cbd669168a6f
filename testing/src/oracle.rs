//! A naive in-memory model of a database: what the engine must answer.
//!
//! Rows are keyed by (table, tags, time). A write replaces the fields that it carries and keeps the
//! others. Of two values for one field, the later write wins. A delete removes what exists at that
//! moment, and nothing that comes later.

mod compare;
mod filter;
mod history;
mod observe;

pub use compare::{Tolerance, compare};
pub use filter::OracleFilter;
pub use history::{OracleHistory, Strictness};
pub use observe::{ObservedDatabase, ObservedTable, ReadError, last_rows, observe, scan_rows};

use marigram_model::{FieldType, FieldValue, TableOptions, TagType, TagValue, TimeRange};
use std::collections::BTreeMap;

/// Tags of a series by name; null tags are absent.
pub type OracleTags = BTreeMap<String, TagValue>;

/// Fields of a row by name; null fields are absent.
pub type OracleRow = BTreeMap<String, FieldValue>;

/// Rows by series and time.
pub type OracleRows = BTreeMap<OracleTags, BTreeMap<i64, OracleRow>>;

/// A table of the model.
#[derive(Clone, Debug, Default)]
pub struct OracleTable {
    /// Tag columns in the order of their ordinals.
    pub tags: Vec<(String, TagType)>,
    /// Field columns.
    pub fields: BTreeMap<String, FieldType>,
    /// Settings.
    pub options: TableOptions,
    /// Contents.
    pub rows: OracleRows,
}

impl OracleTable {
    fn add_tag(&mut self, name: &str, kind: TagType) {
        if !self.tags.iter().any(|(known, _)| known == name) {
            self.tags.push((name.to_owned(), kind));
        }
    }

    /// The rows of matching series, in a range of times.
    #[must_use]
    pub fn select(&self, filter: &OracleFilter, range: TimeRange) -> OracleRows {
        let series = self.rows.iter().filter(|(tags, _)| filter.matches(tags));
        let cut = series.map(|(tags, rows)| {
            let rows = rows.iter().filter(|(time, _)| range.contains(**time));
            (
                tags.clone(),
                rows.map(|(time, row)| (*time, row.clone())).collect(),
            )
        });
        cut.filter(|(_, rows): &(_, BTreeMap<_, _>)| !rows.is_empty())
            .collect()
    }
}

/// One row of a write.
#[derive(Clone, Debug)]
pub struct WrittenRow {
    /// Tags of its series.
    pub tags: OracleTags,
    /// Its time, ns.
    pub time: i64,
    /// The fields that it carries.
    pub fields: OracleRow,
}

/// A change of the database.
#[derive(Clone, Debug)]
pub enum OracleChange {
    /// Rows, which create missing tables and columns.
    Write {
        /// Table.
        table: String,
        /// Rows in the order in which they are written.
        rows: Vec<WrittenRow>,
    },
    /// A range delete.
    Delete {
        /// Table.
        table: String,
        /// The series.
        filter: OracleFilter,
        /// The times.
        range: TimeRange,
    },
    /// A delete of listed rows.
    DeleteRows {
        /// Table.
        table: String,
        /// Series and time of each row.
        rows: Vec<(OracleTags, i64)>,
    },
    /// A new table.
    CreateTable {
        /// Its name.
        table: String,
        /// Its settings.
        options: TableOptions,
    },
    /// A new field.
    AddField {
        /// Table.
        table: String,
        /// Name of the field.
        field: String,
        /// Its type.
        kind: FieldType,
    },
    /// Drops a table and its rows.
    DropTable {
        /// Table.
        table: String,
    },
    /// Drops the database with all tables, and creates an empty one with the same name.
    DropDatabase,
}

impl OracleChange {
    /// Whether the change concerns the catalog, which covers all shards at once.
    #[must_use]
    pub fn is_of_catalog(&self) -> bool {
        !matches!(
            self,
            Self::Write { .. } | Self::Delete { .. } | Self::DeleteRows { .. }
        )
    }
}

/// The model: one database's tables by name.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    /// Tables by name.
    pub tables: BTreeMap<String, OracleTable>,
}

impl Oracle {
    /// Applies a change.
    pub fn apply(&mut self, change: &OracleChange) {
        match change {
            OracleChange::Write { table, rows } => self.write(table, rows),
            OracleChange::Delete {
                table,
                filter,
                range,
            } => self.delete(table, filter, *range),
            OracleChange::DeleteRows { table, rows } => self.delete_rows(table, rows),
            OracleChange::CreateTable { table, options } => {
                let new = OracleTable {
                    options: options.clone(),
                    ..OracleTable::default()
                };
                self.tables.entry(table.clone()).or_insert(new);
            }
            OracleChange::AddField { table, field, kind } => {
                if let Some(table) = self.tables.get_mut(table) {
                    table.fields.entry(field.clone()).or_insert(*kind);
                }
            }
            OracleChange::DropTable { table } => {
                self.tables.remove(table);
            }
            OracleChange::DropDatabase => self.tables.clear(),
        }
    }

    fn write(&mut self, table: &str, rows: &[WrittenRow]) {
        let table = self.tables.entry(table.to_owned()).or_default();
        for row in rows {
            for (name, value) in &row.tags {
                table.add_tag(name, value.as_ref().tag_type());
            }
            for (name, value) in &row.fields {
                table
                    .fields
                    .entry(name.clone())
                    .or_insert(value.field_type());
            }
            let series = table.rows.entry(row.tags.clone()).or_default();
            series
                .entry(row.time)
                .or_default()
                .extend(row.fields.clone());
        }
    }

    fn delete(&mut self, table: &str, filter: &OracleFilter, range: TimeRange) {
        let Some(table) = self.tables.get_mut(table) else {
            return;
        };
        for (tags, rows) in &mut table.rows {
            if filter.matches(tags) {
                rows.retain(|time, _| !range.contains(*time));
            }
        }
        table.rows.retain(|_, rows| !rows.is_empty());
    }

    fn delete_rows(&mut self, table: &str, rows: &[(OracleTags, i64)]) {
        let Some(table) = self.tables.get_mut(table) else {
            return;
        };
        for (tags, time) in rows {
            if let Some(series) = table.rows.get_mut(tags) {
                series.remove(time);
            }
        }
        table.rows.retain(|_, rows| !rows.is_empty());
    }

    /// Why the engine should refuse a row of a write to `table` at `now_ns`; `None` if it should
    /// accept it.
    #[must_use]
    pub fn refusal(&self, table: &str, row: &WrittenRow, now_ns: i64) -> Option<String> {
        let table = self.tables.get(table)?;
        if Tolerance::for_options(&table.options, now_ns).is_expired(row.time) {
            return Some("it has outlived the table's ttl".to_owned());
        }
        row.fields.iter().find_map(|(name, value)| {
            let kind = table.fields.get(name)?;
            (*kind != value.field_type())
                .then(|| format!("field '{name}' is {kind}, not {}", value.field_type()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(dev: &str, time: i64, fields: &[(&str, i64)]) -> WrittenRow {
        let fields = fields
            .iter()
            .map(|(n, v)| ((*n).to_owned(), FieldValue::I64(*v)))
            .collect();
        let tags = OracleTags::from([("dev".to_owned(), TagValue::String(dev.to_owned()))]);
        WrittenRow { tags, time, fields }
    }

    #[test]
    fn later_values_win_field_by_field_and_deletes_end_with_the_past() {
        let mut oracle = Oracle::default();
        let write = |rows| OracleChange::Write {
            table: "t".into(),
            rows,
        };
        oracle.apply(&write(vec![
            row("a", 1, &[("x", 1), ("y", 1)]),
            row("b", 1, &[("x", 5)]),
        ]));
        oracle.apply(&write(vec![row("a", 1, &[("x", 2)])]));
        let all = |oracle: &Oracle| oracle.tables["t"].select(&OracleFilter::All, TimeRange::ALL);
        let a = OracleTags::from([("dev".to_owned(), TagValue::String("a".to_owned()))]);
        assert_eq!(
            all(&oracle)[&a][&1],
            row("a", 1, &[("x", 2), ("y", 1)]).fields
        );

        let only_a = OracleFilter::In("dev".into(), vec![TagValue::String("a".into())]);
        oracle.apply(&OracleChange::Delete {
            table: "t".into(),
            filter: only_a,
            range: TimeRange::ALL,
        });
        assert_eq!(all(&oracle).len(), 1);
        oracle.apply(&write(vec![row("a", 1, &[("y", 7)])]));
        assert_eq!(all(&oracle)[&a][&1], row("a", 1, &[("y", 7)]).fields);

        let wrong = WrittenRow {
            fields: OracleRow::from([("x".into(), FieldValue::F64(1.0))]),
            ..row("a", 1, &[])
        };
        assert!(oracle.refusal("t", &wrong, 0).is_some());
        assert!(oracle.refusal("u", &wrong, 0).is_none());
    }
}
