//! `/health`, `/ping` and `/metrics`.

use crate::http::error::{HttpError, json_answer};
use crate::http::request_context::RequestContext;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

/// 200 while reads and writes work; 503 with the reason if writes are refused. In either case,
/// `warnings` lists what an operator should know.
pub(super) async fn health(RequestContext(shared): RequestContext) -> Response {
    let version = env!("CARGO_PKG_VERSION");
    let (status, word, message) = match shared.server.services.status.health() {
        Ok(()) => (
            StatusCode::OK,
            "pass",
            "ready for writes and queries".to_owned(),
        ),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, "fail", reason),
    };
    let warnings = shared.server.services.status.warnings();
    let body = json!({
        "name": "marigram", "status": word, "version": version, "message": message,
        "warnings": warnings,
    });
    json_answer(status, &body)
}

/// Parameters of `/ping`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct PingParameters {
    #[serde(default)]
    verbose: String,
}

/// 204: the server is there; with `verbose`, 200 and which version it is.
pub(super) async fn ping(given: Result<Query<PingParameters>, QueryRejection>) -> Response {
    let verbose = given.ok().map(|Query(parameters)| parameters.verbose);
    match verbose.as_deref() {
        None | Some("" | "0" | "false") => StatusCode::NO_CONTENT.into_response(),
        Some(_) => {
            let version = concat!("marigram-", env!("CARGO_PKG_VERSION"));
            json_answer(StatusCode::OK, &json!({ "version": version }))
        }
    }
}

/// All metrics, in the format of Prometheus; without those of databases of which the client may not
/// know.
pub(super) async fn metrics(RequestContext(shared): RequestContext) -> Result<Response, HttpError> {
    let rights = shared.rights()?;
    let mut known = shared.server.services.status.metrics();
    known.retain(|metric| {
        let mut databases = metric.labels.iter().filter(|(name, _)| *name == "database");
        databases.all(|(_, database)| rights.see(database))
    });
    let text = shared.server.telemetry.text(known);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
