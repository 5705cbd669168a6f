//! What tasks inherit that DataFusion spawns for a statement.
//!
//! An aggregate reads its input in other tasks than its own, and tables of the catalog make their rows where they
//! are read. Invariant: such a task sees reference tables as the statement does that spawned it.

use crate::tables::reference::reads::StatementReads;
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures::FutureExt;
use futures::future::BoxFuture;
use std::any::Any;

type Outcome = Box<dyn Any + Send>;

/// DataFusion calls it for every task that it spawns.
struct InheritedReads;

impl JoinSetTracer for InheritedReads {
    fn trace_future(&self, task: BoxFuture<'static, Outcome>) -> BoxFuture<'static, Outcome> {
        match StatementReads::of_task() {
            Some(reads) => reads.scope(task).boxed(),
            None => task,
        }
    }

    fn trace_block(
        &self,
        work: Box<dyn FnOnce() -> Outcome + Send>,
    ) -> Box<dyn FnOnce() -> Outcome + Send> {
        work
    }
}

/// From now on, spawned tasks inherit.
pub(super) fn inherit_reads() {
    // The process may have other services, whose tasks inherit already.
    let _ = set_join_set_tracer(&InheritedReads);
}
