//! Threads for background work that the owner would otherwise have to do.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long an idle thread sleeps at most: it checks ages and ttls this often.
const IDLE: Duration = Duration::from_secs(1);

/// Wakes and stops background threads, and notifies writers when memory may be free.
#[derive(Debug, Default)]
pub(crate) struct BackgroundSignal {
    stopping: AtomicBool,
    /// Whether memory was refused to a holder since this was last read.
    pressed: AtomicBool,
    rung: Mutex<u64>,
    work: Condvar,
    room: Condvar,
}

impl BackgroundSignal {
    /// Announces work.
    pub(crate) fn ring(&self) {
        *self.rung.lock() += 1;
        self.work.notify_all();
    }

    /// Announces that memory was refused to a holder. Cheap while the last announcement has not
    /// been read.
    pub(crate) fn press(&self) {
        if !self.pressed.swap(true, Ordering::AcqRel) {
            self.ring();
        }
    }

    /// Whether memory was refused to a holder since the last call.
    pub(crate) fn take_pressed(&self) -> bool {
        self.pressed.swap(false, Ordering::AcqRel)
    }

    /// Announces that memory may be free.
    pub(crate) fn tell_room(&self) {
        let _rung = self.rung.lock();
        self.room.notify_all();
    }

    /// Waits until memory may be free, or `timeout` has passed.
    pub(crate) fn wait_for_room(&self, timeout: Duration) {
        self.room.wait_for(&mut self.rung.lock(), timeout);
    }

    /// Asks the threads to end.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.ring();
    }

    /// Whether the threads must end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Waits for an announcement, at most `timeout` and never longer than an idle thread does.
    pub(crate) fn rest(&self, timeout: Duration) {
        let mut rung = self.rung.lock();
        if !self.is_stopping() {
            self.work.wait_for(&mut rung, timeout.min(IDLE));
        }
    }

    /// Waits for work announced after `seen`, at most `timeout`; returns the value to pass next
    /// time.
    fn wait(&self, seen: u64, timeout: Duration) -> u64 {
        let mut rung = self.rung.lock();
        if *rung == seen && !self.is_stopping() {
            self.work.wait_for(&mut rung, timeout);
        }
        *rung
    }
}

/// Running threads.
#[derive(Debug, Default)]
pub(crate) struct BackgroundThreads {
    handles: Mutex<Vec<std::thread::JoinHandle<()>>>,
}

impl BackgroundThreads {
    /// Starts a thread that calls `round` until the signal stops it: again at once while it finds
    /// work, otherwise after an announcement or after `pause` (after a second if `pause` is
    /// longer).
    pub(crate) fn start(
        &self,
        name: &str,
        bell: &Arc<BackgroundSignal>,
        pause: Duration,
        mut round: impl FnMut() -> bool + Send + 'static,
    ) -> std::io::Result<()> {
        let bell = bell.clone();
        let body = move || {
            let mut seen = 0;
            while !bell.is_stopping() {
                if !round() {
                    seen = bell.wait(seen, pause.min(IDLE));
                }
            }
        };
        let handle = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(body)?;
        self.handles.lock().push(handle);
        Ok(())
    }

    /// Waits for all threads to end. The signal must have been told to stop.
    pub(crate) fn join(&self) {
        let handles = std::mem::take(&mut *self.handles.lock());
        let this = std::thread::current().id();
        for handle in handles
            .into_iter()
            .filter(|handle| handle.thread().id() != this)
        {
            if handle.join().is_err() {
                tracing::error!("a background thread ended in a panic");
            }
        }
    }
}
