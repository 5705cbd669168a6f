//! What the server says of itself, and what it does not do.

use super::error::OpenTsdbError;
use super::json_type::opentsdb_json;
use crate::http::error::HttpError;
use crate::http::request_context::RequestContext;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use marigram_opentsdb::{Aggregator, FILTERS};
use serde_json::{Map, Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// The version whose API this is.
const OPENTSDB_VERSION: &str = "2.4.0";

/// `/api/aggregators`: the names of the functions.
pub(super) async fn aggregators() -> Response {
    let names: Vec<&str> = Aggregator::names().collect();
    opentsdb_json(StatusCode::OK, &json!(names))
}

/// `/api/version`
pub(super) async fn version() -> Response {
    let version = concat!("marigram-", env!("CARGO_PKG_VERSION"));
    let body = json!({
        "version": OPENTSDB_VERSION, "short_revision": version, "full_revision": version,
        "repo_status": "MINT", "repo": "marigram", "branch": "", "user": "", "host": "",
        "timestamp": "0",
    });
    opentsdb_json(StatusCode::OK, &body)
}

/// `/api/config`: the settings of OpenTSDB that clients look at.
pub(super) async fn config(RequestContext(shared): RequestContext) -> Response {
    let limits = &shared.server.config;
    let body = json!({
        "tsd.core.auto_create_metrics": "true",
        "tsd.core.auto_create_tagks": "true",
        "tsd.core.auto_create_tagvs": "true",
        "tsd.http.query.allow_delete": "false",
        "tsd.http.request.enable_chunked": "true",
        "tsd.http.request.max_chunk": limits.body_limit.to_string(),
        "tsd.storage.uid.width.metric": "8",
        "tsd.storage.uid.width.tagk": "8",
        "tsd.storage.uid.width.tagv": "8",
    });
    opentsdb_json(StatusCode::OK, &body)
}

/// `/api/config/filters`
pub(super) async fn filters() -> Response {
    let filters = FILTERS.iter().map(|filter| {
        let described = serde_json::to_value(filter).unwrap_or_default();
        (filter.name.to_owned(), described)
    });
    let filters: Map<String, Value> = filters.collect();
    opentsdb_json(StatusCode::OK, &Value::Object(filters))
}

/// `/api/serializers`
pub(super) async fn serializers() -> Response {
    let body = json!([{
        "serializer": "json",
        "class": "marigram",
        "request_content_type": "application/json",
        "response_content_type": "application/json; charset=UTF-8",
        "formatters": ["PutV1", "QueryV1", "SuggestV1", "AggregatorsV1", "VersionV1", "ErrorV1"],
        "parsers": ["PutV1", "QueryV1", "SuggestV1"],
    }]);
    opentsdb_json(StatusCode::OK, &body)
}

/// `/api/dropcaches`: there is nothing to drop that would be wrong.
pub(super) async fn drop_caches() -> Response {
    let body = json!({"message": "Caches dropped", "status": "200"});
    opentsdb_json(StatusCode::OK, &body)
}

/// `/api/stats`: the figures of `/metrics` as points.
pub(super) async fn stats(
    RequestContext(shared): RequestContext,
) -> Result<Response, OpenTsdbError> {
    let rights = shared.rights()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let timestamp = now.map_or(0, |now| now.as_secs());
    let metrics = shared.server.services.status.metrics().into_iter();
    let known = metrics.filter(|metric| {
        let mut databases = metric.labels.iter().filter(|(name, _)| *name == "database");
        databases.all(|(_, database)| rights.see(database))
    });
    let points: Vec<Value> = known
        .map(|metric| {
            let labels = metric.labels.into_iter();
            let tags: Map<String, Value> = labels
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect();
            let value = metric.value.to_string();
            json!({"metric": metric.name, "timestamp": timestamp, "value": value, "tags": tags})
        })
        .collect();
    Ok(opentsdb_json(StatusCode::OK, &Value::Array(points)))
}

/// What OpenTSDB has and this server has not.
pub(super) async fn unsupported(uri: Uri) -> OpenTsdbError {
    let path: String = uri.path().chars().take(100).collect();
    let error = HttpError::new(
        StatusCode::NOT_IMPLEMENTED,
        "unsupported",
        format!("'{path}' is not supported"),
    );
    OpenTsdbError::from(error).with_details("Use /api/query/exp for expressions")
}
