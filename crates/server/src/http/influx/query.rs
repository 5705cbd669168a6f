//! `/query`: InfluxQL in, series out.

use super::answer;
use super::error::InfluxError;
use super::parameters::{FormValues, QueryParameters};
use crate::admission::{MemoryPermit, RequestPermit};
use crate::http::HttpShared;
use crate::http::body::{self, ContentEncoding};
use crate::http::error::HttpError;
use crate::http::request_context::RequestContext;
use axum::body::Body;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use marigram_service::{Language, LanguageRequest, Session, run_blocking};

/// `GET /query?q=`: statements that only read.
pub(crate) async fn get(
    RequestContext(shared): RequestContext,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, InfluxError> {
    let values = FormValues::from_url(&uri).map_err(InfluxError::json)?;
    let failed = |error| failed(error, &values, &headers);
    let ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many);
    let ticket = ticket.map_err(failed)?;
    run(shared, &values, &headers, true, ticket)
        .await
        .map_err(failed)
}

/// `POST /query`: statements in the URL, in a form, or as the body.
pub(crate) async fn post(
    RequestContext(shared): RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, InfluxError> {
    let mut values = FormValues::from_url(&uri).map_err(InfluxError::json)?;
    // The lease of the body lasts until the statements have begun: their text is as long.
    let read = read_body(&shared, &headers, body).await;
    let added = match read {
        Ok((body, lease)) => values.add_body(&headers, body).map(|()| lease),
        Err(error) => Err(error),
    };
    let failed = |error| failed(error, &values, &headers);
    let _lease = added.map_err(failed)?;
    let ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many);
    let ticket = ticket.map_err(failed)?;
    run(shared, &values, &headers, false, ticket)
        .await
        .map_err(failed)
}

fn failed(error: HttpError, values: &FormValues, headers: &HeaderMap) -> InfluxError {
    InfluxError::new(error, headers, values.get("pretty") == Some("true"))
}

/// The body of a request, unpacked, and the memory that it holds.
///
/// # Errors
/// 400, 413 or 415 if it cannot be read or unpacked, 503 if there is no room for it.
pub(crate) async fn read_body(
    shared: &HttpShared,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Vec<u8>, MemoryPermit), HttpError> {
    // A body may come slowly: its request takes a place only once it is here.
    drop(shared.server.gate.enter().ok_or_else(HttpError::too_many)?);
    let mut lease = shared.server.gate.lease();
    let limit = shared
        .server
        .gate
        .body_limit("body_limit", shared.server.config.body_limit);
    let body = body::read(body, headers, limit, &mut lease).await?;
    // Clients that pack their bodies say so of none, too.
    if body.is_empty() {
        return Ok((Vec::new(), lease));
    }
    let packing = ContentEncoding::from_headers(headers)?;
    let unpack = move || body::unpack(body, packing, limit, &mut lease).map(|body| (body, lease));
    let (body, lease) = if packing == ContentEncoding::Plain {
        unpack()?
    } else {
        run_blocking(unpack).await??
    };
    Ok((body.to_vec(), lease))
}

async fn run(
    shared: HttpShared,
    values: &FormValues,
    headers: &HeaderMap,
    read_only: bool,
    ticket: RequestPermit,
) -> Result<Response, HttpError> {
    let mut asked = QueryParameters::new(values, headers)?;
    let mut session = Session::new(&asked.database, shared.identity.clone());
    session.read_only = read_only;
    session.statement_timeout = shared.server.config.statement_timeout();
    let request = LanguageRequest {
        language: Language::InfluxQl,
        text: std::mem::take(&mut asked.text),
        prelude: String::new(),
        retention_policy: asked.retention_policy.clone(),
        parameters: asked.parameters.clone(),
    };
    let answers = shared
        .server
        .services
        .languages
        .run(&session, request)
        .await;
    let answers = answers.map_err(HttpError::from)?;
    answer::send(&shared, answers, &asked, headers, ticket).await
}
