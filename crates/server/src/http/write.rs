//! `/write` and `/api/v2/write`: InfluxDB line protocol.
//!
//! Good lines are stored and bad ones are named individually: one bad line never rejects a batch.

use crate::admission::{BodyLimit, MemoryPermit};
use crate::http::HttpShared;
use crate::http::body::{self, ContentEncoding};
use crate::http::error::HttpError;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use marigram_model::WriteBatch;
use marigram_protocol::lines::{self, LineLimits, Precision};
use marigram_service::{ServiceError, WriteReport};
use serde::Deserialize;
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bad lines that an answer names; it only counts the others.
const LINES_NAMED_MAX: usize = 100;

/// Bytes up to which a body is parsed inline, on the thread that serves the connection.
const BYTES_INLINE: usize = 16 << 10;

/// Parameters of the query string. `rp`, `consistency`, `u`, `p` and `org` are accepted and
/// ignored.
#[derive(Debug, Default, Deserialize)]
pub struct WriteParameters {
    db: Option<String>,
    bucket: Option<String>,
    precision: Option<String>,
}

type GivenWriteParameters = Result<Query<WriteParameters>, QueryRejection>;

/// A line that was not stored, and why.
struct BadLine {
    line: u32,
    message: String,
}

/// `POST /write?db=&precision=`, compatible with InfluxDB 1.
pub async fn write(
    State(shared): State<HttpShared>,
    given: GivenWriteParameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, HttpError> {
    let parameters = parameters(given)?;
    let database = parameters.db.clone().filter(|name| !name.is_empty());
    let database = database.ok_or_else(|| {
        HttpError::bad_request("the parameter 'db' with the name of a database is missing")
    })?;
    store(&shared, "/write", &database, &parameters, &headers, body).await
}

/// `POST /api/v2/write?bucket=&org=&precision=`, compatible with InfluxDB 2. The bucket is the
/// database; in `database/retention`, the part before the `/`.
pub async fn write_v2(
    State(shared): State<HttpShared>,
    given: GivenWriteParameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, HttpError> {
    let parameters = parameters(given)?;
    let bucket = parameters.bucket.clone().or_else(|| parameters.db.clone());
    let bucket = bucket.as_deref().and_then(|name| name.split('/').next());
    let database = bucket.filter(|name| !name.is_empty()).ok_or_else(|| {
        HttpError::bad_request("the parameter 'bucket' with the name of a database is missing")
    })?;
    store(
        &shared,
        "/api/v2/write",
        database,
        &parameters,
        &headers,
        body,
    )
    .await
}

fn parameters(given: GivenWriteParameters) -> Result<WriteParameters, HttpError> {
    let Query(parameters) =
        given.map_err(|error| HttpError::bad_request(format!("bad parameters: {error}")))?;
    Ok(parameters)
}

fn precision(parameters: &WriteParameters) -> Result<Precision, HttpError> {
    let Some(name) = parameters
        .precision
        .as_deref()
        .filter(|name| !name.is_empty())
    else {
        return Ok(Precision::Nanoseconds);
    };
    Precision::from_name(name).ok_or_else(|| {
        HttpError::bad_request(format!(
            "precision '{name}' is not known; there are ns (n), us (u), ms, s, m, h"
        ))
    })
}

/// Stores the lines of a body: 204 if all are good, otherwise 400, which names the bad ones.
async fn store(
    shared: &HttpShared,
    route: &'static str,
    database: &str,
    parameters: &WriteParameters,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, HttpError> {
    let precision = precision(parameters)?;
    let packing = ContentEncoding::from_headers(headers)?;
    // A body may arrive slowly: the request is admitted only once its body is complete.
    drop(shared.gate.enter().ok_or_else(HttpError::too_many)?);
    let mut lease = shared.gate.lease();
    let limits = &shared.config;
    let limit = shared.gate.body_limit("body_limit", limits.body_limit);
    let body = body::read(body, headers, limit, &mut lease).await?;
    let _ticket = shared.gate.enter().ok_or_else(HttpError::too_many)?;
    let limit = shared
        .gate
        .body_limit("unpacked_limit", limits.unpacked_limit);
    let parsed = if packing == ContentEncoding::Plain && body.len() <= BYTES_INLINE {
        parse(body, packing, precision, limit, lease)
    } else {
        let work = move || parse(body, packing, precision, limit, lease);
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| ServiceError::Internal(error.to_string()))?
    };
    let ParsedBody {
        batches,
        lines,
        mut bad,
        bad_omitted,
        lease: _lease,
    } = parsed?;
    let reports = if batches.is_empty() {
        Vec::new()
    } else {
        shared
            .services
            .ingest
            .write(database, batches, true)
            .await?
    };
    let stored: usize = reports.iter().map(|report| report.stored).sum();
    shared.telemetry.rows(route, stored as u64);
    bad.extend(refused(&reports, &lines));
    if bad.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    bad.sort_by_key(|bad| bad.line);
    Ok(partial(stored, &bad, bad_omitted))
}

/// A body parsed into batches, with the data to name lines later.
struct ParsedBody {
    batches: Vec<WriteBatch>,
    /// Line of each row of each batch, from 1.
    lines: Vec<Vec<u32>>,
    bad: Vec<BadLine>,
    /// Bad lines beyond those in `bad`.
    bad_omitted: u64,
    /// Held as long as the batches exist.
    lease: MemoryPermit,
}

fn parse(
    body: Bytes,
    packing: ContentEncoding,
    precision: Precision,
    unpacked_limit: BodyLimit,
    mut lease: MemoryPermit,
) -> Result<ParsedBody, HttpError> {
    let packed_bytes = lease.held();
    let body = body::unpack(body, packing, unpacked_limit, &mut lease)?;
    if packing != ContentEncoding::Plain {
        lease.shrink(packed_bytes);
    }
    // Assume that the rows need about as much memory as their lines. A small body reserves none: it
    // may be parsed on a thread that must not wait.
    let rows_bytes = if body.len() > BYTES_INLINE {
        body.len()
    } else {
        0
    };
    if rows_bytes > 0 && !lease.grow_blocking(rows_bytes) {
        return Err(HttpError::buffers_full());
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now_ns = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
    let parsed = lines::parse(&body, precision, now_ns, LineLimits::default());
    drop(body);
    lease.shrink(rows_bytes);
    let bad = parsed.errors.into_iter();
    let bad = bad
        .map(|error| BadLine {
            line: error.line,
            message: format!("column {}: {}", error.column, error.reason),
        })
        .collect();
    Ok(ParsedBody {
        batches: parsed.batches,
        lines: parsed.lines,
        bad,
        bad_omitted: parsed.errors_omitted,
        lease,
    })
}

/// The lines of the rows that the database refused.
fn refused<'a>(
    reports: &'a [WriteReport],
    lines: &'a [Vec<u32>],
) -> impl Iterator<Item = BadLine> + 'a {
    reports.iter().zip(lines).flat_map(|(report, lines)| {
        report.rejected.iter().map(|rejected| BadLine {
            line: lines.get(rejected.row).copied().unwrap_or(0),
            message: rejected.reason.clone(),
        })
    })
}

/// 400 with the number of stored lines and the names of the refused ones. `error` repeats the
/// message where clients of InfluxDB 1 expect it.
fn partial(stored: usize, bad: &[BadLine], omitted: u64) -> Response {
    let rejected = bad.len() as u64 + omitted;
    let first = &bad[0];
    let message = format!(
        "partial write: {stored} rows stored, {rejected} lines refused; line {}: {}",
        first.line, first.message
    );
    let named = bad.iter().take(LINES_NAMED_MAX);
    let named: Vec<_> = named
        .map(|bad| json!({"line": bad.line, "message": bad.message}))
        .collect();
    let body = json!({
        "code": "invalid", "message": message, "error": message,
        "stored": stored, "rejected": rejected, "lines": named,
    });
    HttpError::bad_request(message).answer(&body)
}
