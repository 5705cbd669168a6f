//! Errors of a request as a whole, as InfluxDB answers them.

use super::encoder::{InfluxFormat, form};
use super::series_form::TimeForm;
use crate::failures::RequestFailure;
use crate::http::error::HttpError;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Bytes of a message that a header repeats.
const HEADER_BYTES_MAX: usize = 1024;

/// An error, and the form in which it is answered.
#[derive(Debug)]
pub(crate) struct InfluxError {
    error: HttpError,
    format: InfluxFormat,
    pretty: bool,
}

impl InfluxError {
    /// The error in the form that `headers` ask for.
    pub(crate) fn new(error: HttpError, headers: &HeaderMap, pretty: bool) -> Self {
        let format = InfluxFormat::from_headers(headers);
        Self {
            error,
            format,
            pretty,
        }
    }

    /// The error as JSON.
    pub(crate) fn json(error: HttpError) -> Self {
        Self {
            error,
            format: InfluxFormat::Json,
            pretty: false,
        }
    }
}

impl IntoResponse for InfluxError {
    fn into_response(self) -> Response {
        let Self {
            error,
            format,
            pretty,
        } = self;
        let mut body = form(format, pretty, TimeForm::Default);
        body.error(&error.message);
        let mut response = Response::new(Body::from(body.take()));
        *response.status_mut() = error.status;
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static(format.content_type());
        headers.insert(header::CONTENT_TYPE, kind);
        if let Some(value) = header_text(&error.message) {
            headers.insert(HeaderName::from_static("x-influxdb-error"), value);
        }
        error.mark(headers);
        if error.status != StatusCode::OK {
            response.extensions_mut().insert(RequestFailure {
                code: error.code,
                error: error.message,
                statement: error.statement,
            });
        }
        response
    }
}

/// The beginning of a message on one line.
fn header_text(message: &str) -> Option<HeaderValue> {
    let end = message.floor_char_boundary(HEADER_BYTES_MAX);
    let line: String = message[..end]
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect();
    HeaderValue::from_bytes(line.as_bytes()).ok()
}
