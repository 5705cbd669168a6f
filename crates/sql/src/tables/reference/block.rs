//! The transaction block of a session over reference tables.
//!
//! Before its first change, a block of the level READ COMMITTED holds nothing: each statement sees what is
//! committed when it begins. With the first change it becomes the one writer, and sees its own changes. A
//! serializable block sees one snapshot from its first statement on, and cannot change anything any more once
//! somebody else has committed a change since.

use crate::error::{SqlError, SqlResult};
use marigram_reference::{ReferenceStore, ReferenceTransaction};
use marigram_service::TransactionBlockState;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a statement waits for another session's transaction to end.
pub(crate) const WRITER_PATIENCE: Duration = Duration::from_secs(30);

/// A transaction block.
#[derive(Debug)]
pub(crate) struct TransactionBlock {
    is_serializable: AtomicBool,
    state: Mutex<BlockState>,
}

#[derive(Debug, Default)]
struct BlockState {
    transaction: Option<Arc<ReferenceTransaction>>,
    /// The savepoints that were set before the transaction began.
    early_savepoints: Vec<String>,
    /// Whether a statement failed since the last savepoint that the block returned to.
    has_failed: bool,
}

/// Most savepoints of a block.
const SAVEPOINTS_MAX: usize = 1000;

impl TransactionBlock {
    /// A block in which nothing happened yet.
    pub(crate) fn new(is_serializable: bool) -> Self {
        Self {
            is_serializable: AtomicBool::new(is_serializable),
            state: Mutex::default(),
        }
    }

    /// A statement of the block failed: until the block returns to a savepoint, it can only end.
    pub(crate) fn fail(&self) {
        self.state.lock().has_failed = true;
    }

    /// Whether a statement failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.state.lock().has_failed
    }

    /// Whether all its statements see one snapshot.
    pub(crate) fn is_serializable(&self) -> bool {
        self.is_serializable.load(Ordering::Relaxed)
    }

    /// `SET TRANSACTION ISOLATION LEVEL`
    ///
    /// # Errors
    /// 25001 if the block has seen or changed something already.
    pub(crate) fn set_serializable(&self, is_serializable: bool) -> SqlResult<()> {
        let is_same = self.is_serializable.load(Ordering::Relaxed) == is_serializable;
        if !is_same && self.state.lock().transaction.is_some() {
            let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
            return Err(SqlError::invalid("25001", message));
        }
        self.is_serializable
            .store(is_serializable, Ordering::Relaxed);
        Ok(())
    }

    /// Its transaction, if one has begun.
    pub(crate) fn transaction(&self) -> Option<Arc<ReferenceTransaction>> {
        self.state.lock().transaction.clone()
    }

    /// The transaction for a statement that reads; `None` if the statement takes a snapshot of its own.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn to_read(
        &self,
        store: &ReferenceStore,
    ) -> SqlResult<Option<Arc<ReferenceTransaction>>> {
        let mut state = self.state.lock();
        if state.transaction.is_none() && self.is_serializable.load(Ordering::Relaxed) {
            let began = Arc::new(store.read()?);
            state.begin(&began)?;
        }
        Ok(state.transaction.clone())
    }

    /// The transaction for a statement that changes something. Blocks while another session changes something.
    ///
    /// # Errors
    /// 55P03 if that takes too long, 40001 if the snapshot of a serializable block is no longer current.
    pub(crate) fn to_write(
        &self,
        store: &ReferenceStore,
        stop: &dyn Fn() -> bool,
    ) -> SqlResult<Arc<ReferenceTransaction>> {
        if let Some(transaction) = self.transaction() {
            if !transaction.is_write() {
                transaction.upgrade(WRITER_PATIENCE, stop)?;
            }
            return Ok(transaction);
        }
        // What others commit while this waits is seen, in a serializable block, too: it has read nothing yet.
        let began = Arc::new(store.write(WRITER_PATIENCE, stop)?);
        self.state.lock().begin(&began)?;
        Ok(began)
    }

    /// Ends the block, and keeps its changes or takes them back. Blocks.
    ///
    /// # Errors
    /// If the changes cannot be committed; they are gone then.
    pub(crate) fn end(&self, commits: bool) -> SqlResult<()> {
        let mut state = self.state.lock();
        state.early_savepoints.clear();
        let Some(transaction) = state.transaction.take() else {
            return Ok(());
        };
        if commits && !state.has_failed {
            transaction.commit()?;
        } else {
            transaction.roll_back();
        }
        Ok(())
    }

    /// `SAVEPOINT name`
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn set_savepoint(&self, name: &str) -> SqlResult<()> {
        let mut state = self.state.lock();
        match &state.transaction {
            Some(transaction) => transaction.set_savepoint(name)?,
            None if state.early_savepoints.len() >= SAVEPOINTS_MAX => {
                let message =
                    format!("a transaction block has at most {SAVEPOINTS_MAX} savepoints");
                return Err(SqlError::invalid("54000", message));
            }
            None => state.early_savepoints.push(name.to_owned()),
        }
        Ok(())
    }

    /// `RELEASE name`
    ///
    /// # Errors
    /// 3B001 if there is none.
    pub(crate) fn release(&self, name: &str) -> SqlResult<()> {
        let mut state = self.state.lock();
        match &state.transaction {
            Some(transaction) => transaction.release(name)?,
            None => {
                let at = state.early(name)?;
                state.early_savepoints.truncate(at);
            }
        }
        Ok(())
    }

    /// `ROLLBACK TO name`
    ///
    /// # Errors
    /// 3B001 if there is none.
    pub(crate) fn roll_back_to(&self, name: &str) -> SqlResult<()> {
        let mut state = self.state.lock();
        match &state.transaction {
            Some(transaction) => transaction.roll_back_to(name)?,
            None => {
                let at = state.early(name)?;
                state.early_savepoints.truncate(at + 1);
            }
        }
        state.has_failed = false;
        Ok(())
    }
}

impl TransactionBlockState for TransactionBlock {
    fn holds_others(&self) -> bool {
        self.state.lock().transaction.is_some()
    }
}

impl BlockState {
    fn begin(&mut self, transaction: &Arc<ReferenceTransaction>) -> SqlResult<()> {
        for name in &self.early_savepoints {
            transaction.set_savepoint(name)?;
        }
        self.early_savepoints.clear();
        self.transaction = Some(Arc::clone(transaction));
        Ok(())
    }

    fn early(&self, name: &str) -> SqlResult<usize> {
        let found = self
            .early_savepoints
            .iter()
            .rposition(|known| known == name);
        found.ok_or_else(|| {
            SqlError::invalid("3B001", format!("savepoint \"{name}\" does not exist"))
        })
    }
}
