//! Admission: how many requests run at once, and how many bytes of bodies are held.
//!
//! What is over a limit is refused at once, with a time after which to try again, because a queue
//! would only hide the overload and hold memory meanwhile.
//!
//! Invariant: what was taken is given back when the [`Ticket`] or [`Lease`] is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limits that all connections share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Gate {
    requests: Arc<Semaphore>,
    buffered: Arc<AtomicUsize>,
    buffered_bytes_max: usize,
}

/// The right to run one request.
#[derive(Debug)]
pub struct Ticket {
    _permit: OwnedSemaphorePermit,
}

/// The right to hold bytes.
#[derive(Debug)]
pub struct Lease {
    buffered: Arc<AtomicUsize>,
    max: usize,
    held: usize,
}

impl Gate {
    /// A gate that lets `requests_max` requests run and `buffered_bytes_max` bytes be held.
    pub fn new(requests_max: usize, buffered_bytes_max: usize) -> Self {
        let requests = Arc::new(Semaphore::new(
            requests_max.clamp(1, Semaphore::MAX_PERMITS),
        ));
        Self {
            requests,
            buffered: Arc::default(),
            buffered_bytes_max,
        }
    }

    /// The right to run a request; `None` where as many as may be are running.
    pub fn enter(&self) -> Option<Ticket> {
        let permit = self.requests.clone().try_acquire_owned().ok()?;
        Some(Ticket { _permit: permit })
    }

    /// A lease on no bytes yet.
    pub fn lease(&self) -> Lease {
        Lease {
            buffered: self.buffered.clone(),
            max: self.buffered_bytes_max,
            held: 0,
        }
    }
}

impl Lease {
    /// Takes `bytes` more; says whether that fitted.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let take = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= self.max);
        let taken = self
            .buffered
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
            .is_ok();
        if taken {
            self.held += bytes;
        }
        taken
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.buffered.fetch_sub(self.held, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        let gate = Gate::new(1, 10);
        let ticket = gate.enter();
        assert!(ticket.is_some() && gate.enter().is_none());
        drop(ticket);
        assert!(gate.enter().is_some());

        let mut first = gate.lease();
        assert!(first.grow(6) && !first.grow(5) && first.grow(4));
        let mut second = gate.lease();
        assert!(!second.grow(1));
        drop(first);
        assert!(second.grow(10));
    }
}
