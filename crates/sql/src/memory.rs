//! DataFusion's memory as a part of the engine's one ceiling.

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use marigram_engine::{Holder, MemoryAccountant};
use std::fmt;
use std::sync::Arc;

/// Draws DataFusion's reservations on the engine's accountant. Operators that can spill share three
/// quarters of the ceiling evenly, so that one does not starve the others; one that is refused
/// spills where it can, and fails the query where it cannot.
#[derive(Debug)]
pub struct AccountedPool {
    accountant: Arc<MemoryAccountant>,
    shares: FairSpillPool,
}

impl AccountedPool {
    /// A pool on an accountant.
    pub fn new(accountant: Arc<MemoryAccountant>) -> Self {
        let shares = FairSpillPool::new(accountant.limit() / 4 * 3);
        Self { accountant, shares }
    }

    fn refuse(&self, reservation: &MemoryReservation, additional: usize) -> DataFusionError {
        DataFusionError::ResourcesExhausted(format!(
            "{} asked for {additional} bytes; {} of {} bytes are in use (memory_limit)",
            reservation.consumer().name(),
            self.accountant.used(),
            self.accountant.limit(),
        ))
    }
}

impl fmt::Display for AccountedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}(limit {} bytes)",
            self.name(),
            self.accountant.limit()
        )
    }
}

impl MemoryPool for AccountedPool {
    fn name(&self) -> &'static str {
        "marigram"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.shares.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.shares.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.shares.grow(reservation, additional);
        self.accountant.grow(Holder::Query, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, bytes: usize) {
        self.shares.shrink(reservation, bytes);
        self.accountant.shrink(Holder::Query, bytes);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if self.shares.try_grow(reservation, additional).is_err() {
            return Err(self.refuse(reservation, additional));
        }
        if !self.accountant.try_grow(Holder::Query, additional) {
            self.shares.shrink(reservation, additional);
            return Err(self.refuse(reservation, additional));
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.accountant.used_by(Holder::Query)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.accountant.limit())
    }
}
