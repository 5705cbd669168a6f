//! Watches how much memory the process really holds.
//!
//! The accountant knows the memory that was granted. The system knows the memory that is resident:
//! it includes code, stacks, what the allocator keeps, and what nothing counted. If the ceiling
//! covers the whole process, a thread reports the difference to the accountant, so that the other
//! holders give way. If the allocator keeps much freed memory, the thread makes the allocator
//! return it: freed memory must not look used, or an idle process would refuse work. If the process
//! stays over its limit in spite of this, the thread stops statements one after another.

use crate::allocator;
use crate::code_pages::CodePages;
use crate::error::{Error, Result};
use crate::statements::StatementRegistry;
use marigram_engine::{MemoryAccountant, ProcessMemory};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two measurements, and the same near the limit: little uncounted memory can be taken
/// in it.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOK_EVERY_NEAR: Duration = Duration::from_millis(5);
/// Bytes reserved for that, together with what the accountant leaves of small limits: as much as
/// three or four operators take at once, whatever the limit. At most a tenth of the limit.
const HEADROOM: usize = 16 << 20;
/// Time between two purges: if memory is short, and otherwise.
const PURGE_PAUSE: Duration = Duration::from_millis(100);
const PURGE_PAUSE_AT_REST: Duration = Duration::from_secs(5);
/// How long the process may be over its limit, in spite of purges and refusals, before a statement
/// is stopped.
const STOP_AFTER: Duration = Duration::from_millis(100);
/// One of this many parts of the file pages counts as used; the others are unmapped near the limit.
const CODE_IDLE_PART: usize = 2;
/// Time between two unmappings of code below the limit; above it, there is no pause.
const UNMAP_PAUSE: Duration = Duration::from_millis(60);
/// A purge takes at most one of this many parts of the time; the second figure applies while the
/// process is over its limit.
const PURGE_SHARE: u32 = 20;
const PURGE_SHARE_OVER: u32 = 4;

/// Figures of the watch, for metrics.
#[derive(Debug, Default)]
pub(crate) struct MemoryWatchFigures {
    pub(crate) resident_bytes: AtomicUsize,
    pub(crate) resident_peak_bytes: AtomicUsize,
    pub(crate) purges: AtomicU64,
    /// Number of statements that were stopped.
    pub(crate) stopped: AtomicU64,
}

/// A thread that watches until this is dropped.
#[derive(Debug)]
pub(crate) struct MemoryWatch {
    pub(crate) figures: Arc<MemoryWatchFigures>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryWatch {
    /// Starts to report to `memory` how much of the process is resident. Does nothing if the system
    /// does not report it. The first report is made before it returns.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(crate) fn start(
        memory: &Arc<MemoryAccountant>,
        statements: &Arc<StatementRegistry>,
    ) -> Result<Self> {
        let figures = Arc::<MemoryWatchFigures>::default();
        let mut looking = LookCost {
            status: ProcessStatus::open(),
            purging: PurgePolicy::default(),
            over: OverrunPolicy::default(),
            unmapping: UnmapPolicy::default(),
            code: CodePages::of_this_process(),
            statements: Arc::clone(statements),
            figures: Arc::clone(&figures),
        };
        looking.code.split();
        // Code that ran only at startup is not what the process needs.
        looking.code.unmap();
        looking.look(memory);
        let memory: Weak<MemoryAccountant> = Arc::downgrade(memory);
        let (stop, stopped) = channel();
        let look = move || {
            while let Some(memory) = memory.upgrade() {
                let Some(pause) = looking.look(&memory) else {
                    break;
                };
                drop(memory);
                if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("marigram-memory".to_owned());
        Ok(Self {
            figures,
            stop: Some(stop),
            thread: Some(thread.spawn(look).map_err(Error::Runtime)?),
        })
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the watch over memory ended in a panic");
        }
    }
}

/// The cost of a measurement.
struct LookCost {
    status: Option<ProcessStatus>,
    purging: PurgePolicy,
    over: OverrunPolicy,
    unmapping: UnmapPolicy,
    code: CodePages,
    statements: Arc<StatementRegistry>,
    figures: Arc<MemoryWatchFigures>,
}

impl LookCost {
    /// Measures once, and purges if that is due. Returns how long to wait until the next time;
    /// `None` if the system does not report memory.
    #[expect(
        clippy::disallowed_methods,
        reason = "the duration of a purge depends on the machine; no data depends on it"
    )]
    fn look(&mut self, memory: &MemoryAccountant) -> Option<Duration> {
        let now = Instant::now();
        let (mut resident, measured) = self.tell(memory)?;
        if self.purging.is_due(measured, memory.limit(), now) {
            allocator::purge();
            self.figures.purges.fetch_add(1, Ordering::Relaxed);
            self.purging.done(now, now.elapsed());
            (resident, _) = self.tell(memory)?;
        }
        if self.unmapping.is_due(resident, memory.limit(), now) {
            self.code.unmap();
            (resident, _) = self.tell(memory)?;
        }
        let is_over = resident > memory.limit();
        if self.over.is_due(is_over, now) && self.statements.stop_longest(now) {
            self.figures.stopped.fetch_add(1, Ordering::Relaxed);
            tracing::warn!("a statement was stopped: the process was over memory_limit");
        }
        let is_near = is_near(resident, memory.limit());
        Some(if is_near { LOOK_EVERY_NEAR } else { LOOK_EVERY })
    }

    /// Reports how much is resident, without the code that can be unmapped at once; returns it
    /// including that code.
    fn tell(&self, memory: &MemoryAccountant) -> Option<(usize, ProcessMemory)> {
        let ResidentMemory { bytes, file_bytes } = self.status.as_ref()?.resident()?;
        let figures = &self.figures;
        figures.resident_bytes.store(bytes, Ordering::Relaxed);
        figures
            .resident_peak_bytes
            .fetch_max(bytes, Ordering::Relaxed);
        let needed = bytes.saturating_sub(file_bytes / CODE_IDLE_PART);
        Some((bytes, memory.measured(needed + headroom(memory.limit()))))
    }
}

