//! Expands the shorthand forms of other databases in a parsed statement, before it is planned:
//! these forms leave it to the table which column is its time.

use crate::dialect::foreign_names::ForeignNames;
use crate::dialect::identifiers::target_of;
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
    rewrite(statement, &mut ForeignNames::new(&time_of))?;
    sample::resolve(state, &time_of, statement)
}
