//! The answer to a request that is refused before its handler gets it.

use super::error::HttpError;
use super::influx::InfluxError;
use super::influx_v2::V2Error;
use super::influx_v3::V3Error;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// The answer to a request that was refused before it reached its handler, in the form of its API.
pub(super) fn refusal(path: &str, error: HttpError) -> Response {
    let is_unauthorized = error.status == StatusCode::UNAUTHORIZED;
    let mut response = match path {
        "/write" | "/query" => InfluxError::json(error).into_response(),
        path if path.starts_with("/api/v2/") => V2Error(error).into_response(),
        path if path.starts_with("/api/v3/") => V3Error::from(error).into_response(),
        _ => error.into_response(),
    };
    if is_unauthorized {
        let realm = HeaderValue::from_static("Basic realm=\"marigram\"");
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, realm);
    }
    response
}
