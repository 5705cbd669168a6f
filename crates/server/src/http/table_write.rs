//! `/api/v1/write`: line protocol whose names are tables, answered with everything that became of it.
//!
//! InfluxDB's endpoints take names as measurements of a retention policy, and answer in words for people.
//! `marigram import` and `marigram restore` need the exact tables, and the line of each refused row.
//!
//! Invariant: `stored` and `rejected` count every line that holds a row.

use crate::http::HttpShared;
use crate::http::error::{HttpError, json_answer};
use crate::http::request_context::RequestContext;
use crate::http::write::{BadLine, LineTables, StoredLines, WriteTarget, named_precision, store};
use axum::body::Body;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

/// Bytes of reasons up to which an answer names refused lines; it only counts the others.
const REASON_BYTES_MAX: usize = 4 << 20;

/// Bytes that a named line adds to an answer beside its reason.
const LINE_BYTES: usize = 32;

/// Parameters of the query string.
#[derive(Debug, Default, Deserialize)]
pub(super) struct TableWriteParameters {
    db: Option<String>,
    precision: Option<String>,
}

/// `POST /api/v1/write?db=&precision=`: good lines are stored, and each bad one is named.
pub(super) async fn post(
    RequestContext(shared): RequestContext,
    given: Result<Query<TableWriteParameters>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, HttpError> {
    let shared: &HttpShared = &shared;
    let Query(parameters) =
        given.map_err(|error| HttpError::bad_request(format!("bad parameters: {error}")))?;
    let database = parameters.db.as_deref().filter(|name| !name.is_empty());
    let missing = || HttpError::bad_request("the parameter 'db' with the database is missing");
    let target = WriteTarget {
        route: "/api/v1/write",
        database: database.ok_or_else(missing)?,
        tables: LineTables::Literal,
        names_lines: false,
        precision: named_precision(parameters.precision.as_deref())?.into(),
        all_or_none: false,
    };
    let lines = store(shared, target, &headers, body).await?;
    if lines.bad.is_empty() && lines.bad_omitted == 0 {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(report(&lines))
}

/// 200 with the number of stored lines, and the refused ones with their reasons.
fn report(lines: &StoredLines) -> Response {
    let mut bytes = 0;
    let is_named = |bad: &&BadLine| {
        bytes += bad.message.len() + LINE_BYTES;
        bytes <= REASON_BYTES_MAX
    };
    let named = lines.bad.iter().take_while(is_named);
    let named: Vec<_> = named
        .map(|bad| json!({"line": bad.line, "message": bad.message}))
        .collect();
    let body = json!({
        "stored": lines.stored,
        "rejected": lines.bad.len() as u64 + lines.bad_omitted,
        "lines": named,
    });
    json_answer(StatusCode::OK, &body)
}
