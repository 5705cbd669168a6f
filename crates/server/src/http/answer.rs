//! Rows streamed as the body of an answer.
//!
//! The first rows are fetched before the head is sent, so that most errors become a status. An
//! error after that ends the body without its end mark: the client's connection breaks, and half
//! an answer cannot pass for a whole one.

use crate::gate::Ticket;
use crate::http::error::HttpError;
use crate::http::format::{Form, Formatter};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{BoxStream, unfold};
use marigram_service::{RowStream, ServiceError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Rows up to which a batch is formatted on the thread that serves the connection.
const ROWS_INLINE: usize = 256;

/// When to stop a statement.
pub struct Stop {
    /// Time of its timeout.
    pub deadline: Option<tokio::time::Instant>,
    /// The timeout itself, for the message.
    pub timeout: Option<Duration>,
    /// Fires when the server stops.
    pub kill: CancellationToken,
}

impl Stop {
    /// Waits for `work`, or for the timeout, or for the end of the server.
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

/// Everything an answer on its way holds; dropping it stops the query.
struct Sending {
    batches: BoxStream<'static, Result<RecordBatch, ServiceError>>,
    first: Option<RecordBatch>,
    formatter: Option<Formatter>,
    stop: Stop,
    _ticket: Ticket,
}

/// The answer that streams `rows` in `form`.
///
/// # Errors
/// What goes wrong before the first row is there.
pub async fn stream(
    mut rows: RowStream,
    form: Form,
    begin: Instant,
    stop: Stop,
    ticket: Ticket,
) -> Result<Response, HttpError> {
    let unfit = |error: ArrowError| {
        HttpError::new(
            StatusCode::NOT_ACCEPTABLE,
            "invalid",
            format!(
                "the answer does not fit the form {}: {error}",
                form.content_type()
            ),
        )
    };
    let mut formatter = Formatter::new(form, rows.schema.clone(), begin).map_err(unfit)?;
    let head = formatter.head().map_err(unfit)?;
    let first = stop
        .guard(async { rows.batches.next().await.transpose() })
        .await?;
    let sending = Sending {
        batches: rows.batches,
        first,
        formatter: Some(formatter),
        stop,
        _ticket: ticket,
    };
    let parts = unfold(
        (Some(Bytes::from(head)), sending),
        |(head, mut sending)| async move {
            if let Some(head) = head {
                return Some((Ok(head), (None, sending)));
            }
            let part = sending.part().await?;
            if let Err(error) = &part {
                tracing::warn!(%error, "an answer ended with an error after its first rows");
                sending.formatter = None;
                // Let what is before the error be sent, so that the client sees where it broke.
                tokio::task::yield_now().await;
            }
            Some((part, (None, sending)))
        },
    );
    let mut response = Response::new(Body::from_stream(parts));
    let kind = HeaderValue::from_static(form.content_type());
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

impl Sending {
    /// The next bytes; `None` after the end, or after an error.
    async fn part(&mut self) -> Option<Result<Bytes, ServiceError>> {
        loop {
            let mut formatter = self.formatter.take()?;
            let batch = if let Some(batch) = self.first.take() {
                Ok(Some(batch))
            } else {
                let batches = &mut self.batches;
                self.stop
                    .guard(async { batches.next().await.transpose() })
                    .await
            };
            let bytes = match batch {
                Err(error) => return Some(Err(error)),
                Ok(None) => formatter.tail(),
                Ok(Some(batch)) => {
                    let (back, bytes) = if batch.num_rows() <= ROWS_INLINE {
                        let bytes = formatter.rows(&batch);
                        (formatter, bytes)
                    } else {
                        let work = move || {
                            let bytes = formatter.rows(&batch);
                            (formatter, bytes)
                        };
                        match tokio::task::spawn_blocking(work).await {
                            Ok(done) => done,
                            Err(error) => {
                                return Some(Err(ServiceError::Internal(error.to_string())));
                            }
                        }
                    };
                    self.formatter = Some(back);
                    bytes
                }
            };
            match bytes {
                Err(error) => {
                    self.formatter = None;
                    return Some(Err(ServiceError::Internal(error.to_string())));
                }
                // Nothing ready yet (Parquet): go on, or end.
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Some(Ok(Bytes::from(bytes))),
            }
        }
    }
}
