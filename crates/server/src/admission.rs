//! Admission control: how many requests run at once, and how many bytes of bodies they hold.
//!
//! A request beyond the limit is refused at once, with a time after which to retry, because a queue
//! would only hide the overload and hold memory meanwhile. The memory for bodies comes from the
//! database's accountant. If there is none, a body waits a little while the database makes room,
//! which slows its client down; after that, it is refused. Meanwhile, clients that hold some of it and take
//! nothing of their answers lose their connections, the longest stalled first.
//!
//! Invariant: dropping the [`RequestPermit`] or [`MemoryPermit`] returns what it holds.

use crate::held_bytes::HeldBytes;
use crate::write_stall::StalledClients;
use marigram_service::Status;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a body waits for memory at most, and how often it retries.
const WAIT_MAX: Duration = Duration::from_secs(2);
const ASK_EVERY: Duration = Duration::from_millis(20);

/// The limits that all connections share. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct AdmissionControl {
    requests: Arc<Semaphore>,
    memory: Arc<BodyMemory>,
}

/// Memory for bodies.
struct BodyMemory {
    buffered: AtomicUsize,
    bytes_max: usize,
    database: Arc<dyn Status>,
    stalled: StalledClients,
}

impl fmt::Debug for BodyMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("buffered", &self.buffered)
            .field("bytes_max", &self.bytes_max)
            .finish_non_exhaustive()
    }
}

/// The right to run one request.
#[derive(Debug)]
pub(crate) struct RequestPermit {
    _permit: OwnedSemaphorePermit,
}

/// The right to hold bytes.
#[derive(Debug)]
pub(crate) struct MemoryPermit {
    memory: Arc<BodyMemory>,
    held: usize,
    /// What all permits of the same connection hold.
    of_connection: HeldBytes,
}

/// How large a body may be, and which setting limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyLimit {
    /// Largest body.
    pub bytes: usize,
    /// The setting that sets the limit.
    pub setting: &'static str,
}

impl AdmissionControl {
    /// Admits `requests_max` requests at once, and `buffered_bytes_max` bytes of bodies as far as
    /// the database has memory for them.
    pub(crate) fn new(
        requests_max: usize,
        buffered_bytes_max: usize,
        database: Arc<dyn Status>,
    ) -> Self {
        let requests = Arc::new(Semaphore::new(
            requests_max.clamp(1, Semaphore::MAX_PERMITS),
        ));
        let memory = Arc::new(BodyMemory {
            buffered: AtomicUsize::new(0),
            bytes_max: buffered_bytes_max,
            database,
            stalled: StalledClients::default(),
        });
        Self { requests, memory }
    }

    /// The right to run a request; `None` if the limit is reached.
    pub(crate) fn enter(&self) -> Option<RequestPermit> {
        let permit = self.requests.clone().try_acquire_owned().ok()?;
        Some(RequestPermit { _permit: permit })
    }

    /// The clients who take nothing of their answers.
    pub(crate) fn stalled(&self) -> &StalledClients {
        &self.memory.stalled
    }

    /// A permit for no bytes yet, which counts for the connection of the task.
    pub(crate) fn lease(&self) -> MemoryPermit {
        self.lease_of(&HeldBytes::of_task())
    }

    /// The same for a given connection.
    pub(crate) fn lease_of(&self, connection: &HeldBytes) -> MemoryPermit {
        MemoryPermit {
            memory: self.memory.clone(),
            held: 0,
            of_connection: connection.clone(),
        }
    }

    /// The limit for a body to which the setting `name` allows `bytes` at most. A body that can
    /// never fit is too large, which is no reason to retry. The rows parsed from it need room, too.
    pub(crate) fn body_limit(&self, name: &'static str, bytes: usize) -> BodyLimit {
        let BodyMemory {
            bytes_max,
            database,
            ..
        } = &*self.memory;
        let all = [
            (bytes, name),
            (bytes_max / 2, "buffered_limit"),
            (database.memory_max() / 2, "memory_limit"),
        ];
        let (bytes, setting) = all.into_iter().min().unwrap_or((bytes, name));
        BodyLimit { bytes, setting }
    }
}

