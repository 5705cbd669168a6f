//! The answers of a request's statements, streamed as the body of a response.
//!
//! The status is 200 from the first statement on: what fails afterwards is told in its result, as
//! InfluxDB does it. Bytes that were made and not sent are counted as the client's.

use super::encoder::{AnswerEncoder, form};
use super::parameters::QueryParameters;
use super::series::SeriesLayout;
use crate::admission::RequestPermit;
use crate::http::HttpShared;
use crate::http::client_share::{ClientShare, StopTime};
use crate::http::error::HttpError;
use crate::http::streamed_body::{BodySource, streamed, takes_gzip};
use crate::outgoing::{PART_BYTES, next_part};
use arrow::record_batch::RecordBatch;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures::StreamExt;
use futures::stream::BoxStream;
use marigram_service::{
    Answer, InlinePolicy, ServiceError, StatementAnswer, StatementAnswers, run_inline_if,
};
use std::sync::Arc;
use std::time::Duration;

/// Rows that are encoded on the thread that serves the connection.
const ROWS_INLINE: usize = InlinePolicy::DEFAULT.formatted_rows_max;

/// Bytes below which an answer that is whole is not packed.
const PACKED_BYTES_MIN: usize = 1 << 10;

/// How long bytes that are ready wait for more.
const FLUSH_TIME: Duration = Duration::from_millis(500);

/// Everything an answer on its way holds; dropping it stops the statement.
struct AnswerInFlight {
    shared: HttpShared,
    answers: StatementAnswers,
    rows: Option<RowsInFlight>,
    /// What was fetched and is not encoded yet.
    ahead: Option<RecordBatch>,
    /// `None` after the end.
    encoder: Option<AnswerEncoder>,
    share: ClientShare,
}

/// The statement whose rows are being sent.
struct RowsInFlight {
    layout: Arc<SeriesLayout>,
    batches: BoxStream<'static, Result<RecordBatch, ServiceError>>,
    messages: Vec<String>,
    stop: StopTime,
}

/// What came of waiting.
enum AnswerStep {
    /// Rows or an answer, or an end of rows.
    More,
    /// There are no more answers.
    End,
}

/// The response that streams the answers as `asked`.
///
/// # Errors
/// What goes wrong before the first bytes are there.
pub(super) async fn send(
    shared: &HttpShared,
    answers: StatementAnswers,
    asked: &QueryParameters,
    headers: &HeaderMap,
    ticket: RequestPermit,
) -> Result<Response, HttpError> {
    let form = form(asked.format, asked.pretty, asked.times);
    let mut sending = AnswerInFlight {
        shared: shared.clone(),
        answers,
        rows: None,
        ahead: None,
        encoder: Some(AnswerEncoder::new(form, asked.chunk_rows)),
        share: ClientShare::new(shared, ticket),
    };
    let head = sending.make().await?;
    let is_whole = sending.encoder.is_none();
    let is_packed = takes_gzip(headers) && !(is_whole && head.len() < PACKED_BYTES_MIN);
    let mut response = Response::new(streamed(head, sending, is_packed).await?);
    let kind = HeaderValue::from_static(asked.format.content_type());
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    if is_packed {
        let gzip = HeaderValue::from_static("gzip");
        response
            .headers_mut()
            .insert(header::CONTENT_ENCODING, gzip);
    }
    Ok(response)
}

impl BodySource for AnswerInFlight {
    /// Makes bytes until there are enough, or more take their time.
    async fn make(&mut self) -> Result<Vec<u8>, ServiceError> {
        while let Some(encoder) = &mut self.encoder {
            if encoder.ready_bytes() >= PART_BYTES {
                return Ok(encoder.take());
            }
            if self.ahead.is_some() {
                self.encode().await?;
                continue;
            }
            let patience = match encoder.ready_bytes() {
                0 => Duration::MAX,
                _ if encoder.is_chunked() => Duration::ZERO,
                _ => FLUSH_TIME,
            };
            let advanced = tokio::time::timeout(patience, self.advance()).await;
            let has_ended = matches!(advanced, Ok(Ok(AnswerStep::End)));
            let Some(encoder) = &mut self.encoder else {
                break;
            };
            match advanced {
                Ok(Ok(AnswerStep::More)) => {}
                Ok(Err(error)) => return Err(error),
                Ok(Ok(AnswerStep::End)) | Err(_) => {
                    if has_ended {
                        encoder.finish();
                    }
                    let bytes = encoder.take();
                    if has_ended {
                        self.encoder = None;
                    }
                    return Ok(bytes);
                }
            }
        }
        Ok(Vec::new())
    }