/// What counts as used of a small limit although nothing holds it: the accountant leaves a 32nd.
fn headroom(limit: usize) -> usize {
    HEADROOM.saturating_sub(limit / 32).min(limit / 10)
}

/// Whether the resident memory is near the limit.
fn is_near(resident: usize, limit: usize) -> bool {
    resident > limit / 8 * 7
}

/// When the allocator must return what it keeps.
#[derive(Debug, Default)]
struct PurgePolicy {
    last: Option<(Instant, Duration)>,
}

impl PurgePolicy {
    /// Due if it keeps enough to be worth it: soon if a holder was refused memory or the process is
    /// near the limit, and now and then otherwise.
    fn is_due(&self, measured: ProcessMemory, limit: usize, now: Instant) -> bool {
        if measured.retained_bytes < limit / 32 {
            return false;
        }
        let (least, share) = if measured.resident_bytes > limit {
            (Duration::ZERO, PURGE_SHARE_OVER)
        } else if measured.refused || is_near(measured.resident_bytes, limit) {
            (PURGE_PAUSE, PURGE_SHARE)
        } else {
            (PURGE_PAUSE_AT_REST, PURGE_SHARE)
        };
        self.last.is_none_or(|(ended, took)| {
            now.saturating_duration_since(ended) >= least.max(took * share)
        })
    }

    fn done(&mut self, begun: Instant, took: Duration) {
        self.last = Some((begun + took, took));
    }
}

/// When code must be unmapped.
#[derive(Debug, Default)]
struct UnmapPolicy {
    last: Option<Instant>,
}

impl UnmapPolicy {
    /// Due if the process is near the limit; code in use must not be unmapped and mapped all the
    /// time.
    fn is_due(&mut self, resident: usize, limit: usize, now: Instant) -> bool {
        let rested = |last: Instant| now.saturating_duration_since(last) >= UNMAP_PAUSE;
        let is_due = is_near(resident, limit) && self.last.is_none_or(rested);
        let is_due = is_due || resident > limit;
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

/// When a statement must be stopped.
#[derive(Debug, Default)]
struct OverrunPolicy {
    /// When the process was found over its limit, or a statement was stopped for that reason.
    since: Option<Instant>,
}

impl OverrunPolicy {
    /// Due if the process has been over its limit for a while, and again after each such while.
    fn is_due(&mut self, is_over: bool, now: Instant) -> bool {
        if !is_over {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        let due = now.saturating_duration_since(since) >= STOP_AFTER;
        if due {
            self.since = Some(now);
        }
        due
    }
}

/// `/proc/self/status`, kept open: a measurement costs one read.
#[derive(Debug)]
struct ProcessStatus(File);

impl ProcessStatus {
    #[expect(
        clippy::disallowed_methods,
        reason = "the file describes the process and does not belong to a database"
    )]
    fn open() -> Option<Self> {
        File::open("/proc/self/status").ok().map(Self)
    }

    fn resident(&self) -> Option<ResidentMemory> {
        let mut text = [0; 4096];
        let read = self.0.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..read]).ok()?;
        let bytes = |name: &str| -> Option<usize> {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: usize = line.split_whitespace().next()?.parse().ok()?;
            kib.checked_mul(1024)
        };
        Some(ResidentMemory {
            bytes: bytes("VmRSS:")?,
            file_bytes: bytes("RssFile:").unwrap_or(0),
        })
    }
}

/// Resident memory.
#[derive(Clone, Copy, Debug)]
struct ResidentMemory {
    bytes: usize,
    /// Pages of files in it, mostly the code of the process.
    file_bytes: usize,
}

