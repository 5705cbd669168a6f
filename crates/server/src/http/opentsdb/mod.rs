//! OpenTSDB's HTTP API 2.4: `/api/put`, `/api/query` and what goes with them.
//!
//! `docs/guides/opentsdb.md` says what works, and what differs on purpose.

mod about;
mod annotation;
mod annotation_store;
mod answer;
mod asked;
mod error;
mod json_type;
mod names;
mod parameters;
mod put;
mod query;
mod text_answer;

use super::HttpShared;
use super::error::HttpError;
use super::status;
use axum::Router;
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use error::OpenTsdbError;

/// The existing paths, as metric labels.
const PATHS: [&str; 23] = [
    "/api/aggregators",
    "/api/annotation",
    "/api/annotation/bulk",
    "/api/annotations",
    "/api/config",
    "/api/config/filters",
    "/api/dropcaches",
    "/api/put",
    "/api/query",
    "/api/query/exp",
    "/api/query/gexp",
    "/api/query/last",
    "/api/search/lookup",
    "/api/serializers",
    "/api/stats",
    "/api/suggest",
    "/api/uid/assign",
    "/api/version",
    "/aggregators",
    "/dropcaches",
    "/stats",
    "/suggest",
    "/version",
];

/// The paths behind which a statement runs, of which the audit log tells by itself.
const STATEMENT_PATHS: [&str; 5] = [
    "/api/query",
    "/api/query/exp",
    "/api/query/last",
    "/api/search/lookup",
    "/api/suggest",
];

/// The path of this API that a path is, with or without its version and a slash at its end.
pub(super) fn known_path(path: &str) -> Option<&'static str> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let rest = path.strip_prefix("/api/v1");
    let is_known = |known: &&str| {
        **known == *path
            || rest.is_some_and(|rest| {
                known
                    .strip_prefix("/api")
                    .is_some_and(|known| known == rest)
            })
    };
    PATHS.into_iter().find(is_known)
}

/// Whether a statement runs behind a path.
pub(super) fn is_statement(path: &str) -> bool {
    known_path(path).is_some_and(|known| STATEMENT_PATHS.contains(&known))
}

/// Whether a listener is that of this API.
pub(super) fn is_listener(setting: &str) -> bool {
    setting == "opentsdb"
}

/// The answer to a request that was refused before it reached its handler.
pub(super) fn refusal(error: HttpError) -> Response {
    let is_unauthorized = error.status == StatusCode::UNAUTHORIZED;
    let mut response = OpenTsdbError::from(error).into_response();
    if is_unauthorized {
        let realm = HeaderValue::from_static("Basic realm=\"marigram\"");
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, realm);
    }
    response
}

/// The routes of the API.
pub(super) fn routes() -> Router<HttpShared> {
    let mut router = Router::new()
        .route("/health", get(status::health))
        .route("/metrics", get(status::metrics));
    for prefix in ["/api", "/api/v1"] {
        for (path, handler) in api() {
            // Some clients end a path with a slash.
            router = router
                .route(&format!("{prefix}{path}"), handler.clone())
                .route(&format!("{prefix}{path}/"), handler);
        }
    }
    router
        .route("/aggregators", get(about::aggregators))
        .route("/dropcaches", get(about::drop_caches))
        .route("/stats", get(about::stats))
        .route("/suggest", get(names::get_suggest))
        .route("/version", get(about::version))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
}

fn api() -> Vec<(&'static str, MethodRouter<HttpShared>)> {
    vec![
        (
            "/aggregators",
            get(about::aggregators).post(about::aggregators),
        ),
        ("/annotation", any(annotation::one)),
        ("/annotation/bulk", any(annotation::bulk)),
        ("/annotations", any(annotation::all)),
        ("/config", get(about::config).post(about::config)),
        ("/config/filters", get(about::filters).post(about::filters)),
        (
            "/dropcaches",
            get(about::drop_caches).post(about::drop_caches),
        ),
        ("/put", post(put::post)),
        (
            "/query",
            get(query::get).post(query::post).delete(query::delete),
        ),
        (
            "/query/exp",
            get(query::expressions)
                .post(query::expressions)
                .delete(query::delete),
        ),
        ("/query/gexp", any(about::unsupported)),
        ("/query/last", get(query::get_last).post(query::post_last)),
        (
            "/search/lookup",
            get(names::get_lookup).post(names::post_lookup),
        ),
        ("/serializers", get(about::serializers)),
        ("/stats", get(about::stats).post(about::stats)),
        (
            "/suggest",
            get(names::get_suggest).post(names::post_suggest),
        ),
        (
            "/uid/assign",
            get(names::get_assign).post(names::post_assign),
        ),
        ("/version", get(about::version).post(about::version)),
    ]
}

/// The newest version of the API.
const API_VERSION_MAX: u32 = 1;

async fn unknown_path(uri: Uri) -> OpenTsdbError {
    if let Some(version) = api_version(uri.path())
        && version > API_VERSION_MAX
    {
        let message = "Requested API version is greater than the max implemented";
        return OpenTsdbError::new(StatusCode::NOT_IMPLEMENTED, message).with_details(format!(
            "API version [{version}] is greater than the max [{API_VERSION_MAX}]"
        ));
    }
    OpenTsdbError::new(StatusCode::NOT_FOUND, "Endpoint not found").with_details(format!(
        "The requested endpoint was not found: '{}'; there are {}",
        uri.path(),
        PATHS.join(", ")
    ))
}

/// The version that a path names.
fn api_version(path: &str) -> Option<u32> {
    let version = path.strip_prefix("/api/v")?.split('/').next()?;
    version.parse().ok()
}

async fn wrong_method(method: Method) -> OpenTsdbError {
    OpenTsdbError::new(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed").with_details(format!(
        "The HTTP method [{method}] is not permitted for this endpoint"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_a_version_and_a_slash_or_not() {
        assert_eq!(known_path("/api/put"), Some("/api/put"));
        assert_eq!(known_path("/api/put/"), Some("/api/put"));
        assert_eq!(known_path("/api/v1/query/last"), Some("/api/query/last"));
        assert_eq!(known_path("/api/v1/sql"), None);
        assert_eq!(known_path("/"), None);
        assert!(is_statement("/api/v1/query/") && !is_statement("/api/put"));
        assert_eq!(api_version("/api/v2/version"), Some(2));
        assert_eq!(api_version("/api/version"), None);
    }
}
