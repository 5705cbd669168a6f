//! Blocks: decoded rows that a batch in the making may hold slices of.

use crate::error::{EngineError, Result};
use crate::memory::{Holder, MemoryAccountant, MemoryReservation};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ScalarBuffer;
use std::sync::Arc;
use std::time::Duration;

/// How long a page waits for memory at most, and when who was refused may try again.
const WAIT_MAX: Duration = Duration::from_secs(1);
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Rows of one page of a segment, or of one chunk: times, and the columns asked for (`None` where
/// the source has no such column).
#[derive(Debug)]
pub(super) struct DecodedBlock {
    pub(super) times: ScalarBuffer<i64>,
    pub(super) columns: Vec<Option<ArrayRef>>,
    /// Bytes decoded for it; 0 where it shares memory that others hold anyway.
    pub(super) bytes: usize,
    /// Whether it is a copy of rows of other blocks, which let those go.
    pub(super) is_copy: bool,
    _reservation: Option<MemoryReservation>,
}

impl DecodedBlock {
    /// Rows that share memory which others hold anyway.
    pub(super) fn shared(times: ScalarBuffer<i64>, columns: Vec<Option<ArrayRef>>) -> Self {
        Self {
            times,
            columns,
            bytes: 0,
            is_copy: false,
            _reservation: None,
        }
    }

    /// Rows of a decoded page, for which memory is taken.
    ///
    /// # Errors
    /// `Busy` where there is none below the ceiling, and none comes free in a while.
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

    /// Rows that were copied together, so that others could be let go of: they are counted without
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

/// Memory that is taken for pages, one after the other: as much as the largest of them needs.
#[derive(Debug, Default)]
pub(super) struct PageReservation {
    reservation: Option<MemoryReservation>,
}

impl PageReservation {
    /// Takes what is missing of `bytes`.
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

/// On whose account blocks are held.
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
