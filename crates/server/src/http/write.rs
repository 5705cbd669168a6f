//! `/write`, `/api/v2/write` and `/api/v3/write_lp`: InfluxDB line protocol.
//!
//! Good lines are stored and bad ones are named individually: one bad line never rejects a batch.

use crate::admission::{BodyLimit, MemoryPermit};
use crate::http::HttpShared;
use crate::http::body::{self, ContentEncoding};
use crate::http::error::HttpError;
use crate::http::influx::{InfluxError, LinesRefused, refusal, unread_lines};
use crate::http::influx_v2::{self, V2Error};
use crate::http::influx_v3::V3Error;
use crate::http::request_context::RequestContext;
use axum::body::Body;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use marigram_access::DatabasePrivileges;
use marigram_model::WriteBatch;
use marigram_protocol::lines::{self, LineLimits, Precision};
use marigram_service::{InlinePolicy, ServiceError, WriteReport, run_blocking};
use serde::Deserialize;
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bad lines that an answer names; it only counts the others.
const LINES_NAMED_MAX: usize = 100;

/// Bytes of a line that an answer repeats.
const ORIGINAL_BYTES_MAX: usize = 1 << 10;

/// Bytes up to which a body is parsed on the thread that serves the connection.
const BYTES_INLINE: usize = InlinePolicy::DEFAULT.body_inline_bytes;

/// Parameters of the query string. `org` is accepted and ignored.
#[derive(Debug, Default, Deserialize)]
pub(super) struct WriteParameters {
    db: Option<String>,
    bucket: Option<String>,
    precision: Option<String>,
    rp: Option<String>,
    consistency: Option<String>,
}

type GivenWriteParameters = Result<Query<WriteParameters>, QueryRejection>;

/// A line that was not stored, and why.
pub(super) struct BadLine {
    pub(super) line: u32,
    pub(super) message: String,
    /// The line itself, if it was asked for and could not be read.
    original: Option<String>,
}

/// What became of the lines of a body.
pub(super) struct StoredLines {
    pub(super) stored: usize,
    /// Lines that were not stored; their number, where they are not all named.
    pub(super) bad: Vec<BadLine>,
    pub(super) bad_omitted: u64,
    /// The same in InfluxDB's words, if they were asked for.
    refused: LinesRefused,
}

