//! Limits how often failures of background work are logged: on a full disk, the same work fails
//! hundreds of times per second.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Time between two lines about the same kind of work, ns.
const PAUSE_NS: u64 = 10_000_000_000;

/// When each kind of work was last logged, and how many failures were not logged since.
#[derive(Debug, Default)]
pub(super) struct WarningThrottle(Mutex<BTreeMap<&'static str, WarningState>>);

#[derive(Debug)]
struct WarningState {
    at_ns: u64,
    untold: u64,
}

impl WarningThrottle {
    /// Whether to log a failure of `work` at `now_ns` (monotonic), with the number of unlogged
    /// failures before it.
    pub(super) fn next(&self, work: &'static str, now_ns: u64) -> Option<u64> {
        let mut all = self.0.lock();
        let Some(told) = all.get_mut(work) else {
            let first = WarningState {
                at_ns: now_ns,
                untold: 0,
            };
            all.insert(work, first);
            return Some(0);
        };
        if now_ns.saturating_sub(told.at_ns) < PAUSE_NS {
            told.untold += 1;
            return None;
        }
        told.at_ns = now_ns;
        Some(std::mem::take(&mut told.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_told_now_and_then_and_other_things_at_once() {
        let complaints = WarningThrottle::default();
        assert_eq!(complaints.next("flush", 5), Some(0));
        assert_eq!(complaints.next("flush", 6), None);
        assert_eq!(complaints.next("flush", PAUSE_NS), None);
        assert_eq!(complaints.next("freeze", 7), Some(0));
        assert_eq!(complaints.next("flush", PAUSE_NS + 5), Some(2));
        assert_eq!(complaints.next("flush", 3 * PAUSE_NS), Some(0));
    }
}
