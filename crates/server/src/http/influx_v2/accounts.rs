//! Organisations, users and tokens as InfluxDB 2 shows them: one organisation, which has the name that a
//! client gives it, and the client itself with its token. SQL manages users and tokens.

use super::error::V2Error;
use crate::http::HttpShared;
use crate::http::connections::ConnectedPeer;
use crate::http::credentials::Credentials;
use crate::http::error::{HttpError, json_answer};
use crate::http::influx::FormValues;
use crate::http::request_context::RequestContext;
use crate::http::web_sessions::{cookie_of, set_cookie};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::time::Instant;

/// The organisation's identifier.
pub(super) const ORG_ID: &str = "0000000000000001";

/// The organisation's name, where a client gives it none.
pub(super) const ORG_NAME: &str = "marigram";

const USER_ID: &str = "0000000000000002";
const TOKEN_ID: &str = "0000000000000003";

fn ok(value: &Value) -> Response {
    json_answer(StatusCode::OK, value)
}

/// Parameters of the query string.
pub(super) fn parameters(uri: &Uri) -> Result<FormValues, HttpError> {
    FormValues::from_url(uri)
}

fn organisation(name: &str) -> Value {
    json!({
        "id": ORG_ID, "name": name, "description": "",
        "links": {"self": format!("/api/v2/orgs/{ORG_ID}"), "buckets": "/api/v2/buckets"},
    })
}

/// `GET /api/v2/orgs?org=&orgID=`
pub(super) async fn orgs(uri: Uri) -> Result<Response, V2Error> {
    let values = parameters(&uri)?;
    if values.get("orgID").is_some_and(|id| id != ORG_ID) {
        return Err(V2Error::not_found("organization not found"));
    }
    let org = organisation(values.get("org").unwrap_or(ORG_NAME));
    let links = json!({"self": "/api/v2/orgs"});
    Ok(ok(&json!({"links": links, "orgs": [org]})))
}

fn last_segment(uri: &Uri) -> &str {
    uri.path().rsplit('/').next().unwrap_or_default()
}

/// `GET /api/v2/orgs/{id}`
pub(super) async fn org(uri: Uri) -> Result<Response, V2Error> {
    if last_segment(&uri) != ORG_ID {
        return Err(V2Error::not_found("organization not found"));
    }
    Ok(ok(&organisation(ORG_NAME)))
}

fn user(shared: &HttpShared) -> Value {
    json!({
        "id": USER_ID, "name": shared.identity.user, "status": "active",
        "links": {"self": format!("/api/v2/users/{USER_ID}")},
    })
}

/// `GET /api/v2/users`
pub(super) async fn users(RequestContext(shared): RequestContext) -> Response {
    ok(&json!({"links": {"self": "/api/v2/users"}, "users": [user(&shared)]}))
}

/// `GET /api/v2/me`
pub(super) async fn me(RequestContext(shared): RequestContext) -> Response {
    ok(&user(&shared))
}

fn token(shared: &HttpShared) -> Value {
    let permission = |action: &str, kind: &str| json!({"action": action, "resource": {"type": kind, "orgID": ORG_ID, "org": ORG_NAME}});
    let kinds = ["buckets", "orgs", "users", "authorizations"];
    let permissions: Vec<Value> = kinds
        .iter()
        .flat_map(|kind| [permission("read", kind), permission("write", kind)])
        .collect();
    json!({
        "id": TOKEN_ID, "token": "any", "status": "active",
        "description": "the credentials of this request; SHOW TOKENS of SQL shows all tokens",
        "orgID": ORG_ID, "org": ORG_NAME, "userID": USER_ID, "user": shared.identity.user,
        "permissions": permissions,
        "links": {"self": format!("/api/v2/authorizations/{TOKEN_ID}")},
    })
}

/// `GET /api/v2/authorizations`
pub(super) async fn authorizations(RequestContext(shared): RequestContext) -> Response {
    let links = json!({"self": "/api/v2/authorizations"});
    ok(&json!({"links": links, "authorizations": [token(&shared)]}))
}

/// `GET /api/v2/authorizations/{id}`
pub(super) async fn authorization(
    RequestContext(shared): RequestContext,
    uri: Uri,
) -> Result<Response, V2Error> {
    if last_segment(&uri) != TOKEN_ID {
        return Err(V2Error::not_found("authorization not found"));
    }
    Ok(ok(&token(&shared)))
}

/// `POST /api/v2/authorizations`: refused. Tokens are made by SQL.
pub(super) async fn authorize() -> V2Error {
    V2Error(HttpError::new(
        StatusCode::NOT_IMPLEMENTED,
        "invalid",
        "make tokens with SQL: CREATE TOKEN READ ON database; DROP TOKEN removes them",
    ))
}

/// `DELETE /api/v2/authorizations/{id}`: refused. Tokens are dropped by SQL.
pub(super) async fn remove_authorization() -> V2Error {
    authorize().await
}

/// `GET /api/v2/setup`: the server needs no setup.
pub(super) async fn setup() -> Response {
    ok(&json!({"allowed": false}))
}

/// `POST /api/v2/setup`
pub(super) async fn set_up() -> V2Error {
    V2Error::conflict("onboarding has already been completed")
}

/// `POST /api/v2/signin`: gives a client that sent a name and a password a cookie for them. Where
/// there are no users, there is nothing to sign in to.
pub(super) async fn sign_in(
    RequestContext(shared): RequestContext,
    ConnectInfo(peer): ConnectInfo<ConnectedPeer>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, V2Error> {
    let access = &shared.server.services.access;
    let mut response = StatusCode::NO_CONTENT.into_response();
    // Not for tokens: a session would outlive them.
    if let Credentials::Password(user, password) = Credentials::new(&uri, &headers)
        && !access.is_open()
    {
        // In this order, so that a change of the password in between ends the session.
        let verifiers = access.verifiers(&user);
        let checked = access.check_password(&user, &password).await;
        checked.map_err(|error| V2Error(error.into()))?;
        let cookie = shared.sessions.begin(&user, verifiers, Instant::now());
        if let Some(value) = set_cookie(&cookie, peer.is_encrypted()) {
            response.headers_mut().insert(header::SET_COOKIE, value);
        }
    }
    Ok(response)
}

/// `POST /api/v2/signout`: ends the session of the request's cookie.
pub(super) async fn sign_out(
    RequestContext(shared): RequestContext,
    ConnectInfo(peer): ConnectInfo<ConnectedPeer>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    if let Some(cookie) = cookie_of(uri.path(), &headers) {
        shared.sessions.end(&cookie);
        if let Some(value) = set_cookie("", peer.is_encrypted()) {
            response.headers_mut().insert(header::SET_COOKIE, value);
        }
    }
    response
}

/// `GET /ready`
pub(super) async fn ready(RequestContext(shared): RequestContext) -> Result<Response, V2Error> {
    match shared.server.services.status.health() {
        Ok(()) => Ok(ok(&json!({"status": "ready"}))),
        Err(reason) => Err(V2Error(HttpError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            reason,
        ))),
    }
}
