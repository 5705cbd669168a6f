//! The way of a statement's answer to its reader.

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

/// Messages that wait for a slow reader.
pub(super) const MESSAGES_MAX: usize = 2;
/// How long a reader may not read until its statement makes room for others.
const READER_WAIT_MAX: Duration = Duration::from_millis(100);

/// Rows up to which a batch does not go out before it is seen whether it is the last one.
const SMALL_ROWS: usize = 2048;

/// What a running statement tells.
pub(super) enum OutputMessage {
    /// Rows of a schema and the first of them; whether more follow.
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

/// What is told last, once the statement holds nothing any more and nobody can send. It waits for
/// its reader without keeping a thread.
pub(super) type OutputEnd = Arc<Mutex<Option<OutputMessage>>>;

/// The side of a running statement on which it tells.
pub struct StatementOutput {
    pub(super) sender: mpsc::Sender<OutputMessage>,
    pub(super) last: OutputEnd,
    /// Whether the statement is on the thread of who asks.
    pub(super) is_here: Arc<AtomicBool>,
    pub(super) lane: Arc<LanePlacement>,
}

/// Where a statement runs, once it has a lane.
pub(super) struct LanePlacement {
    pub(super) lanes: Arc<LanePool>,
    pub(super) threads: OnceLock<Arc<LaneThreads>>,
}

impl StatementOutput {
    /// Goes on with the statement on the threads for statements, if it is not there already: what
    /// follows may take longer than to hand it over.
    pub async fn move_on(&self) {
        poll_fn(|_| {
            // Who began it here polls it once, and hands it over then.
            if self.is_here.load(Ordering::Relaxed) {
                Poll::Pending
            } else {
                Poll::Ready(())
            }
        })
        .await;
    }

    /// All rows of a stream. Each message wakes the reader, so that the schema goes with the first
    /// batch, and with a small one the end as well, if there is nothing to wait for.
    ///
    /// # Errors
    /// The stream's, and `Cancelled` where the reader has gone away.
    pub async fn rows<E>(
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

    /// The statement is done, and has no rows.
    pub fn done(&self, tag: String, rows: u64) {
        self.done_with(tag, rows, Vec::new());
    }

    /// The same, and something to tell beside it.
    pub fn done_with(&self, tag: String, rows: u64, notices: Vec<String>) {
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

    /// Waits for a reader that does not read. Meanwhile another statement may run in this one's
    /// place.
    async fn wait_for_reader(&self) -> SqlResult<mpsc::Permit<'_, OutputMessage>> {
        let LanePlacement { lanes, threads } = &*self.lane;
        if let Some(threads) = threads.get() {
            let unread = lanes.admit_unread().ok_or_else(|| ServiceError::Busy {
                message: "too many answers wait for clients that do not read them".to_owned(),
                retry_after: Duration::from_secs(1),
            })?;
            threads.move_to(unread);
        }
        let slot = self
            .sender
            .reserve()
            .await
            .map_err(|_| reader_gone_error())?;
        if let Some(threads) = threads.get()
            && let Some(admission) = lanes.admit_again().await
        {
            threads.move_to(admission);
        }
        Ok(slot)
    }
}

pub(super) fn reader_gone_error() -> SqlError {
    ServiceError::Cancelled("the client went away".into()).into()
}

/// The batches behind the first one. `stop` is that of a statement that may be running.
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
