//! The answers of a request's statements, streamed as the body of a response.
//!
//! The status is 200 from the first statement on: what fails afterwards is told in its result, as
//! InfluxDB does it. Bytes that were made and not sent are counted as the client's.

use super::encoder::{AnswerEncoder, form};
use super::parameters::QueryParameters;
use super::series::SeriesLayout;
use crate::admission::RequestPermit;
use crate::http::HttpShared;
use crate::http::error::HttpError;
use crate::http::response_body::{ClientShare, StopTime, WAIT_MAX};
use crate::outgoing::{PART_BYTES, rows_within};
use arrow::record_batch::RecordBatch;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt;
use futures::stream::{BoxStream, unfold};
use marigram_service::{
    Answer, InlinePolicy, ServiceError, StatementAnswer, StatementAnswers, run_blocking,
};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// Rows, and bytes to be packed, up to which it is done on the thread that serves the connection.
const ROWS_INLINE: usize = InlinePolicy::DEFAULT.formatted_rows_max;
const BYTES_INLINE: usize = InlinePolicy::DEFAULT.body_inline_bytes;

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
    packer: Option<GzEncoder<Vec<u8>>>,
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
pub async fn send(
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
        packer: None,
        share: ClientShare::new(shared, ticket),
    };
    let head = sending.make().await?;
    let is_whole = sending.encoder.is_none();
    let is_packed = takes_gzip(headers) && !(is_whole && head.len() < PACKED_BYTES_MIN);
    if is_packed {
        sending.packer = Some(GzEncoder::new(Vec::new(), Compression::fast()));
    }
    let head = sending.pack(head).await?;
    let head = sending.share.count(head, WAIT_MAX).await?;
    let mut response = if is_whole {
        Response::new(Body::from(head))
    } else {
        let parts = unfold((Some(head), sending), |(head, mut sending)| async move {
            if let Some(head) = head {
                return Some((Ok(head), (None, sending)));
            }
            let part = sending.part().await?;
            if let Err(error) = &part {
                tracing::warn!(%error, "an answer ended with an error after its first rows");
                sending.encoder = None;
                // Let what is before the error be sent, so that the client sees where it broke.
                tokio::task::yield_now().await;
            }
            Some((part, (None, sending)))
        });
        Response::new(Body::from_stream(parts))
    };
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

/// Whether the client takes gzip.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT_ENCODING).iter().any(|list| {
        list.to_str().unwrap_or("").split(',').any(|item| {
            let mut parts = item.split(';').map(str::trim);
            let is_gzip = matches!(parts.next(), Some("gzip" | "x-gzip" | "*"));
            is_gzip && !parts.any(|part| matches!(part, "q=0" | "q=0.0"))
        })
    })
}

impl AnswerInFlight {
    /// The next bytes; `None` after the end, or after an error.
    async fn part(&mut self) -> Option<Result<bytes::Bytes, ServiceError>> {
        loop {
            self.encoder.as_ref()?;
            let packed = match self.make().await {
                Ok(bytes) => self.pack(bytes).await,
                Err(error) => Err(error),
            };
            let bytes = match packed {
                Ok(bytes) if bytes.is_empty() => continue,
                Ok(bytes) => bytes,
                Err(error) => return Some(Err(error)),
            };
            let wait_max = self.share.wait_max();
            return Some(self.share.count(bytes, wait_max).await);
        }
    }

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
                    stop: StopTime::new(&self.shared, self.shared.config.statement_timeout()),
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
        let count = rows_within(&batch, PART_BYTES);
        let part = batch.slice(0, count);
        if count < batch.num_rows() {
            self.ahead = Some(batch.slice(count, batch.num_rows() - count));
        }
        let (encoder, encoded) = if count <= ROWS_INLINE {
            let encoded = encoder.rows(&layout, &part);
            (encoder, encoded)
        } else {
            let work = move || {
                let encoded = encoder.rows(&layout, &part);
                (encoder, encoded)
            };
            run_blocking(work).await?
        };
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

    /// The bytes as they are sent.
    async fn pack(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>, ServiceError> {
        let is_last = self.encoder.is_none();
        let Some(mut packer) = self.packer.take() else {
            return Ok(bytes);
        };
        let is_short = bytes.len() <= BYTES_INLINE;
        let work = move || {
            packer.write_all(&bytes)?;
            if is_last {
                return Ok((packer.finish()?, None));
            }
            packer.flush()?;
            Ok((std::mem::take(packer.get_mut()), Some(packer)))
        };
        let packed: std::io::Result<_> = if is_short {
            work()
        } else {
            run_blocking(work).await?
        };
        let (bytes, packer) = packed.map_err(|error| ServiceError::Internal(error.to_string()))?;
        self.packer = packer;
        Ok(bytes)
    }
}

/// Tells the operator of faults that are not the client's.
fn log(error: &ServiceError) {
    if matches!(error, ServiceError::Internal(_)) {
        tracing::warn!(%error, "a statement failed");
    }
}
