//! `/rest/sql` and `/rest/login`: a statement as a body, its answer as JSON.

use super::asked::{TaosAnswer, TaosRows, run, session};
use super::columns::{unknown_zone, write_rows};
use super::error::{NO_MESSAGE, NO_SQL, OTHER_CODE, TaosFailure};
use crate::admission::RequestPermit;
use crate::http::HttpShared;
use crate::http::client_share::ClientShare;
use crate::http::error::{HttpError, json_answer};
use crate::http::influx::read_body;
use crate::http::request_context::RequestContext;
use crate::http::streamed_body::{BodySource, streamed, takes_gzip};
use crate::outgoing::{PART_BYTES, next_part};
use arrow::record_batch::RecordBatch;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use marigram_service::{InlinePolicy, ServiceError, run_inline_if};
use marigram_tdengine::{RestAnswer, TaosdToken, is_zone, update_answer};
use serde::Deserialize;
use serde_json::json;

/// Rows that are written on the thread that serves the connection.
const ROWS_INLINE: usize = InlinePolicy::DEFAULT.formatted_rows_max;

/// Bytes below which an answer that is whole is not packed.
const PACKED_BYTES_MIN: usize = 1 << 10;

/// Parameters of the query string.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RestParameters {
    tz: Option<String>,
    conn_tz: Option<String>,
    req_id: Option<String>,
    row_with_meta: Option<String>,
}

type GivenParameters = Result<Query<RestParameters>, QueryRejection>;

