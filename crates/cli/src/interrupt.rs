//! Ctrl-C in the shell: it stops the running statement rather than the program.
//!
//! Invariant: without [`watch`], nothing here changes the effect of a signal, so that commands and
//! scripts end at Ctrl-C like any program.

use crate::reply::StatementFailure;
use anyhow::Result;
use std::future::Future;
use std::sync::{Mutex, OnceLock, PoisonError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// The message of a cancelled statement.
pub(crate) const CANCELLED: &str = "cancelled; a statement that writes may have stored some rows";

/// Whether Ctrl-C was pressed since the last [`clear`]; set up by [`watch`].
static RAISED: OnceLock<watch::Sender<bool>> = OnceLock::new();

/// The additional action of Ctrl-C while an [`InterruptHook`] exists.
static HOOK: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// From now on, Ctrl-C only sets a flag and calls the hook.
pub(crate) fn watch() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let mut interrupts = {
        let _entered = runtime.enter();
        signal(SignalKind::interrupt())?
    };
    RAISED.get_or_init(|| watch::channel(false).0);
    std::thread::Builder::new()
        .name("marigram-interrupt".into())
        .spawn(move || {
            runtime.block_on(async {
                while interrupts.recv().await.is_some() {
                    raise();
                }
            });
        })?;
    Ok(())
}

fn raise() {
    if let Some(raised) = RAISED.get() {
        raised.send_replace(true);
    }
    let hook = HOOK.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(hook) = hook.as_ref() {
        hook();
    }
}

/// Begins a new statement: an earlier Ctrl-C does not apply to it.
pub(crate) fn clear() {
    if let Some(raised) = RAISED.get() {
        raised.send_replace(false);
    }
}

/// Whether Ctrl-C was pressed since the last [`clear`].
pub(crate) fn is_raised() -> bool {
    RAISED.get().is_some_and(|raised| *raised.borrow())
}

/// Returns the result of `work`, or that it was cancelled; `work` is then dropped, which stops it.
pub(crate) async fn or_cancelled<T, E>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, StatementFailure>
where
    StatementFailure: From<E>,
{
    let raised = async {
        match RAISED.get() {
            Some(raised) => {
                // The sender exists as long as the program.
                let _ = raised.subscribe().wait_for(|raised| *raised).await;
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = raised => Err(StatementFailure::new(CANCELLED)),
        done = work => done.map_err(StatementFailure::from),
    }
}

/// An action that Ctrl-C triggers until this is dropped.
#[derive(Debug)]
pub(crate) struct InterruptHook(());

impl InterruptHook {
    /// From now on, Ctrl-C also calls `act`, on a thread of its own.
    pub(crate) fn new(act: impl Fn() + Send + 'static) -> Self {
        *HOOK.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(act));
        Self(())
    }
}

impl Drop for InterruptHook {
    fn drop(&mut self) {
        *HOOK.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
