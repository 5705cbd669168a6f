//! Lanes: small groups of threads that each run one statement at a time.
//!
//! Statements share no threads. So a statement that keeps its threads busy for minutes, in code
//! that never yields, does not delay others: the operating system shares the cores. The number of
//! lanes that run statements at once is bounded. Beyond that bound there are some *express* lanes,
//! whose statements are stopped after a short time, so that short queries get through when all
//! other lanes run long ones. Statements whose results nobody reads are a third group.
//!
//! Invariant: a lane's admission is released when the lane can run another statement, or when the
//! last of its threads has ended. So the bound includes threads that do not stop when they are told
//! to.

use super::priority::{self, ThreadId};
use crate::execution::unread_memory::{LaneMemory, UnreadStatements};
use crate::stack::WORKER_STACK_BYTES;
use marigram_functions::interrupt::StatementInterrupt;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest number of statements that run at once, however long they take.
const LANES_MAX: usize = 32;
/// The largest number of additional statements, which must be short.
const EXPRESS_LANES_MAX: usize = 8;
/// The largest number of statements whose results nobody reads, and which are paused.
const UNREAD_LANES_MAX: usize = 256;
/// The largest number of lanes that wait for statements.
const IDLE_LANES_MAX: usize = 8;
/// The threads of a lane for the steps of its scans and writes, besides those that execute.
const BLOCKING_THREADS: usize = 6;

/// All lanes of a service.
#[derive(Debug)]
pub(super) struct LanePool {
    threads: usize,
    idle: Mutex<Vec<StatementLane>>,
    regular: Arc<Semaphore>,
    express: Arc<Semaphore>,
    unread: Arc<Semaphore>,
    unread_statements: Arc<UnreadStatements>,
}

/// The threads for one statement at a time.
#[derive(Debug)]
struct StatementLane {
    runtime: Option<Runtime>,
    shared: Arc<LaneThreads>,
}

/// The state that the threads of a lane share. It lives as long as the last of them.
#[derive(Debug, Default)]
pub(super) struct LaneThreads {
    interrupt: Arc<StatementInterrupt>,
    memory: Arc<LaneMemory>,
    ids: Mutex<Vec<ThreadId>>,
    /// Whether their priority has been lowered.
    is_low: AtomicBool,
    /// Released with the last of them, unless it was returned before.
    admission: Mutex<Option<LaneAdmission>>,
}

/// The right to run a statement on a lane of its own; returned on drop.
#[derive(Debug)]
pub(super) struct LaneLease {
    lanes: Arc<LanePool>,
    lane: Option<StatementLane>,
}

/// The right to use a lane of one of the groups.
#[derive(Debug)]
pub(super) struct LaneAdmission {
    _permit: OwnedSemaphorePermit,
    is_express: bool,
}

impl LaneAdmission {
    /// Admits a statement if there is room.
    fn try_new(group: &Arc<Semaphore>, is_express: bool) -> Option<Self> {
        let permit = Arc::clone(group).try_acquire_owned().ok()?;
        Some(Self {
            _permit: permit,
            is_express,
        })
    }

    /// Admits a statement as soon as there is room.
    async fn new(group: &Arc<Semaphore>, is_express: bool) -> Option<Self> {
        // The semaphore is never closed.
        let permit = Arc::clone(group).acquire_owned().await.ok()?;
        Some(Self {
            _permit: permit,
            is_express,
        })
    }
}

impl LaneThreads {
    /// The interrupt that tells their statement to stop.
    pub(super) fn interrupt(&self) -> &Arc<StatementInterrupt> {
        &self.interrupt
    }

    /// What the operators of their statement hold.
    pub(super) fn memory(&self) -> &Arc<LaneMemory> {
        &self.memory
    }

    /// Lowers their priority below all other threads, permanently.
    pub(super) fn stand_back(&self) {
        let ids = self.ids.lock();
        self.is_low.store(true, Ordering::Relaxed);
        ids.iter().copied().for_each(priority::lower);
    }

    /// Moves their statement to another group.
    pub(super) fn move_to(&self, admission: LaneAdmission) {
        let before = self.admission.lock().replace(admission);
        drop(before);
    }

    /// Whether their statement must be short.
    pub(super) fn is_express(&self) -> bool {
        let admission = self.admission.lock();
        admission.as_ref().is_some_and(|own| own.is_express)
    }

    fn thread_starts(&self) {
        StatementInterrupt::adopt(Arc::clone(&self.interrupt));
        Arc::clone(&self.memory).adopt();
        let mut ids = self.ids.lock();
        let id = priority::this_thread();
        ids.push(id);
        if self.is_low.load(Ordering::Relaxed) {
            priority::lower(id);
        }
    }

