//! Lanes: small groups of threads, each of which carries one statement at a time.
//!
//! Statements share no thread, so that one that keeps its threads busy for minutes, in code that
//! never yields, holds up nobody: the operating system shares the cores. How many lanes carry
//! statements at once is bounded. Beyond that bound some *express* lanes are left, whose statements
//! are stopped after a short while, so that short questions get through when all others are long.
//! Statements whose answers nobody reads are a third group.
//!
//! Invariant: a lane's place is given back when it can carry another statement, or when the last of
//! its threads has ended. So the bound holds for threads that do not stop when they are told, too.

use super::priority::{self, ThreadId};
use crate::stack::WORKER_STACK_BYTES;
use marigram_functions::interrupt::StatementInterrupt;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Statements that run at once, however long they take.
const LANES_MAX: usize = 32;
/// Statements beyond those, which must be short.
const EXPRESS_LANES_MAX: usize = 8;
/// Statements whose answers nobody reads, which run no further for now.
const UNREAD_LANES_MAX: usize = 256;
/// Lanes that wait for statements.
const IDLE_LANES_MAX: usize = 8;
/// Threads of a lane for the steps of its scans and writes, beside those that execute.
const BLOCKING_THREADS: usize = 6;

/// All lanes of a service.
#[derive(Debug)]
pub struct LanePool {
    threads: usize,
    idle: Mutex<Vec<StatementLane>>,
    regular: Arc<Semaphore>,
    express: Arc<Semaphore>,
    unread: Arc<Semaphore>,
}

/// Threads for one statement at a time.
#[derive(Debug)]
struct StatementLane {
    runtime: Option<Runtime>,
    shared: Arc<LaneThreads>,
}

/// What the threads of a lane share. It lives as long as the last of them.
#[derive(Debug, Default)]
pub struct LaneThreads {
    interrupt: Arc<StatementInterrupt>,
    ids: Mutex<Vec<ThreadId>>,
    /// Whether they stand back.
    is_low: AtomicBool,
    /// Goes with the last of them, if it was not given back before.
    admission: Mutex<Option<LaneAdmission>>,
}

/// The right to run a statement on a lane of its own; given back on drop.
#[derive(Debug)]
pub struct LaneLease {
    lanes: Arc<LanePool>,
    lane: Option<StatementLane>,
}

/// The right to be on a lane, in one of their groups.
#[derive(Debug)]
pub struct LaneAdmission {
    _permit: OwnedSemaphorePermit,
    is_express: bool,
}

impl LaneAdmission {
    /// If there is room.
    fn try_new(group: &Arc<Semaphore>, is_express: bool) -> Option<Self> {
        let permit = Arc::clone(group).try_acquire_owned().ok()?;
        Some(Self {
            _permit: permit,
            is_express,
        })
    }

    /// Once there is room.
    async fn new(group: &Arc<Semaphore>, is_express: bool) -> Option<Self> {
        // It is never closed.
        let permit = Arc::clone(group).acquire_owned().await.ok()?;
        Some(Self {
            _permit: permit,
            is_express,
        })
    }
}

impl LaneThreads {
    /// What tells their statement to stop.
    pub fn interrupt(&self) -> &Arc<StatementInterrupt> {
        &self.interrupt
    }

    /// Makes them stand back behind all other threads, for good.
    pub fn stand_back(&self) {
        let ids = self.ids.lock();
        self.is_low.store(true, Ordering::Relaxed);
        ids.iter().copied().for_each(priority::lower);
    }

    /// From here on their statement is one of another group.
    pub fn move_to(&self, admission: LaneAdmission) {
        let before = self.admission.lock().replace(admission);
        drop(before);
    }

    /// Whether their statement must be short.
    pub fn is_express(&self) -> bool {
        let admission = self.admission.lock();
        admission.as_ref().is_some_and(|own| own.is_express)
    }

    fn thread_starts(&self) {
        StatementInterrupt::adopt(Arc::clone(&self.interrupt));
        let mut ids = self.ids.lock();
        let id = priority::this_thread();
        ids.push(id);
        if self.is_low.load(Ordering::Relaxed) {
            priority::lower(id);
        }
    }

    /// The number may be another thread's from here on.
    fn thread_stops(&self) {
        let id = priority::this_thread();
        self.ids.lock().retain(|other| *other != id);
    }
}

