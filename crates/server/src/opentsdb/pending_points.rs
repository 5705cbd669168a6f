//! Points of lines that arrived together, until they are stored.
//!
//! Invariant: their memory is counted, except that of one point for which there was none. That one waits
//! alone, so that no client holds memory while it waits for more.

use crate::admission::{AdmissionControl, MemoryPermit};
use marigram_opentsdb::DataPoint;

/// Points that are stored at once.
const POINTS_MAX: usize = 4096;

/// Bytes that are counted at once, where there are so many.
const STEP_BYTES: usize = 64 << 10;

/// Points that wait.
pub(super) struct PendingPoints {
    points: Vec<DataPoint>,
    /// The memory that they hold.
    bytes: usize,
    lease: MemoryPermit,
}

impl PendingPoints {
    /// None yet.
    pub(super) fn new(gate: &AdmissionControl) -> Self {
        Self {
            points: Vec::new(),
            bytes: 0,
            lease: gate.lease(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Counts memory for one more point; returns whether there was some.
    pub(super) fn reserve(&mut self, point: &DataPoint) -> bool {
        self.count(self.bytes.saturating_add(point.memory_bytes()))
    }

    /// Adds a point.
    pub(super) fn push(&mut self, point: DataPoint) {
        self.bytes = self.bytes.saturating_add(point.memory_bytes());
        self.points.push(point);
    }

    /// Whether they must be stored before another point is added.
    pub(super) fn are_full(&self) -> bool {
        self.points.len() >= POINTS_MAX || self.bytes > self.lease.held()
    }

    /// Whether all of them are counted; counts what is not, if there is memory.
    pub(super) fn are_counted(&mut self) -> bool {
        self.count(self.bytes)
    }

    /// The points, and the permit to hold them.
    pub(super) fn into_parts(self) -> (Vec<DataPoint>, MemoryPermit) {
        (self.points, self.lease)
    }

    fn count(&mut self, bytes: usize) -> bool {
        let missing = bytes.saturating_sub(self.lease.held());
        missing == 0 || self.lease.grow(missing.max(STEP_BYTES)) || self.lease.grow(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::tests::gate;

    fn point(tags: usize) -> DataPoint {
        DataPoint {
            metric: "m".to_owned(),
            time_ms: 1,
            value: 1.0,
            tags: vec![("a".to_owned(), "b".to_owned()); tags],
        }
    }

    #[test]
    fn points_are_counted_before_they_are_stored() {
        let gate = gate(100_000);
        let mut pending = PendingPoints::new(&gate);
        let mut added = 0;
        while pending.reserve(&point(10)) {
            pending.push(point(10));
            assert!(!pending.are_full());
            added += 1;
        }
        let bytes = added * point(10).memory_bytes();
        assert!(bytes <= 100_000 && bytes > 90_000, "{bytes}");
        assert!(!gate.lease().grow(100_000 - bytes + 1));
        let (points, lease) = pending.into_parts();
        assert_eq!(points.len(), added);
        drop(lease);
        assert!(gate.lease().grow(100_000));
    }

    #[test]
    fn a_point_without_room_waits_alone() {
        let gate = gate(100_000);
        let mut other = gate.lease();
        assert!(other.grow(100_000));
        let mut pending = PendingPoints::new(&gate);
        assert!(!pending.reserve(&point(10)) && pending.is_empty());
        pending.push(point(10));
        assert!(pending.are_full() && !pending.are_counted());
        drop(other);
        assert!(pending.are_counted());
    }
}
