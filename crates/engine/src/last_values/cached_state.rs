//! The state of one series in the cache, in four bytes.

/// State of a series: a slot of its table, or another state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CachedSeriesState(u32);

impl CachedSeriesState {
    pub(super) const EMPTY: Self = Self(0xC000_0000);
    pub(super) const UNSEEN: Self = Self(0xC000_0001);
    const SEQUENCE_MASK: u32 = 0x3FFF_FFFF;

    /// Known, in this slot.
    pub(super) fn in_slot(slot: u32) -> Self {
        Self(slot)
    }

    /// Changed at `sequence` (of which the low bits count) in a way that the cache did not follow.
    pub(super) fn unknown(sequence: u32) -> Self {
        Self(0x8000_0000 | sequence & Self::SEQUENCE_MASK)
    }

    pub(super) fn slot(self) -> Option<usize> {
        (self.0 < 0x8000_0000).then_some(self.0 as usize)
    }

    /// Whether nothing happened to the series after `sequence`, so that a row found then is valid.
    pub(super) fn quiet_since(self, sequence: u64) -> bool {
        match self.0 >> 30 {
            // Sequences wrap after 2^30 commits; no version lives that long.
            2 => {
                let ahead = (self.0 & Self::SEQUENCE_MASK).wrapping_sub(sequence as u32) << 2;
                ahead == 0 || ahead >= 1 << 31
            }
            3 => true,
            _ => false,
        }
    }
}
