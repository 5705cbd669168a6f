//! How long a client may take nothing of what is written to it.
//!
//! An answer whose client does not read holds a place, memory and the version of the data that it
//! is made of. The time begins where the socket takes no more bytes and ends where it takes one.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// The watch on one connection's writes.
#[derive(Debug)]
pub struct WriteStall {
    max: Option<Duration>,
    /// Whether the socket took nothing when it was asked last.
    waits: bool,
    /// Made with the first wait: most clients never make one.
    timer: Option<Pin<Box<Sleep>>>,
}

impl WriteStall {
    /// Waits of at most `max`; of any length where `None`.
    pub fn new(max: Option<Duration>) -> Self {
        Self {
            max,
            waits: false,
            timer: None,
        }
    }

    /// The socket took bytes.
    pub fn end(&mut self) {
        self.waits = false;
    }

    /// The socket took none; ready where that is so for too long.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(max) = self.max else {
            return Poll::Pending;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(max)));
        if !self.waits {
            self.waits = true;
            timer.as_mut().reset(Instant::now() + max);
        }
        timer.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[tokio::test]
    async fn it_begins_anew_with_every_byte() {
        let mut stall = WriteStall::new(Some(Duration::from_millis(30)));
        for _ in 0..5 {
            let waits = poll_fn(|context| {
                assert!(stall.poll(context).is_pending(), "it began anew");
                Poll::Ready(())
            });
            waits.await;
            sleep(Duration::from_millis(35)).await;
            stall.end();
        }
        poll_fn(|context| stall.poll(context)).await;
    }

    #[tokio::test]
    async fn without_a_limit_it_never_ends() {
        let mut stall = WriteStall::new(None);
        let never = poll_fn(|context| stall.poll(context));
        let ended = tokio::time::timeout(Duration::from_millis(20), never).await;
        assert!(ended.is_err());
    }
}