/// Resident memory of this process, in bytes; `None` if the system does not report it.
#[must_use]
pub fn resident_bytes() -> Option<usize> {
    Some(ProcessStatus::open()?.resident()?.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_engine::Holder;

    #[test]
    fn what_is_resident_reaches_the_accountant() {
        let Some(bytes) = resident_bytes() else {
            return;
        };
        assert!(bytes > 100_000, "{bytes}");
        let memory = Arc::new(MemoryAccountant::new(1 << 30));
        let watch = MemoryWatch::start(&memory, &Arc::default()).unwrap();
        assert!(memory.used_by(Holder::Process) > 100_000);
        drop(watch);
    }

    /// Blocks too small for the allocator to return by itself, in arenas of threads, are freed: a
    /// holder that is refused because of them gets memory within moments.
    #[test]
    fn what_the_allocator_keeps_is_given_back_to_who_is_refused() {
        const KEPT: usize = 128 << 20;
        let Some(before) = resident_bytes() else {
            return;
        };
        let limit = before + KEPT + (32 << 20);
        let memory = Arc::new(MemoryAccountant::new(limit));
        let _watch = MemoryWatch::start(&memory, &Arc::default()).unwrap();
        let held: Vec<Vec<Vec<u8>>> = std::thread::scope(|scope| {
            let fill = || (0..KEPT / 4 / 2000).map(|_| vec![1_u8; 2000]).collect();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(fill)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        // The ends stay allocated, so that only a purge finds the memory between them.
        let ends: Vec<Vec<u8>> = held
            .into_iter()
            .filter_map(|blocks| blocks.into_iter().next_back())
            .collect();
        // More than is available while the freed blocks count, and less than is available
        // afterwards, although each arena keeps its end.
        let wanted = KEPT / 4;
        let given = memory.wait_grow(Holder::SeriesIndex, wanted, Duration::from_secs(20));
        assert!(given, "{memory:?}");
        drop(ends);
    }

    #[test]
    fn a_purge_is_due_where_it_is_worth_it_and_not_too_often() {
        let limit = 3200;
        let measured = |retained_bytes, resident_bytes, refused| ProcessMemory {
            resident_bytes,
            retained_bytes,
            refused,
        };
        #[expect(clippy::disallowed_methods, reason = "some moment")]
        let start = Instant::now();
        let mut purging = PurgePolicy::default();
        assert!(!purging.is_due(measured(99, 3200, true), limit, start));
        assert!(purging.is_due(measured(100, 100, false), limit, start));
        purging.done(start, Duration::from_millis(10));
        let after = |ms: u64| start + Duration::from_millis(10 + ms);
        let (short, rest) = (measured(100, 3000, false), measured(100, 100, false));
        assert!(
            !purging.is_due(short, limit, after(199)),
            "it took 10 ms of them"
        );
        assert!(purging.is_due(short, limit, after(200)));
        assert!(purging.is_due(measured(100, 100, true), limit, after(200)));
        let over = measured(100, 3201, false);
        assert!(!purging.is_due(over, limit, after(39)) && purging.is_due(over, limit, after(40)));
        assert!(!purging.is_due(rest, limit, after(4999)));
        assert!(purging.is_due(rest, limit, after(5000)));
    }

    #[test]
    fn small_limits_keep_more_for_what_is_not_seen_yet() {
        let (mib, of) = (1 << 20, |mib: usize| headroom(mib << 20));
        assert_eq!((of(40), of(128), of(256)), (4 * mib, 12 * mib, 8 * mib));
        assert_eq!((of(512), of(1024)), (0, 0));
    }

    #[test]
    fn code_is_unmapped_near_the_limit_and_not_all_the_time() {
        #[expect(clippy::disallowed_methods, reason = "some moment")]
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut unmapping = UnmapPolicy::default();
        assert!(!unmapping.is_due(700, 800, start));
        assert!(unmapping.is_due(701, 800, start));
        assert!(!unmapping.is_due(800, 800, after(59)));
        assert!(unmapping.is_due(801, 800, after(59)), "it is over");
        assert!(!unmapping.is_due(701, 800, after(118)));
        assert!(unmapping.is_due(701, 800, after(119)));
    }

    #[test]
    fn a_statement_is_stopped_where_the_process_stays_over_its_limit() {
        #[expect(clippy::disallowed_methods, reason = "some moment")]
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut over = OverrunPolicy::default();
        assert!(!over.is_due(true, start) && !over.is_due(true, after(99)));
        assert!(over.is_due(true, after(100)) && !over.is_due(true, after(150)));
        assert!(over.is_due(true, after(200)) && !over.is_due(false, after(300)));
        assert!(!over.is_due(true, after(400)));
    }
}
