//! `/api/annotation`, `/api/annotations` and `/api/annotation/bulk`: notes about times.

use super::annotation_store::{change, delete, find};
use super::error::OpenTsdbError;
use super::json_type::opentsdb_json;
use super::parameters::{now_ms, parameters};
use super::wrong_method;
use crate::http::influx::read_body;
use crate::http::request_context::RequestContext;
use axum::body::Body;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use marigram_opentsdb::{AnnotationChange, AnnotationDeletion, AnnotationQuery, AnnotationRange};
use serde_json::json;

/// `/api/annotation`: an annotation, by parameters of the URL or as a body.
pub(super) async fn one(
    RequestContext(shared): RequestContext,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, OpenTsdbError> {
    let given = parameters(&uri)?;
    let (body, _lease) = read_body(&shared, &headers, body).await?;
    let method = asked_method(method, &given);
    if ![Method::GET, Method::POST, Method::PUT, Method::DELETE].contains(&method) {
        return Err(wrong_method(method).await);
    }
    let named = if body.is_empty() {
        AnnotationChange::from_parameters(&given, now_ms())?
    } else {
        AnnotationChange::from_json(&body)?
    };
    let (tsuid, time_ms) = named.place();
    if method == Method::GET {
        let found = find(&shared, AnnotationQuery::Places(vec![(tsuid, time_ms)])).await?;
        let found = found.annotations.first();
        return match found {
            Some(found) => Ok(opentsdb_json(StatusCode::OK, &json!(found))),
            None => {
                let message = "Unable to locate annotation in storage";
                Err(OpenTsdbError::new(StatusCode::NOT_FOUND, message))
            }
        };
    }
    if method == Method::DELETE {
        named.check_start().map_err(|fault| {
            let message = "Unable to delete Annotation information";
            OpenTsdbError::new(StatusCode::BAD_REQUEST, message).with_details(fault.message)
        })?;
        let range = AnnotationRange {
            global: tsuid.is_empty(),
            tsuids: Some(tsuid)
                .filter(|tsuid| !tsuid.is_empty())
                .into_iter()
                .collect(),
            start_ms: time_ms,
            end_ms: time_ms,
        };
        delete(&shared, range).await?;
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    named.check_start()?;
    if !named.has_changes() {
        return Ok(StatusCode::NOT_MODIFIED.into_response());
    }
    let changed = change(&shared, &[named], method == Method::PUT).await?;
    Ok(opentsdb_json(StatusCode::OK, &json!(changed.first())))
}

/// `/api/annotations`: GET lists the annotations of all series; other methods are those of one.
pub(super) async fn all(
    RequestContext(shared): RequestContext,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, OpenTsdbError> {
    let given = parameters(&uri)?;
    if asked_method(method.clone(), &given) != Method::GET {
        return one(RequestContext(shared), method, uri, headers, body).await;
    }
    let range = AnnotationRange::from_parameters(&given, now_ms())?;
    let found = find(&shared, AnnotationQuery::Range(range)).await?;
    Ok(opentsdb_json(StatusCode::OK, &json!(found.annotations)))
}

/// `/api/annotation/bulk`: POST and PUT of several annotations, and DELETE of those of a range.
pub(super) async fn bulk(
    RequestContext(shared): RequestContext,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, OpenTsdbError> {
    let given = parameters(&uri)?;
    let (body, _lease) = read_body(&shared, &headers, body).await?;
    let method = asked_method(method, &given);
    if method == Method::DELETE {
        let deletion = if body.is_empty() {
            AnnotationDeletion::from_parameters(&given, now_ms())?
        } else {
            AnnotationDeletion::from_json(&body, now_ms())?
        };
        let count = delete(&shared, deletion.range.clone()).await?;
        return Ok(opentsdb_json(StatusCode::OK, &deletion.answer(count)));
    }
    if method != Method::POST && method != Method::PUT {
        return Err(wrong_method(method).await);
    }
    let mut changes = AnnotationChange::list_from_json(&body)?;
    changes.retain(AnnotationChange::has_changes);
    let changed = change(&shared, &changes, method == Method::PUT).await?;
    Ok(opentsdb_json(StatusCode::OK, &json!(changed)))
}

/// The method of a request: clients that can only send GET name another one in the URL.
fn asked_method(method: Method, given: &[(String, String)]) -> Method {
    let mut named = given.iter().filter(|(name, _)| name == "method_override");
    let Some((_, name)) = named.next().filter(|_| method == Method::GET) else {
        return method;
    };
    match name.to_ascii_lowercase().as_str() {
        "post" => Method::POST,
        "put" => Method::PUT,
        "delete" => Method::DELETE,
        _ => method,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_get_may_stand_for_another_method() {
        let given = |name: &str| vec![("method_override".to_owned(), name.to_owned())];
        assert_eq!(asked_method(Method::GET, &given("Delete")), Method::DELETE);
        assert_eq!(asked_method(Method::GET, &given("x")), Method::GET);
        assert_eq!(asked_method(Method::PUT, &given("post")), Method::PUT);
        assert_eq!(asked_method(Method::GET, &[]), Method::GET);
    }
}
