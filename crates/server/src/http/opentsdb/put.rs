//! `/api/put`: points as JSON.

use super::error::OpenTsdbError;
use super::json_type::opentsdb_json;
use super::parameters::{is_set, parameters};
use crate::http::error::HttpError;
use crate::http::influx::read_body;
use crate::http::request_context::RequestContext;
use crate::metric_rows::{PointSource, StoredPoints, store_points};
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use marigram_opentsdb::{PutBodyFault, RefusedPoint, parse_put};
use marigram_service::{InlinePolicy, run_inline_if};
use serde_json::{Value, json};

/// Points that an answer names; it only counts the others.
const NAMED_MAX: usize = 100;

/// Bytes of a body that is parsed on the thread that serves the connection.
const BYTES_INLINE: usize = InlinePolicy::DEFAULT.body_inline_bytes;

/// `POST /api/put?summary&details&sync`: good points are stored, and others are counted or named. A point
/// is durable when it is answered, whether `sync` is there or not.
pub(super) async fn post(
    RequestContext(shared): RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, OpenTsdbError> {
    let given = parameters(&uri)?;
    let (body, mut lease) = read_body(&shared, &headers, body).await?;
    let _ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    let is_short = body.len() <= BYTES_INLINE;
    let work = move || {
        // A thread that serves connections does not wait for memory.
        let mut grant = |bytes| {
            if is_short {
                lease.grow(bytes)
            } else {
                lease.grow_blocking(bytes)
            }
        };
        let parsed = parse_put(&body, NAMED_MAX, &mut grant);
        (parsed, lease)
    };
    let (parsed, _lease) = run_inline_if(is_short, work).await?;
    let mut parsed = match parsed {
        Ok(parsed) => parsed,
        Err(PutBodyFault::Malformed(fault)) => return Err(fault.into()),
        Err(PutBodyFault::NoRoom) => return Err(HttpError::buffers_full().into()),
    };
    let source = PointSource {
        listener: shared.listener,
        route: "/api/put",
        identity: &shared.identity,
    };
    let StoredPoints { points, rejected } =
        store_points(&shared.server, source, parsed.points).await?;
    let failed = parsed.refused_count + rejected.len();
    let success = points.len() - rejected.len();
    for (number, reason) in rejected {
        if let Some(point) = points.get(number)
            && parsed.refused.len() < NAMED_MAX
        {
            parsed.refused.push(RefusedPoint::new(point, reason));
        }
    }
    let names = is_set(&given, "details");
    if !names && !is_set(&given, "summary") {
        if failed == 0 {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        let message = "One or more data points had errors";
        return Err(OpenTsdbError::new(StatusCode::BAD_REQUEST, message)
            .with_details("Append \"details\" to the put request to see what is wrong"));
    }
    let status = if failed == 0 {
        StatusCode::OK
    } else {
        StatusCode::BAD_REQUEST
    };
    let mut summary = json!({"failed": failed, "success": success});
    let has_timeout = given
        .iter()
        .any(|(name, value)| name == "sync_timeout" && value.parse().is_ok_and(|ms: u64| ms > 0));
    if let (true, Some(fields)) = (
        has_timeout && is_set(&given, "sync"),
        summary.as_object_mut(),
    ) {
        // Points are durable when they are answered, or the request failed.
        fields.insert("timeouts".to_owned(), 0.into());
    }
    if let (true, Some(fields)) = (names, summary.as_object_mut()) {
        let errors = parsed.refused.iter();
        let errors: Vec<Value> = errors
            .map(|refused| serde_json::to_value(refused).unwrap_or_default())
            .collect();
        fields.insert("errors".to_owned(), errors.into());
    }
    Ok(opentsdb_json(status, &summary))
}
