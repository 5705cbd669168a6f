//! A clock that moves only when it is told to.

use crate::traits::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A clock for tests. Clones are handles on the same clock.
#[derive(Clone, Debug, Default)]
pub struct SimClock {
    hands: Arc<ClockHands>,
}

#[derive(Debug, Default)]
struct ClockHands {
    now_ns: AtomicI64,
    monotonic_ns: AtomicU64,
}

impl SimClock {
    /// A clock that stands at `now_ns` since the Unix epoch.
    #[must_use]
    pub fn new(now_ns: i64) -> Self {
        let clock = Self::default();
        clock.jump(now_ns);
        clock
    }

    /// Advances the time by `ns`.
    pub fn advance(&self, ns: u64) {
        let step = i64::try_from(ns).unwrap_or(i64::MAX);
        // The time of day saturates instead of wrapping into the past.
        let now = self
            .hands
            .now_ns
            .load(Ordering::Relaxed)
            .saturating_add(step);
        self.hands.now_ns.store(now, Ordering::Relaxed);
        self.hands.monotonic_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Sets the time of day, forwards or back, as an operator or NTP may. Monotonic time stays.
    pub fn jump(&self, now_ns: i64) {
        self.hands.now_ns.store(now_ns, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn now_ns(&self) -> i64 {
        self.hands.now_ns.load(Ordering::Relaxed)
    }

    fn monotonic_ns(&self) -> u64 {
        self.hands.monotonic_ns.load(Ordering::Relaxed)
    }
}
