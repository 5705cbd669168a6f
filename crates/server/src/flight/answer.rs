//! Rows streamed as the answer to `DoGet`: Arrow batches, as the operators made them.
//!
//! A task of its own fetches rows, encodes them and offers them to the client. It ends with the
//! rows, when the client goes away, when somebody stops the statement, or when the client takes
//! nothing for `write_timeout`: an answer that nobody reads gives its place to others.
//!
//! Invariant: there are never more than two parts of an answer in the server, and their bytes are
//! counted.

use super::call::FlightCall;
use super::fault::FlightFault;
use super::running_statements::{FlightStatementGuard, STOPPED};
use crate::admission::{MemoryPermit, RequestPermit};
use crate::http::StopTime;
use crate::outgoing::next_part;
use arrow::record_batch::RecordBatch;
use arrow_flight::FlightData;
use arrow_flight::encode::{FlightDataEncoder, FlightDataEncoderBuilder};
use arrow_flight::error::FlightError;
use futures::stream::{BoxStream, unfold};
use futures::{Stream, StreamExt, TryStreamExt};
use marigram_service::{CommitPoint, RowStream, ServiceError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

/// The stream of an answer.
pub(super) type AnswerStream = BoxStream<'static, Result<FlightData, Status>>;

/// What an answer holds while it streams.
pub(super) struct AnswerHold {
    /// The right to run.
    pub _permit: RequestPermit,
    /// How its client stops it.
    pub guard: Option<FlightStatementGuard>,
    /// When it must stop.
    pub stop: StopTime,
}

/// Streams `rows`. The first of them are fetched before it returns, so that most errors are the
/// call's own.
///
/// # Errors
/// Any error before the first rows.
pub(super) async fn stream(
    call: &FlightCall,
    rows: RowStream,
    hold: AnswerHold,
) -> Result<AnswerStream, FlightFault> {
    let RowStream {
        schema,
        mut batches,
        ..
    } = rows;
    let first = hold
        .guarded(async { batches.next().await.transpose() })
        .await?;
    let Some(first) = first else {
        return Ok(encoded(&schema, futures::stream::empty()).boxed());
    };
    let (to_client, from_server) = mpsc::channel(1);
    let (tell_end, end) = oneshot::channel();
    let memory = call.shared.server.gate.lease();
    let write_timeout = call.shared.server.config.write_timeout();
    tokio::spawn(async move {
        let rest = unfold((batches, hold), |(mut batches, hold)| async move {
            let next = hold
                .guarded(async { batches.next().await.transpose() })
                .await;
            let next = next.map_err(|fault| FlightError::from(fault.to_status()));
            Some((next.transpose()?, (batches, hold)))
        });
        let batches = futures::stream::iter([Ok(first)]).chain(rest);
        let parts = batches.map_ok(parts_of).try_flatten();
        let offered = MessageSender {
            to_client: to_client.clone(),
            memory,
            write_timeout,
        };
        tokio::select! {
            () = to_client.closed() => {}
            result = offered.all(encoded(&schema, parts)) => {
                // The client may be gone, and then nobody asks.
                let _ = tell_end.send(result);
            }
        }
    });
    Ok(received(from_server, end).boxed())
}

/// The parts of a batch that go out one by one.
fn parts_of(
    batch: RecordBatch,
) -> impl Stream<Item = Result<RecordBatch, FlightError>> + Send + 'static {
    let mut rest = (batch.num_rows() > 0).then_some(batch);
    futures::stream::iter(std::iter::from_fn(move || {
        let (part, more) = next_part(rest.take()?);
        rest = more;
        Some(Ok(part))
    }))
}

/// Encodes batches. Tags stay dictionaries, which are sent again only where they changed.
fn encoded(
    schema: &arrow::datatypes::SchemaRef,
    batches: impl Stream<Item = Result<RecordBatch, FlightError>> + Send + 'static,
) -> EncodedAnswer {
    let encoder = FlightDataEncoderBuilder::new()
        .with_schema(schema.clone())
        .with_dictionary_handling(arrow_flight::encode::DictionaryHandling::Resend)
        // Parts are small already.
        .with_max_flight_data_size(usize::MAX)
        .build(batches);
    EncodedAnswer(encoder)
}

/// The messages of an answer, with our errors.
struct EncodedAnswer(FlightDataEncoder);

impl Stream for EncodedAnswer {
    type Item = Result<FlightData, Status>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0
            .poll_next_unpin(context)
            .map_err(|error| match error {
                FlightError::Tonic(status) => *status,
                error => FlightFault::from(ServiceError::Internal(error.to_string())).to_status(),
            })
    }
}

/// Offers messages to a client.
struct MessageSender {
    to_client: mpsc::Sender<FlightData>,
    memory: MemoryPermit,
    write_timeout: Option<Duration>,
}

impl MessageSender {
    /// Offers all messages, one after the other.
    async fn all(mut self, mut messages: EncodedAnswer) -> Result<(), Status> {
        let wait_max = self.write_timeout.unwrap_or(crate::http::ANSWER_WAIT_MAX);
        while let Some(message) = messages.try_next().await? {
            // One message waits here, and another one is on its way out.
            let bytes = 2 * (message.data_body.len() + message.data_header.len());
            if bytes > self.memory.held() {
                let more = bytes - self.memory.held();
                if !self.memory.grow_within(more, wait_max).await {
                    return Err(FlightFault::no_memory().to_status());
                }
            }
            let offered = self.to_client.send(message);
            let taken = match self.write_timeout {
                None => offered.await,
                Some(limit) => match tokio::time::timeout(limit, offered).await {
                    Ok(taken) => taken,
                    Err(_) => {
                        tracing::info!(
                            "a Flight client reads nothing of its answer, so the server ends it"
                        );
                        let message = format!(
                            "the client took nothing of its answer for {} ms (write_timeout); the \
                             statement was stopped",
                            limit.as_millis()
                        );
                        return Err(FlightFault::from(ServiceError::Cancelled(message)).to_status());
                    }
                },
            };
            if taken.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// What the client reads: the messages, and at last the error if there was one.
fn received(
    from_server: mpsc::Receiver<FlightData>,
    end: oneshot::Receiver<Result<(), Status>>,
) -> impl Stream<Item = Result<FlightData, Status>> + Send + 'static {
    unfold(Some((from_server, end)), |state| async move {
        let (mut from_server, end) = state?;
        if let Some(message) = from_server.recv().await {
            return Some((Ok(message), Some((from_server, end))));
        }
        match end.await {
            Ok(Ok(())) => None,
            Ok(Err(status)) => Some((Err(status), None)),
            Err(_) => Some((Err(Status::internal("the answer broke off")), None)),
        }
    })
}

impl AnswerHold {
    /// The same for work with our own errors.
    pub(super) async fn guarded_call<T>(
        &self,
        work: impl Future<Output = Result<T, FlightFault>>,
    ) -> Result<T, FlightFault> {
        self.guarded(async { Ok(work.await) }).await?
    }

    /// Waits for `work`, for the statement's timeout, for the end of the server, or until the client
    /// stops the statement.
    pub(super) async fn guarded<T>(
        &self,
        work: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, FlightFault> {
        let guard = self.guard.as_ref();
        let commit = guard.map_or_else(CommitPoint::default, |guard| guard.commit.clone());
        let stopped = async {
            match guard {
                Some(guard) => guard.stop.cancelled().await,
                None => std::future::pending().await,
            }
            commit.stopped(STOPPED).await
        };
        tokio::select! {
            biased;
            done = commit.scope(self.stop.guard(work)) => Ok(done?),
            error = stopped => Err(error.into()),
        }
    }
}
