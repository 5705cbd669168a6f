//! Closes a connection whose client may still be sending.
//!
//! The server may refuse a client before it has read everything that the client sends: a body is
//! too large, or a message breaks the protocol. If a socket is closed with unread bytes, the system
//! discards what was sent on it, and a client that sends first and reads later finds a broken
//! connection and no answer. Such a connection *lingers*: the server shuts its sending side and
//! discards incoming bytes until the client closes, too, the time is up, or the server stops.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// How long a connection lingers at most.
const TIME_MAX: Duration = Duration::from_secs(30);

/// How long it lingers while nothing arrives.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// A client that sends nothing for this long is assumed to wait for an answer.
const PAUSE_MAX: Duration = Duration::from_millis(250);

/// A connection that lingers.
pub(crate) struct LingeringConnection {
    until: Instant,
    wait_max: Duration,
    wait: Pin<Box<Sleep>>,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl LingeringConnection {
    /// Lingers from now on, at the latest until `stop` fires.
    pub(crate) fn until(stop: CancellationToken) -> Self {
        Self::with_times(TIME_MAX, WAIT_MAX, stop)
    }

    /// Like [`until`](Self::until), but only while the client continues to send.
    pub(crate) fn while_it_sends(stop: CancellationToken) -> Self {
        Self::with_times(TIME_MAX, PAUSE_MAX, stop)
    }

    fn with_times(time_max: Duration, wait_max: Duration, stop: CancellationToken) -> Self {
        Self {
            until: Instant::now() + time_max,
            wait_max,
            wait: Box::pin(sleep(wait_max.min(time_max))),
            stop: Box::pin(stop.cancelled_owned()),
        }
    }

    /// Discards what arrives from `client`; ready when lingering is over.
    pub(crate) fn poll(
        &mut self,
        client: &mut (impl AsyncRead + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<()> {
        if self.stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut bytes = [0; 16 << 10];
        loop {
            let mut into = ReadBuf::new(&mut bytes);
            let Poll::Ready(read) = Pin::new(&mut *client).poll_read(context, &mut into) else {
                return self.wait.as_mut().poll(context);
            };
            let now = Instant::now();
            if read.is_err() || into.filled().is_empty() || now >= self.until {
                return Poll::Ready(());
            }
            let wait_until = self.until.min(now + self.wait_max);
            self.wait.as_mut().reset(wait_until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::{AsyncWriteExt, duplex};

    const SOON: Duration = Duration::from_millis(10);
    const NEVER: Duration = Duration::from_hours(1);

    #[tokio::test]
    async fn it_ends_where_the_client_closes() {
        let (mut client, mut server) = duplex(1000);
        let mut linger = LingeringConnection::with_times(NEVER, NEVER, CancellationToken::new());
        let sends = async move { client.write_all(&vec![7; 100_000]).await.unwrap() };
        let lingers = poll_fn(|context| linger.poll(&mut server, context));
        tokio::join!(sends, lingers);
    }

    #[tokio::test]
    async fn it_ends_where_the_server_stops() {
        let (_client, mut server) = duplex(1000);
        let stop = CancellationToken::new();
        let mut linger = LingeringConnection::with_times(NEVER, NEVER, stop.clone());
        let lingers = poll_fn(|context| linger.poll(&mut server, context));
        let stops = async {
            tokio::task::yield_now().await;
            stop.cancel();
        };
        tokio::join!(lingers, stops);
    }

    #[tokio::test]
    async fn it_ends_where_nothing_comes() {
        let (mut client, mut server) = duplex(1000);
        client.write_all(b"a part").await.unwrap();
        let mut linger = LingeringConnection::with_times(NEVER, SOON, CancellationToken::new());
        poll_fn(|context| linger.poll(&mut server, context)).await;
    }

    #[tokio::test]
    async fn it_ends_where_the_client_goes_on_and_on() {
        let (mut client, mut server) = duplex(1000);
        let mut linger = LingeringConnection::with_times(SOON, NEVER, CancellationToken::new());
        let sends = async { while client.write_all(&[7; 100]).await.is_ok() {} };
        tokio::select! {
            () = sends => unreachable!("the other side is open"),
            () = poll_fn(|context| linger.poll(&mut server, context)) => {}
        }
    }
}
