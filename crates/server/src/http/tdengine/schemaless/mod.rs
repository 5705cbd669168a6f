//! Lines of other protocols, stored as tables of TDengine: a measurement or a metric is a super table, its
//! tags are tags, and each combination of tags is a table of its own.

mod lines;
mod tables;

use super::asked::session;
use super::error::{OTHER_CODE, TaosFailure};
use crate::http::HttpShared;
use crate::http::error::HttpError;
use crate::http::influx::read_body;
use crate::http::request_context::RequestContext;
use crate::listener::ServerState;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use lines::read_batches;
use marigram_service::{InlinePolicy, Session, run_inline_if};
use serde::Deserialize;

/// Bytes of lines that are read on the thread that serves the connection.
const BYTES_INLINE: usize = InlinePolicy::DEFAULT.body_inline_bytes;

/// Which protocol lines are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemalessProtocol {
    /// InfluxDB's line protocol.
    Lines,
    /// OpenTSDB's telnet lines.
    Telnet,
    /// OpenTSDB's JSON.
    Json,
}

impl SchemalessProtocol {
    /// The protocol with TDengine's number.
    pub(super) fn of_number(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::Lines),
            2 => Some(Self::Telnet),
            3 => Some(Self::Json),
            _ => None,
        }
    }
}

/// Lines to store.
#[derive(Clone, Copy)]
pub(super) struct SchemalessLines<'a> {
    pub(super) protocol: SchemalessProtocol,
    /// The unit of times, as InfluxDB's clients name it; empty for the usual one.
    pub(super) precision: &'a str,
    /// The tag that names the table; empty for none.
    pub(super) name_key: &'a str,
    pub(super) data: &'a [u8],
}

/// Stores lines; returns the number of rows.
///
/// # Errors
/// If a line is wrong, and nothing was stored; or why a table cannot store its rows.
pub(super) async fn store(
    server: &ServerState,
    session: &Session,
    lines: SchemalessLines<'_>,
) -> Result<u64, TaosFailure> {
    let mut permit = server.gate.lease();
    // The rows that they become take about as much memory.
    if lines.data.len() > BYTES_INLINE && !permit.grow_in_time(2 * lines.data.len()).await {
        return Err(TaosFailure::no_memory());
    }
    let (protocol, precision) = (lines.protocol, lines.precision.to_owned());
    let data = lines.data.to_vec();
    let is_short = data.len() <= BYTES_INLINE;
    let work = move || read_batches(protocol, &precision, &data);
    let batches = run_inline_if(is_short, work).await??;
    let mut stored = 0;
    for batch in batches {
        stored += tables::store(server, session, lines.name_key, batch).await?;
    }
    Ok(stored)
}

/// Parameters of the query string.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LineParameters {
    db: String,
    precision: String,
    table_name_key: String,
}

type GivenParameters = Result<Query<LineParameters>, QueryRejection>;

/// `POST /influxdb/v1/write?db=&precision=&table_name_key=`
pub(super) async fn influx(
    RequestContext(shared): RequestContext,
    given: GivenParameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, TaosFailure> {
    let Query(given) = given.map_err(|error| wrong(format!("bad parameters: {error}")))?;
    if given.db.is_empty() {
        return Err(wrong("the parameter db is missing".to_owned()));
    }
    let database = given.db.clone();
    write(
        &shared,
        (&database, SchemalessProtocol::Lines),
        given,
        &headers,
        body,
    )
    .await
}

/// `POST /opentsdb/v1/put/json/{db}`
pub(super) async fn json(
    RequestContext(shared): RequestContext,
    Path(database): Path<String>,
    given: GivenParameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, TaosFailure> {
    let Query(given) = given.map_err(|error| wrong(format!("bad parameters: {error}")))?;
    let target = (database.as_str(), SchemalessProtocol::Json);
    write(&shared, target, given, &headers, body).await
}

/// `POST /opentsdb/v1/put/telnet/{db}`
pub(super) async fn telnet(
    RequestContext(shared): RequestContext,
    Path(database): Path<String>,
    given: GivenParameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, TaosFailure> {
    let Query(given) = given.map_err(|error| wrong(format!("bad parameters: {error}")))?;
    let target = (database.as_str(), SchemalessProtocol::Telnet);
    write(&shared, target, given, &headers, body).await
}

async fn write(
    shared: &HttpShared,
    (database, protocol): (&str, SchemalessProtocol),
    given: LineParameters,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, TaosFailure> {
    let (body, _lease) = read_body(shared, headers, body).await?;
    let _ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    let session = session(&shared.server, database, &shared.identity);
    let lines = SchemalessLines {
        protocol,
        precision: &given.precision,
        name_key: &given.table_name_key,
        data: &body,
    };
    let stored = store(&shared.server, &session, lines).await;
    let stored = stored.map_err(|mut failure| {
        // Clients of these protocols look at the status.
        if failure.status == StatusCode::OK {
            failure.status = StatusCode::BAD_REQUEST;
        }
        failure
    })?;
    let route = match protocol {
        SchemalessProtocol::Lines => "/influxdb/v1/write",
        SchemalessProtocol::Telnet => "/opentsdb/v1/put/telnet/{db}",
        SchemalessProtocol::Json => "/opentsdb/v1/put/json/{db}",
    };
    shared.server.telemetry.rows(route, stored);
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn wrong(message: String) -> TaosFailure {
    TaosFailure::new(StatusCode::BAD_REQUEST, OTHER_CODE, message)
}
