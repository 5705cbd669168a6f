//! The memory of statements whose answers nobody reads, which others may need.
//!
//! A sort keeps its rows until its client took them. If enough clients pause, their statements hold all the
//! memory of queries, and every statement that needs some fails (53200). So when a statement is refused
//! memory that it cannot do without, and paused statements hold more than their part ([`UNREAD_PART`]), the one that
//! has paused longest ends, until the others fit.
//!
//! A lane runs one statement at a time, and knows what its operators hold: the memory pool notes for each
//! operator the lane on which it began.
//!
//! Invariant: a statement ends for others only while it waits for its reader.

use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The fraction of the memory of queries that statements without a reader may keep from others.
pub(super) const UNREAD_PART: usize = 4;
/// How long a reader may pause in any case.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// How often a statement asks again for memory that a paused one is about to release, and the time between.
const ASKS: usize = 200;
const ASK_EVERY: Duration = Duration::from_millis(10);

thread_local! {
    static OF_THREAD: RefCell<Option<Arc<LaneMemory>>> = const { RefCell::new(None) };
}

/// What the operators of a lane's statement hold.
#[derive(Debug, Default)]
pub(crate) struct LaneMemory {
    bytes: AtomicUsize,
    unread: Arc<UnreadStatements>,
}

/// The statements of a pool of lanes that wait for their readers, the longest wait first.
#[derive(Debug, Default)]
pub(crate) struct UnreadStatements {
    waiting: Mutex<Vec<UnreadStatement>>,
}

#[derive(Debug)]
struct UnreadStatement {
    since: Instant,
    memory: Arc<LaneMemory>,
    /// `None` after it was told to end.
    end: Option<oneshot::Sender<()>>,
}

/// A statement's wait for its reader, until this is dropped.
#[derive(Debug)]
pub(crate) struct ReaderWait {
    memory: Arc<LaneMemory>,
    ended: oneshot::Receiver<()>,
}

impl LaneMemory {
    /// That of a lane in a pool of lanes.
    pub(crate) fn new(unread: &Arc<UnreadStatements>) -> Arc<Self> {
        Arc::new(Self {
            bytes: AtomicUsize::new(0),
            unread: Arc::clone(unread),
        })
    }

    /// Makes this the memory of the current thread, until it ends.
    pub(crate) fn adopt(self: Arc<Self>) {
        OF_THREAD.set(Some(self));
    }

    /// That of the current thread, if it belongs to a lane.
    pub(super) fn of_thread() -> Option<Arc<Self>> {
        OF_THREAD.with_borrow(Clone::clone)
    }

    /// Notes that an operator got more.
    pub(super) fn grow(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes that an operator returned some.
    pub(super) fn shrink(&self, bytes: usize) {
        let less = |held: usize| Some(held.saturating_sub(bytes));
        // It always has a result.
        let _ = self
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    fn held(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Begins the statement's wait for its reader.
    pub(crate) fn wait_for_reader(self: &Arc<Self>) -> ReaderWait {
        let (end, ended) = oneshot::channel();
        self.unread.waiting.lock().push(UnreadStatement {
            since: Instant::now(),
            memory: Arc::clone(self),
            end: Some(end),
        });
        ReaderWait {
            memory: Arc::clone(self),
            ended,
        }
    }

    /// Calls `ask` again, on a thread of a lane, as long as statements without readers release what they hold
    /// beyond `keep_max` bytes. Returns what the last call returned.
    pub(super) fn ask_again<T, E>(
        &self,
        keep_max: usize,
        refused: E,
        mut ask: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut refused = refused;
        for _ in 0..ASKS {
            if !self.unread.release(keep_max) || marigram_functions::interrupt::check().is_err() {
                break;
            }
            std::thread::sleep(ASK_EVERY);
            match ask() {
                Ok(granted) => return Ok(granted),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }
}

impl UnreadStatements {
    /// Ends the longest wait if all who wait hold more than `keep_max` bytes. Returns whether memory is about
    /// to be released.
    fn release(&self, keep_max: usize) -> bool {
        let mut waiting = self.waiting.lock();
        let ends =
            |statement: &UnreadStatement| statement.end.is_none() && statement.memory.held() > 0;
        if waiting.iter().any(ends) {
            return true;
        }
        let held: usize = waiting.iter().map(|one| one.memory.held()).sum();
        if held <= keep_max {
            return false;
        }
        let longest = waiting.iter_mut().find(|one| {
            one.end.is_some() && one.memory.held() > 0 && one.since.elapsed() >= PAUSE_MIN
        });
        let Some(end) = longest.and_then(|one| one.end.take()) else {
            return false;
        };
        // If nobody listens, its reader came back, and its entry is about to go.
        let _ = end.send(());
        true
    }
}

impl ReaderWait {
    /// Ends when the statement is to end.
    pub(crate) async fn ended(&mut self) {
        if (&mut self.ended).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for ReaderWait {
    fn drop(&mut self) {
        let mut waiting = self.memory.unread.waiting.lock();
        waiting.retain(|one| !Arc::ptr_eq(&one.memory, &self.memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_ends_first_and_only_beyond_the_part() {
        let unread = Arc::<UnreadStatements>::default();
        let lanes: Vec<_> = (0..3).map(|_| LaneMemory::new(&unread)).collect();
        let mut waits: Vec<_> = lanes.iter().map(LaneMemory::wait_for_reader).collect();
        // The first holds nothing.
        lanes[1].grow(60);
        lanes[2].grow(60);
        assert!(!unread.release(100), "they only began to wait");
        std::thread::sleep(PAUSE_MIN);
        assert!(!unread.release(120), "it is their part");
        assert!(unread.release(100));
        let told = |wait: &mut ReaderWait| wait.ended.try_recv().is_ok();
        assert!(!told(&mut waits[0]) && told(&mut waits[1]) && !told(&mut waits[2]));
        assert!(unread.release(0), "its memory comes first");
        assert!(!told(&mut waits[2]));
        lanes[1].shrink(60);
        assert!(!unread.release(60));
        drop(waits);
        assert!(unread.waiting.lock().is_empty());
    }

    #[test]
    fn who_is_refused_asks_until_it_is_released() {
        let unread = Arc::<UnreadStatements>::default();
        let (paused, asks) = (LaneMemory::new(&unread), LaneMemory::new(&unread));
        paused.grow(10);
        let mut wait = paused.wait_for_reader();
        std::thread::sleep(PAUSE_MIN);
        let ends = std::thread::spawn(move || {
            futures::executor::block_on(wait.ended());
            wait.memory.shrink(10);
        });
        let free = || if paused.held() == 0 { Ok(()) } else { Err(()) };
        assert_eq!(asks.ask_again(5, (), free), Ok(()));
        ends.join().unwrap();
        assert_eq!(asks.ask_again(5, (), || Err::<(), ()>(())), Err(()));
    }
}
