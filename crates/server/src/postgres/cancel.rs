//! Requests to stop another connection's query.
//!
//! A number and a secret that only its client received identify a connection. A request that
//! arrives while no query runs does nothing, as in PostgreSQL.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Flags of connections, by number and secret.
type OpenConnections = HashMap<(i32, i32), Arc<CancelFlag>>;

/// The open connections. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionRegistry {
    open: Arc<Mutex<OpenConnections>>,
    next: Arc<AtomicI32>,
}

/// Whether a connection's query must stop.
#[derive(Debug, Default)]
pub(super) struct CancelFlag {
    raised: AtomicBool,
    notify: Notify,
}

/// A connection's entry in the registry; removed when dropped.
#[derive(Debug)]
pub(super) struct RegistryEntry {
    registry: ConnectionRegistry,
    /// Number of the connection.
    pub process: i32,
    /// Its secret.
    pub secret: i32,
    /// Its flag.
    pub flag: Arc<CancelFlag>,
}

impl ConnectionRegistry {
    /// Registers a connection.
    pub(super) fn enter(&self) -> RegistryEntry {
        let process = self.next.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        // The system seeds a `RandomState`; the number makes it differ between connections.
        let secret = RandomState::new().hash_one(process) as i32;
        let flag = Arc::<CancelFlag>::default();
        self.lock().insert((process, secret), flag.clone());
        RegistryEntry {
            registry: self.clone(),
            process,
            secret,
            flag,
        }
    }

    /// Stops the query of the connection, if there is such a connection.
    pub(super) fn cancel(&self, process: i32, secret: i32) {
        let flag = self.lock().get(&(process, secret)).cloned();
        if let Some(flag) = flag {
            flag.raised.store(true, Ordering::Release);
            flag.notify.notify_waiters();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CancelFlag {
    /// Clears requests that arrived before a query begins.
    pub(super) fn lower(&self) {
        self.raised.store(false, Ordering::Release);
    }

    /// Waits for a request.
    pub(super) async fn raised(&self) {
        loop {
            let notified = self.notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.raised.load(Ordering::Acquire) {
                return;
            }
            notified.await;
        }
    }
}

impl Drop for RegistryEntry {
    fn drop(&mut self) {
        self.registry.lock().remove(&(self.process, self.secret));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_secret_stops_a_query() {
        let registry = ConnectionRegistry::default();
        let entry = registry.enter();
        registry.cancel(entry.process, entry.secret.wrapping_add(1));
        assert!(!entry.flag.raised.load(Ordering::Acquire));
        registry.cancel(entry.process, entry.secret);
        entry.flag.raised().await;
        entry.flag.lower();
        assert!(!entry.flag.raised.load(Ordering::Acquire));
        drop(entry);
        assert!(registry.lock().is_empty());
    }
}
