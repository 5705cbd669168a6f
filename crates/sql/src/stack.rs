//! Stacks for statements whose trees are deep.
//!
//! A tree of expressions or operators is parsed, traversed, printed, copied and dropped by
//! recursion, here and in the libraries below. For a tree deeper than [`SHALLOW_MAX`], all of that
//! happens on a separate stack, which is as large as the depth requires and is released afterwards.
//! `nesting` estimates how deep a statement is before anything recurses.
//!
//! Invariant: a value that may be deep is never dropped on the stack of its accidental last owner:
//! it is a [`DeepTree`], or it stays inside a future [`on_stack`].

use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The number of levels for which any thread's stack has room.
pub(crate) const SHALLOW_MAX: usize = 256;
/// The deepest nesting of parentheses, calls and queries that the parser accepts. Chains are not
/// nested; `nesting` counts them.
pub(crate) const NESTED_MAX: usize = 128;
/// The stack of each thread that executes statements, bytes: enough to evaluate and to drop the
/// deepest accepted tree. Only pages that were used take memory.
pub(crate) const WORKER_STACK_BYTES: usize = 32 << 20;

/// An upper bound of the stack for a level of a tree while it is planned, bytes.
const LEVEL_BYTES: usize = 16 << 10;
/// The stack for everything around the tree, bytes.
const BASE_BYTES: usize = 8 << 20;
/// The part of the current stack that must be free for parsing shallow statements, bytes.
const RED_ZONE_BYTES: usize = 768 << 10;
/// The stack for shallow statements if the current one has less left, bytes.
const SMALL_BYTES: usize = 4 << 20;

/// The stack that a tree of some depth needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StackNeed {
    /// Bytes; 0 if any stack has enough room.
    bytes: usize,
}

impl StackNeed {
    /// The need of a tree with this many levels.
    pub(crate) fn for_depth(levels: usize) -> Self {
        let bytes = if levels <= SHALLOW_MAX {
            0
        } else {
            BASE_BYTES + levels * LEVEL_BYTES
        };
        Self { bytes }
    }

    /// Whether a separate stack is needed.
    pub(crate) fn is_deep(self) -> bool {
        self.bytes > 0
    }

    /// Runs work that recurses into the tree.
    pub(crate) fn run<R>(self, work: impl FnOnce() -> R) -> R {
        if self.is_deep() {
            stacker::grow(self.bytes, work)
        } else {
            work()
        }
    }

    /// The same on a foreign thread, whose stack may be small.
    pub(crate) fn run_anywhere<R>(self, work: impl FnOnce() -> R) -> R {
        if self.is_deep() {
            stacker::grow(self.bytes, work)
        } else {
            stacker::maybe_grow(RED_ZONE_BYTES, SMALL_BYTES, work)
        }
    }
}

/// A tree that is copied and dropped on a stack of sufficient size.
pub(crate) struct DeepTree<T> {
    /// Present until it is dropped.
    value: Option<Box<T>>,
    need: StackNeed,
}

impl<T> DeepTree<T> {
    /// Wraps a tree that needs this much stack.
    pub(crate) fn new(value: T, need: StackNeed) -> Self {
        let value = Some(Box::new(value));
        Self { value, need }
    }

    /// The stack that it needs.
    pub(crate) fn need(&self) -> StackNeed {
        self.need
    }

    /// The tree, for a caller that drops it on a stack of sufficient size.
    pub(crate) fn into_inner(mut self) -> T {
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
    /// Present until it is dropped.
    future: Option<Pin<Box<F>>>,
    need: StackNeed,
}

/// Runs a future, and drops it, on a stack of sufficient size for the trees in it.
pub(crate) fn on_stack<F: Future>(need: StackNeed, future: F) -> impl Future<Output = F::Output> {
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

    /// Runs a test on a stack that is too small for anything deep.
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
