//! What of the process no holder has taken: code, threads' stacks, what the allocator keeps of
//! freed memory, and what nobody counts.
//!
//! Resident less accounted is too little where memory was taken that is not written to yet. So the
//! figure falls slowly, and never below what the process had before it held anything.

/// Of the difference to a smaller figure, the part that is believed at each look.
const FALL: usize = 8;

/// One look at the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// What was resident, bytes.
    pub resident_bytes: usize,
    /// What no holder has taken, beyond what the process began with: most of it, as a rule, is
    /// freed memory that the allocator keeps, bytes.
    pub retained_bytes: usize,
    /// Whether somebody was refused memory, or waits for it, since the look before.
    pub refused: bool,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct UnaccountedMemory {
    floor: Option<usize>,
    bytes: usize,
    /// By the last look alone.
    now: usize,
}

impl UnaccountedMemory {
    /// So much was resident, and holders had taken `used` bytes. Gives what counts as nobody's.
    pub(super) fn note(&mut self, resident: usize, used: usize) -> usize {
        self.now = resident.saturating_sub(used);
        let floor = *self.floor.get_or_insert(self.now);
        let least = self.now.max(floor.min(resident));
        let fallen = self.bytes.saturating_sub(least) / FALL * (FALL - 1);
        self.bytes = least + fallen;
        self.bytes
    }

    /// What the process had before it held anything, bytes; 0 where it was not measured.
    pub(super) fn floor_bytes(&self) -> usize {
        self.floor.unwrap_or(0)
    }

    pub(super) fn retained_bytes(&self) -> usize {
        self.now.saturating_sub(self.floor_bytes())
    }
}
