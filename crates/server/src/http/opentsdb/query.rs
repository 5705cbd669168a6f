//! `/api/query`, `/api/query/last` and `/api/query/exp`.

use super::answer::{self, QueryAnswerForm};
use super::asked::ask;
use super::error::OpenTsdbError;
use super::names::json_texts;
use super::parameters::{is_set, now_ms, parameters};
use super::text_answer::send_text;
use crate::admission::RequestPermit;
use crate::http::HttpShared;
use crate::http::error::HttpError;
use crate::http::influx::read_body;
use crate::http::request_context::RequestContext;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use marigram_opentsdb::{ExpressionQuery, LastQuery, ReadRequest, TsQuery};

/// `GET /api/query?start=&m=`
pub(super) async fn get(
    RequestContext(shared): RequestContext,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, OpenTsdbError> {
    let ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    let given = parameters(&uri)?;
    let query = TsQuery::from_parameters(&given)?;
    run(&shared, query, is_set(&given, "arrays"), &headers, ticket).await
}

/// `POST /api/query`
pub(super) async fn post(
    RequestContext(shared): RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, OpenTsdbError> {
    let given = parameters(&uri)?;
    let (body, _lease) = read_body(&shared, &headers, body).await?;
    let ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    let query = TsQuery::from_json(&body)?;
    run(&shared, query, is_set(&given, "arrays"), &headers, ticket).await
}

/// `DELETE /api/query`: OpenTSDB refuses it, too, unless it is configured to delete.
pub(super) async fn delete() -> OpenTsdbError {
    OpenTsdbError::new(StatusCode::BAD_REQUEST, "Bad request").with_details(
        "Deleting data is not enabled; delete rows with SQL: DELETE FROM metric WHERE …",
    )
}

async fn run(
    shared: &HttpShared,
    query: TsQuery,
    has_arrays: bool,
    headers: &HeaderMap,
    ticket: RequestPermit,
) -> Result<Response, OpenTsdbError> {
    let query = query.resolved(now_ms())?;
    // Here, so that faults keep their details.
    let parts = query.check(0)?;
    let form = QueryAnswerForm {
        has_arrays,
        has_milliseconds: parts.iter().any(|part| part.has_milliseconds),
        ends_with_summary: query.shows_summary(),
    };
    let answers = ask(shared, &ReadRequest::Query(query)).await?;
    Ok(answer::send(shared, answers, form, headers, ticket).await?)
}

/// `GET /api/query/last?timeseries=&back_scan=`
pub(super) async fn get_last(
    RequestContext(shared): RequestContext,
    uri: Uri,
) -> Result<Response, OpenTsdbError> {
    let query = LastQuery::from_parameters(&parameters(&uri)?, now_ms())?;
    last(&shared, query).await
}

/// `POST /api/query/last`
pub(super) async fn post_last(
    RequestContext(shared): RequestContext,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, OpenTsdbError> {
    let (body, _lease) = read_body(&shared, &headers, body).await?;
    let query = LastQuery::from_json(&body, now_ms())?;
    last(&shared, query).await
}

async fn last(shared: &HttpShared, query: LastQuery) -> Result<Response, OpenTsdbError> {
    let texts = json_texts(shared, &ReadRequest::Last(query)).await?;
    Ok(texts.array())
}

/// `POST /api/query/exp`, and GET with a body.
pub(super) async fn expressions(
    RequestContext(shared): RequestContext,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, OpenTsdbError> {
    let (body, _lease) = read_body(&shared, &headers, body).await?;
    let ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    let query = ExpressionQuery::from_json(&body)?;
    let shown = query.description();
    // Here, so that faults keep their details.
    let query = query.checked(now_ms())?;
    let answers = ask(&shared, &ReadRequest::Expressions(query)).await?;
    let around = (
        "{\"outputs\":[".to_owned(),
        format!("],\"query\":{shown}}}"),
    );
    Ok(send_text(&shared, answers, around, &headers, ticket).await?)
}
