//! Expands the shorthand forms of other databases in a parsed statement, before it is planned:
//! these forms leave it to the table which column is its time.

use crate::dialect::foreign_names::ForeignNames;
use crate::dialect::identifiers::target_of;
use crate::dialect::inserted_lists::name_first_columns;
use crate::dialect::rewriting::rewrite;
use crate::dialect::sample;
use crate::error::SqlResult;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::parser::Statement;
use marigram_engine::Engine;
use marigram_service::Session;

/// Expands the shorthand forms in a statement of a session.
///
/// # Errors
/// If such a form is wrong.
pub(crate) fn expand(
    engine: &Engine,
    session: &Session,
    state: &SessionState,
    statement: &mut Statement,
) -> SqlResult<()> {
    let time_of = |parts: &[String]| {
        let target = target_of(parts)?;
        let database = target.database.as_ref().unwrap_or(&session.database);
        if !session.rights.see(database) {
            return None;
        }
        let schema = engine.table(database, &target.table).ok()?;
        Some(schema.time_name.clone())
    };
    let columns_of = |parts: &[String]| {
        let target = target_of(parts)?;
        let database = target.database.as_ref().unwrap_or(&session.database);
        let schema = engine.table(database, &target.table).ok()?;
        // Nobody inserts into a view.
        let is_table = schema.rollup.is_none() && schema.view.is_none();
        is_table.then(|| schema.column_names().map(str::to_owned).collect())
    };
    name_first_columns(statement, columns_of);
    rewrite(statement, &mut ForeignNames::new(&time_of))?;
    sample::resolve(state, &time_of, statement)
}
