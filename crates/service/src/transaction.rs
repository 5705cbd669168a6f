//! Transaction blocks of a session.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// What a session does with its transaction block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionStep {
    /// The block begins.
    Begin {
        /// Whether all its statements see one snapshot, and it fails rather than overwrite what others
        /// committed since (`REPEATABLE READ`, `SERIALIZABLE`); `None` for what the session has by default.
        is_serializable: Option<bool>,
    },
    /// The block ends, and its changes stay.
    Commit,
    /// The block ends, and its changes go.
    RollBack,
    /// `SAVEPOINT name`
    Savepoint(String),
    /// `RELEASE name`
    Release(String),
    /// `ROLLBACK TO name`
    RollBackTo(String),
}

/// A transaction block, as the implementation of [`Query`](crate::Query) knows it.
pub trait TransactionBlockState: Any + Send + Sync {
    /// Whether others wait for the block to end.
    fn holds_others(&self) -> bool;
}

/// The transaction block of a session, as the implementation of [`Query`](crate::Query) keeps it. Dropping the
/// last copy takes back what was not committed.
#[derive(Clone)]
pub struct SessionTransaction(Arc<dyn TransactionBlockState>);

impl SessionTransaction {
    /// A block that an implementation of [`Query`](crate::Query) keeps.
    pub fn new<T: TransactionBlockState>(block: Arc<T>) -> Self {
        Self(block)
    }

    /// Lets the implementation recover its own type.
    pub fn downcast<T: TransactionBlockState>(&self) -> Option<Arc<T>> {
        let block: Arc<dyn Any + Send + Sync> = Arc::clone(&self.0) as _;
        block.downcast().ok()
    }

    /// Whether others wait for the block to end: it has changed something, or keeps a snapshot.
    pub fn holds_others(&self) -> bool {
        self.0.holds_others()
    }
}

impl fmt::Debug for SessionTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionTransaction")
    }
}

impl PartialEq for SessionTransaction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SessionTransaction {}
