//! Errors as InfluxDB 2 answers them: `{"code": …, "message": …}`.

use crate::http::error::HttpError;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use marigram_service::ServiceError;
use serde_json::json;

/// An error.
#[derive(Debug)]
pub(crate) struct V2Error(pub HttpError);

impl V2Error {
    /// 404: what the request names is not there.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self(HttpError::new(StatusCode::NOT_FOUND, "not_found", message))
    }

    /// 422: what the request would make is there, or it may not be done.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self(HttpError::new(status, "already_exists", message))
    }
}

impl From<HttpError> for V2Error {
    fn from(error: HttpError) -> Self {
        Self(error)
    }
}

impl From<ServiceError> for V2Error {
    fn from(error: ServiceError) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for V2Error {
    fn into_response(self) -> Response {
        let code = match self.0.status.as_u16() {
            401 => "unauthorized",
            403 => "forbidden",
            404 => "not found",
            405 => "method not allowed",
            409 | 422 => "conflict",
            413 => "request too large",
            429 => "too many requests",
            503 => "unavailable",
            500.. => "internal error",
            _ => "invalid",
        };
        self.0
            .answer(&json!({ "code": code, "message": self.0.message }))
    }
}
