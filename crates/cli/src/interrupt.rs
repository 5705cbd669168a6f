//! Ctrl-C in the shell: it ends the statement that runs, not the program.
//!
//! Invariant: without [`watch`] nothing here changes what a signal does, so that commands and scripts
//! end at Ctrl-C as any program does.

use crate::reply::StatementFailure;
use anyhow::Result;
use std::future::Future;
use std::sync::{Mutex, OnceLock, PoisonError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// What a statement that was cancelled says.
pub const CANCELLED: &str = "cancelled; what the statement had begun to store may be stored";

/// Whether Ctrl-C came since the last [`clear`]; there from [`watch`] on.
static RAISED: OnceLock<watch::Sender<bool>> = OnceLock::new();

/// What else Ctrl-C does while a [`InterruptHook`] is there.
static HOOK: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// From here on Ctrl-C only sets a mark and calls the hook.
pub fn watch() -> Result<()> {
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

/// A new statement begins: what came before is not meant for it.
pub fn clear() {
    if let Some(raised) = RAISED.get() {
        raised.send_replace(false);
    }
}

/// Whether Ctrl-C came since the last [`clear`].
pub fn is_raised() -> bool {
    RAISED.get().is_some_and(|raised| *raised.borrow())
}

/// The result of `work`, or that it was cancelled; `work` is dropped then, which stops it.
pub async fn or_cancelled<T, E>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, StatementFailure>
where
    StatementFailure: From<E>,
{
    let raised = async {
        match RAISED.get() {
            Some(raised) => {
                // The sender lives as long as the program.
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

/// Something that Ctrl-C does until this is dropped.
#[derive(Debug)]
pub struct InterruptHook(());

impl InterruptHook {
    /// From here on Ctrl-C also calls `act`, on a thread of its own.
    pub fn new(act: impl Fn() + Send + 'static) -> Self {
        *HOOK.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(act));
        Self(())
    }
}

impl Drop for InterruptHook {
    fn drop(&mut self) {
        *HOOK.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