impl MemoryPermit {
    /// Takes `bytes` more; returns whether they were granted.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let BodyMemory {
            buffered,
            bytes_max,
            database,
            ..
        } = &*self.memory;
        let take = |held: usize| held.checked_add(bytes).filter(|sum| sum <= bytes_max);
        if buffered
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
            .is_err()
        {
            return false;
        }
        if !database.take_memory(bytes) {
            buffered.fetch_sub(bytes, Ordering::AcqRel);
            return false;
        }
        self.held += bytes;
        self.of_connection.add(bytes);
        true
    }

    /// Like [`grow`](Self::grow), but waits a little if there is no memory.
    pub(crate) async fn grow_in_time(&mut self, bytes: usize) -> bool {
        self.grow_within(bytes, WAIT_MAX).await
    }

    /// Like [`grow`](Self::grow), but waits up to `wait_max` if there is no memory.
    pub(crate) async fn grow_within(&mut self, bytes: usize, wait_max: Duration) -> bool {
        let mut waited = Duration::ZERO;
        while !self.grow(bytes) {
            if waited >= wait_max {
                return false;
            }
            self.memory.stalled.end_longest();
            tokio::time::sleep(ASK_EVERY).await;
            waited += ASK_EVERY;
        }
        true
    }

    /// Like [`grow_in_time`](Self::grow_in_time), for a thread that may block.
    pub(crate) fn grow_blocking(&mut self, bytes: usize) -> bool {
        let mut waited = Duration::ZERO;
        while !self.grow(bytes) {
            if waited >= WAIT_MAX {
                return false;
            }
            self.memory.stalled.end_longest();
            std::thread::sleep(ASK_EVERY);
            waited += ASK_EVERY;
        }
        true
    }

    /// A permit for no bytes, which counts for the same connection.
    pub(crate) fn renewed(&self) -> Self {
        Self {
            memory: self.memory.clone(),
            held: 0,
            of_connection: self.of_connection.clone(),
        }
    }

    /// Bytes held.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Changes the permit to `bytes`, if there is memory for them.
    pub(crate) async fn hold_in_time(&mut self, bytes: usize) -> bool {
        if bytes <= self.held {
            self.shrink(self.held - bytes);
            return true;
        }
        self.grow_in_time(bytes - self.held).await
    }

    /// Returns `bytes`.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.held);
        self.held -= bytes;
        self.of_connection.subtract(bytes);
        self.memory.buffered.fetch_sub(bytes, Ordering::AcqRel);
        self.memory.database.give_memory(bytes);
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        self.shrink(self.held);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use marigram_service::Metric;

    /// A database with this many bytes of memory.
    pub(crate) struct Bytes(pub(crate) AtomicUsize);

    impl Status for Bytes {
        fn health(&self) -> Result<(), String> {
            Ok(())
        }

        fn metrics(&self) -> Vec<Metric> {
            Vec::new()
        }

        fn take_memory(&self, bytes: usize) -> bool {
            let take = |left: usize| left.checked_sub(bytes);
            let taken = self
                .0
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
            taken.is_ok()
        }

        fn give_memory(&self, bytes: usize) {
            self.0.fetch_add(bytes, Ordering::AcqRel);
        }
    }

    /// Admission control for this many bytes of bodies, over a database that has more.
    pub(crate) fn gate(bytes_max: usize) -> AdmissionControl {
        AdmissionControl::new(1, bytes_max, Arc::new(Bytes(AtomicUsize::new(1 << 40))))
    }

    #[test]
    fn what_is_taken_is_given_back() {
        let gate = gate(10);
        let ticket = gate.enter();
        assert!(ticket.is_some() && gate.enter().is_none());
        drop(ticket);
        assert!(gate.enter().is_some());

        let mut first = gate.lease();
        assert!(first.grow(6) && !first.grow(5) && first.grow(4));
        let mut second = gate.lease();
        assert!(!second.grow(1));
        first.shrink(3);
        assert!(second.grow(3) && !second.grow(1));
        drop(first);
        assert!(second.grow(7));
        assert_eq!(second.held(), 10);
    }

    #[tokio::test]
    async fn permits_count_for_the_connection_of_their_task() {
        let gate = gate(100);
        let connection = HeldBytes::default();
        let mut permit = connection.scope(async { gate.lease() }).await;
        assert!(gate.lease().grow(1) && !connection.are_some());
        assert!(permit.grow(2));
        permit.shrink(1);
        assert!(connection.are_some(), "it counts outside of the task, too");
        drop(permit);
        assert!(!connection.are_some());
    }

    #[test]
    fn the_least_of_three_settings_bounds_a_body() {
        /// A database that can give this much to requests.
        struct Room(AtomicUsize);

        impl Status for Room {
            fn health(&self) -> Result<(), String> {
                Ok(())
            }

            fn metrics(&self) -> Vec<Metric> {
                Vec::new()
            }

            fn memory_max(&self) -> usize {
                self.0.load(Ordering::Acquire)
            }
        }

        let room = Arc::new(Room(AtomicUsize::new(1000)));
        let gate = AdmissionControl::new(1, 600, room.clone());
        let limit = |bytes| {
            let limit = gate.body_limit("body_limit", bytes);
            (limit.bytes, limit.setting)
        };
        assert_eq!(limit(200), (200, "body_limit"));
        assert_eq!(limit(400), (300, "buffered_limit"));
        room.0.store(500, Ordering::Release);
        assert_eq!(limit(400), (250, "memory_limit"));
    }

    #[test]
    fn bodies_draw_on_the_memory_of_the_database() {
        let database = Arc::new(Bytes(AtomicUsize::new(100)));
        let gate = AdmissionControl::new(1, 1000, database.clone());
        let mut lease = gate.lease();
        assert!(lease.grow(80));
        assert!(!gate.lease().grow_blocking(30), "no memory is released");
        let left = database.0.load(Ordering::Acquire);
        assert_eq!(left, 20, "a refused request holds nothing");
        let mut waiting = gate.lease();
        let waiter = std::thread::spawn(move || waiting.grow_blocking(30));
        drop(lease);
        assert!(waiter.join().unwrap());
        assert_eq!(database.0.load(Ordering::Acquire), 100);
    }
}
