//! The threads on which queries run.
//!
//! A database has a tokio runtime of its own, so that the CPU work of queries never runs on the
//! threads that serve connections, and so that the blocking API works from any thread.

use crate::error::{Error, Result};
use futures::Stream;
use futures::stream::BoxStream;
use marigram_service::{RowStream, ServiceError};
use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{AbortHandle, JoinHandle};

/// Batches that wait here for a slow reader.
const BATCHES_AHEAD: usize = 1;

/// A runtime that may be dropped anywhere, also in an async context.
#[derive(Debug)]
pub(crate) struct QueryRuntime {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl QueryRuntime {
    pub(crate) fn new(threads: usize) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("marigram-query")
            .enable_all()
            .build()
            .map_err(Error::Runtime)?;
        let handle = runtime.handle().clone();
        Ok(Self {
            runtime: Some(runtime),
            handle,
        })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs `work` on the query threads; it is stopped when the returned future is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> std::result::Result<T, ServiceError> {
        joined(self.handle.spawn(work)).await
    }

    /// Runs blocking `work` on a thread for that; it runs to its end even if nobody waits for it.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> std::result::Result<T, ServiceError> {
        self.handle.spawn_blocking(work).await.map_err(failed)
    }

    /// Runs `work` on the query threads and blocks this thread until it is done.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            // The receiver waits below until this is sent or the task is gone.
            let _ = sender.send(work.await);
        });
        receiver.recv().map_err(|_| Error::Query(stopped()))
    }

    /// The same rows, computed on the query threads a batch ahead of the reader. The query
    /// stops when the stream is dropped.
    pub(crate) fn stream(&self, rows: RowStream) -> RowStream {
        let (sender, receiver) = tokio::sync::mpsc::channel(BATCHES_AHEAD);
        let mut batches = rows.batches;
        let task = self.handle.spawn(async move {
            use futures::StreamExt;
            while let Some(batch) = batches.next().await {
                if sender.send(batch).await.is_err() {
                    return;
                }
            }
        });
        let (guard, task) = (AbortOnDrop(task.abort_handle()), Some(task));
        let batches: BoxStream<'static, _> = Box::pin(Ahead {
            receiver,
            task,
            guard,
        });
        RowStream {
            schema: rows.schema,
            batches,
        }
    }
}

impl Drop for QueryRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[derive(Debug)]
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

type Batch = std::result::Result<arrow::record_batch::RecordBatch, ServiceError>;

/// Batches that another task computes. A task that dies ends the stream with an error and not as
/// if there were no more rows.
struct Ahead {
    receiver: tokio::sync::mpsc::Receiver<Batch>,
    task: Option<JoinHandle<()>>,
    #[expect(dead_code, reason = "held for its drop")]
    guard: AbortOnDrop,
}

impl Stream for Ahead {
    type Item = Batch;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Batch>> {
        if let Some(batch) = std::task::ready!(self.receiver.poll_recv(cx)) {
            return Poll::Ready(Some(batch));
        }
        let Some(task) = self.task.as_mut() else {
            return Poll::Ready(None);
        };
        let end = std::task::ready!(Pin::new(task).poll(cx));
        self.task = None;
        Poll::Ready(end.err().map(|error| Err(failed(error))))
    }
}

async fn joined<T>(task: JoinHandle<T>) -> std::result::Result<T, ServiceError> {
    let _guard = AbortOnDrop(task.abort_handle());
    task.await.map_err(failed)
}

fn failed(error: tokio::task::JoinError) -> ServiceError {
    if error.is_cancelled() {
        return stopped();
    }
    let panic = error.into_panic();
    let reason = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no reason given");
    ServiceError::Internal(format!("a bug stopped this request: {reason}"))
}

fn stopped() -> ServiceError {
    ServiceError::Cancelled("the database is closing".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_works_from_an_async_context_too() {
        let outer = Builder::new_current_thread().build().unwrap();
        let seen = outer.block_on(async {
            let runtime = QueryRuntime::new(1).unwrap();
            runtime.wait(async { 7 }).unwrap()
        });
        assert_eq!(seen, 7);
    }

    #[test]
    fn a_panic_becomes_an_error() {
        let runtime = QueryRuntime::new(1).unwrap();
        let outer = Builder::new_current_thread().build().unwrap();
        let result: std::result::Result<(), _> =
            outer.block_on(runtime.run(async { panic!("on purpose") }));
        assert!(result.unwrap_err().to_string().contains("on purpose"));
    }
}
