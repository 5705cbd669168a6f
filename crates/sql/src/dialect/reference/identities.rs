//! Which identity columns an INSERT gives values to.
//!
//! DEFAULT lets the table number a row, and a NULL does not, but both become NULL. So a column that is DEFAULT
//! in all rows is left out of the statement, and what is NULL in another one is refused.

use super::changes::{last_name, quoted};
use crate::dialect::inserted_lists::{fill_inserted, is_default};
use crate::error::SqlResult;
use datafusion::sql::sqlparser::ast::{Expr, Insert, SetExpr, Value};

/// Leaves out identity columns that are DEFAULT in all rows. Returns those to which every row gives a value: it
/// must not be NULL. A column that is DEFAULT in some of the rows is neither.
///
/// # Errors
/// If the statement names what cannot be a column.
pub(crate) fn take_identities(
    insert: &mut Insert,
    columns: &[String],
    identities: &[String],
) -> SqlResult<Vec<String>> {
    let mut names: Vec<String> = if insert.columns.is_empty() {
        columns.to_vec()
    } else {
        let names = insert.columns.iter().map(last_name);
        names.collect::<SqlResult<_>>()?
    };
    let source = insert.source.as_mut().map(|source| source.body.as_mut());
    if let Some(SetExpr::Values(values)) = source {
        let rows = &mut values.rows;
        names.truncate(rows.first().map_or(0, |row| row.content.len()));
        if rows.iter().any(|row| row.content.len() != names.len()) {
            // The planner says what is wrong.
            return Ok(Vec::new());
        }
        let (width, mut given) = (names.len(), Vec::new());
        for at in (0..width).rev() {
            if !identities.contains(&names[at]) {
                continue;
            }
            let defaults = rows.iter().filter(|row| is_default(&row.content[at]));
            let defaults = defaults.count();
            if defaults == 0 {
                given.push(names[at].clone());
            } else if defaults == rows.len() && names.len() > 1 {
                for row in &mut *rows {
                    row.content.remove(at);
                }
                names.remove(at);
            }
        }
        if names.len() < width {
            insert.columns = names.iter().map(|name| quoted(name)).collect();
        }
        return Ok(given);
    }
    let (mut has_default, mut copy) = (false, insert.clone());
    fill_inserted(&mut copy, &mut |_| {
        has_default = true;
        Expr::value(Value::Null)
    });
    names.retain(|name| !has_default && identities.contains(name));
    Ok(names)
}
