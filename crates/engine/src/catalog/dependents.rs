//! What stored queries need of a table: views and materialized views refuse changes that would take
//! their columns or names away.

use super::table_changes::field_mut;
use crate::error::{EngineError, Result};
use marigram_manifest::Catalog;
use marigram_model::{FieldColumn, TableSchema};
use std::sync::Arc;

/// The error for a write to a rollup or a view.
pub(crate) fn computed_by_query(table: &TableSchema) -> EngineError {
    if table.view.is_some() {
        return EngineError::Invalid(format!(
            "'{}' is a view: only its query provides its rows",
            table.name
        ));
    }
    EngineError::Invalid(format!(
        "'{}' is a materialized view: only its source provides its rows",
        table.name
    ))
}

/// Refuses a change to `what` of a table that the queries of views use: by name, or by reading its
/// `column`.
pub(super) fn check_not_needed(
    catalog: &Catalog,
    table: &TableSchema,
    column: Option<&str>,
    what: String,
) -> Result<()> {
    let state = catalog.state();
    let reads = |view: &&Arc<TableSchema>| match (&view.view, column) {
        (Some(view), Some(column)) => may_read_column(&view.query, column),
        _ => true,
    };
    let by = match (
        state.rollups_of(table.id).next(),
        state.readers_of(table.id).find(reads),
    ) {
        (Some(rollup), _) => format!("materialized view '{}'", rollup.name),
        (None, Some(view)) => format!("view '{}'", view.name),
        (None, None) => return Ok(()),
    };
    Err(EngineError::Needed { what, by })
}

/// Whether a query may read a column: it has a word of that name, or may mean all columns.
fn may_read_column(query: &str, column: &str) -> bool {
    let (query, column) = (query.to_lowercase(), column.to_lowercase());
    let means_all = query.contains('*')
        || query.contains("natural")
        || query.contains("table")
        // DuckDB's FROM without a SELECT.
        || query.matches("from").count() > query.matches("select").count();
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    means_all
        || query.match_indices(&column).any(|(at, _)| {
            let before = query[..at].chars().next_back();
            let after = query[at + column.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
}

/// The field of this name, if its type may change: no view with stored rows reads it.
pub(super) fn retypable<'a>(
    catalog: &Catalog,
    schema: &'a mut TableSchema,
    column: &str,
) -> Result<&'a mut FieldColumn> {
    if schema.rollup.is_some() || schema.view.is_some() {
        return Err(computed_by_query(schema));
    }
    let mut rollups = catalog.state().rollups_of(schema.id);
    let reader = rollups.find(|table| {
        let rollup = table.rollup.as_ref();
        rollup.is_none_or(|rollup| may_read_column(&rollup.query, column))
    });
    if let Some(rollup) = reader {
        return Err(EngineError::Needed {
            what: format!("column '{column}' of table '{}' in its type", schema.name),
            by: format!("materialized view '{}'", rollup.name),
        });
    }
    field_mut(schema, column)
}

#[cfg(test)]
mod tests {
    use super::may_read_column;

    #[test]
    fn a_query_reads_the_columns_that_it_names() {
        for (query, is_read) in [
            ("SELECT dev, k FROM o", false),
            ("SELECT k FROM o WHERE k IN (SELECT n FROM p)", false),
            ("SELECT dev, X FROM o", true),
            ("SELECT \"x\" FROM o", true),
            ("SELECT max_x FROM o", false),
            ("SELECT * FROM o", true),
            ("FROM o", true),
            ("SELECT k FROM o NATURAL JOIN p", true),
            ("SELECT k FROM (FROM o)", true),
        ] {
            assert_eq!(may_read_column(query, "x"), is_read, "{query}");
        }
    }
}
