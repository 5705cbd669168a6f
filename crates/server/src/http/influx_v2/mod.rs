//! InfluxDB's HTTP API 2: buckets (`buckets`), deletes (`delete`), queries in Flux (`query`, with
//! `flux_prelude` and `annotated_csv`), and what it has of organisations, users and tokens
//! (`accounts`). Its writes are in `http::write`.
//!
//! A bucket is a database, or a retention policy of one, as `database/policy`. Statements of InfluxQL
//! read and change both. `docs/guides/influxdb2.md` says what differs on purpose.

mod accounts;
mod annotated_csv;
mod buckets;
mod delete;
mod error;
mod flux_prelude;
mod names;
mod query;
mod statements;

use crate::http::HttpShared;
use axum::Router;
use axum::routing::{get, post};
pub(super) use buckets::named_bucket;
pub(super) use error::V2Error;
pub(super) use names::parts;

/// The paths of the API, besides those of writes.
pub(super) const PATHS: [&str; 15] = [
    "/api/v2/buckets",
    "/api/v2/buckets/{id}",
    "/api/v2/orgs",
    "/api/v2/orgs/{id}",
    "/api/v2/users",
    "/api/v2/me",
    "/api/v2/authorizations",
    "/api/v2/authorizations/{id}",
    "/api/v2/setup",
    "/api/v2/signin",
    "/api/v2/signout",
    "/api/v2/delete",
    "/api/v2/query",
    "/api/v2/health",
    "/api/v2/ready",
];

/// The routes of the API.
pub(super) fn routes() -> Router<HttpShared> {
    let bucket = get(buckets::one)
        .patch(buckets::change)
        .delete(buckets::remove);
    let token = get(accounts::authorization).delete(accounts::remove_authorization);
    Router::new()
        .route("/api/v2/buckets", get(buckets::list).post(buckets::create))
        .route("/api/v2/buckets/{id}", bucket)
        .route("/api/v2/orgs", get(accounts::orgs))
        .route("/api/v2/orgs/{id}", get(accounts::org))
        .route("/api/v2/users", get(accounts::users))
        .route("/api/v2/me", get(accounts::me))
        .route(
            "/api/v2/authorizations",
            get(accounts::authorizations).post(accounts::authorize),
        )
        .route("/api/v2/authorizations/{id}", token)
        .route("/api/v2/setup", get(accounts::setup).post(accounts::set_up))
        .route("/api/v2/signin", post(accounts::sign_in))
        .route("/api/v2/signout", post(accounts::sign_out))
        .route("/api/v2/delete", post(delete::post))
        .route("/api/v2/query", post(query::post))
        .route("/api/v2/health", get(crate::http::status::health))
        .route("/api/v2/ready", get(accounts::ready))
        .route("/ready", get(accounts::ready))
}
