//! Expands the shorthand forms of other databases in a parsed statement, before it is planned:
//! these forms leave it to the table which column is its time, or which columns an INSERT fills.

use crate::dialect::foreign_names::ForeignNames;
use crate::dialect::identifiers::target_of;
use crate::dialect::inserted_columns::name_columns;
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
    let schema_of = |parts: &[String]| {
        let target = target_of(parts)?;
        let database = target.database.as_ref().unwrap_or(&session.database);
        if !session.rights.see(database) {
            return None;
        }
        engine.table(database, &target.table).ok()
    };
    let time_of = |parts: &[String]| Some(schema_of(parts)?.time_name.clone());
    name_columns(statement, &|parts| {
        let schema = schema_of(parts)?;
        // Nobody inserts into a view.
        let is_table = schema.rollup.is_none() && schema.view.is_none();
        is_table.then(|| schema.column_names().map(ToOwned::to_owned).collect())
    })?;
    rewrite(statement, &mut ForeignNames::new(&time_of))?;
    sample::resolve(state, &time_of, statement)
}
