//! `SAMPLE BY 1h FILL(…) ALIGN TO CALENDAR …`: QuestDB's shorthand for buckets of time.
//!
//! [`syntax`] reads the clause in the tokens of a statement and replaces it with a GROUP BY with a
//! marker, which any parser reads; [`resolve`] replaces the marker with `time_bucket` or
//! `time_bucket_gapfill` and the other keys, when the table's time column is known.

mod buckets;
pub(crate) mod syntax;

use crate::dialect::rewriting::{TimeOf, rewrite};
use crate::error::{SqlError, SqlResult};
use buckets::SampleByRewriter;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::parser::Statement;

/// The function that marks a GROUP BY until the statement is planned.
const MARK: &str = "__sample_by";

/// An error of the statement, at the position of the clause.
fn sample_by_error(sqlstate: &'static str, message: impl Into<String>) -> SqlError {
    SqlError::named(sqlstate, "sample", message)
}

/// Replaces markers with buckets.
///
/// # Errors
/// If a statement with a marker is wrong.
pub(crate) fn resolve(
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
