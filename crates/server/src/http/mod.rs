//! HTTP: health, line protocol, SQL, InfluxQL, backups and metrics.

mod backup;
mod body;
mod browser;
mod client_share;
mod connection_activity;
mod connections;
mod credentials;
mod error;
mod format;
mod influx;
mod influx_v2;
mod influx_v3;
mod json;
mod opentsdb;
mod read_budget;
mod refusal;
mod request_context;
mod response_body;
mod sql;
mod status;
mod streamed_body;
mod table_write;
mod tdengine;
mod web_sessions;
mod write;

use crate::audit::{AuditEvent, AuditOutcome, AuditedAction, ClientAddress};
use crate::config::ServerConfig;
use crate::failures::RequestFailure;
use crate::listener::{ListenerContext, ListenerKind, ServerState};
use crate::slow_log::PEER;
use crate::tls::{ClientListener, SecondProtocol, TlsProtocol};
use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
pub(crate) use browser::BrowserRules;
pub(crate) use client_share::{StopTime, WAIT_MAX as ANSWER_WAIT_MAX};
use connection_activity::BusyGuard;
pub(crate) use connections::{ConnectedPeer, HttpConnection, HttpConnections};
pub(crate) use credentials::Credentials;
use credentials::NOBODY;
pub(crate) use error::HttpError;
use futures::StreamExt;
pub(crate) use influx::bound_parameter;
pub(crate) use influx_v3::{bound_sql, has_second_statement};
use marigram_service::Identity;
use refusal::refusal;
use request_context::needed_credentials;
pub(crate) use request_context::{NO_USERS, is_loopback};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tdengine::TaosSessions;
use tokio::net::TcpListener;
use web_sessions::WebSessions;

/// State that the routes share.
#[derive(Clone)]
struct HttpShared {
    server: ServerState,
    rules: Arc<BrowserRules>,
    sessions: Arc<WebSessions>,
    /// The setting of the listener.
    listener: &'static str,
    /// The client of a request.
    identity: Identity,
}

/// The existing paths, for the answer to unknown ones and as metric labels.
const PATHS: [&str; 13] = [
    "/health",
    "/ping",
    "/write",
    "/query",
    "/api/v2/write",
    "/api/v3/write_lp",
    "/api/v3/query_sql",
    "/api/v3/query_influxql",
    "/ready",
    "/api/v1/sql",
    "/api/v1/write",
    "/api/v1/backup",
    "/metrics",
];

/// The status paths, which are answered even when all slots are taken.
const STATUS_PATHS: [&str; 4] = ["/health", "/ping", "/ready", "/metrics"];

/// How long other requests of a connection beyond `connections_max` wait for a slot.
const SLOT_WAIT_MAX: Duration = Duration::from_secs(1);

/// What a client gets that speaks HTTP without TLS where it must not.
const PLAIN_ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    Content-Type: application/json\r\nContent-Length: 83\r\nConnection: close\r\n\r\n\
    {\"error\":\"this server encrypts its connections: its address begins with https://\"}\n";

/// The setting of the listener for HTTP.
const SETTING: &str = "http";

/// How the server offers HTTP.
pub(crate) const LISTENER: ListenerKind = ListenerKind {
    setting: SETTING,
    protocol: "HTTP",
    title: "HTTP",
    address: |config| config.http,
    url: |address, has_tls| {
        let scheme = if has_tls { "https" } else { "http" };
        format!("{scheme}://{address}")
    },
    serve: |listener, context| Box::pin(serve(listener, context)),
};

/// Checks the settings that only HTTP has.
///
/// # Errors
/// The name of a setting, and what is wrong with it.
pub(crate) fn check_settings(config: &ServerConfig) -> Result<(), (&'static str, String)> {
    BrowserRules::new(config).map(drop)
}

/// Serves HTTP on `listener` until the server stops, then finishes running requests.
async fn serve(listener: TcpListener, context: ListenerContext) {
    serve_routes((listener, None), context, SETTING, routes()).await;
}

/// Serves OpenTSDB's API on `listener` in the same way; connections that do not speak HTTP go to
/// `telnet`. `setting` is that of the listener.
pub(crate) async fn serve_opentsdb(
    listener: TcpListener,
    telnet: SecondProtocol,
    context: ListenerContext,
    setting: &'static str,
) {
    let routes = opentsdb::routes();
    serve_routes((listener, Some(telnet)), context, setting, routes).await;
}

/// Serves TDengine's API on `listener` in the same way, until each WebSocket has ended, too. `setting`
/// is that of the listener.
pub(crate) async fn serve_tdengine(
    listener: TcpListener,
    context: ListenerContext,
    setting: &'static str,
) {
    let sessions = TaosSessions::new(context.stop.clone());
    let routes = tdengine::routes(sessions.clone());
    serve_routes((listener, None), context, setting, routes).await;
    sessions.ended().await;
}

async fn serve_routes(
    (listener, second): (TcpListener, Option<SecondProtocol>),
    context: ListenerContext,
    setting: &'static str,
    routes: Router<HttpShared>,
) {
    let ListenerContext { server, tls, stop } = context;
    let rules = match BrowserRules::new(&server.config) {
        Ok(rules) => Arc::new(rules),
        Err((setting, reason)) => {
            tracing::error!(setting, reason, "the HTTP server cannot start");
            return;
        }
    };
    let mut listener =
        ClientListener::new(listener, tls, TlsProtocol::Http, PLAIN_ANSWER, stop.clone());
    if let Some(second) = second {
        listener = listener.with_second(second);
    }
    let listener = HttpConnections::new(
        listener,
        &server.config,
        server.gate.stalled(),
        stop.clone(),
    );
    let shared = HttpShared {
        server,
        rules,
        sessions: Arc::default(),
        listener: setting,
        identity: Identity::unproved(NOBODY),
    };
    let router = routes
        .layer(from_fn_with_state(shared.clone(), measure))
        .with_state(shared);
    let router = router.into_make_service_with_connect_info::<ConnectedPeer>();
    let served = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "the HTTP server ended");
    }
}

