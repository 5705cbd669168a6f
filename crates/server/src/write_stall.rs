//! How long a client may take nothing of its answer.
//!
//! An answer whose client does not read holds a slot, memory and the version of the data that it
//! reads. The time starts when the socket accepts no more bytes, and ends when it accepts one. If a request
//! finds no memory meanwhile, the client that has taken nothing for longest, of those who hold some, is gone
//! earlier ([`StalledClients`]): those who do not read must not keep others from being served. The
//! next one goes only after the memory of this one came back.

use crate::held_bytes::HeldBytes;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
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
    /// Where the client is listed while it waits, and its number there.
    listed: Option<ListedStall>,
}

#[derive(Debug)]
struct ListedStall {
    clients: StalledClients,
    /// What the client holds.
    held: HeldBytes,
    number: Option<u64>,
}

/// How long a client may take nothing in any case, even if others need memory.
const STALL_MIN: Duration = Duration::from_secs(1);

/// The clients whose sockets accept nothing, and who may hold memory that others need. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct StalledClients(Arc<Mutex<StalledList>>);

#[derive(Debug, Default)]
struct StalledList {
    last: u64,
    /// The longest wait first.
    clients: Vec<StalledClient>,
}

#[derive(Debug)]
struct StalledClient {
    number: u64,
    since: Instant,
    held: HeldBytes,
    waker: Waker,
    is_ended: bool,
}

impl StalledClients {
    fn lock(&self) -> MutexGuard<'_, StalledList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection of the client that has taken nothing for longest and holds memory, unless it is a
    /// moment ago. Does nothing as long as a client that was ended is there: its memory is about to come back.
    pub(crate) fn end_longest(&self) {
        let mut list = self.lock();
        if list.clients.iter().any(|client| client.is_ended) {
            return;
        }
        let longest = list
            .clients
            .iter_mut()
            .find(|client| client.held.are_some());
        if let Some(client) = longest.filter(|client| client.since.elapsed() >= STALL_MIN) {
            client.is_ended = true;
            client.waker.wake_by_ref();
        }
    }

    fn begin(&self, held: &HeldBytes, waker: &Waker) -> u64 {
        let mut list = self.lock();
        list.last += 1;
        let number = list.last;
        list.clients.push(StalledClient {
            number,
            since: Instant::now(),
            held: held.clone(),
            waker: waker.clone(),
            is_ended: false,
        });
        number
    }

    /// Whether a client's connection is to end; otherwise, `waker` learns of it.
    fn is_ended(&self, number: u64, waker: &Waker) -> bool {
        let mut list = self.lock();
        let client = list.clients.iter_mut().find(|one| one.number == number);
        client.is_some_and(|client| {
            client.waker.clone_from(waker);
            client.is_ended
        })
    }

    fn end(&self, number: u64) {
        self.lock().clients.retain(|client| client.number != number);
    }
}

impl WriteStall {
    /// Waits of at most `max`; without a limit if `None`.
    pub(crate) fn new(max: Option<Duration>) -> Self {
        Self {
            max,
            waits: false,
            timer: None,
            listed: None,
        }
    }

    /// Lists the client with the others while it waits: while it holds memory, it may be ended for them.
    pub(crate) fn among(mut self, clients: &StalledClients, held: &HeldBytes) -> Self {
        self.listed = Some(ListedStall {
            clients: clients.clone(),
            held: held.clone(),
            number: None,
        });
        self
    }

    /// Notes that the socket accepted bytes.
    pub(crate) fn end(&mut self) {
        self.waits = false;
        if let Some(listed) = &mut self.listed
            && let Some(number) = listed.number.take()
        {
            listed.clients.end(number);
        }
    }

    /// Notes that it accepted none; ready if that has lasted too long.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(ListedStall {
            clients,
            held,
            number,
        }) = &mut self.listed
        {
            let number = *number.get_or_insert_with(|| clients.begin(held, context.waker()));
            if clients.is_ended(number, context.waker()) {
                return Poll::Ready(());
            }
        }
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

impl Drop for WriteStall {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[tokio::test]
    async fn the_longest_stall_ends_when_others_need_its_memory() {
        let clients = StalledClients::default();
        let held = HeldBytes::default();
        held.add(1);
        let is_over = async |stall: &mut WriteStall| {
            poll_fn(|context| Poll::Ready(stall.poll(context).is_ready())).await
        };
        let mut stalls = Vec::new();
        for held in [&held, &HeldBytes::default(), &held, &held] {
            let mut stall = WriteStall::new(None).among(&clients, held);
            assert!(!is_over(&mut stall).await);
            stalls.push(stall);
        }
        clients.end_longest();
        assert!(!is_over(&mut stalls[0]).await, "it only began to wait");
        // This one reads again, so that the others wait longer.
        stalls[0].end();
        sleep(STALL_MIN).await;
        assert!(!is_over(&mut stalls[0]).await);
        clients.end_longest();
        assert!(!is_over(&mut stalls[0]).await && !is_over(&mut stalls[3]).await);
        assert!(!is_over(&mut stalls[1]).await, "it holds nothing");
        assert!(is_over(&mut stalls[2]).await);
        clients.end_longest();
        let next = is_over(&mut stalls[3]).await;
        assert!(!next, "the memory of the other one comes back first");
        drop(stalls.remove(2));
        clients.end_longest();
        poll_fn(|context| stalls[2].poll(context)).await;
        drop(stalls);
        assert!(clients.lock().clients.is_empty());
    }

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
