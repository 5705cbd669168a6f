//! DuckDB's `FROM t`, which selects all columns.

use crate::error::SqlError;
use crate::rewriting::selects;
use datafusion::sql::sqlparser::ast::{
    Query, SelectFlavor, SelectItem, VisitorMut, WildcardAdditionalOptions,
};
use std::ops::ControlFlow;

/// Whether a statement may have a FROM without a SELECT before it.
pub fn may_begin_with_from(sql: &str) -> bool {
    const BEFORE: [&str; 11] = [
        "as",
        "all",
        "union",
        "except",
        "intersect",
        "explain",
        "analyze",
        "verbose",
        "distinct",
        "summarize",
        "exists",
    ];
    let lower = sql.to_ascii_lowercase();
    lower.match_indices("from").any(|(at, _)| {
        let before = lower[..at].trim_end();
        let word = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        // A comment may hide what stands before.
        before.is_empty()
            || before.ends_with(['(', ';', '/'])
            || before.contains("--")
            || word
                .into_iter()
                .next()
                .is_some_and(|word| BEFORE.contains(&word))
    })
}

/// Gives such queries their `SELECT *`.
pub struct FromFirst;

impl VisitorMut for FromFirst {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        for select in selects(&mut query.body) {
            if matches!(select.flavor, SelectFlavor::FromFirstNoSelect) {
                let options = WildcardAdditionalOptions::default();
                select.projection = vec![SelectItem::Wildcard(options)];
            }
            if !matches!(select.flavor, SelectFlavor::Standard) {
                select.flavor = SelectFlavor::Standard;
            }
        }
        ControlFlow::Continue(())
    }
}