/// The routes of the listener for HTTP.
fn routes() -> Router<HttpShared> {
    Router::new()
        .route("/health", get(status::health))
        .route("/ping", get(status::ping))
        .route("/write", post(write::write))
        .route("/query", get(influx::get).post(influx::post))
        .route("/api/v2/write", post(write::write_v2))
        .route("/api/v3/write_lp", post(write::write_v3))
        .route(
            "/api/v3/query_sql",
            get(influx_v3::get_sql).post(influx_v3::post_sql),
        )
        .route(
            "/api/v3/query_influxql",
            get(influx_v3::get_influxql).post(influx_v3::post_influxql),
        )
        .merge(influx_v2::routes())
        .route("/api/v1/sql", get(sql::get).post(sql::post))
        .route("/api/v1/write", post(table_write::post))
        .route("/api/v1/backup", post(backup::post))
        .route("/metrics", get(status::metrics))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
}

/// Counts and times a request, refuses what a web page may not do, and stops the request when the
/// server is killed.
async fn measure(
    State(shared): State<HttpShared>,
    ConnectInfo(peer): ConnectInfo<ConnectedPeer>,
    request: Request,
    next: Next,
) -> Response {
    let begin = Instant::now();
    let (request, busy) = peer.begin(request);
    let path = request.uri().path();
    let known = PATHS.into_iter().find(|known| *known == path);
    let known = known.or_else(|| {
        influx_v2::PATHS
            .into_iter()
            .find(|known| is_of(path, known))
    });
    let known = known
        .or_else(|| opentsdb::known_path(path))
        .or_else(|| tdengine::known_path(path));
    let route = known.unwrap_or("other");
    let answer = async {
        if !STATUS_PATHS.contains(&route) && !peer.has_slot(SLOT_WAIT_MAX).await {
            let mut response = HttpError::no_slot().into_response();
            close_after(&mut response);
            return response;
        }
        match shared.rules.admit(&request, peer.local()) {
            Ok(admitted) => {
                let mut response = match admitted.preflight() {
                    Some(answer) => answer,
                    None => run_authenticated(&shared, peer.remote(), request, next).await,
                };
                admitted.mark(&mut response);
                response
            }
            Err(refused) => {
                let mut response = refused.into_response();
                browser::mark_refused(response.headers_mut());
                response
            }
        }
    };
    let mut response = tokio::select! {
        response = peer.held().scope(answer) => response,
        () = shared.server.kill.cancelled() => {
            HttpError::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the server is stopping")
                .retry(Duration::from_secs(5))
                .into_response()
        }
    };
    if peer.has_unread_body() {
        // Otherwise the client would send its next request to a connection that is closing.
        close_after(&mut response);
    }
    if shared.listener == SETTING {
        name_influx_version(&mut response);
    }
    let status = response.status().as_u16();
    shared.server.telemetry.request(route, status, begin);
    if let Some(failure) = response.extensions_mut().remove::<RequestFailure>() {
        let failures = &shared.server.telemetry.failures;
        if response.status().is_server_error() {
            failures.note(route, status, &failure);
        } else if is_logged(route, status) {
            failures.note_refused(route, status, &failure, peer.remote());
        }
    }
    busy_until_sent(response, busy)
}

