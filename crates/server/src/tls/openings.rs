//! The connections that are not open yet: their handshake, or their first message, is not complete.
//!
//! Such a connection holds no place of those that are open, so whoever sends slowly or not at all
//! takes nothing from others. Their number is bounded: where it is reached, the oldest one ends. A
//! client that means it needs some milliseconds, and is not the oldest then.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Connections of one listener that may be opening at once.
const OPENINGS_MAX: usize = 256;

/// The connections of one listener that are opening. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct OpeningConnections {
    opening: Arc<Mutex<OpeningQueue>>,
    max: usize,
}

#[derive(Debug, Default)]
struct OpeningQueue {
    /// In the order in which they came.
    waiting: VecDeque<(u64, CancellationToken)>,
    next: u64,
}

/// A connection that is opening, until it is dropped.
#[derive(Debug)]
pub(crate) struct OpeningConnection {
    all: Arc<Mutex<OpeningQueue>>,
    number: u64,
    ended: CancellationToken,
}

impl Default for OpeningConnections {
    fn default() -> Self {
        Self::with_max(OPENINGS_MAX)
    }
}

impl OpeningConnections {
    fn with_max(max: usize) -> Self {
        Self {
            opening: Arc::default(),
            max,
        }
    }

    /// Adds a connection, and ends the oldest one if there are too many.
    pub(crate) fn enter(&self) -> OpeningConnection {
        let ended = CancellationToken::new();
        let mut queue = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let number = queue.next;
        queue.next += 1;
        if queue.waiting.len() >= self.max
            && let Some((_, oldest)) = queue.waiting.pop_front()
        {
            oldest.cancel();
        }
        queue.waiting.push_back((number, ended.clone()));
        OpeningConnection {
            all: Arc::clone(&self.opening),
            number,
            ended,
        }
    }
}

impl OpeningConnection {
    /// Waits until the connection must make room for a newer one.
    pub(crate) async fn must_end(&self) {
        self.ended.cancelled().await;
    }
}

impl Drop for OpeningConnection {
    fn drop(&mut self) {
        let mut queue = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        queue.waiting.retain(|(number, _)| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_makes_room_for_the_newest() {
        let all = OpeningConnections::with_max(2);
        let (first, second) = (all.enter(), all.enter());
        assert!(!first.ended.is_cancelled());
        let third = all.enter();
        first.must_end().await;
        assert!(!second.ended.is_cancelled() && !third.ended.is_cancelled());
        drop((first, second));
        let fourth = all.enter();
        assert!(!third.ended.is_cancelled() && !fourth.ended.is_cancelled());
        drop((third, fourth));
        assert!(all.opening.lock().expect("no panic").waiting.is_empty());
    }
}
