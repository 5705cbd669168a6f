//! `SAMPLE BY 1h FILL(…) ALIGN TO CALENDAR …`: buckets of time in few words, as QuestDB has them.
//!
//! [`syntax`] reads the clause among the tokens of a statement and leaves a GROUP BY with a mark in
//! its place, which any parser reads; [`resolve`] puts `time_bucket` or `time_bucket_gapfill` and
//! the other keys in the mark's place, once it is known which column is the table's time.

mod buckets;
pub mod syntax;

use crate::dialect::rewriting::{TimeOf, rewrite};
use crate::error::{SqlError, SqlResult};
use buckets::SampleByRewriter;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::parser::Statement;

/// The function that stands in GROUP BY until the statement is planned.
const MARK: &str = "__sample_by";

/// An error of the statement, at the clause.
fn sample_by_error(sqlstate: &'static str, message: impl Into<String>) -> SqlError {
    SqlError::named(sqlstate, "sample", message)
}

/// Puts buckets in the place of marks.
///
/// # Errors
/// What is wrong with a statement that has one.
pub fn resolve(
    state: &SessionState,
    time_of: TimeOf<'_>,
    statement: &mut Statement,
) -> SqlResult<()> {
    let is_aggregate = |name: &str| state.aggregate_functions().contains_key(name);
    let mut buckets = SampleByRewriter {
        time_of,
        is_aggregate: &is_aggregate,
    };
    rewrite(statement, &mut buckets)
}
