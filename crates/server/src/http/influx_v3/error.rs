//! Errors as InfluxDB 3 answers them: `{"error": …}`, with `data` where lines are at fault.

use crate::http::error::{HttpError, json_answer};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An error, and what it says of lines.
#[derive(Debug)]
pub(crate) struct V3Error {
    error: HttpError,
    data: Value,
}

impl V3Error {
    /// An error that says more in `data`.
    pub(crate) fn with_data(error: HttpError, data: Value) -> Self {
        Self { error, data }
    }
}

impl From<HttpError> for V3Error {
    fn from(error: HttpError) -> Self {
        Self {
            error,
            data: Value::Null,
        }
    }
}

impl IntoResponse for V3Error {
    fn into_response(self) -> Response {
        let mut body = json!({ "error": self.error.message });
        if !self.data.is_null() {
            body["data"] = self.data;
        }
        let told = self.error.answer(&body);
        let mut response = json_answer(self.error.status, &body);
        *response.extensions_mut() = told.extensions().clone();
        self.error.mark(response.headers_mut());
        response
    }
}