/// Adds the headers by which clients of InfluxDB know what they talk to.
fn name_influx_version(response: &mut Response) {
    let version = HeaderValue::from_static(concat!("marigram-", env!("CARGO_PKG_VERSION")));
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("x-influxdb-version"), version);
    let build = HeaderValue::from_static("OSS");
    headers.insert(HeaderName::from_static("x-influxdb-build"), build);
}

/// Tells the client that its connection closes after the answer.
fn close_after(response: &mut Response) {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
}

/// Runs a request in the name of its client.
async fn run_authenticated(
    shared: &HttpShared,
    peer: SocketAddr,
    mut request: Request,
    next: Next,
) -> Response {
    let credentials = if tdengine::is_listener(shared.listener) {
        tdengine::needed_credentials(&request)
    } else {
        needed_credentials(&request)
    };
    match shared.authenticate(credentials, peer).await {
        Ok(identity) => {
            let audited =
                audited_path(shared, &request).map(|(action, path)| (action, path.to_owned()));
            let user = audited.as_ref().map(|_| identity.user.clone());
            request.extensions_mut().insert(identity);
            let response = PEER.scope(peer, next.run(request)).await;
            if let (Some((action, path)), Some(user)) = (audited, user) {
                note_request(shared, peer, (action, &path, &user), &response);
            }
            response
        }
        Err(error) if opentsdb::is_listener(shared.listener) => opentsdb::refusal(error),
        Err(error) if tdengine::is_listener(shared.listener) => tdengine::refusal(error),
        Err(error) => refusal(request.uri().path(), error),
    }
}

/// What a request is for the audit log, if no statement that the log tells of is behind it.
fn audited_path<'a>(shared: &HttpShared, request: &'a Request) -> Option<(AuditedAction, &'a str)> {
    if !shared.server.audit.is_on() {
        return None;
    }
    match request.uri().path() {
        path if opentsdb::is_statement(path) || tdengine::is_statement(path) => None,
        // Paths of this API may hold passwords.
        path if tdengine::is_listener(shared.listener) => {
            Some((AuditedAction::Request, tdengine::known_path(path)?))
        }
        "/api/v1/sql" | "/query" | "/api/v3/query_sql" | "/api/v3/query_influxql" => None,
        path @ "/api/v1/backup" => Some((AuditedAction::Backup, path)),
        path => Some((AuditedAction::Request, path)),
    }
}

/// Notes a backup, and any request that was refused.
fn note_request(
    shared: &HttpShared,
    address: SocketAddr,
    (action, path, user): (AuditedAction, &str, &str),
    response: &Response,
) {
    let outcome = match response.status() {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => AuditOutcome::Refused,
        _ if action == AuditedAction::Request => return,
        status if status.is_success() => AuditOutcome::Done,
        _ => AuditOutcome::Failed,
    };
    let client = ClientAddress {
        listener: shared.listener,
        address,
    };
    shared.server.audit.note(&AuditEvent {
        outcome,
        statement: Some(path),
        ..AuditEvent::for_client(client, action, user)
    });
}

/// Whether a path is of the form `known`, which may end with `{id}`.
fn is_of(path: &str, known: &str) -> bool {
    match known.strip_suffix("{id}") {
        Some(stem) => path.strip_prefix(stem).is_some_and(|id| !id.contains('/')),
        None => path == known,
    }
}

/// Whether the log reports a refused request. Wrong statements are not reported: they concern only
/// the client and its user.
fn is_logged(route: &str, status: u16) -> bool {
    let is_statement = matches!(
        route,
        "/api/v1/sql" | "/query" | "/api/v2/query" | "/api/v3/query_sql" | "/api/v3/query_influxql"
    );
    let is_statement =
        is_statement || opentsdb::is_statement(route) || tdengine::is_statement(route);
    !is_statement || !matches!(status, 400 | 404 | 409)
}

/// The same answer; if it streams, its connection stays busy until the stream ends.
fn busy_until_sent(response: Response, busy: BusyGuard) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| {
        let parts = body.into_data_stream().map(move |part| {
            let _until_dropped = &busy;
            part
        });
        Body::from_stream(parts)
    })
}

async fn unknown_path(uri: Uri) -> HttpError {
    let message = format!(
        "there is no path '{}'; there are {}",
        uri.path(),
        PATHS
            .into_iter()
            .chain(influx_v2::PATHS)
            .collect::<Vec<_>>()
            .join(", ")
    );
    HttpError::new(StatusCode::NOT_FOUND, "not_found", message)
}

async fn wrong_method(uri: Uri) -> HttpError {
    let message = format!(
        "'{}' does not take this method; see the guide to HTTP",
        uri.path()
    );
    HttpError::new(StatusCode::METHOD_NOT_ALLOWED, "invalid", message)
}
