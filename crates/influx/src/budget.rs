//! The memory of a running statement: what its stages hold is drawn on the pool of all statements.

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use marigram_sql::{SqlError, SqlResult};
use parking_lot::Mutex;
use std::sync::Arc;

/// Bytes that are drawn at once.
const STEP_BYTES: usize = 256 << 10;

/// The memory of one statement. Its clones share it.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Mutex<BudgetReservation>>);

#[derive(Debug)]
struct BudgetReservation {
    reservation: MemoryReservation,
    used: usize,
    failed: Option<SqlError>,
}

impl Budget {
    /// The memory of a statement that holds nothing yet.
    pub fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        let reservation = MemoryConsumer::new("InfluxQL").register(pool);
        Self(Arc::new(Mutex::new(BudgetReservation {
            reservation,
            used: 0,
            failed: None,
        })))
    }

    /// Takes memory; whether it is there. Where it is not, the statement fails with
    /// [`Budget::check`].
    pub fn take(&self, bytes: usize) -> bool {
        let mut held = self.0.lock();
        held.used = held.used.saturating_add(bytes);
        let size = held.reservation.size();
        if held.failed.is_none() && held.used > size {
            let wanted = held.used - size;
            if let Err(error) = held.reservation.try_grow(wanted.max(STEP_BYTES)) {
                held.failed = Some(error.into());
            }
        }
        held.failed.is_none()
    }

    /// Gives memory back.
    pub fn give(&self, bytes: usize) {
        let mut held = self.0.lock();
        held.used = held.used.saturating_sub(bytes);
        let spare = held.reservation.size().saturating_sub(held.used);
        if spare > 4 * STEP_BYTES {
            held.reservation.shrink(spare - STEP_BYTES);
        }
    }

    /// Lets the statement fail.
    pub fn fail(&self, error: SqlError) {
        self.0.lock().failed.get_or_insert(error);
    }

    /// Whether the statement goes on.
    pub fn is_fine(&self) -> bool {
        self.0.lock().failed.is_none()
    }

    /// Why the statement cannot go on, if it cannot. Told once.
    ///
    /// # Errors
    /// If memory was refused.
    pub fn check(&self) -> SqlResult<()> {
        match self.0.lock().failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
