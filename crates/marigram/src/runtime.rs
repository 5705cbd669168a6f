//! The threads on which writes block, and how a thread waits for a query.
//!
//! A database has its own threads for work that waits for the disk, so that it never blocks a
//! thread that serves connections. Queries have theirs ([`marigram_sql::SqlService`]).

use crate::error::{Error, Result};
use marigram_service::{ServiceError, run_blocking_on};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use tokio::runtime::{Builder, Handle, Runtime};

/// A runtime that may be dropped anywhere, even in an async context.
#[derive(Debug)]
pub(crate) struct BlockingRuntime {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl BlockingRuntime {
    /// A runtime with at most this many threads that wait.
    pub(crate) fn new(threads_max: usize) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(threads_max)
            .thread_name("marigram-block")
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

    /// Runs blocking `work` on a thread of this pool; it runs to its end even if no one waits for
    /// it.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> std::result::Result<T, ServiceError> {
        run_blocking_on(&self.handle, work).await
    }
}

impl Drop for BlockingRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Wakes a thread.
struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks this thread until `work` is done. It needs no runtime, and the thread may belong to one:
/// the work only waits for threads of the database.
pub(crate) fn wait<T>(work: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            // A wake-up between the poll and this call makes it return at once.
            Poll::Pending => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_works_from_an_async_context_too() {
        let outer = Builder::new_current_thread().build().unwrap();
        let seen = outer.block_on(async {
            let runtime = BlockingRuntime::new(2).unwrap();
            wait(runtime.run_blocking(|| 7)).unwrap()
        });
        assert_eq!(seen, 7);
    }

    #[test]
    fn a_panic_becomes_an_error() {
        let runtime = BlockingRuntime::new(2).unwrap();
        let result: std::result::Result<(), _> =
            wait(runtime.run_blocking(|| panic!("on purpose")));
        assert!(result.unwrap_err().to_string().contains("on purpose"));
    }
}
