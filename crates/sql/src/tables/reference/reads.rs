//! What one statement sees of reference tables, and through which transaction it changes them.
//!
//! It travels with the task of the statement, as its commit point does: tables are looked up and read deep
//! within DataFusion, whose calls carry nothing of ours.

use super::block::{TransactionBlock, WRITER_PATIENCE};
use crate::error::SqlResult;
use marigram_reference::{ReferenceStore, ReferenceTable, ReferenceTransaction};
use marigram_service::{Session, SessionTransaction};
use parking_lot::Mutex;
use std::future::Future;
use std::sync::Arc;

tokio::task_local! {
    static OF_TASK: Arc<StatementReads>;
}

/// The view of one statement on reference tables.
#[derive(Debug)]
pub(crate) struct StatementReads {
    store: ReferenceStore,
    block: Option<Arc<TransactionBlock>>,
    /// The transaction of a statement outside a block, or its snapshot.
    own: Mutex<Option<Arc<ReferenceTransaction>>>,
}

impl StatementReads {
    /// The view of the next statement of a session.
    pub(crate) fn for_statement(store: &ReferenceStore, session: &Session) -> Arc<Self> {
        let block = session.transaction.as_ref();
        Arc::new(Self {
            store: store.clone(),
            block: block.and_then(SessionTransaction::downcast),
            own: Mutex::new(None),
        })
    }

    /// The view of the current task's statement.
    pub(crate) fn of_task() -> Option<Arc<Self>> {
        OF_TASK.try_with(Arc::clone).ok()
    }

    /// Makes this the view of the task as long as it works on `work`.
    pub(crate) fn scope<F: Future>(
        self: Arc<Self>,
        work: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        OF_TASK.scope(self, work)
    }

    /// Notes in the statement's block, if it has one, that the statement failed.
    pub(crate) fn noting_failure<T, E>(&self, done: Result<T, E>) -> Result<T, E> {
        if let (Err(_), Some(block)) = (&done, &self.block) {
            block.fail();
        }
        done
    }

    /// Whether a statement of the block failed before this one.
    pub(crate) fn is_in_failed_block(&self) -> bool {
        self.block.as_ref().is_some_and(|block| block.has_failed())
    }

    /// Whether the statement runs within a block.
    pub(crate) fn is_in_block(&self) -> bool {
        self.block.is_some()
    }

    /// The transaction that has begun already.
    pub(crate) fn known_transaction(&self) -> Option<Arc<ReferenceTransaction>> {
        let own = self.own.lock().clone();
        own.or_else(|| self.block.as_ref()?.transaction())
    }

    /// Whether the statement may see tables that are not committed.
    pub(crate) fn sees_own_changes(&self) -> bool {
        self.known_transaction()
            .is_some_and(|current| current.is_write())
    }

    /// A table, as the statement sees it.
    pub(crate) fn table(&self, database: &str, name: &str) -> Option<Arc<ReferenceTable>> {
        match self.known_transaction() {
            Some(current) => current.table(database, name),
            None => self.store.table(database, name),
        }
    }

    /// The tables of a database, as the statement sees them.
    pub(crate) fn tables(&self, database: &str) -> Vec<Arc<ReferenceTable>> {
        match self.known_transaction() {
            Some(current) => current.tables(database),
            None => self.store.tables(database),
        }
    }

    /// The transaction to read with: all of a statement's tables show one state.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn transaction_to_read(&self) -> SqlResult<Arc<ReferenceTransaction>> {
        if let Some(current) = self.known_transaction() {
            return Ok(current);
        }
        if let Some(block) = &self.block
            && let Some(of_block) = block.to_read(&self.store)?
        {
            return Ok(of_block);
        }
        let mut own = self.own.lock();
        if let Some(own) = &*own {
            return Ok(Arc::clone(own));
        }
        let snapshot = Arc::new(self.store.read()?);
        *own = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    /// The transaction to change tables with. Blocks while another session changes something, until `stop`
    /// says that nobody waits any more.
    ///
    /// # Errors
    /// 55P03 if another session keeps changing, 40001 if it changed what this one's block has read.
    pub(crate) fn transaction_to_write(
        &self,
        stop: &dyn Fn() -> bool,
    ) -> SqlResult<Arc<ReferenceTransaction>> {
        if let Some(block) = &self.block {
            return block.to_write(&self.store, stop);
        }
        if let Some(own) = self.known_transaction() {
            return Ok(own);
        }
        let began = Arc::new(self.store.write(WRITER_PATIENCE, stop)?);
        *self.own.lock() = Some(Arc::clone(&began));
        Ok(began)
    }
}

/// A table, as the statement of the current task sees it; outside statements, the committed one.
pub(crate) fn seen_table(
    store: &ReferenceStore,
    database: &str,
    name: &str,
) -> Option<Arc<ReferenceTable>> {
    match StatementReads::of_task() {
        Some(reads) => reads.table(database, name),
        None => store.table(database, name),
    }
}

/// The tables of a database, in the same way.
pub(crate) fn seen_tables(store: &ReferenceStore, database: &str) -> Vec<Arc<ReferenceTable>> {
    match StatementReads::of_task() {
        Some(reads) => reads.tables(database),
        None => store.tables(database),
    }
}