    /// From here on, another thread may get the same id.
    fn thread_stops(&self) {
        let id = priority::this_thread();
        self.ids.lock().retain(|other| *other != id);
    }
}

impl StatementLane {
    fn new(threads: usize, unread: &Arc<UnreadStatements>) -> io::Result<Self> {
        let shared = Arc::new(LaneThreads {
            memory: LaneMemory::new(unread),
            ..LaneThreads::default()
        });
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

    /// Whether no work of an earlier statement remains on the lane.
    fn is_clear(&self) -> bool {
        let runtime = self.runtime.as_ref();
        runtime.is_some_and(|runtime| runtime.metrics().num_alive_tasks() == 0)
    }
}

impl Drop for StatementLane {
    /// Its threads end as soon as they are idle; nobody waits for that.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl LanePool {
    /// Creates a pool of lanes with `threads` threads each; lanes are created on demand.
    pub(super) fn new(threads: usize) -> Arc<Self> {
        Arc::new(Self {
            threads: threads.max(1),
            idle: Mutex::default(),
            regular: Arc::new(Semaphore::new(LANES_MAX)),
            express: Arc::new(Semaphore::new(EXPRESS_LANES_MAX)),
            unread: Arc::new(Semaphore::new(UNREAD_LANES_MAX)),
            unread_statements: Arc::default(),
        })
    }

    /// The right to a lane, if one is free; a regular lane is preferred to an express lane.
    pub(super) fn try_admit(&self) -> Option<LaneAdmission> {
        let regular = LaneAdmission::try_new(&self.regular, false);
        regular.or_else(|| LaneAdmission::try_new(&self.express, true))
    }

    /// The same, as soon as a lane is free.
    pub(super) async fn admit(&self) -> Option<LaneAdmission> {
        tokio::select! {
            biased;
            admission = LaneAdmission::new(&self.regular, false) => admission,
            admission = LaneAdmission::new(&self.express, true) => admission,
        }
    }

    /// The right to wait for a slow reader without using a core, outside the other groups. Such a
    /// statement must be admitted [again](Self::admit_again) before it continues. `None` if too
    /// many statements wait.
    pub(super) fn admit_unread(&self) -> Option<LaneAdmission> {
        LaneAdmission::try_new(&self.unread, false)
    }

    /// The right to continue for a statement that waited for its reader, as soon as a regular lane
    /// is free.
    pub(super) async fn admit_again(&self) -> Option<LaneAdmission> {
        LaneAdmission::new(&self.regular, false).await
    }

    /// Takes a lane.
    ///
    /// # Errors
    /// If the operating system cannot create threads.
    pub(super) fn take(self: &Arc<Self>, admission: LaneAdmission) -> io::Result<LaneLease> {
        let idle = {
            let mut idle = self.idle.lock();
            let clear = idle.iter().rposition(StatementLane::is_clear);
            clear.map(|at| idle.remove(at))
        };
        let lane = match idle {
            Some(lane) => lane,
            None => StatementLane::new(self.threads, &self.unread_statements)?,
        };
        lane.shared.move_to(admission);
        Ok(LaneLease {
            lanes: Arc::clone(self),
            lane: Some(lane),
        })
    }

    /// The right to a regular lane, if one is free.
    #[cfg(test)]
    pub(super) fn try_admit_regular(&self) -> Option<LaneAdmission> {
        LaneAdmission::try_new(&self.regular, false)
    }

    /// The number of lanes that run statements, or whose threads have not ended yet.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        let free = self.regular.available_permits() + self.express.available_permits();
        LANES_MAX + EXPRESS_LANES_MAX - free
    }

    fn put_back(&self, lane: StatementLane) {
        let mut idle = self.idle.lock();
        // At most two: this one, and one with remaining work, if there is one.
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
    pub(super) fn threads(&self) -> Option<&Arc<LaneThreads>> {
        self.lane.as_ref().map(|lane| &lane.shared)
    }

    /// The runtime on which to spawn the statement.
    pub(super) fn handle(&self) -> Option<&Handle> {
        let runtime = self.lane.as_ref()?.runtime.as_ref();
        runtime.map(Runtime::handle)
    }
}

impl Drop for LaneLease {
    fn drop(&mut self) {
        let Some(lane) = self.lane.take() else { return };
        lane.shared.interrupt.end();
        // Threads with lowered priority end; the admission is released with the last of them.
        if !lane.shared.is_low.load(Ordering::Relaxed) {
            let admission = lane.shared.admission.lock().take();
            self.lanes.put_back(lane);
            drop(admission);
        }
    }
}
