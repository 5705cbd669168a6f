//! The memory of the process that no holder has reserved: code, stacks of threads, freed memory
//! that the allocator keeps, and what nothing counts.
//!
//! Resident minus accounted memory is too little if memory was reserved that has not been written
//! to yet. So the figure falls slowly, and never below what the process had before any holder.

/// Each measurement lowers the figure by one of this many parts of the difference.
const FALL: usize = 8;

/// One measurement of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Resident memory, bytes.
    pub resident_bytes: usize,
    /// Memory that no holder has reserved, beyond what the process started with: mostly freed
    /// memory that the allocator keeps, bytes.
    pub retained_bytes: usize,
    /// Whether a holder was refused memory, or waits for it, since the previous measurement.
    pub refused: bool,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct UnaccountedMemory {
    floor: Option<usize>,
    bytes: usize,
    /// The result of the last measurement alone.
    now: usize,
}

impl UnaccountedMemory {
    /// Records resident memory and the bytes `used` by holders. Returns what counts as the process'
    /// own.
    pub(super) fn note(&mut self, resident: usize, used: usize) -> usize {
        self.now = resident.saturating_sub(used);
        let floor = *self.floor.get_or_insert(self.now);
        let least = self.now.max(floor.min(resident));
        let fallen = self.bytes.saturating_sub(least) / FALL * (FALL - 1);
        self.bytes = least + fallen;
        self.bytes
    }

    /// What the process had before any holder, bytes; 0 if it was not measured.
    pub(super) fn floor_bytes(&self) -> usize {
        self.floor.unwrap_or(0)
    }

    pub(super) fn retained_bytes(&self) -> usize {
        self.now.saturating_sub(self.floor_bytes())
    }
}
