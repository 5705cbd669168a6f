//! What must be true of a new reference table's columns and constraints together.

use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::ast::ColumnDef;
use marigram_reference::{NewConstraint, NewReferenceTable};
use std::collections::BTreeSet;

/// sqlparser reads `LIKE other` among columns as a column.
pub(super) fn refuse_like(column: &ColumnDef) -> SqlResult<()> {
    if column.name.quote_style.is_none() && column.name.value.eq_ignore_ascii_case("like") {
        let message = "LIKE is not supported; write the columns of the new table";
        return Err(SqlError::named("0A000", "LIKE", message));
    }
    Ok(())
}

/// Refuses columns of the same name, several primary keys, and constraints on columns that are not there.
pub(super) fn check_names(new: &NewReferenceTable) -> SqlResult<()> {
    if new.columns.is_empty() {
        return Err(SqlError::invalid(
            "0A000",
            "a table has at least one column",
        ));
    }
    let mut known = BTreeSet::new();
    for column in &new.columns {
        if !known.insert(column.name.as_str()) {
            let message = format!("column '{}' is defined twice", column.name);
            return Err(SqlError::named("42701", &column.name, message));
        }
    }
    let mut has_primary = false;
    for constraint in &new.constraints {
        let named: Vec<&String> = match constraint {
            NewConstraint::Key {
                columns,
                is_primary,
                ..
            } => {
                if *is_primary && has_primary {
                    let message = format!("table '{}' has two primary keys", new.name);
                    return Err(SqlError::named("42P16", "PRIMARY", message));
                }
                has_primary |= *is_primary;
                columns.iter().collect()
            }
            NewConstraint::ForeignKey { columns, .. } => columns.iter().collect(),
            NewConstraint::Check { column, .. } => column.iter().collect(),
        };
        if let Some(name) = named.iter().find(|name| !known.contains(name.as_str())) {
            return Err(SqlError::unknown("42703", "column", name, known));
        }
    }
    Ok(())
}

/// The columns of a primary key have a value in every row.
pub(super) fn require_key_columns(new: &mut NewReferenceTable) {
    let primary = new
        .constraints
        .iter()
        .find_map(|constraint| match constraint {
            NewConstraint::Key {
                columns,
                is_primary: true,
                ..
            } => Some(columns.as_slice()),
            _ => None,
        });
    for column in &mut new.columns {
        if primary.is_some_and(|names| names.contains(&column.name)) {
            column.is_nullable = false;
        }
    }
}