/// `POST /rest/sql`
pub(super) async fn post(
    context: RequestContext,
    given: GivenParameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, TaosFailure> {
    answer(context, String::new(), given, &headers, body).await
}

/// `POST /rest/sql/{db}`
pub(super) async fn post_to(
    context: RequestContext,
    Path(database): Path<String>,
    given: GivenParameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, TaosFailure> {
    answer(context, database, given, &headers, body).await
}

async fn answer(
    RequestContext(shared): RequestContext,
    database: String,
    given: GivenParameters,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, TaosFailure> {
    let wrong = |message: String| TaosFailure::new(StatusCode::BAD_REQUEST, OTHER_CODE, message);
    let Query(given) = given.map_err(|error| wrong(format!("bad parameters: {error}")))?;
    if let Some(id) = given.req_id.filter(|id| !id.is_empty())
        && id.parse::<u64>().is_err()
        && id.parse::<i64>().is_err()
    {
        return Err(wrong(format!("illegal param, req_id must be numeric {id}")));
    }
    let has_names = match given.row_with_meta.as_deref() {
        None | Some("" | "false" | "0") => false,
        Some("true" | "1") => true,
        Some(other) => {
            let message = format!("illegal param, row_with_meta must be boolean {other}");
            return Err(wrong(message));
        }
    };
    let zone = given.conn_tz.or(given.tz).unwrap_or_default();
    if !is_zone(&zone) {
        return Err(unknown_zone(&zone).into());
    }
    let (body, lease) = read_body(&shared, headers, body).await?;
    let ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    if body.is_empty() {
        let status = StatusCode::BAD_REQUEST;
        return Err(TaosFailure::new(status, NO_MESSAGE, "request is empty"));
    }
    let sql = String::from_utf8(body).map_err(|_| wrong("the SQL is not UTF-8".to_owned()))?;
    let sql = sql.trim();
    if sql.is_empty() {
        let status = StatusCode::BAD_REQUEST;
        return Err(TaosFailure::new(status, NO_SQL, "no sql input"));
    }
    let mut session = session(&shared.server, &database, &shared.identity);
    if !zone.is_empty() {
        session.time_zone.clone_from(&zone);
    }
    let done = run(&shared.server, &session, sql).await?;
    drop(lease);
    match done {
        TaosAnswer::Done(rows) => Ok(whole(update_answer(rows, has_names))),
        TaosAnswer::Rows(rows) => {
            let setting = (rows.columns.precision, zone.as_str());
            let answer = RestAnswer::in_zone(rows.columns.columns.clone(), setting, has_names);
            let answer = answer.ok_or_else(|| unknown_zone(&zone))?;
            send(&shared, rows, answer, headers, ticket).await
        }
    }
}

/// An answer that is there as a whole.
fn whole(text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    mark(&mut response);
    response
}

fn mark(response: &mut Response) {
    let kind = HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
}

/// The response that streams rows.
async fn send(
    shared: &HttpShared,
    rows: TaosRows,
    answer: RestAnswer,
    headers: &HeaderMap,
    ticket: RequestPermit,
) -> Result<Response, TaosFailure> {
    let mut text = String::new();
    answer.begin(&mut text);
    let mut sending = RestRowsInFlight {
        rows,
        rest: None,
        writer: Some(RestWriter { answer, text }),
        share: ClientShare::new(shared, ticket),
    };
    let head = sending.make().await?;
    let is_whole = sending.writer.is_none();
    let is_packed = takes_gzip(headers) && !(is_whole && head.len() < PACKED_BYTES_MIN);
    let mut response = Response::new(streamed(head, sending, is_packed).await?);
    mark(&mut response);
    if is_packed {
        let gzip = HeaderValue::from_static("gzip");
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_ENCODING, gzip);
    }
    Ok(response)
}

/// Writes batches; moves to another thread for large ones.
struct RestWriter {
    answer: RestAnswer,
    text: String,
}

/// Everything an answer on its way holds; dropping it stops the statement.
struct RestRowsInFlight {
    rows: TaosRows,
    /// What is left of the batch that came last.
    rest: Option<RecordBatch>,
    /// `None` after the end.
    writer: Option<RestWriter>,
    share: ClientShare,
}

impl BodySource for RestRowsInFlight {
    /// Makes bytes until there are enough, or the answer ends.
    async fn make(&mut self) -> Result<Vec<u8>, ServiceError> {
        loop {
            let Some(writer) = &mut self.writer else {
                return Ok(Vec::new());
            };
            if writer.text.len() >= PART_BYTES {
                return Ok(std::mem::take(&mut writer.text).into_bytes());
            }
            let batch = match self.rest.take() {
                Some(batch) => Some(batch),
                None => self.rows.next().await?,
            };
            let Some(batch) = batch else {
                return Ok(self.end());
            };
            let (part, rest) = next_part(batch);
            self.rest = rest;
            self.write(part).await?;
        }
    }

    fn has_ended(&self) -> bool {
        self.writer.is_none()
    }

    fn give_up(&mut self) {
        self.writer = None;
    }

    fn share(&mut self) -> &mut ClientShare {
        &mut self.share
    }
}

impl RestRowsInFlight {
    /// The last bytes.
    fn end(&mut self) -> Vec<u8> {
        let Some(mut writer) = self.writer.take() else {
            return Vec::new();
        };
        writer.answer.end(&mut writer.text);
        writer.text.into_bytes()
    }

    async fn write(&mut self, batch: RecordBatch) -> Result<(), ServiceError> {
        let Some(mut writer) = self.writer.take() else {
            return Ok(());
        };
        let columns = self.rows.columns.clone();
        let is_short = batch.num_rows() <= ROWS_INLINE;
        let work = move || {
            let RestWriter { answer, text } = &mut writer;
            let written = write_rows(&columns, &batch, answer, text);
            (writer, written)
        };
        let (writer, written) = run_inline_if(is_short, work).await?;
        self.writer = Some(writer);
        written
    }
}

/// `GET /rest/login/{user}/{password}`: the token of a name and a password. Whether they are those of a user
/// shows when the token is used.
pub(super) async fn login(
    Path((user, password)): Path<(String, String)>,
) -> Result<Response, TaosFailure> {
    match (TaosdToken { user, password }).to_text() {
        Some(token) => Ok(json_answer(
            StatusCode::OK,
            &json!({"code": 0, "desc": token}),
        )),
        None => Err(TaosFailure::new(
            StatusCode::BAD_REQUEST,
            OTHER_CODE,
            "the name or the password is too long",
        )),
    }
}
