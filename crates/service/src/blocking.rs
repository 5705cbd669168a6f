//! Runs work that computes for long or waits for the disk on threads for such work, so that it
//! never occupies a thread that serves connections. [`InlinePolicy`](crate::InlinePolicy) says
//! which work is too short for this.

use crate::error::{Result, ServiceError};
use tokio::runtime::Handle;
use tokio::task::JoinError;

/// Runs `work` on a thread for blocking work of the current runtime. It runs to its end even if
/// nobody waits for it.
///
/// # Errors
/// `Cancelled` if the runtime is shutting down, `Internal` if the work panicked.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    run_blocking_on(&Handle::current(), work).await
}

/// Runs `work` at once if it `is_short`, as [`InlinePolicy`](crate::InlinePolicy) has it, and otherwise
/// as [`run_blocking`].
///
/// # Errors
/// Those of [`run_blocking`].
pub async fn run_inline_if<T: Send + 'static>(
    is_short: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    if is_short {
        return Ok(work());
    }
    run_blocking(work).await
}

/// Like [`run_blocking`], on a given runtime.
///
/// # Errors
/// Those of [`run_blocking`].
pub async fn run_blocking_on<T: Send + 'static>(
    runtime: &Handle,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    runtime.spawn_blocking(work).await.map_err(stopped)
}

fn stopped(error: JoinError) -> ServiceError {
    if error.is_cancelled() {
        return ServiceError::Cancelled("the database is closing".into());
    }
    let panic = error.into_panic();
    let reason = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no reason given");
    ServiceError::Internal(format!("a bug stopped this request: {reason}"))
}
