//! What the tasks that DataFusion spawns inherit from their statement.
//!
//! An aggregate reads its input in tasks of its own, and a table of the catalog makes its rows in the task that
//! reads it. Invariant: a spawned task sees the same reference tables as its statement.

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
