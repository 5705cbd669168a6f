//! Errors as TDengine answers them: a number and a sentence.
//!
//! A statement that fails is answered with status 200, as the adapter of TDengine does it unless it is
//! configured otherwise; its clients look at the number.

use crate::http::error::HttpError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use marigram_service::ServiceError;
use marigram_tdengine::{TaosCode, TaosError, split_error_text};
use serde_json::json;

/// The number of errors that have none of their own.
pub(super) const OTHER_CODE: u16 = 0xffff;

/// The number of a request without credentials.
pub(super) const NO_CREDENTIALS: u16 = 0x1105;

/// The number of a request without a body.
pub(super) const NO_MESSAGE: u16 = 0x1106;

/// The number of a request without a statement.
pub(super) const NO_SQL: u16 = 0x1107;

/// The number of credentials that cannot be read.
const UNREADABLE_CREDENTIALS: u16 = 0x1122;

/// An error to send.
#[derive(Clone, Debug)]
pub(super) struct TaosFailure {
    /// The number.
    pub(super) code: u16,
    /// The sentence.
    pub(super) message: String,
    /// The status of HTTP.
    pub(super) status: StatusCode,
    retry_after_s: Option<u64>,
}

impl TaosFailure {
    /// An error of the request.
    pub(super) fn new(status: StatusCode, code: u16, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            status,
            retry_after_s: None,
        }
    }

    /// An error of a WebSocket message.
    pub(super) fn other(message: impl Into<String>) -> Self {
        Self::new(StatusCode::OK, OTHER_CODE, message)
    }

    /// Too many requests run.
    pub(super) fn too_many() -> Self {
        HttpError::too_many().into()
    }

    /// There is no memory for the request.
    pub(super) fn no_memory() -> Self {
        HttpError::buffers_full().into()
    }
}

impl From<TaosError> for TaosFailure {
    fn from(error: TaosError) -> Self {
        Self::new(StatusCode::OK, error.code.number(), error.message)
    }
}

impl From<ServiceError> for TaosFailure {
    fn from(error: ServiceError) -> Self {
        let text = error.to_string();
        let own = split_error_text(&text);
        let of_sqlstate = TaosCode::number_of_sqlstate(error.sqlstate());
        let (code, message) = match (of_sqlstate, own) {
            (code, Some((own, message))) => (code.unwrap_or(own), message.to_owned()),
            (Some(code), None) => (code, text),
            (None, None) => (code_of(&error).number(), text),
        };
        let has_own = own_number(&error);
        let http = HttpError::from(error);
        let mut failure = Self::from(http);
        if has_own && failure.status != StatusCode::UNAUTHORIZED {
            failure.status = StatusCode::OK;
        }
        failure.code = code;
        failure.message = message;
        failure
    }
}

/// Whether an error has a number of TDengine.
fn own_number(error: &ServiceError) -> bool {
    split_error_text(&error.to_string()).is_some()
        || TaosCode::number_of_sqlstate(error.sqlstate()).is_some()
}

/// The number of an error of the service that has none.
fn code_of(error: &ServiceError) -> TaosCode {
    match error {
        ServiceError::Unauthenticated(_) => TaosCode::AuthenticationFailure,
        ServiceError::Forbidden(_) | ServiceError::ChangesRefused(_) => TaosCode::NoRights,
        ServiceError::ReadOnly(_) => TaosCode::NoWriteAccess,
        ServiceError::Busy { .. } => TaosCode::OutOfMemory,
        ServiceError::Cancelled(_) => TaosCode::QueryCancelled,
        ServiceError::Internal(_) => TaosCode::Internal,
        error => match error.sqlstate() {
            "3D000" => TaosCode::NoSuchDatabase,
            "42P01" => TaosCode::NoSuchTable,
            "42P04" => TaosCode::DatabaseExists,
            "42P07" => TaosCode::TableExists,
            "42601" => TaosCode::SyntaxError,
            "42703" => TaosCode::InvalidColumn,
            "42501" => TaosCode::NoRights,
            "0A000" => TaosCode::NotSupported,
            "57014" => TaosCode::QueryCancelled,
            state if state.starts_with("53") => TaosCode::OutOfMemory,
            state if state.starts_with("XX") => TaosCode::Internal,
            _ => TaosCode::InvalidParameter,
        },
    }
}

impl From<HttpError> for TaosFailure {
    fn from(error: HttpError) -> Self {
        let code = match (error.status, error.code) {
            (StatusCode::UNAUTHORIZED, _) if error.message.contains("credentials") => {
                NO_CREDENTIALS
            }
            (StatusCode::UNAUTHORIZED, _) if error.message.contains("Authorization") => {
                UNREADABLE_CREDENTIALS
            }
            (StatusCode::UNAUTHORIZED, _) => TaosCode::AuthenticationFailure.number(),
            (StatusCode::FORBIDDEN, _) => TaosCode::NoRights.number(),
            (StatusCode::SERVICE_UNAVAILABLE, "busy" | "too_many_requests") => {
                TaosCode::OutOfMemory.number()
            }
            _ => OTHER_CODE,
        };
        Self {
            code,
            // Statements that are wrong are answered with 200.
            status: match error.status {
                StatusCode::NOT_FOUND | StatusCode::CONFLICT => StatusCode::OK,
                status => status,
            },
            retry_after_s: error.retry_after.map(|after| after.as_secs().max(1)),
            message: error.message,
        }
    }
}

impl IntoResponse for TaosFailure {
    fn into_response(self) -> Response {
        let body = json!({"code": self.code, "desc": self.message});
        if self.status == StatusCode::OK {
            return crate::http::error::json_answer(self.status, &body);
        }
        let error = HttpError::new(self.status, "tdengine", self.message);
        let mut response = error.answer(&body);
        if let Some(seconds) = self.retry_after_s {
            let value = HeaderValue::from(seconds);
            response.headers_mut().insert(header::RETRY_AFTER, value);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let realm = HeaderValue::from_static("Basic realm=\"marigram\"");
            let headers = response.headers_mut();
            headers.insert(header::WWW_AUTHENTICATE, realm);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_numbers() {
        let invalid = |message: &str, sqlstate| ServiceError::Invalid {
            message: message.to_owned(),
            position: None,
            sqlstate,
        };
        for (error, code, message, status) in [
            (
                invalid("[0x2603] Table does not exist: d1", "42P01"),
                0x2603,
                "Table does not exist: d1",
                200,
            ),
            (invalid("no", "T2600"), 0x2600, "no", 200),
            (
                ServiceError::NotFound("no database".to_owned(), "3D000"),
                0x0388,
                "no database",
                200,
            ),
            (
                ServiceError::Unauthenticated("wrong".to_owned()),
                0x0357,
                "wrong",
                401,
            ),
            (ServiceError::Internal("oh".to_owned()), 0x02FF, "oh", 500),
        ] {
            let failure = TaosFailure::from(error);
            assert_eq!((failure.code, failure.message.as_str()), (code, message));
            assert_eq!(failure.status.as_u16(), status, "{message}");
        }
        let failure = TaosFailure::too_many();
        assert_eq!((failure.code, failure.status.as_u16()), (0x0102, 503));
        let response = failure.into_response();
        assert!(response.headers().contains_key(header::RETRY_AFTER));
    }
}
