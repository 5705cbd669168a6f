//! DataFusion's memory as a part of the engine's one ceiling.

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use marigram_engine::{Holder, MemoryAccountant};
use std::fmt;
use std::sync::Arc;

/// Hands DataFusion's reservations on to the engine's accountant. An operator that is refused
/// spills where it can, and fails the query where it cannot.
#[derive(Debug)]
pub struct AccountedPool(pub Arc<MemoryAccountant>);

impl fmt::Display for AccountedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(limit {} bytes)", self.name(), self.0.limit())
    }
}

impl MemoryPool for AccountedPool {
    fn name(&self) -> &'static str {
        "marigram"
    }

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        self.0.grow(Holder::Query, additional);
    }

    fn shrink(&self, _: &MemoryReservation, bytes: usize) {
        self.0.shrink(Holder::Query, bytes);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if self.0.try_grow(Holder::Query, additional) {
            return Ok(());
        }
        Err(DataFusionError::ResourcesExhausted(format!(
            "{} asked for {additional} bytes; {} of {} bytes are in use (memory_limit)",
            reservation.consumer().name(),
            self.0.used(),
            self.0.limit(),
        )))
    }

    fn reserved(&self) -> usize {
        self.0.used_by(Holder::Query)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.0.limit())
    }
}
