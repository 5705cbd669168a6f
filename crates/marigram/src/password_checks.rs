//! How many passwords are checked at once: a check takes a processor for some 30 ms, and 19 MiB.

use marigram_service::{Result, ServiceError};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Checks at once. More would slow writers down.
const AT_ONCE: usize = 1;
/// Checks that wait for one of these.
const WAITING_MAX: usize = 64;

/// The places of password checks.
#[derive(Debug)]
pub(crate) struct PasswordChecks {
    places: Semaphore,
    waiting: AtomicUsize,
}

impl Default for PasswordChecks {
    fn default() -> Self {
        Self {
            places: Semaphore::new(AT_ONCE),
            waiting: AtomicUsize::new(0),
        }
    }
}

/// Counts a check that waits, until it is dropped.
struct WaitingCheck<'a>(&'a AtomicUsize);

impl Drop for WaitingCheck<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PasswordChecks {
    /// Waits for a place.
    ///
    /// # Errors
    /// `Busy` if too many wait already.
    pub(crate) async fn enter(&self) -> Result<SemaphorePermit<'_>> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _counted = WaitingCheck(&self.waiting);
        let place = if waiting < WAITING_MAX {
            self.places.acquire().await.ok()
        } else {
            None
        };
        place.ok_or_else(|| ServiceError::Busy {
            message: "too many passwords are being checked; log in again".to_owned(),
            retry_after: Duration::from_secs(2),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn checks_wait_their_turn_and_not_without_end() {
        let checks = PasswordChecks::default();
        let first = checks
            .enter()
            .now_or_never()
            .expect("a place")
            .expect("a place");
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| Box::pin(checks.enter())).collect();
        for one in &mut waiting {
            assert!(one.as_mut().now_or_never().is_none(), "it waits");
        }
        let refused = checks.enter().now_or_never().expect("an answer");
        assert!(matches!(refused, Err(ServiceError::Busy { .. })));
        drop(first);
        let next = waiting.remove(0).now_or_never().expect("its turn");
        assert!(next.is_ok());
    }
}
