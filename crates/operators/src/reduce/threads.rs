//! Measures work, and runs it on other threads.

use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result};
use marigram_engine::ScanMetrics;
use std::sync::atomic::{AtomicU64, Ordering};

/// Does some work, and adds the time that it took, ns.
pub(super) fn timed<T>(spent: &AtomicU64, work: impl FnOnce() -> T) -> T {
    let (done, took_ns) = ScanMetrics::timed(work);
    spent.fetch_add(took_ns, Ordering::Relaxed);
    done
}

/// Does some work on a thread for blocking work.
///
/// # Errors
/// The errors of the work.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    SpawnedTask::spawn_blocking(work)
        .join()
        .await
        .map_err(joined)?
}

/// The error of a task that did not finish.
pub(super) fn joined(error: tokio::task::JoinError) -> DataFusionError {
    DataFusionError::ExecutionJoin(Box::new(error))
}
