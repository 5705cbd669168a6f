//! `/api/v1/sql`: statements in, rows out.

use crate::admission::RequestPermit;
use crate::http::HttpShared;
use crate::http::body::{self, ContentEncoding};
use crate::http::client_share::{ClientShare, StopTime};
use crate::http::error::{HttpError, json_answer};
use crate::http::format::{Formatter, ResponseFormat};
use crate::http::request_context::RequestContext;
use crate::http::response_body;
use arrow::array::{StringArray, UInt64Array};
use arrow::record_batch::RecordBatch;
use axum::body::Body;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use futures::StreamExt;
use marigram_pgtext::split_script;
use marigram_service::{Answer, ServiceError, run_blocking};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Parameters of the query string.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SqlParameters {
    db: Option<String>,
    q: Option<String>,
    tz: Option<String>,
    timeout_ms: Option<u64>,
}

type GivenSqlParameters = Result<Query<SqlParameters>, QueryRejection>;

/// `POST /api/v1/sql?db=`: the body is SQL.
pub(super) async fn post(
    RequestContext(shared): RequestContext,
    given: GivenSqlParameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, HttpError> {
    let parameters = parameters(given)?;
    let form = ResponseFormat::from_headers(&headers)?;
    // A body may arrive slowly: the request is admitted only once its body is complete.
    drop(shared.server.gate.enter().ok_or_else(HttpError::too_many)?);
    let mut lease = shared.server.gate.lease();
    let limit = shared
        .server
        .gate
        .body_limit("body_limit", shared.server.config.body_limit);
    let body = body::read(body, &headers, limit, &mut lease).await?;
    let packing = ContentEncoding::from_headers(&headers)?;
    let unpack = move || body::unpack(body, packing, limit, &mut lease).map(|body| (body, lease));
    let (body, _lease) = if packing == ContentEncoding::Plain {
        unpack()?
    } else {
        run_blocking(unpack).await??
    };
    let script = String::from_utf8(body.to_vec())
        .map_err(|error| HttpError::bad_request(format!("the SQL is not UTF-8: {error}")))?;
    let ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    run(shared, parameters, &script, (form, false), ticket).await
}

/// `GET /api/v1/sql?db=&q=`: the parameter `q` is read-only SQL.
pub(super) async fn get(
    RequestContext(shared): RequestContext,
    given: GivenSqlParameters,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let mut parameters = parameters(given)?;
    let form = ResponseFormat::from_headers(&headers)?;
    let ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    let missing = || HttpError::bad_request("the parameter 'q' with the SQL is missing");
    let script = parameters.q.take().ok_or_else(missing)?;
    run(shared, parameters, &script, (form, true), ticket).await
}

fn parameters(given: GivenSqlParameters) -> Result<SqlParameters, HttpError> {
    let Query(parameters) =
        given.map_err(|error| HttpError::bad_request(format!("bad parameters: {error}")))?;
    Ok(parameters)
}

/// Runs the statements of a script and returns the last answer. With `read_only`, the first
/// statement that would change something ends the script.
async fn run(
    shared: HttpShared,
    parameters: SqlParameters,
    script: &str,
    (form, read_only): (ResponseFormat, bool),
    ticket: RequestPermit,
) -> Result<Response, HttpError> {
    let begin = Instant::now();
    let query = &shared.server.services.query;
    let database = parameters.db.as_deref().filter(|name| !name.is_empty());
    let mut session = if read_only {
        query.read_only_session(database, &shared.identity).await?
    } else {
        query.session(database, &shared.identity).await?
    };
    session.statement_timeout = match parameters.timeout_ms {
        Some(0) | None => shared.server.config.statement_timeout(),
        Some(timeout_ms) => Some(Duration::from_millis(timeout_ms)),
    };
    if let Some(zone) = parameters.tz.filter(|zone| !zone.is_empty()) {
        let quoted = zone.replace('\'', "''");
        // The parameter takes an ISO 8601 offset, positive to the east; SET takes POSIX offsets,
        // positive to the west.
        let set = if zone.starts_with(['+', '-']) {
            format!("SET TIME ZONE INTERVAL '{quoted}' HOUR TO MINUTE")
        } else {
            format!("SET \"timezone\" = '{quoted}'")
        };
        // The parameter is not a statement of the client: read-only clients may use it, too.
        session.read_only = false;
        let done = query.execute(&mut session, &set).await;
        session.read_only = read_only;
        done.map_err(|error| HttpError {
            // The position is not in the client's SQL.
            position: None,
            ..HttpError::from(error)
        })?;
    }
    let mut statements = split_script(script);
    let last = statements
        .pop()
        .ok_or_else(|| HttpError::bad_request("there is no SQL statement in the request"))?;
    // Positions of errors count from the begin of the script.
    for statement in &statements {
        let stop = StopTime::new(&shared, session.statement_timeout);
        let done = stop.guard(async {
            if let Answer::Rows(mut rows) = query.execute(&mut session, statement.text).await? {
                while rows.batches.next().await.transpose()?.is_some() {}
            }
            Ok(())
        });
        done.await.map_err(|error| {
            shift(error.into(), statement.characters_before(script)).of_statement(statement.text)
        })?;
    }
    let stop = StopTime::new(&shared, session.statement_timeout);
    let answer = stop.guard(query.execute(&mut session, last.text)).await;
    match answer.map_err(|error| {
        shift(error.into(), last.characters_before(script)).of_statement(last.text)
    })? {
        Answer::Rows(rows) => {
            let share = ClientShare::new(&shared, ticket);
            let notices = rows.notices.clone();
            let answer = response_body::stream(rows, form, begin, stop, share).await;
            let mut answer = answer.map_err(|error| error.of_statement(last.text))?;
            add_notices(&mut answer, &notices);
            Ok(answer)
        }
        Answer::Done { tag, rows, notices } => done(&tag, rows, &notices, form, begin),
    }
}

fn shift(mut error: HttpError, characters: usize) -> HttpError {
    error.position = error.position.map(|position| position + characters);
    error
}

/// Header with a notice about an answer that is not JSON; one header per notice.
const NOTICE: &str = "marigram-notice";

/// The answer to a statement without rows.
fn done(
    tag: &str,
    rows: u64,
    notices: &[String],
    form: ResponseFormat,
    begin: Instant,
) -> Result<Response, HttpError> {
    if form == ResponseFormat::Json {
        let elapsed_ms = begin.elapsed().as_secs_f64() * 1000.0;
        let body = json!({
            "columns": [], "rows": [], "row_count": 0,
            "tag": tag, "rows_affected": rows, "notices": notices, "elapsed_ms": elapsed_ms,
        });
        return Ok(json_answer(StatusCode::OK, &body));
    }
    let internal = |error: arrow::error::ArrowError| ServiceError::Internal(error.to_string());
    let batch = RecordBatch::try_from_iter([
        (
            "tag",
            Arc::new(StringArray::from(vec![tag])) as Arc<dyn arrow::array::Array>,
        ),
        ("rows_affected", Arc::new(UInt64Array::from(vec![rows]))),
    ])
    .map_err(internal)?;
    let mut formatter = Formatter::new(form, batch.schema(), begin).map_err(internal)?;
    let mut bytes = formatter.head().map_err(internal)?;
    bytes.extend(formatter.rows(&batch).map_err(internal)?);
    bytes.extend(formatter.tail().map_err(internal)?);
    let mut response = Response::new(Body::from(bytes));
    let kind = HeaderValue::from_static(form.content_type());
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    add_notices(&mut response, notices);
    Ok(response)
}

/// Adds notices to an answer, each in a header.
fn add_notices(response: &mut Response, notices: &[String]) {
    for notice in notices {
        // A header is one line; names of tables and columns are UTF-8.
        let line: String = notice
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        if let Ok(value) = HeaderValue::from_bytes(line.as_bytes()) {
            response.headers_mut().append(NOTICE, value);
        }
    }
}
