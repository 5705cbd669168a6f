//! Reading ahead of those who read a file that is mostly read here and there.
//!
//! The kernel reads ahead from the first byte on, by as much as 8 MiB on some disks; of a page of a few
//! KiB it reads many times as much. So it is told not to, and what is read in order is read ahead
//! by us: once so many bytes were read behind each other, and by no more than that.

use std::cell::Cell;
use std::fs::File;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bytes that are read in order before any is read ahead.
const ORDERLY_MIN: u64 = 64 << 10;
/// Most bytes that are read ahead at once.
const AHEAD_MAX: u64 = 2 << 20;
/// Bytes that may be left out between two reads that are in order.
const GAP_MAX: u64 = 64 << 10;
/// Threads of a file that are told apart.
const THREADS: usize = 8;

/// How each of some threads reads a file.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    threads: [Reader; THREADS],
}

/// How a thread reads. Threads that share one read ahead too little, or in vain.
#[derive(Debug, Default)]
struct Reader {
    /// Where its last read ended.
    end: AtomicU64,
    /// Bytes that it read in order.
    orderly: AtomicU64,
    /// Up to where it was read ahead.
    ahead: AtomicU64,
}

impl ReadAhead {
    /// Follows a read of this thread, before it is done; tells what should be read ahead: an offset
    /// and a length.
    fn follow(&self, offset: u64, len: u64) -> Option<(u64, u64)> {
        let end = offset.saturating_add(len);
        let reader = &self.threads[thread_number() % THREADS];
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let store = |number: &AtomicU64, value| number.store(value, Ordering::Relaxed);
        let last = load(&reader.end);
        store(&reader.end, end);
        if !(last..=last.saturating_add(GAP_MAX)).contains(&offset) {
            store(&reader.orderly, len);
            store(&reader.ahead, 0);
            return None;
        }
        let orderly = load(&reader.orderly).saturating_add(len);
        store(&reader.orderly, orderly);
        let (ahead, window) = (load(&reader.ahead), orderly.min(AHEAD_MAX));
        // More is asked for while there is half of it left, so that it comes in time.
        if orderly < ORDERLY_MIN || ahead > end.saturating_add(window / 2) {
            return None;
        }
        let from = ahead.max(end);
        store(&reader.ahead, from.saturating_add(window));
        Some((from, window))
    }

    /// Follows a read of `file` by this thread, and has it read ahead where that is of use.
    pub(crate) fn before(&self, file: &File, offset: u64, len: u64) {
        if let Some((from, len)) = self.follow(offset, len) {
            advise(file, from, len, Advice::Soon);
        }
    }
}

/// Tells the kernel that a file is read here and there.
pub(crate) fn here_and_there(file: &File) {
    advise(file, 0, 0, Advice::HereAndThere);
}

/// What the kernel is told.
#[derive(Clone, Copy, Debug)]
enum Advice {
    HereAndThere,
    Soon,
}

/// Advises about `len` bytes (0: all) from `offset` on.
#[cfg(target_os = "linux")]
fn advise(file: &File, offset: u64, len: u64, advice: Advice) {
    let advice = match advice {
        Advice::HereAndThere => rustix::fs::Advice::Random,
        Advice::Soon => rustix::fs::Advice::WillNeed,
    };
    // Reading goes on without it.
    let _ = rustix::fs::fadvise(file, offset, std::num::NonZeroU64::new(len), advice);
}

#[cfg(not(target_os = "linux"))]
fn advise(_: &File, _: u64, _: u64, _: Advice) {}

/// A number of this thread; those of threads that run at the same time differ mostly.
fn thread_number() -> usize {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static OWN: Cell<Option<u32>> = const { Cell::new(None) };
    }
    OWN.with(|own| {
        let number = own
            .get()
            .unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed));
        own.set(Some(number));
        number as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_ahead_of_reads_here_and_there() {
        let reads = ReadAhead::default();
        for at in [7_u64, 3, 900, 12, 13 << 20, 5] {
            // Some pages of one place, then another place.
            for page in 0..3 {
                assert_eq!(reads.follow((at << 20) + page * 8192, 8192), None);
            }
        }
    }

    #[test]
    fn what_is_read_in_order_is_read_ahead_once_and_without_gaps() {
        let reads = ReadAhead::default();
        let (mut at, mut ahead, mut first) = (1 << 20, None, None);
        while at < 64 << 20 {
            if let Some((from, len)) = reads.follow(at, 10_000) {
                first.get_or_insert(at);
                assert!(len <= AHEAD_MAX);
                assert!(ahead.is_none_or(|ahead| from == ahead), "{from} {ahead:?}");
                ahead = Some(from + len);
            }
            // What is read was read ahead, once that has begun.
            assert!(ahead.is_none_or(|ahead| ahead > at + 10_000));
            at += 10_000 + at % 3000;
        }
        assert!(first.is_some_and(|first| first < (1 << 20) + 2 * ORDERLY_MIN));
        assert!(ahead.is_some_and(|ahead| ahead <= at + 2 * AHEAD_MAX));
        // Another place: from the beginning.
        assert_eq!(reads.follow(0, 8192), None);
        assert_eq!(reads.follow(8192, 8192), None);
    }
}
