//! JSON answers with OpenTSDB's type, which names the charset.

use crate::http::error::json_answer;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::Value;

/// An answer of this status with a JSON body.
pub(super) fn opentsdb_json(status: StatusCode, value: &Value) -> Response {
    typed(json_answer(status, value))
}

/// The same answer with OpenTSDB's type.
pub(super) fn typed(mut response: Response) -> Response {
    let kind = HeaderValue::from_static("application/json; charset=UTF-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
