//! Blocks: decoded rows that a batch in the making may hold slices of.

use crate::error::{EngineError, Result};
use crate::memory::{Holder, MemoryAccountant};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ScalarBuffer;
use std::sync::Arc;
use std::time::Duration;

/// Rows of one page of a segment, or of one chunk: times, and the columns asked for (`None` where
/// the source has no such column).
#[derive(Debug)]
pub(super) struct Block {
    pub(super) times: ScalarBuffer<i64>,
    pub(super) columns: Vec<Option<ArrayRef>>,
    /// Bytes decoded for it; 0 where it shares memory that others hold anyway.
    pub(super) bytes: usize,
    _memory: Option<Reservation>,
}

impl Block {
    pub(super) fn new(
        times: ScalarBuffer<i64>,
        columns: Vec<Option<ArrayRef>>,
        memory: Option<Reservation>,
    ) -> Self {
        let bytes = memory.as_ref().map_or(0, |memory| memory.bytes);
        Self {
            times,
            columns,
            bytes,
            _memory: memory,
        }
    }

    /// Bytes of a decoded page.
    pub(super) fn bytes_of(times: &ScalarBuffer<i64>, columns: &[Option<ArrayRef>]) -> usize {
        let columns = columns.iter().flatten().map(Array::get_buffer_memory_size);
        size_of_val(&times[..]) + columns.sum::<usize>()
    }
}

/// On whose account blocks are held.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    accountant: Arc<MemoryAccountant>,
    holder: Holder,
}

/// Bytes taken from the accountant, given back on drop.
#[derive(Debug)]
pub(super) struct Reservation {
    memory: Option<Memory>,
    bytes: usize,
}

impl Memory {
    pub(super) fn new(accountant: Arc<MemoryAccountant>, holder: Holder) -> Self {
        Self { accountant, holder }
    }
}

impl Reservation {
    /// Takes `bytes` from `memory`; without one, only counts them.
    ///
    /// # Errors
    /// `Busy` where they do not fit below the ceiling.
    pub(super) fn take(memory: Option<&Memory>, bytes: usize) -> Result<Self> {
        if let Some(memory) = memory
            && !memory.accountant.try_grow(memory.holder, bytes)
        {
            return Err(EngineError::Busy {
                reason: format!(
                    "no memory for {bytes} more bytes of pages below the limit of {} bytes",
                    memory.accountant.limit()
                ),
                retry_after: Duration::from_secs(1),
            });
        }
        Ok(Self {
            memory: memory.cloned(),
            bytes,
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(memory) = &self.memory {
            memory.accountant.shrink(memory.holder, self.bytes);
        }
    }
}
