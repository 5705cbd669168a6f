//! `POST /api/v2/query`: a script of Flux in, annotated CSV out.
//!
//! What goes wrong before the first rows has a status. What goes wrong later is a table behind the
//! others, as InfluxDB 2 sends it: clients look for its columns `error` and `reference`.

use super::annotated_csv::{AnnotatedCsv, CsvDialect};
use super::error::V2Error;
use super::flux_prelude::prelude;
use crate::http::HttpShared;
use crate::http::client_share::{ClientShare, StopTime};
use crate::http::error::HttpError;
use crate::http::influx::read_body;
use crate::http::request_context::RequestContext;
use crate::http::streamed_body::{BodySource, streamed, takes_gzip};
use crate::outgoing::{PART_BYTES, next_part};
use arrow::record_batch::RecordBatch;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures::StreamExt;
use futures::stream::BoxStream;
use marigram_service::{
    Answer, DEFAULT_DATABASE, InlinePolicy, Language, LanguageRequest, ServiceError, Session,
    run_inline_if,
};
use serde_json::{Map, Value};
use std::time::Duration;

/// Rows up to which a batch is written on the thread that serves the connection.
const ROWS_INLINE: usize = InlinePolicy::DEFAULT.formatted_rows_max;

/// How long bytes that are ready wait for more.
const FLUSH_TIME: Duration = Duration::from_millis(500);

/// What a request asks for.
struct FluxRequest {
    script: String,
    prelude: String,
    dialect: CsvDialect,
}

/// `POST /api/v2/query`
pub(super) async fn post(
    RequestContext(shared): RequestContext,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, V2Error> {
    let (body, _lease) = read_body(&shared, &headers, body).await?;
    let asked = request(&headers, body)?;
    Ok(answer(&shared, asked, &headers).await?)
}

fn request(headers: &HeaderMap, body: Vec<u8>) -> Result<FluxRequest, HttpError> {
    let bad = |message: String| HttpError::bad_request(message);
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or("");
    let media_type = kind.split(';').next().unwrap_or("").trim();
    if media_type.eq_ignore_ascii_case("application/vnd.flux") {
        let script = String::from_utf8(body);
        return Ok(FluxRequest {
            script: script.map_err(|error| bad(format!("the body is not UTF-8: {error}")))?,
            prelude: String::new(),
            dialect: CsvDialect::default(),
        });
    }
    let body: Map<String, Value> = serde_json::from_slice(&body)
        .map_err(|error| bad(format!("the body is not the JSON of a query: {error}")))?;
    match body.get("type").and_then(Value::as_str) {
        None | Some("" | "flux") => {}
        Some(other) => return Err(bad(format!("unknown query type: {other}"))),
    }
    let script = match body.get("query") {
        Some(Value::String(script)) if !script.is_empty() => script.clone(),
        _ => {
            return Err(bad(
                "request body requires query, a script of Flux".to_owned()
            ));
        }
    };
    let dialect = match body.get("dialect") {
        None | Some(Value::Null) => CsvDialect::default(),
        Some(Value::Object(dialect)) => CsvDialect::from_json(dialect).map_err(bad)?,
        Some(_) => return Err(bad("dialect is no object".to_owned())),
    };
    Ok(FluxRequest {
        script,
        prelude: prelude(&body).map_err(bad)?,
        dialect,
    })
}

/// Everything that an answer on its way holds; dropping it stops the script.
struct TablesInFlight {
    batches: BoxStream<'static, Result<RecordBatch, ServiceError>>,
    /// What was fetched and is not written yet.
    ahead: Option<RecordBatch>,
    /// `None` after the end.
    writer: Option<AnnotatedCsv>,
    stop: StopTime,
    share: ClientShare,
}

async fn answer(
    shared: &HttpShared,
    asked: FluxRequest,
    headers: &HeaderMap,
) -> Result<Response, HttpError> {
    let ticket = shared.server.gate.enter().ok_or_else(HttpError::too_many)?;
    let mut session = Session::new(DEFAULT_DATABASE, shared.identity.clone());
    session.read_only = true;
    session.statement_timeout = shared.server.config.statement_timeout();
    let request = LanguageRequest {
        prelude: asked.prelude,
        ..LanguageRequest::new(Language::Flux, &asked.script)
    };
    let stop = StopTime::new(shared, session.statement_timeout);
    let languages = &shared.server.services.languages;
    let work = async {
        let mut answers = languages.run(&session, request).await?;
        Ok(answers.next().await)
    };
    let answer = stop.guard(work).await?;
    let nothing = || ServiceError::Internal("a script gave no answer".to_owned());
    let batches = match answer.ok_or_else(nothing)?.answer? {
        Answer::Rows(rows) => rows.batches,
        Answer::Done { .. } => futures::stream::empty().boxed(),
    };
    let mut sending = TablesInFlight {
        batches: batches.fuse().boxed(),
        ahead: None,
        writer: Some(AnnotatedCsv::new(asked.dialect)),
        stop,
        share: ClientShare::new(shared, ticket),
    };
    sending.advance().await?;
    let head = sending.make().await?;
    let is_packed = takes_gzip(headers);
    let mut response = Response::new(streamed(head, sending, is_packed).await?);
    let kind = HeaderValue::from_static("text/csv; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    if is_packed {
        let gzip = HeaderValue::from_static("gzip");
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, gzip);
    }
    Ok(response)
}

impl BodySource for TablesInFlight {
    /// Makes bytes until there are enough, or more take their time.
    async fn make(&mut self) -> Result<Vec<u8>, ServiceError> {
        loop {
            if self.ahead.is_some() {
                self.write().await?;
            }
            let Some(writer) = &mut self.writer else {
                return Ok(Vec::new());
            };
            let ready = writer.ready_bytes();
            if ready >= PART_BYTES {
                return Ok(writer.take());
            }
            if self.ahead.is_some() {
                continue;
            }
            let patience = if ready == 0 {
                Duration::MAX
            } else {
                FLUSH_TIME
            };
            let advanced = tokio::time::timeout(patience, self.advance()).await;
            let Some(writer) = &mut self.writer else {
                return Ok(Vec::new());
            };
            match advanced {
                Ok(Ok(true)) => {}
                Err(_) => return Ok(writer.take()),
                Ok(ended) => {
                    if let Err(error) = ended {
                        tracing::warn!(%error, "a script ended with an error after its first rows");
                        writer.error(&error.to_string());
                    }
                    let bytes = writer.take();
                    self.writer = None;
                    return Ok(bytes);
                }
            }
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

impl TablesInFlight {
    /// Waits for the next rows; `false` at the end.
    async fn advance(&mut self) -> Result<bool, ServiceError> {
        let batches = &mut self.batches;
        let next = self.stop.guard(async { batches.next().await.transpose() });
        self.ahead = next.await?;
        Ok(self.ahead.is_some())
    }

    /// Writes the rows at the head of those that were fetched.
    async fn write(&mut self) -> Result<(), ServiceError> {
        let (Some(batch), Some(mut writer)) = (self.ahead.take(), self.writer.take()) else {
            return Ok(());
        };
        let (part, rest) = next_part(batch);
        self.ahead = rest;
        let is_short = part.num_rows() <= ROWS_INLINE;
        let work = move || {
            writer.batch(&part);
            writer
        };
        let writer = run_inline_if(is_short, work).await?;
        self.writer = Some(writer);
        Ok(())
    }
}
