//! Rows streamed as the body of an answer.
//!
//! Bytes that were produced and not sent count against the client; there are never more than the
//! connection's own buffer and the next part.
//!
//! The first rows, and all rows of a short answer, are produced before the head is sent, so that
//! most errors become a status. An error after that ends the body without its end mark: the
//! client's connection breaks, and it cannot mistake half an answer for a whole one.

use crate::http::client_share::{BYTES_FREE, ClientShare, StopTime};
use crate::http::error::HttpError;
use crate::http::format::{Formatter, ResponseFormat};
use crate::http::streamed_body::{BodySource, streamed};
use crate::outgoing::next_part;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use futures::stream::BoxStream;
use marigram_service::{InlinePolicy, RowStream, ServiceError, run_inline_if};
use std::time::{Duration, Instant};

/// Rows up to which a batch is formatted on the thread that serves the connection.
const ROWS_INLINE: usize = InlinePolicy::DEFAULT.formatted_rows_max;

/// Approximate bytes of an answer that are produced before its head is sent, and the time that they
/// may take after the first rows arrived.
const HEAD_BYTES: usize = BYTES_FREE;
const HEAD_TIME: Duration = Duration::from_millis(500);

/// Everything that a streaming answer holds; dropping it stops the query.
struct ResponseInFlight {
    batches: BoxStream<'static, Result<RecordBatch, ServiceError>>,
    /// Rows that were fetched and are not formatted yet.
    ahead: Option<RecordBatch>,
    formatter: Option<Formatter>,
    stop: StopTime,
    share: ClientShare,
}

/// The answer that streams `rows` in `form`.
///
/// # Errors
/// Any error before the first bytes are ready.
pub(super) async fn stream(
    mut rows: RowStream,
    form: ResponseFormat,
    begin: Instant,
    stop: StopTime,
    share: ClientShare,
) -> Result<Response, HttpError> {
    let unfit = |error: ArrowError| {
        HttpError::new(
            StatusCode::NOT_ACCEPTABLE,
            "invalid",
            format!(
                "the format {} cannot hold the answer: {error}",
                form.content_type()
            ),
        )
    };
    let mut formatter = Formatter::new(form, rows.schema.clone(), begin).map_err(unfit)?;
    let mut head = formatter.head().map_err(unfit)?;
    let ahead = stop
        .guard(async { rows.batches.next().await.transpose() })
        .await?;
    let mut sending = ResponseInFlight {
        batches: rows.batches.fuse().boxed(),
        ahead,
        formatter: Some(formatter),
        stop,
        share,
    };
    if sending.ahead.is_some() {
        head.extend(sending.format().await?);
    }
    sending.lengthen(&mut head).await?;
    let kind = HeaderValue::from_static(form.content_type());
    let body = streamed(head, sending, false).await?;
    Ok(([(header::CONTENT_TYPE, kind)], body).into_response())
}

impl BodySource for ResponseInFlight {
    async fn make(&mut self) -> Result<Vec<u8>, ServiceError> {
        if self.ahead.is_none() {
            let batches = &mut self.batches;
            self.ahead = self
                .stop
                .guard(async { batches.next().await.transpose() })
                .await?;
        }
        self.format_or_end().await
    }

    fn has_ended(&self) -> bool {
        self.formatter.is_none()
    }

    fn give_up(&mut self) {
        self.formatter = None;
    }

    fn share(&mut self) -> &mut ClientShare {
        &mut self.share
    }
}

impl ResponseInFlight {
    /// Adds the bytes after the first rows, up to the end if it is near.
    async fn lengthen(&mut self, head: &mut Vec<u8>) -> Result<(), ServiceError> {
        let begin = tokio::time::Instant::now();
        while self.formatter.is_some() && head.len() < HEAD_BYTES && begin.elapsed() < HEAD_TIME {
            if self.ahead.is_none() {
                let batches = &mut self.batches;
                let next = self.stop.guard(async { batches.next().await.transpose() });
                let Ok(next) = tokio::time::timeout_at(begin + HEAD_TIME, next).await else {
                    break;
                };
                self.ahead = next?;
            }
            head.extend(self.format_or_end().await?);
        }
        Ok(())
    }

    /// The bytes of the fetched rows; the bytes of the end if there are none.
    async fn format_or_end(&mut self) -> Result<Vec<u8>, ServiceError> {
        if self.ahead.is_some() {
            return self.format().await;
        }
        match self.formatter.take() {
            Some(formatter) => formatter.tail().map_err(unformatted),
            None => Ok(Vec::new()),
        }
    }

    /// Formats the first part of the fetched rows.
    async fn format(&mut self) -> Result<Vec<u8>, ServiceError> {
        let (Some(batch), Some(mut formatter)) = (self.ahead.take(), self.formatter.take()) else {
            return Ok(Vec::new());
        };
        let (part, rest) = next_part(batch);
        self.ahead = rest;
        let is_short = part.num_rows() <= ROWS_INLINE;
        let work = move || {
            let bytes = formatter.rows(&part);
            (formatter, bytes)
        };
        let (formatter, bytes) = run_inline_if(is_short, work).await?;
        let held = formatter.held_bytes();
        self.formatter = Some(formatter);
        let bytes = bytes.map_err(unformatted)?;
        if self.share.hold(held).await {
            return Ok(bytes);
        }
        Err(ServiceError::Busy {
            message: "there is no memory for the rows that a Parquet file holds together; ask for \
                      another format"
                .to_owned(),
            retry_after: Duration::from_secs(1),
        })
    }
}

fn unformatted(error: ArrowError) -> ServiceError {
    ServiceError::Internal(error.to_string())
}
