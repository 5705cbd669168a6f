//! Limits how many bytes per second compaction may read and write: a token bucket.
//!
//! It is pure: the caller passes the time and learns how long to pause. Work is done first and paid
//! for afterwards, so that a single large page cannot be refused for ever.

use std::time::Duration;

/// Time for which unused tokens can be saved, ns; older ones are lost.
const SAVED_NS: u64 = 250_000_000;

/// A token bucket with one token per byte.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    bytes_per_second: u64,
    /// The moment up to which all tokens are spent, monotonic ns; in the future if there is a debt.
    spent_ns: u64,
}

impl TokenBucket {
    /// A bucket with no tokens spent.
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self {
            bytes_per_second: bytes_per_second.max(1),
            spent_ns: 0,
        }
    }

    /// Pays for `bytes` that were read or written by `now_ns` on the monotonic clock; returns how
    /// long to pause before the next ones.
    pub(crate) fn pay(&mut self, bytes: u64, now_ns: u64) -> Duration {
        let cost_ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        let cost_ns = u64::try_from(cost_ns).unwrap_or(u64::MAX);
        let from = self.spent_ns.max(now_ns.saturating_sub(SAVED_NS));
        self.spent_ns = from.saturating_add(cost_ns);
        Duration::from_nanos(self.spent_ns.saturating_sub(now_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_holds_over_any_time_but_a_short_burst() {
        let mut budget = TokenBucket::new(1000);
        let mut now_ns = 10_000_000_000;
        assert_eq!(budget.pay(250, now_ns), Duration::ZERO, "saved up");
        let start_ns = now_ns;
        for bytes in [1, 999, 5000, 0, 300, 700] {
            now_ns += budget.pay(bytes, now_ns).as_nanos() as u64;
        }
        assert_eq!(now_ns - start_ns, 7_000_000_000);
        now_ns += 60_000_000_000;
        assert_eq!(
            budget.pay(1250, now_ns),
            Duration::from_secs(1),
            "no more is saved"
        );
        assert!(budget.pay(u64::MAX, now_ns) > Duration::from_secs(1 << 30));
    }
}
