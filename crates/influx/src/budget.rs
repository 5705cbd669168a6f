//! The memory of a running statement: its stages reserve what they hold in the shared pool of all
//! statements.

use crate::schema::refused;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use marigram_functions::interrupt;
use marigram_sql::{SqlError, SqlResult};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bytes that are reserved at once.
const STEP_BYTES: usize = 256 << 10;

/// The answer of a statement that was killed.
pub(crate) const INTERRUPTED: &str = "query interrupted";

/// The memory of one statement, shared by its clones.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Mutex<BudgetReservation>>);

#[derive(Debug)]
struct BudgetReservation {
    reservation: MemoryReservation,
    used: usize,
    failed: Option<SqlError>,
    is_killed: Arc<AtomicBool>,
}

impl Budget {
    /// The memory of a statement that holds nothing yet.
    pub fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        let reservation = MemoryConsumer::new("InfluxQL and Flux").register(pool);
        Self(Arc::new(Mutex::new(BudgetReservation {
            reservation,
            used: 0,
            failed: None,
            is_killed: Arc::default(),
        })))
    }

    /// Fails from now on, once `is_killed` says that the statement is to stop.
    pub fn stop_with(&self, is_killed: &Arc<AtomicBool>) {
        self.0.lock().is_killed = Arc::clone(is_killed);
    }

    /// Fails if the statement is to stop: its client is gone, its time is over, or it was killed. For
    /// work that nothing outside can stop.
    ///
    /// # Errors
    /// Why it is to stop.
    pub fn check_interrupt(&self) -> SqlResult<()> {
        interrupt::check()?;
        if self.0.lock().is_killed.load(Ordering::Relaxed) {
            return Err(refused(INTERRUPTED));
        }
        Ok(())
    }

    /// Reserves memory; returns whether it was available. If not, the statement fails at
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

    /// Reserves memory for something that is kept until the statement ends.
    ///
    /// # Errors
    /// If it was not available.
    pub fn keep(&self, bytes: usize) -> SqlResult<()> {
        self.take(bytes);
        self.check()
    }

    /// Releases memory.
    pub fn give(&self, bytes: usize) {
        let mut held = self.0.lock();
        held.used = held.used.saturating_sub(bytes);
        let spare = held.reservation.size().saturating_sub(held.used);
        if spare > 4 * STEP_BYTES {
            held.reservation.shrink(spare - STEP_BYTES);
        }
    }

    /// Makes the statement fail.
    pub fn fail(&self, error: SqlError) {
        self.0.lock().failed.get_or_insert(error);
    }

    /// Whether the statement may continue.
    pub fn is_fine(&self) -> bool {
        self.0.lock().failed.is_none()
    }

    /// Why the statement cannot continue, if it cannot. Reported once.
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
