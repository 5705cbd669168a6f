//! What connections of HTTP do: which are busy, and which idle one gives way when a client waits for
//! a slot.
//!
//! A connection that has sent no request may hold a slot for a moment, and one that has been
//! answered for a little longer: its client may be about to send another. After that time the one
//! that is idle for longest is closed, but only while a client waits and no slot is free. So silent
//! connections, however many, never keep others (and health checks) waiting until they time out.
//!
//! Invariant: a busy connection is never closed for another.

use super::read_budget::ReadBudget;
use crate::held_bytes::HeldBytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::time::Instant;

/// How long a connection that has not sent a request keeps its slot while others wait.
const SILENT_MAX: Duration = Duration::from_millis(100);
/// The same for one that has been answered.
const BETWEEN_REQUESTS_MAX: Duration = Duration::from_millis(500);

/// The recent use of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionActivity {
    recent: Mutex<ConnectionUse>,
    /// The memory that its requests and answers hold.
    held: HeldBytes,
    /// What its client may send, if it is a WebSocket.
    budget: Mutex<Option<ReadBudget>>,
}

/// What is known of a connection.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a state that comes and goes without the others"
)]
pub(crate) struct ConnectionUse {
    /// Requests in progress.
    pub requests: usize,
    /// Whether a body has begun that was not read to its end.
    pub unread: bool,
    /// Whether its client does not take what is being sent.
    pub is_stalled: bool,
    /// When the connection was last busy.
    pub last: Instant,
    /// Whether it has ever sent a request.
    has_asked: bool,
    /// Whether it must close as soon as it is idle.
    gives_way: bool,
    /// Wakes the task that reads from it.
    reader: Option<Waker>,
}

impl Default for ConnectionActivity {
    fn default() -> Self {
        let recent = ConnectionUse {
            requests: 0,
            unread: false,
            is_stalled: false,
            last: Instant::now(),
            has_asked: false,
            gives_way: false,
            reader: None,
        };
        Self {
            recent: Mutex::new(recent),
            held: HeldBytes::default(),
            budget: Mutex::default(),
        }
    }
}

impl ConnectionActivity {
    /// What is known, for reading and changing.
    pub(crate) fn used(&self) -> MutexGuard<'_, ConnectionUse> {
        // No holder of the lock can panic halfway.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The memory that its requests and answers hold.
    pub(crate) fn held(&self) -> &HeldBytes {
        &self.held
    }

    /// What its client may send, if it is a WebSocket.
    pub(crate) fn budget(&self) -> MutexGuard<'_, Option<ReadBudget>> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the begin of a request with a body, or without.
    pub(crate) fn begin(&self, unread: bool) {
        let mut used = self.used();
        used.requests += 1;
        used.unread = unread;
        used.has_asked = true;
    }

    /// Whether the connection must be closed for another one. Otherwise the task of `context` is
    /// woken when it must be.
    pub(crate) fn must_give_way(&self, context: &Context<'_>) -> bool {
        let mut used = self.used();
        if used.gives_way && used.is_idle() {
            return true;
        }
        match &mut used.reader {
            Some(reader) => reader.clone_from(context.waker()),
            reader => *reader = Some(context.waker().clone()),
        }
        false
    }
}

impl ConnectionUse {
    fn is_idle(&self) -> bool {
        self.requests == 0 && !self.is_stalled
    }
}

/// A request in progress.
#[derive(Debug)]
pub(crate) struct BusyGuard(pub Arc<ConnectionActivity>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        let mut used = self.0.used();
        used.requests -= 1;
        used.last = Instant::now();
    }
}

/// All open connections.
#[derive(Debug, Default)]
pub(super) struct OpenConnections(Vec<Weak<ConnectionActivity>>);

impl OpenConnections {
    /// Adds a connection, and forgets those that are closed.
    pub(super) fn add(&mut self, activity: &Arc<ConnectionActivity>) {
        self.0.retain(|open| open.strong_count() > 0);
        self.0.push(Arc::downgrade(activity));
    }

    /// Closes the connection that has been idle for longest, if it has been for long enough; returns
    /// how long to wait before another attempt.
    pub(super) fn close_idle(&self) -> Duration {
        let now = Instant::now();
        let mut next = SILENT_MAX;
        let mut idlest: Option<(Duration, Arc<ConnectionActivity>)> = None;
        for open in self.0.iter().filter_map(Weak::upgrade) {
            let used = open.used();
            if !used.is_idle() || used.gives_way {
                continue;
            }
            let idle_max = if used.has_asked {
                BETWEEN_REQUESTS_MAX
            } else {
                SILENT_MAX
            };
            let idle = now.saturating_duration_since(used.last);
            drop(used);
            if idle < idle_max {
                next = next.min(idle_max.saturating_sub(idle));
            } else if idlest.as_ref().is_none_or(|(most, _)| *most < idle) {
                idlest = Some((idle, open));
            }
        }
        if let Some((_, open)) = idlest {
            let mut used = open.used();
            used.gives_way = true;
            if let Some(reader) = used.reader.take() {
                reader.wake();
            }
        }
        next
    }
}
