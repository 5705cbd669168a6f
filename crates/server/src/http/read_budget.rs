//! How much a client may send that nobody took yet, on a connection that became a WebSocket.
//!
//! The WebSocket collects a message before anybody sees it, so its bytes are counted where they are read from
//! the connection. A client that has not logged in may send little; another one sends as much as a body may
//! have, and as the memory for bodies holds.
//!
//! Invariant: bytes beyond [`BYTES_FREE`] that were read and not taken are held in the memory for requests, but
//! for those of the last read.

use crate::admission::MemoryPermit;
use std::io;

/// Bytes that every connection may send without reserving memory.
const BYTES_FREE: usize = 64 << 10;

/// The budget of a connection.
#[derive(Debug)]
pub(crate) struct ReadBudget {
    permit: MemoryPermit,
    /// Bytes that were read since a message was taken.
    unread: usize,
    /// Most of them.
    max: usize,
}

impl ReadBudget {
    /// A budget of `max` bytes, held in `permit`, which holds nothing yet.
    pub(crate) fn new(permit: MemoryPermit, max: usize) -> Self {
        Self {
            permit,
            unread: 0,
            max,
        }
    }

    /// Allows `max` bytes from now on.
    pub(crate) fn allow(&mut self, max: usize) {
        self.max = max;
    }

    /// Notes bytes that were read.
    ///
    /// # Errors
    /// If there are more than allowed.
    pub(crate) fn note(&mut self, bytes: usize) -> io::Result<()> {
        self.unread = self.unread.saturating_add(bytes);
        if self.unread <= self.max {
            return Ok(());
        }
        tracing::info!(
            max = self.max,
            "a client of a WebSocket sends a larger message than it may, so the server closes its connection"
        );
        Err(io::ErrorKind::InvalidData.into())
    }

    /// Whether there is memory for what was read; otherwise nothing more may be read now.
    pub(crate) fn has_room(&mut self) -> bool {
        let needed = if self.unread <= BYTES_FREE {
            0
        } else {
            self.unread
        };
        let missing = needed.saturating_sub(self.permit.held());
        missing == 0 || self.permit.grow(missing)
    }

    /// Hands over the memory of the message that was taken; `next` holds that of the next one.
    pub(crate) fn take(&mut self, next: MemoryPermit) -> MemoryPermit {
        self.unread = 0;
        std::mem::replace(&mut self.permit, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::tests::gate;

    #[test]
    fn large_messages_hold_memory_until_they_are_dropped() {
        let gate = gate(200 << 10);
        let mut budget = ReadBudget::new(gate.lease(), 150 << 10);
        assert!(budget.note(60 << 10).is_ok() && budget.has_room());
        assert!(gate.lease().grow(200 << 10), "it holds nothing yet");
        assert!(budget.note(60 << 10).is_ok() && budget.has_room());
        assert!(!gate.lease().grow(100 << 10), "it holds 120 KiB");
        let message = budget.take(gate.lease());
        assert_eq!(message.held(), 120 << 10);
        assert!(budget.note(140 << 10).is_ok());
        assert!(!budget.has_room(), "the message is still there");
        drop(message);
        assert!(budget.has_room());
        assert!(budget.note(11 << 10).is_err());
        budget.allow(1 << 20);
        assert!(budget.note(11 << 10).is_ok());
    }
}
