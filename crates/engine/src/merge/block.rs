//! Blocks: decoded rows, slices of which the current batch may hold.

use crate::error::{EngineError, Result};
use crate::memory::{Holder, MemoryAccountant, MemoryReservation};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ScalarBuffer;
use std::sync::Arc;
use std::time::Duration;

/// How long a page waits for memory at most, and when a refused reader may retry.
const WAIT_MAX: Duration = Duration::from_secs(1);
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Rows of one page of a segment, or of one chunk: times, and the requested columns (`None` if the
/// source does not have the column).
#[derive(Debug)]
pub(super) struct DecodedBlock {
    pub(super) times: ScalarBuffer<i64>,
    pub(super) columns: Vec<Option<ArrayRef>>,
    /// Bytes decoded for it; 0 if it shares memory that others hold anyway.
    pub(super) bytes: usize,
    /// Whether it is a copy of rows from other blocks, which could then be released.
    pub(super) is_copy: bool,
    _reservation: Option<MemoryReservation>,
}

impl DecodedBlock {
    /// Rows that share memory that others hold anyway.
    pub(super) fn shared(times: ScalarBuffer<i64>, columns: Vec<Option<ArrayRef>>) -> Self {
        Self {
            times,
            columns,
            bytes: 0,
            is_copy: false,
            _reservation: None,
        }
    }

    /// Rows of a decoded page, for which memory is reserved.
    ///
    /// # Errors
    /// `Busy` if there is none below the ceiling, and none becomes free for a while.
    pub(super) fn decoded(
        times: ScalarBuffer<i64>,
        columns: Vec<Option<ArrayRef>>,
        memory: Option<&BlockMemory>,
    ) -> Result<Self> {
        let bytes = bytes_of(&times, &columns);
        let mut room = PageReservation::default();
        room.reach(bytes, memory)?;
        Ok(Self {
            times,
            columns,
            bytes,
            is_copy: false,
            _reservation: room.reservation,
        })
    }

    /// Rows that were copied so that other blocks could be released: they are counted without
    /// asking.
    pub(super) fn copied(
        times: ScalarBuffer<i64>,
        columns: Vec<Option<ArrayRef>>,
        memory: Option<&BlockMemory>,
    ) -> Self {
        let bytes = bytes_of(&times, &columns);
        let count = |memory: &BlockMemory| {
            MemoryReservation::counted(&memory.accountant, memory.holder, bytes)
        };
        Self {
            times,
            columns,
            bytes,
            is_copy: true,
            _reservation: memory.map(count),
        }
    }
}

/// Memory reserved for pages one after another: as much as the largest of them needs.
#[derive(Debug, Default)]
pub(super) struct PageReservation {
    reservation: Option<MemoryReservation>,
}

impl PageReservation {
    /// Reserves what is missing to `bytes`.
    ///
    /// # Errors
    /// As [`DecodedBlock::decoded`].
    pub(super) fn reach(&mut self, bytes: usize, memory: Option<&BlockMemory>) -> Result<()> {
        let Some(memory) = memory else { return Ok(()) };
        let none = || MemoryReservation::empty(&memory.accountant, memory.holder);
        let reservation = self.reservation.get_or_insert_with(none);
        let missing = bytes.saturating_sub(reservation.bytes());
        if missing > 0 && !reservation.wait_grow(missing, WAIT_MAX) {
            return Err(memory.refuse(missing));
        }
        Ok(())
    }
}

pub(super) fn bytes_of(times: &ScalarBuffer<i64>, columns: &[Option<ArrayRef>]) -> usize {
    let columns = columns.iter().flatten().map(Array::get_buffer_memory_size);
    size_of_val(&times[..]) + columns.sum::<usize>()
}

/// The holder of the memory for blocks.
#[derive(Clone, Debug)]
pub(super) struct BlockMemory {
    accountant: Arc<MemoryAccountant>,
    holder: Holder,
}

impl BlockMemory {
    pub(super) fn new(accountant: Arc<MemoryAccountant>, holder: Holder) -> Self {
        Self { accountant, holder }
    }

    fn refuse(&self, bytes: usize) -> EngineError {
        EngineError::Busy {
            reason: format!(
                "no memory for {bytes} more bytes of pages: {} of {} bytes are in use, {} of them \
                 by pages",
                self.accountant.used(),
                self.accountant.limit(),
                self.accountant.used_by(self.holder),
            ),
            retry_after: RETRY_AFTER,
        }
    }
}
