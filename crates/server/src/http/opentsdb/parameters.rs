//! The parameters of a URL, in their order; one may occur several times.

use crate::http::error::HttpError;
use axum::extract::Query;
use axum::http::Uri;
use std::time::{SystemTime, UNIX_EPOCH};

/// The names and values of a URL's parameters.
///
/// # Errors
/// If they cannot be read.
pub(super) fn parameters(uri: &Uri) -> Result<Vec<(String, String)>, HttpError> {
    let read = Query::<Vec<(String, String)>>::try_from_uri(uri);
    let read = read.map_err(|error| HttpError::bad_request(format!("bad parameters: {error}")))?;
    Ok(read.0)
}

/// Whether a parameter is there, and not `false`.
pub(super) fn is_set(parameters: &[(String, String)], name: &str) -> bool {
    let mut named = parameters.iter().filter(|(known, _)| known == name);
    named.any(|(_, value)| !value.eq_ignore_ascii_case("false"))
}

/// The time, ms since 1970.
pub(super) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}
