//! TDengine's REST API and WebSocket, as its adapter has them.
//!
//! `docs/guides/tdengine.md` says what works, and what differs on purpose.

mod asked;
mod columns;
mod describe;
mod error;
mod insert_texts;
mod rest;
mod schemaless;
mod ws;

use super::HttpShared;
use super::credentials::Credentials;
use super::error::HttpError;
use super::status;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use error::{OTHER_CODE, TaosFailure};
use marigram_tdengine::TaosdToken;
use serde::Deserialize;
pub(super) use ws::TaosSessions;

/// The version that clients are told: the one whose protocol this is.
const VERSION: &str = "3.3.6.0";

/// The existing paths, as metric labels.
const PATHS: [&str; 13] = [
    "/-/ping",
    "/influxdb/v1/write",
    "/opentsdb/v1/put/json/{db}",
    "/opentsdb/v1/put/telnet/{db}",
    "/rest/login/{user}/{password}",
    "/rest/schemaless",
    "/rest/sql",
    "/rest/sql/{db}",
    "/rest/stmt",
    "/rest/ws",
    "/health",
    "/metrics",
    "/ws",
];

/// The paths of the WebSocket.
const WS_PATHS: [&str; 4] = ["/ws", "/rest/ws", "/rest/stmt", "/rest/schemaless"];

/// The path of this API that a path is.
pub(super) fn known_path(path: &str) -> Option<&'static str> {
    PATHS.into_iter().find(|known| match known.split_once('{') {
        None => *known == path,
        Some((stem, rest)) => path.strip_prefix(stem).is_some_and(|given| {
            !given.is_empty() && given.matches('/').count() == rest.matches('/').count()
        }),
    })
}

/// Whether a statement runs behind a path.
pub(super) fn is_statement(path: &str) -> bool {
    matches!(known_path(path), Some("/rest/sql" | "/rest/sql/{db}"))
}

/// Whether a listener is that of this API.
pub(super) fn is_listener(setting: &str) -> bool {
    setting == "tdengine"
}

/// The answer to a request that was refused before it reached its handler.
pub(super) fn refusal(error: HttpError) -> Response {
    TaosFailure::from(error).into_response()
}

/// Parameters of the query string.
#[derive(Default, Deserialize)]
#[serde(default)]
struct UrlToken {
    token: String,
}

/// The credentials of a request; `None` if its path needs none: those of a WebSocket come with its first
/// messages.
pub(super) fn needed_credentials(request: &Request) -> Option<Credentials> {
    let path = request.uri().path();
    let is_open = WS_PATHS.contains(&path)
        || matches!(
            known_path(path),
            Some("/-/ping" | "/health" | "/rest/login/{user}/{password}")
        );
    (!is_open).then(|| credentials(request.uri(), request.headers()))
}

fn credentials(uri: &Uri, headers: &HeaderMap) -> Credentials {
    let header = headers.get(header::AUTHORIZATION);
    let header = header.and_then(|value| value.to_str().ok());
    if let Some((scheme, value)) = header.and_then(|text| text.split_once(' '))
        && scheme.eq_ignore_ascii_case("taosd")
    {
        return match TaosdToken::from_text(value.trim()) {
            Some(TaosdToken { user, password }) if !user.is_empty() => {
                Credentials::Password(user, password)
            }
            _ => Credentials::Unreadable,
        };
    }
    let given = axum::extract::Query::<UrlToken>::try_from_uri(uri);
    match given {
        Ok(given) if header.is_none() && !given.token.is_empty() => {
            Credentials::Token(given.token.clone())
        }
        _ => Credentials::new(uri, headers),
    }
}

/// The routes of the API.
pub(super) fn routes(sessions: TaosSessions) -> Router<HttpShared> {
    let mut router = Router::new()
        .route("/-/ping", get(ping))
        .route("/health", get(status::health))
        .route("/metrics", get(status::metrics))
        .route("/rest/sql", post(rest::post))
        .route("/rest/sql/{db}", post(rest::post_to))
        .route("/rest/login/{user}/{password}", get(rest::login))
        .route("/influxdb/v1/write", post(schemaless::influx))
        .route("/opentsdb/v1/put/json/{db}", post(schemaless::json))
        .route("/opentsdb/v1/put/telnet/{db}", post(schemaless::telnet));
    for path in WS_PATHS {
        router = router.route(path, get(ws::upgrade));
    }
    router
        .layer(Extension(sessions))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
}

/// `GET /-/ping`
async fn ping() -> StatusCode {
    StatusCode::OK
}

async fn unknown_path(uri: Uri) -> TaosFailure {
    let message = format!(
        "there is no path '{}'; there are {}",
        uri.path(),
        PATHS.join(", ")
    );
    TaosFailure::new(StatusCode::NOT_FOUND, OTHER_CODE, message)
}

async fn wrong_method(method: Method, uri: Uri) -> TaosFailure {
    let message = format!("'{}' does not take the method {method}", uri.path());
    TaosFailure::new(StatusCode::METHOD_NOT_ALLOWED, OTHER_CODE, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn paths_have_labels_without_what_clients_write() {
        for (path, known) in [
            ("/rest/sql", Some("/rest/sql")),
            ("/rest/sql/power", Some("/rest/sql/{db}")),
            ("/rest/sql/", None),
            ("/rest/sql/a/b", None),
            (
                "/rest/login/ann/secret",
                Some("/rest/login/{user}/{password}"),
            ),
            ("/rest/login/ann", None),
            (
                "/opentsdb/v1/put/json/d",
                Some("/opentsdb/v1/put/json/{db}"),
            ),
            ("/ws", Some("/ws")),
            ("/", None),
        ] {
            assert_eq!(known_path(path), known, "{path}");
        }
        assert!(is_statement("/rest/sql/d") && !is_statement("/ws"));
    }

    #[test]
    fn credentials_come_as_taosd_tokens_too() {
        let of = |header: Option<&str>, uri: &'static str| {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                let value = HeaderValue::from_str(header).expect("a header");
                headers.insert(header::AUTHORIZATION, value);
            }
            credentials(&Uri::from_static(uri), &headers)
        };
        let token = TaosdToken {
            user: "root".to_owned(),
            password: "taosdata".to_owned(),
        };
        let token = format!("Taosd {}", token.to_text().expect("a token"));
        let root = Credentials::Password("root".to_owned(), "taosdata".to_owned());
        assert_eq!(of(Some(&token), "/rest/sql"), root);
        assert_eq!(of(Some("Basic cm9vdDp0YW9zZGF0YQ=="), "/rest/sql"), root);
        assert_eq!(of(Some("Taosd x"), "/rest/sql"), Credentials::Unreadable);
        let token = Credentials::Token("mgt_x".to_owned());
        assert_eq!(of(None, "/rest/sql?token=mgt_x"), token);
        assert_eq!(of(None, "/rest/sql"), Credentials::None);
    }
}