impl StatementLane {
    fn new(threads: usize) -> io::Result<Self> {
        let shared = Arc::<LaneThreads>::default();
        let (starting, stopping) = (Arc::clone(&shared), Arc::clone(&shared));
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_stack_size(WORKER_STACK_BYTES)
            .thread_name("marigram-sql")
            .on_thread_start(move || starting.thread_starts())
            .on_thread_stop(move || stopping.thread_stops())
            .enable_time()
            .build()?;
        Ok(Self {
            runtime: Some(runtime),
            shared,
        })
    }

    /// Whether nothing of an earlier statement is left on it.
    fn is_clear(&self) -> bool {
        let runtime = self.runtime.as_ref();
        runtime.is_some_and(|runtime| runtime.metrics().num_alive_tasks() == 0)
    }
}

impl Drop for StatementLane {
    /// Its threads end as soon as they have nothing to do; nobody waits for that.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl LanePool {
    /// Lanes of `threads` threads each; they are made when they are needed.
    pub fn new(threads: usize) -> Arc<Self> {
        Arc::new(Self {
            threads: threads.max(1),
            idle: Mutex::default(),
            regular: Arc::new(Semaphore::new(LANES_MAX)),
            express: Arc::new(Semaphore::new(EXPRESS_LANES_MAX)),
            unread: Arc::new(Semaphore::new(UNREAD_LANES_MAX)),
        })
    }

    /// The right to a lane, if one is free; a regular one rather than an express one.
    pub fn try_admit(&self) -> Option<LaneAdmission> {
        let regular = LaneAdmission::try_new(&self.regular, false);
        regular.or_else(|| LaneAdmission::try_new(&self.express, true))
    }

    /// The same, once one is free.
    pub async fn admit(&self) -> Option<LaneAdmission> {
        tokio::select! {
            biased;
            admission = LaneAdmission::new(&self.regular, false) => admission,
            admission = LaneAdmission::new(&self.express, true) => admission,
        }
    }

    /// The right to wait for a slow reader, keeping no core busy, in nobody's place. Such a
    /// statement must be admitted [again](Self::admit_again) before it goes on. `None` where too
    /// many wait.
    pub fn admit_unread(&self) -> Option<LaneAdmission> {
        LaneAdmission::try_new(&self.unread, false)
    }

    /// The right to go on for a statement that waited for its reader, once there is room for one
    /// that may take long.
    pub async fn admit_again(&self) -> Option<LaneAdmission> {
        LaneAdmission::new(&self.regular, false).await
    }

    /// Takes a lane.
    ///
    /// # Errors
    /// If the machine gives no threads.
    pub fn take(self: &Arc<Self>, admission: LaneAdmission) -> io::Result<LaneLease> {
        let idle = {
            let mut idle = self.idle.lock();
            let clear = idle.iter().rposition(StatementLane::is_clear);
            clear.map(|at| idle.remove(at))
        };
        let lane = match idle {
            Some(lane) => lane,
            None => StatementLane::new(self.threads)?,
        };
        lane.shared.move_to(admission);
        Ok(LaneLease {
            lanes: Arc::clone(self),
            lane: Some(lane),
        })
    }

    /// Statements that have a lane, and lanes whose threads have yet to end.
    #[cfg(test)]
    pub fn in_use(&self) -> usize {
        let free = self.regular.available_permits() + self.express.available_permits();
        LANES_MAX + EXPRESS_LANES_MAX - free
    }

    fn put_back(&self, lane: StatementLane) {
        let mut idle = self.idle.lock();
        // Two at most: this one, and one on which something is left, if there is one.
        let surplus = (idle.len() >= IDLE_LANES_MAX).then(|| {
            let busy = idle.iter().position(|lane| !lane.is_clear());
            idle.remove(busy.unwrap_or(0))
        });
        idle.push(lane);
        drop(idle);
        drop(surplus);
    }
}

impl LaneLease {
    /// The threads.
    pub fn threads(&self) -> Option<&Arc<LaneThreads>> {
        self.lane.as_ref().map(|lane| &lane.shared)
    }

    /// Where to spawn the statement.
    pub fn handle(&self) -> Option<&Handle> {
        let runtime = self.lane.as_ref()?.runtime.as_ref();
        runtime.map(Runtime::handle)
    }
}

impl Drop for LaneLease {
    fn drop(&mut self) {
        let Some(lane) = self.lane.take() else { return };
        lane.shared.interrupt.end();
        // Threads that stand back end; with the last of them goes the place.
        if !lane.shared.is_low.load(Ordering::Relaxed) {
            let admission = lane.shared.admission.lock().take();
            self.lanes.put_back(lane);
            drop(admission);
        }
    }
}