/// `POST /write?db=&rp=&precision=&consistency=`, compatible with InfluxDB 1.
pub(super) async fn write(
    RequestContext(shared): RequestContext,
    given: GivenWriteParameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, InfluxError> {
    write_v1(&shared, given, &headers, body)
        .await
        .map_err(InfluxError::json)
}

async fn write_v1(
    shared: &HttpShared,
    given: GivenWriteParameters,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, HttpError> {
    let parameters = parameters(given)?;
    let database = parameters.db.as_deref().filter(|name| !name.is_empty());
    let database = database.ok_or_else(|| HttpError::bad_request("database is required"))?;
    let level = parameters.consistency.as_deref().unwrap_or_default();
    if !["", "any", "one", "quorum", "all"].contains(&level.to_lowercase().as_str()) {
        return Err(HttpError::bad_request("invalid consistency level"));
    }
    let target = WriteTarget {
        route: "/write",
        database,
        tables: LineTables::Measurements(parameters.rp.as_deref().filter(|name| !name.is_empty())),
        names_lines: true,
        precision: precision(&parameters)?.into(),
        all_or_none: false,
    };
    let lines = store(shared, target, headers, body).await?;
    if lines.bad.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Err(HttpError::bad_request(refusal(&lines.refused)))
}

/// `POST /api/v2/write?bucket=&org=&precision=`, compatible with InfluxDB 2. The bucket is a
/// database, or `database/policy`, or the id of one of these.
pub(super) async fn write_v2(
    RequestContext(shared): RequestContext,
    given: GivenWriteParameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, V2Error> {
    let parameters = parameters(given)?;
    let bucket = parameters.bucket.clone().or_else(|| parameters.db.clone());
    let bucket = bucket.filter(|name| !name.is_empty()).ok_or_else(|| {
        HttpError::bad_request("the parameter 'bucket' with the name of a database is missing")
    })?;
    let bucket = influx_v2::named_bucket(&shared, &bucket).await?;
    let (database, policy) = influx_v2::parts(&bucket);
    let target = WriteTarget {
        route: "/api/v2/write",
        database,
        tables: LineTables::Measurements(policy),
        names_lines: false,
        precision: precision(&parameters)?.into(),
        all_or_none: false,
    };
    let lines = store(&shared, target, &headers, body).await?;
    if lines.bad.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(partial(lines.stored, &lines.bad, lines.bad_omitted))
}

/// Parameters of the query string of InfluxDB 3.
#[derive(Debug, Default, Deserialize)]
pub(super) struct V3WriteParameters {
    db: Option<String>,
    precision: Option<String>,
    accept_partial: Option<bool>,
    /// Accepted: a write is as durable as the server is configured for.
    #[serde(rename = "no_sync")]
    _no_sync: Option<bool>,
}

/// `POST /api/v3/write_lp?db=&precision=&accept_partial=&no_sync=`, compatible with InfluxDB 3.
pub(super) async fn write_v3(
    RequestContext(shared): RequestContext,
    given: Result<Query<V3WriteParameters>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, V3Error> {
    let Query(parameters) =
        given.map_err(|error| HttpError::bad_request(format!("bad parameters: {error}")))?;
    let database = parameters.db.as_deref().filter(|name| !name.is_empty());
    let database =
        database.ok_or_else(|| HttpError::bad_request("missing query parameter 'db'"))?;
    let precision = match parameters.precision.as_deref().unwrap_or("auto") {
        "" | "auto" => LinePrecision::Auto,
        "second" | "s" => Precision::Seconds.into(),
        "millisecond" | "ms" => Precision::Milliseconds.into(),
        "microsecond" | "us" | "u" => Precision::Microseconds.into(),
        "nanosecond" | "ns" | "n" => Precision::Nanoseconds.into(),
        name => {
            let message = format!(
                "precision '{name}' is not known; there are auto, second, millisecond, \
                 microsecond and nanosecond"
            );
            return Err(HttpError::bad_request(message).into());
        }
    };
    let target = WriteTarget {
        route: "/api/v3/write_lp",
        database,
        tables: LineTables::Measurements(None),
        names_lines: true,
        precision,
        all_or_none: parameters.accept_partial == Some(false),
    };
    let lines = store(&shared, target, &headers, body).await?;
    if lines.bad.is_empty() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let message = if target.all_or_none && lines.stored == 0 {
        "parsing failed for write_lp endpoint"
    } else {
        "partial write of line protocol occurred"
    };
    let named = lines.bad.iter().take(LINES_NAMED_MAX);
    let named: Vec<_> = named
        .map(|bad| {
            json!({
                "original_line": bad.original, "line_number": bad.line,
                "error_message": bad.message,
            })
        })
        .collect();
    Err(V3Error::with_data(
        HttpError::bad_request(message),
        json!(named),
    ))
}

fn parameters(given: GivenWriteParameters) -> Result<WriteParameters, HttpError> {
    let Query(parameters) =
        given.map_err(|error| HttpError::bad_request(format!("bad parameters: {error}")))?;
    Ok(parameters)
}

fn precision(parameters: &WriteParameters) -> Result<Precision, HttpError> {
    named_precision(parameters.precision.as_deref())
}

/// The unit of times that a parameter names; nanoseconds if there is none.
pub(super) fn named_precision(name: Option<&str>) -> Result<Precision, HttpError> {
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(Precision::Nanoseconds);
    };
    Precision::from_name(name).ok_or_else(|| {
        HttpError::bad_request(format!(
            "precision '{name}' is not known; there are ns (n), us (u), ms, s, m, h"
        ))
    })
}

/// Where lines go.
#[derive(Clone, Copy)]
pub(super) struct WriteTarget<'a> {
    /// The path, for figures.
    pub(super) route: &'static str,
    pub(super) database: &'a str,
    pub(super) tables: LineTables<'a>,
    /// Whether lines that cannot be read are to be repeated.
    pub(super) names_lines: bool,
    pub(super) precision: LinePrecision,
    /// Whether nothing is stored if there is a line that cannot be read.
    pub(super) all_or_none: bool,
}

/// What the names of lines mean.
#[derive(Clone, Copy)]
pub(super) enum LineTables<'a> {
    /// Measurements of a retention policy: of this one, or of the database's default one.
    Measurements(Option<&'a str>),
    /// Tables.
    Literal,
}

/// The unit of times.
#[derive(Clone, Copy)]
pub(super) enum LinePrecision {
    Unit(Precision),
    /// Each time tells its unit by its size.
    Auto,
}

impl From<Precision> for LinePrecision {
    fn from(precision: Precision) -> Self {
        Self::Unit(precision)
    }
}

impl LinePrecision {
    fn unit(self) -> Precision {
        match self {
            Self::Unit(precision) => precision,
            Self::Auto => Precision::Nanoseconds,
        }
    }

    /// Makes nanoseconds of the times of a batch.
    fn apply(self, batch: &mut WriteBatch) {
        if matches!(self, Self::Auto) {
            batch.times = batch.times.iter().map(|time| auto_ns(*time)).collect();
        }
    }
}

/// A time whose size tells its unit, in nanoseconds: seconds up to the year 2128, and so on.
fn auto_ns(time: i64) -> i64 {
    let unit_ns = match time.unsigned_abs() {
        0..5_000_000_000 => 1_000_000_000,
        5_000_000_000..5_000_000_000_000 => 1_000_000,
        5_000_000_000_000..5_000_000_000_000_000 => 1_000,
        _ => 1,
    };
    time.saturating_mul(unit_ns)
}

/// Stores the lines of a body.
pub(super) async fn store(
    shared: &HttpShared,
    target: WriteTarget<'_>,
    headers: &HeaderMap,
    body: Body,
) -> Result<StoredLines, HttpError> {
    let rights = shared.rights()?;
    shared.check_database(target.database, DatabasePrivileges::WRITE)?;
    let packing = ContentEncoding::from_headers(headers)?;
    // A body may arrive slowly: the request is admitted only once its body is complete.
    drop(shared.server.gate.enter().ok_or_else(HttpError::too_many)?);
    let mut lease = shared.server.gate.lease();
    let limits = &shared.server.config;
    let limit = shared
        .server
        .gate
        .body_limit("body_limit", limits.body_limit);
    let body = body::read(body, headers, limit, &mut lease).await?;
    let _ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    let limit = shared
        .server
        .gate
        .body_limit("unpacked_limit", limits.unpacked_limit);
    let names_lines = target.names_lines;
    let precision = target.precision;
    let parsed = if packing == ContentEncoding::Plain && body.len() <= BYTES_INLINE {
        parse(body, packing, (precision, names_lines), limit, lease)
    } else {
        let work = move || parse(body, packing, (precision, names_lines), limit, lease);
        run_blocking(work).await?
    };
    let ParsedBody {
        batches,
        lines,
        mut bad,
        bad_omitted,
        unread,
        lease: _lease,
    } = parsed?;
    let batches = if target.all_or_none && !bad.is_empty() {
        Vec::new()
    } else {
        batches
    };
    let mut refused = LinesRefused {
        unread_omitted: bad.len() as u64 - unread.len() as u64 + bad_omitted,
        unread,
        had_rows: !batches.is_empty(),
        ..LinesRefused::default()
    };
    let tables: Vec<_> = batches.iter().map(|batch| batch.table.clone()).collect();
    let reports = if batches.is_empty() {
        Vec::new()
    } else {
        let WriteTarget {
            database, tables, ..
        } = target;
        let ingest = &shared.server.services.ingest;
        let create = shared.server.config.write_creates_databases
            && rights.allow(database, DatabasePrivileges::ALL);
        let written = match tables {
            LineTables::Measurements(policy) => {
                let write = ingest.write_measurements(database, policy, batches, create);
                write.await
            }
            LineTables::Literal => ingest.write(database, batches, create).await,
        };
        let reports = written.map_err(|error| not_found(database, error))?;
        for report in &reports {
            let (audit, user) = (&shared.server.audit, &shared.identity.user);
            audit.note_created("http", user, database, &report.created);
        }
        reports
    };
    let stored: usize = reports.iter().map(|report| report.stored).sum();
    shared.server.telemetry.rows(target.route, stored as u64);
    let last = rejected_rows(&reports, &lines).max_by_key(|(line, ..)| *line);
    refused.last_reason = last.map(|(_, table, reason)| (tables[table].clone(), reason.to_owned()));
    let unread = bad.len();
    bad.extend(
        rejected_rows(&reports, &lines).map(|(line, _, reason)| BadLine {
            line,
            message: reason.to_owned(),
            original: None,
        }),
    );
    refused.dropped = bad.len() - unread;
    bad.sort_by_key(|bad| bad.line);
    Ok(StoredLines {
        stored,
        bad,
        bad_omitted,
        refused,
    })
}

/// The error of a database or a retention policy that is not there, in InfluxDB's words.
fn not_found(database: &str, error: ServiceError) -> HttpError {
    match &error {
        ServiceError::NotFound(_, "3D000") => {
            let message = format!("database not found: \"{database}\"");
            HttpError::new(StatusCode::NOT_FOUND, "not_found", message)
        }
        // InfluxDB's status for it; its clients look at the words.
        ServiceError::NotFound(message, "42704") => {
            HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, "not_found", message)
        }
        _ => error.into(),
    }
}

/// A body parsed into batches, with the data to name lines later.
struct ParsedBody {
    batches: Vec<WriteBatch>,
    /// Line of each row of each batch, from 1.
    lines: Vec<Vec<u32>>,
    bad: Vec<BadLine>,
    /// Bad lines beyond those in `bad`.
    bad_omitted: u64,
    /// The first of the bad lines in InfluxDB's words, if they were asked for.
    unread: Vec<String>,
    /// Held as long as the batches exist.
    lease: MemoryPermit,
}

fn parse(
    body: Bytes,
    packing: ContentEncoding,
    (precision, names_lines): (LinePrecision, bool),
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
    let limits = LineLimits {
        tagged_fields: true,
        ..LineLimits::default()
    };
    let mut parsed = lines::parse(&body, precision.unit(), now_ns, limits);
    for batch in &mut parsed.batches {
        precision.apply(batch);
    }
    let unread = if names_lines {
        unread_lines(
            &body,
            &parsed.errors,
            LINES_NAMED_MAX,
            precision.unit().unit_ns(),
        )
    } else {
        Vec::new()
    };
    let mut texts = body.split(|byte| *byte == b'\n').zip(1_u32..);
    let mut bad = Vec::with_capacity(parsed.errors.len());
    for (place, error) in parsed.errors.into_iter().enumerate() {
        let is_named = names_lines && place < LINES_NAMED_MAX;
        let text = if is_named {
            texts.find(|(_, line)| *line == error.line)
        } else {
            None
        };
        bad.push(BadLine {
            line: error.line,
            message: format!("column {}: {}", error.column, error.reason),
            original: text.map(|(text, _)| original(text)),
        });
    }
    drop(body);
    lease.shrink(rows_bytes);
    Ok(ParsedBody {
        batches: parsed.batches,
        lines: parsed.lines,
        bad,
        bad_omitted: parsed.errors_omitted,
        unread,
        lease,
    })
}

/// A line as an answer repeats it.
fn original(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8_lossy(&line[..line.len().min(ORIGINAL_BYTES_MAX)]).into_owned()
}

/// The rows that the database refused: line, number of the batch, and reason.
fn rejected_rows<'a>(
    reports: &'a [WriteReport],
    lines: &'a [Vec<u32>],
) -> impl Iterator<Item = (u32, usize, &'a str)> {
    let batches = reports.iter().zip(lines).enumerate();
    batches.flat_map(|(batch, (report, lines))| {
        report.rejected.iter().map(move |rejected| {
            let line = lines.get(rejected.row).copied().unwrap_or(0);
            (line, batch, rejected.reason.as_str())
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
