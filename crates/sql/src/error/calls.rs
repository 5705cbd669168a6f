//! Errors for calls of functions that do not exist, or not for these arguments.

use super::{invalid, nearest, position_of};
use marigram_service::ServiceError;
use std::sync::OnceLock;

/// Functions that need a window: DataFusion only finds them if there is one.
pub(crate) const WINDOW_FUNCTIONS: &[&str] = &[
    "count_id",
    "cume_dist",
    "dense_rank",
    "difference",
    "event_id",
    "lag",
    "lead",
    "moving_avg",
    "non_negative_derivative",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
    "session_id",
    "state_count",
    "state_duration",
    "state_id",
];

/// The function names that errors may suggest.
static FUNCTIONS: OnceLock<Vec<String>> = OnceLock::new();

/// Sets the existing functions, so that errors can suggest them; only the first call has an effect.
pub(crate) fn know_functions<'a>(names: impl Iterator<Item = &'a String>) {
    // Names that only plans use do not help.
    let of_sql = |name: &&String| {
        let internal = ["arrow_", "summary_", "_"];
        !internal.iter().any(|prefix| name.starts_with(prefix))
    };
    FUNCTIONS.get_or_init(|| {
        let mut names: Vec<String> = names.filter(of_sql).cloned().collect();
        names.sort_unstable();
        names.dedup();
        names
    });
}

/// The error for a function that does not exist, or only with a window.
pub(crate) fn no_such_function(name: &str, sql: &str) -> ServiceError {
    let position = position_of(sql, name);
    if WINDOW_FUNCTIONS.contains(&name) {
        let message = format!("'{name}' is a window function: write {name}(…) OVER (…)");
        return invalid("42809", message, position);
    }
    // The planner suggests any of the names that are equally near, however distant they are.
    let known = FUNCTIONS.get().map(Vec::as_slice).unwrap_or_default();
    let hint = nearest(name, known.iter().map(String::as_str))
        .map(|near| format!("; did you mean '{near}'?"))
        .unwrap_or_default();
    let message = format!("function '{name}' does not exist{hint}");
    invalid("42883", message, position)
}

/// The error for a function that exists, but not for these arguments. DataFusion's long message
/// contains the call's types and, for functions of ours, the reason.
pub(crate) fn no_such_call(message: &str, sql: &str) -> Option<ServiceError> {
    let (before, after) =
        message.split_once("No function matches the given name and argument types '")?;
    let call = after.split('\'').next()?;
    let (name, arguments) = call.split_once('(')?;
    let name = as_written(name, sql);
    let own = before
        .split_once("user-defined coercion failed with: Error during planning: ")
        .map(|(_, reason)| reason.trim().trim_end_matches('.').to_owned());
    let message = match own {
        Some(reason) => reason,
        None => format!(
            "function '{name}' does not take these arguments: {name}({arguments}; cast them"
        ),
    };
    let position = position_of(sql, name);
    Some(invalid("42883", message, position))
}

/// The name of a function as the statement has it, if DataFusion reports another one.
fn as_written<'a>(name: &'a str, sql: &str) -> &'a str {
    const SYNONYMS: &[(&str, &[&str])] = &[
        ("array_has", &["any", "all"]),
        ("character_length", &["length", "char_length"]),
        ("date_part", &["extract"]),
        ("power", &["pow"]),
        ("strpos", &["position"]),
    ];
    let synonyms = SYNONYMS.iter().find(|(known, _)| *known == name);
    let written = synonyms.and_then(|(_, synonyms)| {
        let is_written = |synonym: &&&str| position_of(sql, synonym).is_some();
        synonyms.iter().find(is_written).copied()
    });
    match position_of(sql, name) {
        Some(_) => name,
        None => written.unwrap_or(name),
    }
}
