//! Errors as HTTP answers: a status, and JSON that describes the error.

use crate::admission::BodyLimit;
use crate::failures::{RequestFailure, kind_of};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use marigram_service::ServiceError;
use serde_json::{Value, json};
use std::time::Duration;

/// An answer of this status with a JSON body.
pub(super) fn json_answer(status: StatusCode, value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// An error to send to an HTTP client.
#[derive(Debug)]
pub(crate) struct HttpError {
    /// Status of the answer.
    pub status: StatusCode,
    /// An identifier for programs.
    pub code: &'static str,
    /// A sentence for people.
    pub message: String,
    /// Position in the SQL, in characters from 1.
    pub position: Option<usize>,
    /// When to retry.
    pub retry_after: Option<Duration>,
    /// The methods that the path accepts.
    pub allow: Option<&'static str>,
    /// The kind of statement that failed, for the log.
    pub statement: Option<String>,
}

impl HttpError {
    /// An error with this status, code and message.
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            position: None,
            retry_after: None,
            allow: None,
            statement: None,
        }
    }

    /// 400: the request is wrong.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message)
    }

    /// 401: the client did not prove who it is.
    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    /// 413: the body is larger than `limit`.
    pub(crate) fn too_large(what: &str, limit: BodyLimit) -> Self {
        let BodyLimit { bytes, setting } = limit;
        let message = format!(
            "{what} is larger than {bytes} bytes, the most that {setting} allows; send it in \
             smaller parts, or raise {setting}"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    /// 503: the limit on running requests is reached.
    pub(crate) fn too_many() -> Self {
        let message = "too many requests are running; this one had no effect; send it again";
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too_many_requests",
            message,
        )
        .retry(Duration::from_secs(1))
    }

    /// 503: the limit on open connections is reached.
    pub(crate) fn no_slot() -> Self {
        let message = "as many connections as connections_max allows are open; this \
                       request had no effect; send it again";
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too_many_connections",
            message,
        )
        .retry(Duration::from_secs(1))
    }

    /// 503: the memory for bodies is full.
    pub(crate) fn buffers_full() -> Self {
        let message = "request bodies fill the memory set aside for them; this request \
                       had no effect; send it again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).retry(Duration::from_secs(1))
    }

    /// The same error with a time after which to retry.
    pub(crate) fn retry(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// The same error, for this statement.
    pub(crate) fn of_statement(mut self, sql: &str) -> Self {
        self.statement = Some(kind_of(sql));
        self
    }

    /// An answer with this body, and the header that says when to retry.
    pub(crate) fn answer(&self, body: &Value) -> Response {
        let mut response = json_answer(self.status, body);
        if self.status.is_server_error() || self.status.is_client_error() {
            response.extensions_mut().insert(RequestFailure {
                code: self.code,
                error: self.message.clone(),
                statement: self.statement.clone(),
            });
        }
        self.mark(response.headers_mut());
        response
    }

    /// Adds the headers that say when to try again, and by which method.
    pub(crate) fn mark(&self, headers: &mut HeaderMap) {
        if let Some(after) = self.retry_after {
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        if let Some(methods) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(methods));
        }
    }
}

