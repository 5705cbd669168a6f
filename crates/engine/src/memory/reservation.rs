//! Memory that is given back when its holder is done with it.

use super::{Holder, MemoryAccountant};
use std::sync::Arc;
use std::time::Duration;

/// Bytes taken from an accountant; given back on drop.
#[derive(Debug)]
pub struct MemoryReservation {
    memory: Arc<MemoryAccountant>,
    holder: Holder,
    bytes: usize,
}

impl MemoryReservation {
    /// Nothing yet, for `holder`.
    #[must_use]
    pub fn empty(memory: &Arc<MemoryAccountant>, holder: Holder) -> Self {
        Self::adopted(memory, holder, 0)
    }

    /// `bytes` that exist already.
    #[must_use]
    pub fn counted(memory: &Arc<MemoryAccountant>, holder: Holder, bytes: usize) -> Self {
        memory.grow(holder, bytes);
        Self::adopted(memory, holder, bytes)
    }

    /// `bytes` that were taken from `memory` already, and are given back from here.
    #[must_use]
    pub fn adopted(memory: &Arc<MemoryAccountant>, holder: Holder, bytes: usize) -> Self {
        let memory = Arc::clone(memory);
        Self {
            memory,
            holder,
            bytes,
        }
    }

    /// Takes `bytes` more if they are available; says whether they were.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        let taken = self.memory.try_grow(self.holder, bytes);
        self.bytes += if taken { bytes } else { 0 };
        taken
    }

    /// As [`try_grow`](Self::try_grow), but blocks until `timeout` for others to give something
    /// back.
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
