//! What background work complains of, told at a bearable rate: on a full disk the same work fails
//! hundreds of times a second.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Between two lines about the same kind of work, ns.
const PAUSE_NS: u64 = 10_000_000_000;

/// When each kind of work was last complained of, and how often since without a word.
#[derive(Debug, Default)]
pub(super) struct WarningThrottle(Mutex<BTreeMap<&'static str, WarningState>>);

#[derive(Debug)]
struct WarningState {
    at_ns: u64,
    untold: u64,
}

impl WarningThrottle {
    /// Whether a failure of `work` at `now_ns` (monotonic) is told, with the number of those before it
    /// that were not.
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
