//! Ctrl-C in the shell and in scripts: it stops the running statement rather than the program.
//!
//! Invariant: without [`watch`], nothing here changes the effect of a signal, so that other
//! commands end at Ctrl-C like any program.

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

/// What a second Ctrl-C does, while the first one stops a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecondInterrupt {
    /// Nothing more: a person waits at the shell.
    Waits,
    /// It ends the program.
    Ends,
}

/// The exit status after Ctrl-C: 128 and the number of SIGINT, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// From now on, Ctrl-C only sets a flag and calls the hook.
pub(crate) fn watch(second: SecondInterrupt) -> Result<()> {
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
                    if second == SecondInterrupt::Ends && is_raised() {
                        std::process::exit(i32::from(INTERRUPTED));
                    }
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

/// Sets again what [`clear`] took back for a question about the statement that was stopped.
pub(crate) fn raise_again() {
    if let Some(raised) = RAISED.get() {
        raised.send_replace(true);
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
