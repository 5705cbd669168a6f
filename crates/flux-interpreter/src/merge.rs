//! Brings rows of tables together by group keys.

use crate::fault::fault;
use crate::value::{FluxCells, FluxColumn, FluxGroupKey, FluxKind, FluxTable, FluxValue};
use marigram_flux::FluxPosition;
use marigram_sql::SqlResult;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One table for each group key, by key; rows in the order of the tables.
///
/// # Errors
/// If columns of the same name have different types.
pub(crate) fn merged(at: FluxPosition, tables: Vec<FluxTable>) -> SqlResult<Vec<FluxTable>> {
    let mut groups: BTreeMap<FluxGroupKey, Vec<FluxTable>> = BTreeMap::new();
    for table in tables {
        groups.entry(table.group_key()).or_default().push(table);
    }
    let groups = groups.into_values();
    groups.map(|tables| concatenated(at, tables)).collect()
}

/// The rows of tables of the same key as one table.
fn concatenated(at: FluxPosition, mut tables: Vec<FluxTable>) -> SqlResult<FluxTable> {
    if tables.len() > 1 && tables.iter().any(|table| table.rows > 0) {
        tables.retain(|table| table.rows > 0);
    }
    if tables.len() == 1
        && let Some(table) = tables.pop()
    {
        return Ok(table);
    }
    let mut kinds: Vec<(Arc<str>, FluxKind)> = Vec::new();
    for column in tables.iter().flat_map(|table| &table.columns) {
        match kinds.iter().find(|(name, _)| *name == column.name) {
            None => kinds.push((Arc::clone(&column.name), column.kind)),
            Some((_, kind)) if *kind == column.kind => {}
            Some((name, kind)) => {
                let (kind, other) = (kind.name(), column.kind.name());
                return Err(fault(
                    at,
                    format!("schema collision: column {name:?} is both of type {kind} and {other}"),
                ));
            }
        }
    }
    let rows = tables.iter().map(|table| table.rows).sum();
    let columns = kinds.iter().map(|(name, kind)| FluxColumn {
        name: Arc::clone(name),
        kind: *kind,
        cells: joined_cells(&tables, name, rows),
    });
    let columns = columns.collect();
    let ranges = || tables.iter().map(|table| table.range);
    let range = (
        ranges().map(|range| range.0).min().unwrap_or(i64::MIN),
        ranges().map(|range| range.1).max().unwrap_or(i64::MAX),
    );
    let key = tables.first().map(|table| table.key.clone());
    Ok(FluxTable {
        range,
        ..FluxTable::new(columns, key.unwrap_or_default(), rows)
    })
}

fn joined_cells(tables: &[FluxTable], name: &str, rows: usize) -> FluxCells {
    let same = |table: &FluxTable| match table.column(name).map(|column| &column.cells) {
        Some(FluxCells::Same(value)) => Some(value.clone()),
        Some(FluxCells::Each(_)) => None,
        None => Some(FluxValue::Null),
    };
    let first = tables.first().and_then(same);
    if let Some(first) = first {
        let is_first =
            |value: FluxValue| value.is_null() == first.is_null() && value.order(&first).is_eq();
        if tables.iter().all(|table| same(table).is_some_and(is_first)) {
            return FluxCells::Same(first);
        }
    }
    let mut values = Vec::with_capacity(rows);
    for table in tables {
        match table.column(name).map(|column| &column.cells) {
            Some(FluxCells::Each(each)) => values.extend(each.iter().cloned()),
            Some(FluxCells::Same(value)) => {
                values.extend(std::iter::repeat_n(value.clone(), table.rows));
            }
            None => values.extend(std::iter::repeat_n(FluxValue::Null, table.rows)),
        }
    }
    FluxCells::Each(values)
}

/// The rows of a table by the values of columns, which become the group key. Columns that the table
/// does not have are left out.
pub(crate) fn split(mut table: FluxTable, key: &[Arc<str>]) -> Vec<FluxTable> {
    let columns = key.iter().filter_map(|name| table.column(name));
    let names: Vec<Arc<str>> = columns
        .clone()
        .map(|column| Arc::clone(&column.name))
        .collect();
    let varying: Vec<&FluxColumn> = columns
        .filter(|column| matches!(column.cells, FluxCells::Each(_)))
        .collect();
    if varying.is_empty() {
        table.key = names;
        return vec![table];
    }
    let mut groups: BTreeMap<FluxGroupKey, Vec<usize>> = BTreeMap::new();
    for row in 0..table.rows {
        let values = varying.iter();
        let values = values.map(|column| (Arc::clone(&column.name), column.value(row).clone()));
        let key = FluxGroupKey(values.collect());
        groups.entry(key).or_default().push(row);
    }
    let groups = groups.into_iter().map(|(key, rows)| {
        let mut group = table.taken(&rows);
        for column in &mut group.columns {
            if let Some((_, value)) = key.0.iter().find(|(name, _)| *name == column.name) {
                column.cells = FluxCells::Same(value.clone());
            }
        }
        group.key.clone_from(&names);
        group
    });
    groups.collect()
}
