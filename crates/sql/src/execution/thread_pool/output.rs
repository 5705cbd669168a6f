//! The path of a statement's result to its reader.

use super::lanes::{LanePool, LaneThreads};
use super::watchdog::StopStatementOnDrop;
use crate::error::{SqlError, SqlResult};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use futures::{FutureExt, Stream, StreamExt, pin_mut};
use marigram_service::ServiceError;
use parking_lot::Mutex;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// The number of messages that wait for a slow reader.
pub(super) const MESSAGES_MAX: usize = 2;
/// How long a reader may pause before its statement makes room for others.
const READER_WAIT_MAX: Duration = Duration::from_millis(100);

/// Up to this many rows, a batch waits until it is known whether it is the last one.
const SMALL_ROWS: usize = 2048;

/// A message from a running statement.
pub(super) enum OutputMessage {
    /// The schema of the rows and the first batch; whether more follow.
    Rows {
        schema: SchemaRef,
        first: Option<RecordBatch>,
        more: bool,
    },
    Batch(RecordBatch),
    Done {
        tag: String,
        rows: u64,
        notices: Vec<String>,
    },
    End,
    Failed(ServiceError),
}

/// The last message, sent when the statement holds nothing any more and nobody can send. It waits
/// for its reader without using a thread.
pub(super) type OutputEnd = Arc<Mutex<Option<OutputMessage>>>;

/// The sending side of a running statement.
pub(crate) struct StatementOutput {
    pub(super) sender: mpsc::Sender<OutputMessage>,
    pub(super) last: OutputEnd,
    /// Whether the statement is on the calling thread.
    pub(super) is_here: Arc<AtomicBool>,
    pub(super) lane: Arc<LanePlacement>,
}

/// Where a statement runs, when it has a lane.
pub(super) struct LanePlacement {
    pub(super) lanes: Arc<LanePool>,
    pub(super) threads: OnceLock<Arc<LaneThreads>>,
}

impl StatementOutput {
    /// Moves the statement to the threads for statements, unless it is there already: the following
    /// work may take longer than the handover.
    pub(crate) async fn move_on(&self) {
        poll_fn(|_| {
            // The calling thread polls it once, and then hands it over.
            if self.is_here.load(Ordering::Relaxed) {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }

    /// Sends all rows of a stream. Each message wakes the reader, so the schema goes with the first
    /// batch, and the end goes with a small batch, if there is nothing to wait for.
    ///
    /// # Errors
    /// The errors of the stream, and `Cancelled` if the reader is gone.
    pub(crate) async fn rows<E>(
        &self,
        schema: SchemaRef,
        batches: impl Stream<Item = Result<RecordBatch, E>>,
    ) -> SqlResult<()>
    where
        SqlError: From<E>,
    {
        pin_mut!(batches);
        let first = batches.next().await.transpose()?;
        let mut second = None;
        let mut more = first.is_some();
        let is_small = |batch: &RecordBatch| batch.num_rows() <= SMALL_ROWS;
        if first.as_ref().is_some_and(is_small)
            && let Some(next) = batches.next().now_or_never()
        {
            more = next.is_some();
            second = next;
        }
        let begun = OutputMessage::Rows {
            schema,
            first,
            more,
        };
        if !more {
            *self.last.lock() = Some(begun);
            return Ok(());
        }
        self.send(begun).await?;
        if let Some(batch) = second {
            self.send(OutputMessage::Batch(batch?)).await?;
        }
        while let Some(batch) = batches.next().await {
            self.send(OutputMessage::Batch(batch?)).await?;
        }
        Ok(())
    }

    /// Reports that the statement is finished and has no rows.
    pub(crate) fn done(&self, tag: String, rows: u64) {
        self.done_with(tag, rows, Vec::new());
    }

    /// The same, with notices.
    pub(crate) fn done_with(&self, tag: String, rows: u64, notices: Vec<String>) {
        *self.last.lock() = Some(OutputMessage::Done { tag, rows, notices });
    }

    async fn send(&self, message: OutputMessage) -> SqlResult<()> {
        match self.sender.try_send(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(_)) => Err(reader_gone_error()),
            Err(TrySendError::Full(message)) => {
                let slot = tokio::time::timeout(READER_WAIT_MAX, self.sender.reserve()).await;
                let slot = match slot {
                    Ok(slot) => slot.map_err(|_| reader_gone_error())?,
                    Err(_) => self.wait_for_reader().await?,
                };
                slot.send(message);
                Ok(())
            }
        }
    }

    /// Waits for a reader that does not read. In the meantime, another statement may use this one's
    /// admission, and may end it if it needs its memory.
    async fn wait_for_reader(&self) -> SqlResult<mpsc::Permit<'_, OutputMessage>> {
        let LanePlacement { lanes, threads } = &*self.lane;
        if let Some(threads) = threads.get() {
            let unread = lanes.admit_unread().ok_or_else(|| ServiceError::Busy {
                message: "too many results wait for clients that do not read them".to_owned(),
                retry_after: Duration::from_secs(1),
            })?;
            threads.move_to(unread);
        }
        let mut wait = threads.get().map(|own| own.memory().wait_for_reader());
        let ended = async {
            match &mut wait {
                Some(wait) => wait.ended().await,
                None => std::future::pending().await,
            }
        };
        let slot = tokio::select! {
            biased;
            slot = self.sender.reserve() => slot.map_err(|_| reader_gone_error())?,
            () = ended => return Err(unread_error().into()),
        };
        drop(wait);
        if let Some(threads) = threads.get()
            && let Some(admission) = lanes.admit_again().await
        {
            threads.move_to(admission);
        }
        Ok(slot)
    }
}

/// Tells a client, when it reads, why the rest of its answer is missing.
fn unread_error() -> ServiceError {
    ServiceError::Busy {
        message: "the statement was ended because its client did not read the answer while others \
                  needed the memory that it held; read the rows as they come, or ask for fewer"
            .to_owned(),
        retry_after: Duration::from_secs(1),
    }
}

pub(super) fn reader_gone_error() -> SqlError {
    ServiceError::Cancelled("the client went away".into()).into()
}

/// The batches after the first one. `stop` stops the statement, which may still be running.
pub(super) fn remaining_batches(
    receiver: mpsc::Receiver<OutputMessage>,
    last: OutputEnd,
    stop: Option<StopStatementOnDrop>,
) -> impl Stream<Item = Result<RecordBatch, ServiceError>> + Send {
    futures::stream::unfold(Some((receiver, last, stop)), |state| async move {
        let (mut receiver, last, stop) = state?;
        let next = match receiver.recv().await {
            Some(message) => Some(message),
            None => last.lock().take(),
        };
        match next {
            Some(OutputMessage::Batch(batch)) => Some((Ok(batch), Some((receiver, last, stop)))),
            Some(OutputMessage::Failed(error)) => Some((Err(error), None)),
            Some(_) => None,
            None => Some((Err(statement_broken_error()), None)),
        }
    })
}

pub(super) fn statement_broken_error() -> ServiceError {
    ServiceError::Internal("the statement ended without an answer".into())
}
