//! Errors for a `CREATE TABLE` that neither makes a table of series nor a reference table.

use crate::error::SqlError;

/// The features of reference tables that tables of series refuse, by the names in their errors.
const CONSTRAINTS: [&str; 11] = [
    "REFERENCES",
    "FOREIGN KEY",
    "CHECK",
    "DEFAULT",
    "GENERATED",
    "SERIAL",
    "BIGSERIAL",
    "SMALLSERIAL",
    "SERIAL2",
    "SERIAL4",
    "SERIAL8",
];

/// Whether tables of series refuse a statement for what reference tables have.
fn is_about_constraints(error: &SqlError) -> bool {
    let SqlError::Refused(refusal) = error else {
        return false;
    };
    let is_named = refusal
        .name
        .as_deref()
        .is_some_and(|name| CONSTRAINTS.contains(&name));
    let is_key = ["PRIMARY KEY (", "UNIQUE ("]
        .iter()
        .any(|begin| refusal.message.starts_with(begin));
    refusal.sqlstate == "0A000" && (is_named || is_key)
}

/// Whether a table of series misses its time.
fn lacks_time(error: &SqlError) -> bool {
    matches!(error, SqlError::Refused(refusal) if refusal.sqlstate == "42P16")
}

/// Whether a statement is no statement of a grammar at all.
fn is_syntax(error: &SqlError) -> bool {
    match error {
        SqlError::Refused(refusal) => refusal.sqlstate == "42601",
        other => matches!(other, SqlError::Parser(_)),
    }
}

/// The error of a table that mixes both kinds: `word` makes it one of series.
pub(super) fn with_other_kind(error: SqlError, word: Option<&str>) -> SqlError {
    match (error, word) {
        (SqlError::Refused(mut refusal), Some(word))
            if is_about_constraints(&SqlError::Refused(refusal.clone())) =>
        {
            let other = format!(
                "; {word} makes this a table of series: a reference table has keys, foreign keys, checks, \
                 defaults and identities, but neither TAG, FIELD nor settings of series"
            );
            refusal.message.push_str(&other);
            SqlError::Refused(refusal)
        }
        (error, _) => error,
    }
}

/// Of the errors of both grammars for a table without a word of series, the one that helps: that of series says
/// what to do with what only it knows, as `EXCLUDE`.
pub(super) fn better_error(of_series: SqlError, of_reference: SqlError) -> SqlError {
    let is_better = is_about_constraints(&of_series)
        || lacks_time(&of_series)
        || !is_syntax(&of_reference) && is_syntax(&of_series);
    if is_better { of_reference } else { of_series }
}
