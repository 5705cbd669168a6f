//! Tables in QuestDB's SQL and in its line protocol.
//!
//! Tags are symbols, as its users define them. Integer tags are integer columns, because symbols
//! compare as text; in line protocol they are fields.

use marigram_lab::data::{Column, Field, FieldKind, Rows, Table, TagKind, Values};
use marigram_lab_drivers::cells;
use std::collections::HashSet;
use std::sync::Arc;

/// Whether tag `tag` is a symbol. The key always is: `LATEST ON` is made for symbols.
fn is_symbol(table: &Table, tag: usize) -> bool {
    tag == table.key || table.tags[tag].kind == TagKind::Text
}

/// `CREATE TABLE …`.
pub(super) fn create(table: &Table) -> String {
    let mut columns = vec!["ts TIMESTAMP_NS".to_owned()];
    for (index, tag) in table.tags.iter().enumerate() {
        columns.push(if is_symbol(table, index) {
            let values = table.series.iter().map(|values| &values[index]);
            let distinct: HashSet<_> = values.collect();
            format!("{} SYMBOL CAPACITY {}", tag.name, distinct.len().max(2))
        } else {
            column(&tag.name, cells::tag_type(table, index))
        });
    }
    let fields = table.fields.iter();
    columns.extend(fields.map(|field| column(&field.name, field.kind)));
    format!(
        "CREATE TABLE {} ({}) TIMESTAMP(ts) PARTITION BY DAY WAL DEDUP UPSERT KEYS(ts, {})",
        table.name,
        columns.join(", "),
        table.tags[table.key].name
    )
}

fn column(name: &str, kind: FieldKind) -> String {
    let kind = match kind {
        FieldKind::Bool => "BOOLEAN",
        FieldKind::I32 => "INT",
        FieldKind::I64 => "LONG",
        FieldKind::F32 => "FLOAT",
        FieldKind::F64 => "DOUBLE",
        FieldKind::Text => "VARCHAR",
    };
    format!("{name} {kind}")
}

/// A table as line protocol sees it, where it differs from the laboratory's.
pub(super) struct Wire {
    /// The table with its integer tags as its first fields.
    pub table: Table,
    /// The values of those tags by series; `None` if a device has no such tag.
    numbers: Vec<Vec<Option<i64>>>,
}

impl Wire {
    /// `table` as line protocol writes it; `None` if that is the same.
    pub(super) fn new(table: &Table) -> Option<Self> {
        let all = 0..table.tags.len();
        let (symbols, numbers): (Vec<_>, Vec<_>) = all.partition(|tag| is_symbol(table, *tag));
        if numbers.is_empty() {
            return None;
        }
        let field = |tag: &usize| Field {
            name: table.tags[*tag].name.clone(),
            kind: FieldKind::I64,
        };
        let parse = |values: &Vec<Option<String>>, tag: usize| values[tag].as_ref()?.parse().ok();
        let keep =
            |values: &Vec<Option<String>>| symbols.iter().map(|tag| values[*tag].clone()).collect();
        Some(Self {
            table: Table {
                name: table.name.clone(),
                tags: symbols.iter().map(|tag| table.tags[*tag].clone()).collect(),
                key: symbols
                    .iter()
                    .position(|tag| *tag == table.key)
                    .unwrap_or(0),
                fields: numbers
                    .iter()
                    .map(field)
                    .chain(table.fields.clone())
                    .collect(),
                series: Arc::new(table.series.iter().map(keep).collect()),
            },
            numbers: numbers
                .iter()
                .map(|tag| {
                    table
                        .series
                        .iter()
                        .map(|values| parse(values, *tag))
                        .collect()
                })
                .collect(),
        })
    }

    /// `rows` with their integer tags as columns.
    pub(super) fn rows(&self, rows: &Rows) -> Rows {
        let column = |numbers: &Vec<Option<i64>>| {
            let each = || rows.series.iter().map(|series| numbers[*series as usize]);
            Column {
                values: Values::I64(each().map(|number| number.unwrap_or(0)).collect()),
                present: Some(each().map(|number| number.is_some()).collect()),
            }
        };
        Rows {
            columns: self
                .numbers
                .iter()
                .map(column)
                .chain(rows.columns.clone())
                .collect(),
            ..rows.clone()
        }
    }
}
