//! Controls the kernel's read-ahead in a file whose reads are mostly scattered.
//!
//! By default the kernel reads ahead from the first byte on, by as much as 8 MiB on some disks: many
//! times the few KiB of a page. So read-ahead is switched off, and on again while a thread reads
//! sequentially.

use std::cell::Cell;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Bytes that a thread reads sequentially before read-ahead is switched on.
const ORDERLY_MIN: u64 = 64 << 10;
/// Bytes that two sequential reads may skip between them.
const GAP_MAX: u64 = 1 << 20;
/// Reads elsewhere that end a sequential read: between two parts a thread looks up where the next
/// one is.
const STRAYS_MAX: u32 = 8;
/// Threads of a file that are distinguished; two that share a state look like scattered reads.
const THREADS: usize = 8;

/// How a file is read.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    threads: [ReaderState; THREADS],
    /// Whether the kernel reads ahead.
    is_on: AtomicBool,
}

/// How a thread reads.
#[derive(Debug, Default)]
struct ReaderState {
    /// Where its sequential read has arrived.
    end: AtomicU64,
    /// Bytes that it read sequentially.
    orderly: AtomicU64,
    /// Reads elsewhere since then.
    strays: AtomicU32,
}

impl ReadAhead {
    /// For a file whose reads are scattered from now on.
    pub(crate) fn begin(file: &File) -> Self {
        read_ahead(file, false);
        Self::default()
    }

    /// Switches read-ahead as suits a read of `len` bytes at `offset` by this thread, before the read.
    /// A race between threads costs one read-ahead too many or too few.
    pub(crate) fn before(&self, file: &File, offset: u64, len: u64) {
        let reader = &self.threads[thread_number() % THREADS];
        let wanted = reader.follow(offset, len);
        if wanted != self.is_on.load(Ordering::Relaxed) {
            self.is_on.store(wanted, Ordering::Relaxed);
            read_ahead(file, wanted);
        }
    }
}

impl ReaderState {
    /// Notes a read; returns whether the thread reads sequentially.
    fn follow(&self, offset: u64, len: u64) -> bool {
        let last = self.end.load(Ordering::Relaxed);
        let before = self.orderly.load(Ordering::Relaxed);
        let is_next = (last..=last.saturating_add(GAP_MAX)).contains(&offset);
        if !is_next && before >= ORDERLY_MIN {
            let strays = self.strays.fetch_add(1, Ordering::Relaxed) + 1;
            if strays <= STRAYS_MAX {
                return true;
            }
        }
        let orderly = len.saturating_add(if is_next { before } else { 0 });
        self.end
            .store(offset.saturating_add(len), Ordering::Relaxed);
        self.orderly.store(orderly, Ordering::Relaxed);
        self.strays.store(0, Ordering::Relaxed);
        is_next && orderly >= ORDERLY_MIN
    }
}

/// Switches the kernel's read-ahead in a file.
#[cfg(target_os = "linux")]
fn read_ahead(file: &File, wanted: bool) {
    use rustix::fs::{Advice, fadvise};
    let advice = if wanted {
        Advice::Normal
    } else {
        Advice::Random
    };
    // It is only a hint.
    let _ = fadvise(file, 0, None, advice);
}

#[cfg(not(target_os = "linux"))]
fn read_ahead(_: &File, _: bool) {}

/// A number of this thread; threads that run at the same time mostly have different ones.
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
    fn a_few_pages_of_one_place_are_not_in_order() {
        let reader = ReaderState::default();
        for at in [7_u64, 3, 900, 12, 13 << 20, 5] {
            for page in 0..3 {
                assert!(!reader.follow((at << 20) + page * 8192, 8192));
            }
        }
        // Nor is a large one.
        assert!(!reader.follow(77 << 20, 1 << 20));
    }

    #[test]
    fn what_is_read_in_order_is_read_ahead_until_something_else_is_read() {
        let reader = ReaderState::default();
        let mut at = 1 << 20;
        while at < 8 << 20 {
            let is_late = at + 10_000 >= (1 << 20) + 2 * ORDERLY_MIN;
            assert!(reader.follow(at, 10_000) || !is_late);
            at += 10_000 + at % 3000;
        }
        // It looks something up, and goes on.
        assert!(reader.follow(0, 8192));
        assert!(reader.follow(20 << 20, 8192));
        assert!(reader.follow(at + 100, 8192));
        for stray in 0..u64::from(STRAYS_MAX) {
            assert!(reader.follow(stray * 4096, 8192));
        }
        assert!(!reader.follow(4096, 8192), "it goes back");
        assert!(!reader.follow(12 << 10, 8192));
    }
}
