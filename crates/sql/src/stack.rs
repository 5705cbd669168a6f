//! Stacks for statements whose trees are deep.
//!
//! A tree of expressions or operators is parsed, walked through, printed, copied and dropped by
//! recursion, here and in the libraries below. What is deeper than [`SHALLOW_MAX`] does all of that
//! on a stack of its own, which is as large as its depth needs and goes back to the system
//! afterwards. `nesting` says how deep a statement is before anything recurses.
//!
//! Invariant: a value that may be deep is never dropped on the stack of whoever happens to hold it
//! last: it is [`DeepTree`], or it stays inside a future [`on_stack`].

use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Levels that any thread's stack has room for.
pub const SHALLOW_MAX: usize = 256;
/// Deepest nesting of parentheses, calls and queries that the parser accepts. What stands in a row is
/// not nested; `nesting` counts that.
pub const NESTED_MAX: usize = 128;
/// Stack of each thread that executes statements, bytes: enough to evaluate and to drop the deepest
/// tree that is accepted. Only pages that were used take memory.
pub const WORKER_STACK_BYTES: usize = 32 << 20;

/// What a level of a tree takes while it is planned, bytes, at most.
const LEVEL_BYTES: usize = 16 << 10;
/// What everything around the tree takes, bytes.
const BASE_BYTES: usize = 8 << 20;
/// What must be left of the present stack to parse what is shallow, bytes.
const RED_ZONE_BYTES: usize = 768 << 10;
/// The stack that shallow statements get where the present one has less left, bytes.
const SMALL_BYTES: usize = 4 << 20;

/// How much stack a tree of a depth needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StackNeed {
    /// Bytes; 0 for what any stack has room for.
    bytes: usize,
}

impl StackNeed {
    /// Of a tree of so many levels.
    pub fn for_depth(levels: usize) -> Self {
        let bytes = if levels <= SHALLOW_MAX {
            0
        } else {
            BASE_BYTES + levels * LEVEL_BYTES
        };
        Self { bytes }
    }

    /// Whether a stack of its own is needed.
    pub fn is_deep(self) -> bool {
        self.bytes > 0
    }

    /// Does something that recurses into the tree.
    pub fn run<R>(self, work: impl FnOnce() -> R) -> R {
        if self.is_deep() {
            stacker::grow(self.bytes, work)
        } else {
            work()
        }
    }

    /// The same on a thread of somebody else, whose stack may be small.
    pub fn run_anywhere<R>(self, work: impl FnOnce() -> R) -> R {
        if self.is_deep() {
            stacker::grow(self.bytes, work)
        } else {
            stacker::maybe_grow(RED_ZONE_BYTES, SMALL_BYTES, work)
        }
    }
}

/// A tree that is copied and dropped on a stack that it fits.
pub struct DeepTree<T> {
    /// There until it is dropped.
    value: Option<Box<T>>,
    need: StackNeed,
}

impl<T> DeepTree<T> {
    /// A tree that needs so much stack.
    pub fn new(value: T, need: StackNeed) -> Self {
        let value = Some(Box::new(value));
        Self { value, need }
    }

    /// What it needs.
    pub fn need(&self) -> StackNeed {
        self.need
    }

    /// The tree, for somebody who drops it on a stack that it fits.
    pub fn into_inner(mut self) -> T {
        *self.value.take().expect(THERE)
    }
}

const THERE: &str = "it is taken only when it is given away or dropped";

impl<T> Deref for DeepTree<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_deref().expect(THERE)
    }
}

impl<T> DerefMut for DeepTree<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_deref_mut().expect(THERE)
    }
}

impl<T: Clone> Clone for DeepTree<T> {
    fn clone(&self) -> Self {
        let value = self.need.run(|| self.value.clone());
        let need = self.need;
        Self { value, need }
    }
}

impl<T: fmt::Debug> fmt::Debug for DeepTree<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.need.run(|| (**self).fmt(f))
    }
}

impl<T> Drop for DeepTree<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.need.run(|| drop(value));
        }
    }
}

/// A future that holds deep trees; see [`on_stack`].
struct OnStack<F> {
    /// There until it is dropped.
    future: Option<Pin<Box<F>>>,
    need: StackNeed,
}

/// Carries out a future, and drops it, on a stack that fits the trees in it.
pub fn on_stack<F: Future>(need: StackNeed, future: F) -> impl Future<Output = F::Output> {
    let future = Some(Box::pin(future));
    OnStack { future, need }
}

impl<F: Future> Future for OnStack<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let need = self.need;
        match self.future.as_mut() {
            Some(future) => need.run(|| future.as_mut().poll(context)),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for OnStack<F> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            self.need.run(|| drop(future));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug)]
    struct Link(#[expect(dead_code, reason = "it makes the chain")] Option<Box<Link>>);

    fn chain(links: usize) -> Link {
        (0..links).fold(Link(None), |rest, _| Link(Some(Box::new(rest))))
    }

    /// Runs a test on a stack on which nothing deep has room.
    fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
        let thread = std::thread::Builder::new().stack_size(128 << 10);
        thread.spawn(work).unwrap().join().unwrap();
    }

    #[test]
    fn deep_trees_are_copied_printed_and_dropped_on_small_stacks() {
        on_a_small_stack(|| {
            let links = 20_000;
            let deep = DeepTree::new(chain(links), StackNeed::for_depth(links));
            let copy = deep.clone();
            assert!(format!("{copy:?}").len() > links);
            drop(deep);
        });
    }

    #[test]
    fn futures_run_and_end_on_their_stack() {
        on_a_small_stack(|| {
            let need = StackNeed::for_depth(20_000);
            let made = on_stack(need, async { format!("{:?}", chain(20_000)).len() });
            assert!(futures::executor::block_on(made) > 20_000);
            let held = chain(0);
            let mut stopped = Box::pin(on_stack(need, async move {
                let deep = chain(20_000);
                std::future::pending::<()>().await;
                drop((deep, held));
            }));
            let mut nobody = Context::from_waker(std::task::Waker::noop());
            assert!(stopped.as_mut().poll(&mut nobody).is_pending());
            drop(stopped);
        });
    }

    #[test]
    fn what_is_shallow_needs_no_stack_of_its_own() {
        assert!(!StackNeed::for_depth(SHALLOW_MAX).is_deep());
        assert!(StackNeed::for_depth(SHALLOW_MAX + 1).is_deep());
    }
}