impl From<ServiceError> for HttpError {
    fn from(error: ServiceError) -> Self {
        let message = error.to_string();
        let new = |status, code| Self::new(status, code, message);
        match error {
            ServiceError::Invalid {
                position, sqlstate, ..
            } => match sqlstate.get(..2) {
                // A resource that is short now may be available later, whoever reports it.
                Some("53" | "57") => {
                    new(StatusCode::SERVICE_UNAVAILABLE, "busy").retry(Duration::from_secs(1))
                }
                Some("XX") => new(StatusCode::INTERNAL_SERVER_ERROR, "internal"),
                _ => Self {
                    position,
                    ..new(StatusCode::BAD_REQUEST, "invalid")
                },
            },
            ServiceError::Violation(_) => new(StatusCode::BAD_REQUEST, "invalid"),
            ServiceError::ChangesRefused(_) => Self {
                allow: Some("POST"),
                ..new(StatusCode::METHOD_NOT_ALLOWED, "read_only_request")
            },
            ServiceError::Unauthenticated(_) => new(StatusCode::UNAUTHORIZED, "unauthorized"),
            ServiceError::Forbidden(_) => new(StatusCode::FORBIDDEN, "forbidden"),
            ServiceError::NotFound(..) => new(StatusCode::NOT_FOUND, "not_found"),
            ServiceError::AlreadyExists(..) => new(StatusCode::CONFLICT, "already_exists"),
            ServiceError::Busy { retry_after, .. } => {
                new(StatusCode::SERVICE_UNAVAILABLE, "busy").retry(retry_after)
            }
            ServiceError::ReadOnly(_) => {
                new(StatusCode::SERVICE_UNAVAILABLE, "read_only").retry(Duration::from_secs(30))
            }
            ServiceError::Cancelled(_) => {
                new(StatusCode::SERVICE_UNAVAILABLE, "cancelled").retry(Duration::from_secs(1))
            }
            _ => new(StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let body = json!({"error": {
            "code": self.code, "message": self.message, "position": self.position,
        }});
        self.answer(&body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_of_the_service_has_its_status() {
        let invalid = |sqlstate| ServiceError::Invalid {
            message: "m".to_owned(),
            position: Some(3),
            sqlstate,
        };
        let text = || "m".to_owned();
        let busy = ServiceError::Busy {
            message: text(),
            retry_after: Duration::from_millis(2500),
        };
        let unproved = ServiceError::Unauthenticated(text());
        let forbidden = ServiceError::Forbidden(text());
        // Status, identifier for programs, seconds to wait, accepted methods, SQLSTATE.
        let table = [
            (invalid("42601"), 400, "invalid", None, None, "42601"),
            (invalid("22021"), 400, "invalid", None, None, "22021"),
            (invalid("42622"), 400, "invalid", None, None, "42622"),
            (invalid("54001"), 400, "invalid", None, None, "54001"),
            (invalid("42501"), 400, "invalid", None, None, "42501"),
            (invalid("53200"), 503, "busy", Some("1"), None, "53200"),
            (invalid("53100"), 503, "busy", Some("1"), None, "53100"),
            (invalid("57P03"), 503, "busy", Some("1"), None, "57P03"),
            (invalid("XX000"), 500, "internal", None, None, "XX000"),
            (invalid(""), 400, "invalid", None, None, ""),
            (unproved, 401, "unauthorized", None, None, "28P01"),
            (forbidden, 403, "forbidden", None, None, "42501"),
            (
                ServiceError::NotFound(text(), "42P01"),
                404,
                "not_found",
                None,
                None,
                "42P01",
            ),
            (
                ServiceError::AlreadyExists(text(), "42P07"),
                409,
                "already_exists",
                None,
                None,
                "42P07",
            ),
            (busy, 503, "busy", Some("3"), None, "53200"),
            (
                ServiceError::ChangesRefused(text()),
                405,
                "read_only_request",
                None,
                Some("POST"),
                "25006",
            ),
            (
                ServiceError::ReadOnly(text()),
                503,
                "read_only",
                Some("30"),
                None,
                "25006",
            ),
            (
                ServiceError::Cancelled(text()),
                503,
                "cancelled",
                Some("1"),
                None,
                "57014",
            ),
            (
                ServiceError::Internal(text()),
                500,
                "internal",
                None,
                None,
                "XX000",
            ),
        ];
        for (error, status, code, retry, allow, sqlstate) in table {
            let what = format!("{error:?}");
            assert_eq!(error.sqlstate(), sqlstate, "{what}");
            let error = HttpError::from(error);
            assert_eq!(
                (error.status.as_u16(), error.code),
                (status, code),
                "{what}"
            );
            let response = error.into_response();
            let header = |name| response.headers().get(name).map(|v| v.to_str().unwrap());
            assert_eq!(header(header::RETRY_AFTER), retry, "{what}");
            assert_eq!(header(header::ALLOW), allow, "{what}");
        }
    }
}
