//! Rows streamed as the body of an answer.
//!
//! Bytes that were produced and not sent count against the client; there are never more than the
//! connection's own buffer and the next part.
//!
//! The first rows, and all rows of a short answer, are produced before the head is sent, so that
//! most errors become a status. An error after that ends the body without its end mark: the
//! client's connection breaks, and it cannot mistake half an answer for a whole one.

use crate::admission::{AdmissionControl, MemoryPermit, RequestPermit};
use crate::http::HttpShared;
use crate::http::error::HttpError;
use crate::http::format::{Formatter, ResponseFormat};
use crate::outgoing::{PART_BYTES, rows_within};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{BoxStream, unfold};
use marigram_service::{InlinePolicy, RowStream, ServiceError, run_blocking};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Rows up to which a batch is formatted on the thread that serves the connection.
const ROWS_INLINE: usize = InlinePolicy::DEFAULT.formatted_rows_max;

/// Bytes of a part that every answer may hold; larger parts reserve memory.
const BYTES_FREE: usize = 64 << 10;

/// How long an answer waits for memory before it begins.
pub const WAIT_MAX: Duration = Duration::from_secs(2);

/// Approximate bytes of an answer that are produced before its head is sent, and the time that they
/// may take after the first rows arrived.
const HEAD_BYTES: usize = BYTES_FREE;
const HEAD_TIME: Duration = Duration::from_millis(500);

/// When to stop a statement.
pub struct StopTime {
    /// The moment of its timeout.
    pub deadline: Option<tokio::time::Instant>,
    /// The timeout itself, for the message.
    pub timeout: Option<Duration>,
    /// Fires when the server stops.
    pub kill: CancellationToken,
}

impl StopTime {
    /// That of a statement which begins now.
    pub(super) fn new(shared: &HttpShared, timeout: Option<Duration>) -> Self {
        Self::after(timeout, shared.kill.clone())
    }

    /// That of a statement which begins now, on a server that stops with `kill`.
    pub fn after(timeout: Option<Duration>, kill: CancellationToken) -> Self {
        let deadline = timeout.and_then(|timeout| tokio::time::Instant::now().checked_add(timeout));
        Self {
            deadline,
            timeout,
            kill,
        }
    }

    /// Waits for `work`, for the timeout, or for the end of the server.
    pub async fn guard<T>(
        &self,
        work: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, ServiceError> {
        let timeout = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            done = work => done,
            () = timeout => {
                let limit = self.timeout.unwrap_or_default().as_millis();
                Err(ServiceError::Cancelled(format!(
                    "the statement was stopped: it ran longer than its timeout of {limit} ms"
                )))
            }
            () = self.kill.cancelled() => {
                Err(ServiceError::Cancelled("the server is stopping; try again".to_owned()))
            }
        }
    }
}

/// The resources of the server that a client may hold for its answer.
pub struct ClientShare {
    gate: AdmissionControl,
    /// For bytes that are formatted and not ready to be sent.
    lease: MemoryPermit,
    /// How long to wait for memory after the answer began.
    wait_max: Duration,
    _ticket: RequestPermit,
}

impl ClientShare {
    /// The share of the request that was admitted with `ticket`.
    pub fn new(shared: &HttpShared, ticket: RequestPermit) -> Self {
        Self {
            gate: shared.gate.clone(),
            lease: shared.gate.lease(),
            wait_max: shared.config.write_timeout().unwrap_or(WAIT_MAX),
            _ticket: ticket,
        }
    }

    /// How long to wait for memory once the answer began.
    pub fn wait_max(&self) -> Duration {
        self.wait_max
    }

    /// Holds `bytes` for what is encoded and not ready to be sent; says whether there was room.
    pub async fn hold(&mut self, bytes: usize) -> bool {
        self.lease.hold_in_time(bytes).await
    }

    /// Counts bytes until they are sent.
    ///
    /// # Errors
    /// `Busy` where there is no memory for them in time.
    pub async fn count(
        &mut self,
        bytes: Vec<u8>,
        wait_max: Duration,
    ) -> Result<Bytes, ServiceError> {
        if bytes.len() <= BYTES_FREE {
            return Ok(Bytes::from(bytes));
        }
        let mut lease = self.gate.lease();
        if !lease.grow_within(bytes.len(), wait_max).await {
            return Err(ServiceError::Busy {
                message: "answers that wait for their readers fill the memory set aside for \
                          requests"
                    .to_owned(),
                retry_after: Duration::from_secs(1),
            });
        }
        Ok(Bytes::from_owner(CountedBytes {
            bytes,
            _lease: lease,
        }))
    }
}

/// Bytes, and the permit to hold them.
struct CountedBytes {
    bytes: Vec<u8>,
    _lease: MemoryPermit,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

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
pub async fn stream(
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
    let head = sending.share.count(head, WAIT_MAX).await?;
    let kind = HeaderValue::from_static(form.content_type());
    if sending.formatter.is_none() {
        return Ok(([(header::CONTENT_TYPE, kind)], Body::from(head)).into_response());
    }
    let parts = unfold((Some(head), sending), |(head, mut sending)| async move {
        if let Some(head) = head {
            return Some((Ok(head), (None, sending)));
        }
        let part = sending.part().await?;
        if let Err(error) = &part {
            tracing::warn!(%error, "an answer ended with an error after its first rows");
            sending.formatter = None;
            // Let the bytes before the error be sent, so that the client sees where it broke off.
            tokio::task::yield_now().await;
        }
        Some((part, (None, sending)))
    });
    Ok(([(header::CONTENT_TYPE, kind)], Body::from_stream(parts)).into_response())
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

    /// The next bytes; `None` after the end, or after an error.
    async fn part(&mut self) -> Option<Result<Bytes, ServiceError>> {
        // A format may have nothing ready yet (Parquet).
        loop {
            self.formatter.as_ref()?;
            let bytes = match self.next().await {
                Ok(bytes) if bytes.is_empty() => continue,
                Ok(bytes) => bytes,
                Err(error) => return Some(Err(error)),
            };
            let wait_max = self.share.wait_max;
            return Some(self.share.count(bytes, wait_max).await);
        }
    }

    /// The bytes of the next rows, or of the end.
    async fn next(&mut self) -> Result<Vec<u8>, ServiceError> {
        if self.ahead.is_none() {
            let batches = &mut self.batches;
            self.ahead = self
                .stop
                .guard(async { batches.next().await.transpose() })
                .await?;
        }
        self.format_or_end().await
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
        let rows = rows_within(&batch, PART_BYTES);
        let part = batch.slice(0, rows);
        if rows < batch.num_rows() {
            self.ahead = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        let (formatter, bytes) = if rows <= ROWS_INLINE {
            let bytes = formatter.rows(&part);
            (formatter, bytes)
        } else {
            let work = move || {
                let bytes = formatter.rows(&part);
                (formatter, bytes)
            };
            run_blocking(work).await?
        };
        let held = formatter.held_bytes();
        self.formatter = Some(formatter);
        let bytes = bytes.map_err(unformatted)?;
        if self.share.lease.hold_in_time(held).await {
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