    fn has_ended(&self) -> bool {
        self.encoder.is_none()
    }

    fn give_up(&mut self) {
        self.encoder = None;
    }

    fn share(&mut self) -> &mut ClientShare {
        &mut self.share
    }
}

impl AnswerInFlight {
    /// Waits for the next rows, or else for the next answer. May be given up while it waits.
    async fn advance(&mut self) -> Result<AnswerStep, ServiceError> {
        let Some(rows) = &mut self.rows else {
            let stop = StopTime::new(&self.shared, None);
            let answers = &mut self.answers;
            let next = stop.guard(async { Ok(answers.next().await) }).await?;
            let Some(answer) = next else {
                return Ok(AnswerStep::End);
            };
            self.begin(answer);
            return Ok(AnswerStep::More);
        };
        let batches = &mut rows.batches;
        let next = rows.stop.guard(async { batches.next().await.transpose() });
        match next.await {
            Ok(Some(batch)) => self.ahead = Some(batch),
            Ok(None) => self.end_rows(None),
            Err(error) => {
                self.end_rows(Some(&error));
                // As after a statement that fails before its rows.
                self.answers = futures::stream::empty().boxed();
            }
        }
        Ok(AnswerStep::More)
    }

    fn begin(&mut self, answer: StatementAnswer) {
        let StatementAnswer {
            statement_id,
            answer,
            messages,
        } = answer;
        let Some(encoder) = &mut self.encoder else {
            return;
        };
        encoder.begin_statement(statement_id);
        match answer {
            Ok(Answer::Rows(rows)) => {
                self.rows = Some(RowsInFlight {
                    layout: Arc::new(SeriesLayout::new(&rows.schema)),
                    batches: rows.batches.fuse().boxed(),
                    messages,
                    stop: StopTime::new(
                        &self.shared,
                        self.shared.server.config.statement_timeout(),
                    ),
                });
            }
            Ok(Answer::Done { notices, .. }) => {
                let all: Vec<_> = messages.into_iter().chain(notices).collect();
                encoder.end_statement(&all, None);
            }
            Err(error) => {
                log(&error);
                encoder.end_statement(&messages, Some(&error.to_string()));
            }
        }
    }

    fn end_rows(&mut self, error: Option<&ServiceError>) {
        let messages = self.rows.take().map(|rows| rows.messages);
        error.inspect(|error| log(error));
        if let Some(encoder) = &mut self.encoder {
            let error = error.map(ToString::to_string);
            encoder.end_statement(&messages.unwrap_or_default(), error.as_deref());
        }
    }

    /// Encodes the rows at the head of those that were fetched.
    async fn encode(&mut self) -> Result<(), ServiceError> {
        let (Some(batch), Some(rows)) = (self.ahead.take(), &self.rows) else {
            return Ok(());
        };
        let Some(mut encoder) = self.encoder.take() else {
            return Ok(());
        };
        let layout = Arc::clone(&rows.layout);
        let (part, rest) = next_part(batch);
        self.ahead = rest;
        let is_short = part.num_rows() <= ROWS_INLINE;
        let work = move || {
            let encoded = encoder.rows(&layout, &part);
            (encoder, encoded)
        };
        let (encoder, encoded) = run_inline_if(is_short, work).await?;
        let held = encoder.held_bytes();
        self.encoder = Some(encoder);
        encoded.map_err(|error| ServiceError::Internal(error.to_string()))?;
        if self.share.hold(held).await {
            return Ok(());
        }
        Err(ServiceError::Busy {
            message: "there is no memory for an answer in MessagePack that has to be held whole; \
                      ask for chunks"
                .to_owned(),
            retry_after: Duration::from_secs(1),
        })
    }
}

/// Tells the operator of faults that are not the client's.
fn log(error: &ServiceError) {
    if matches!(error, ServiceError::Internal(_)) {
        tracing::warn!(%error, "a statement failed");
    }
}
