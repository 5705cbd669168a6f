//! How long a client may take nothing of its answer.
//!
//! An answer whose client does not read holds a slot, memory and the version of the data that it
//! reads. The time starts when the socket accepts no more bytes, and ends when it accepts one.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// The watch on one connection's writes.
#[derive(Debug)]
pub(crate) struct WriteStall {
    max: Option<Duration>,
    /// Whether the socket accepted nothing the last time.
    waits: bool,
    /// Created with the first wait: most clients never need one.
    timer: Option<Pin<Box<Sleep>>>,
}

impl WriteStall {
    /// Waits of at most `max`; without a limit if `None`.
    pub(crate) fn new(max: Option<Duration>) -> Self {
        Self {
            max,
            waits: false,
            timer: None,
        }
    }

    /// Notes that the socket accepted bytes.
    pub(crate) fn end(&mut self) {
        self.waits = false;
    }

    /// Notes that it accepted none; ready if that has lasted too long.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
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
                assert!(stall.poll(context).is_pending(), "the wait started anew");
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
