//! One statement that changes reference tables: all of it, or nothing.

use crate::error::SqlResult;
use crate::tables::reference::reads::StatementReads;
use marigram_reference::ReferenceTransaction;
use marigram_service::{run_blocking, write_blocking};
use std::sync::Arc;

/// The savepoint that a statement within a block returns to when it fails; no SQL can name it.
const STATEMENT: &str = "\u{1}statement";

/// A change that is taken back unless it ends with [`ChangeGuard::commit`].
#[derive(Debug)]
pub(crate) struct ChangeGuard {
    /// The transaction of the statement, or of its block.
    pub transaction: Arc<ReferenceTransaction>,
    is_in_block: bool,
    has_ended: bool,
}

impl ChangeGuard {
    /// Begins a change; waits for that of another session.
    ///
    /// # Errors
    /// Those of [`StatementReads::transaction_to_write`].
    pub(crate) async fn begin(reads: &Arc<StatementReads>) -> SqlResult<Self> {
        // It is gone as soon as nobody waits for the statement any more.
        let waiting = Arc::new(());
        let (observed, reads) = (Arc::downgrade(&waiting), Arc::clone(reads));
        let begin = move || -> SqlResult<Self> {
            let stop = || observed.strong_count() == 0;
            let transaction = reads.transaction_to_write(&stop)?;
            if reads.is_in_block() {
                transaction.set_savepoint(STATEMENT)?;
            }
            Ok(Self {
                transaction,
                is_in_block: reads.is_in_block(),
                has_ended: false,
            })
        };
        let guard = run_blocking(begin).await?;
        drop(waiting);
        guard
    }

    /// Ends the change. Outside a block it is durable then.
    ///
    /// # Errors
    /// Those of the store, and `Cancelled` if the statement was stopped.
    pub(crate) async fn commit(mut self) -> SqlResult<()> {
        if self.is_in_block {
            self.transaction.release(STATEMENT)?;
        } else {
            let transaction = Arc::clone(&self.transaction);
            write_blocking(true, move |_| {
                Ok::<_, crate::error::SqlError>(transaction.commit()?)
            })
            .await?;
        }
        self.has_ended = true;
        Ok(())
    }
}

impl Drop for ChangeGuard {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        if !self.is_in_block {
            // A call of a statement that nobody waits for may still run. Within a block it runs to its end:
            // SQLite would take back what came before the statement, too.
            self.transaction.interrupt();
            self.transaction.roll_back();
            return;
        }
        let taken_back = self.transaction.roll_back_to(STATEMENT);
        if taken_back.is_err() || self.transaction.release(STATEMENT).is_err() {
            // What cannot be taken back alone must not be committed with the rest.
            self.transaction.roll_back();
        }
    }
}
