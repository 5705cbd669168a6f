//! Columns that functions look for, and columns of records.

use crate::fault::fault;
use crate::value::{FluxColumn, FluxKind, FluxRecord, FluxTable, FluxValue};
use marigram_flux::FluxPosition;
use marigram_sql::SqlResult;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The column that a function asks for.
///
/// # Errors
/// If the table does not have it.
pub(super) fn needed<'a>(
    (at, function): (FluxPosition, &str),
    table: &'a FluxTable,
    name: &str,
) -> SqlResult<&'a FluxColumn> {
    table
        .column(name)
        .ok_or_else(|| fault(at, format!("{function}: column {name:?} does not exist")))
}

/// Columns by the names of records' members, in the order of the names.
///
/// # Errors
/// If a member has values of several types, or of a type that no column has.
pub(super) fn columns_of_records(records: &[&FluxRecord]) -> Result<Vec<FluxColumn>, String> {
    let mut columns: BTreeMap<Arc<str>, (Option<FluxKind>, Vec<FluxValue>)> = BTreeMap::new();
    for (row, record) in records.iter().enumerate() {
        for (name, value) in *record {
            let (kind, values) = columns.entry(Arc::clone(name)).or_default();
            let of_value = value.kind();
            if of_value.is_none() && !value.is_null() {
                let kind = value.type_name();
                return Err(format!("column {name:?} cannot hold values of type {kind}"));
            }
            match (*kind, of_value) {
                (Some(kind), Some(of_value)) if kind != of_value => {
                    let (kind, of_value) = (kind.name(), of_value.name());
                    return Err(format!(
                        "column {name:?} is both of type {kind} and {of_value}"
                    ));
                }
                (None, Some(_)) => *kind = of_value,
                _ => {}
            }
            values.resize(row, FluxValue::Null);
            values.push(value.clone());
        }
    }
    let columns = columns.into_iter().map(|(name, (kind, mut values))| {
        values.resize(records.len(), FluxValue::Null);
        FluxColumn::each(&name, kind.unwrap_or(FluxKind::Text), values)
    });
    Ok(columns.collect())
}
