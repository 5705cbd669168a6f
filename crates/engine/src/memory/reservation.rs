//! Memory that is released when its holder is done with it.

use super::{Holder, MemoryAccountant};
use std::sync::Arc;
use std::time::Duration;

/// Bytes reserved from an accountant; released on drop.
#[derive(Debug)]
pub struct MemoryReservation {
    memory: Arc<MemoryAccountant>,
    holder: Holder,
    bytes: usize,
}

impl MemoryReservation {
    /// An empty reservation for `holder`.
    #[must_use]
    pub fn empty(memory: &Arc<MemoryAccountant>, holder: Holder) -> Self {
        Self::adopted(memory, holder, 0)
    }

    /// A reservation for `bytes` that exist already.
    #[must_use]
    pub fn counted(memory: &Arc<MemoryAccountant>, holder: Holder, bytes: usize) -> Self {
        memory.grow(holder, bytes);
        Self::adopted(memory, holder, bytes)
    }

    /// Takes over `bytes` that were already reserved from `memory`, and releases them on drop.
    #[must_use]
    pub fn adopted(memory: &Arc<MemoryAccountant>, holder: Holder, bytes: usize) -> Self {
        let memory = Arc::clone(memory);
        Self {
            memory,
            holder,
            bytes,
        }
    }

    /// Reserves `bytes` more if they are available; returns whether they were.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        let taken = self.memory.try_grow(self.holder, bytes);
        self.bytes += if taken { bytes } else { 0 };
        taken
    }

    /// Like [`try_grow`](Self::try_grow), but waits up to `timeout` for others to release memory.
    pub fn wait_grow(&mut self, bytes: usize, timeout: Duration) -> bool {
        let taken = self.memory.wait_grow(self.holder, bytes, timeout);
        self.bytes += if taken { bytes } else { 0 };
        taken
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.memory.shrink(self.holder, self.bytes);
    }
}
