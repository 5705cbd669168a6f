//! The memory that one connection holds, whatever part of the server took it.
//!
//! A request takes memory in many places, and its answer holds some until the client has read it. So the
//! count travels with the task: [`HeldBytes::scope`] sets that of a request, and each permit that is created in
//! it counts there as long as it exists, also outside of the task.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

tokio::task_local! {
    static OF_CONNECTION: HeldBytes;
}

/// The bytes that the permits of one connection hold. Clones are the same count.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldBytes(Arc<AtomicUsize>);

impl HeldBytes {
    /// The count of the current task, or a new one.
    pub(crate) fn of_task() -> Self {
        OF_CONNECTION.try_with(Self::clone).unwrap_or_default()
    }

    /// Makes this the count of the task, as long as it works on `work`.
    pub(crate) fn scope<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        OF_CONNECTION.scope(self.clone(), work)
    }

    /// Whether a permit holds any.
    pub(crate) fn are_some(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }

    /// Adds what a permit took.
    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Subtracts what it returned.
    pub(crate) fn subtract(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::AcqRel);
    }
}
