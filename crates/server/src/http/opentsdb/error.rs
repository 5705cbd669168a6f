//! Errors as OpenTSDB answers them: `{"error":{"code":400,"message":…,"details":…}}`.

use super::json_type::typed;
use crate::http::error::HttpError;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use marigram_opentsdb::QueryFault;
use marigram_service::ServiceError;
use serde_json::json;

/// An error to send.
#[derive(Debug)]
pub(super) struct OpenTsdbError {
    error: Box<HttpError>,
    details: Option<String>,
}

impl OpenTsdbError {
    /// An error of a status.
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let code = match status {
            StatusCode::NOT_FOUND => "not_found",
            StatusCode::NOT_IMPLEMENTED => "unsupported",
            _ => "invalid",
        };
        HttpError::new(status, code, message).into()
    }

    /// The same error as `/api/search/lookup` tells it: a name that nothing has is not found there.
    pub(super) fn told_by_lookup(self) -> Self {
        if !self.error.message.starts_with("No such name for ") {
            return self;
        }
        Self::new(StatusCode::NOT_FOUND, "Unable to resolve one or more UIDs")
            .with_details(self.error.message)
    }

    /// The same error with details.
    pub(super) fn with_details(mut self, details: impl Into<String>) -> Self {
        self.details = Some(details.into());
        self
    }
}

impl From<HttpError> for OpenTsdbError {
    fn from(error: HttpError) -> Self {
        Self {
            error: Box::new(error),
            details: None,
        }
    }
}

impl From<ServiceError> for OpenTsdbError {
    fn from(error: ServiceError) -> Self {
        // A metric that is not there is a wrong query.
        HttpError::from(error).into()
    }
}

impl From<QueryFault> for OpenTsdbError {
    fn from(fault: QueryFault) -> Self {
        Self {
            error: Box::new(HttpError::bad_request(fault.message)),
            details: fault.details,
        }
    }
}

impl IntoResponse for OpenTsdbError {
    fn into_response(self) -> Response {
        let mut fields = json!({
            "code": self.error.status.as_u16(),
            "message": self.error.message,
        });
        if let (Some(details), Some(fields)) = (self.details, fields.as_object_mut()) {
            fields.insert("details".to_owned(), details.into());
        }
        typed(self.error.answer(&json!({ "error": fields })))
    }
}
