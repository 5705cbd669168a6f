//! The watch over what the process really holds.
//!
//! Counters know what was asked for; the system knows what is resident: code, stacks, what the
//! allocator keeps and what nobody counted as well. Where the ceiling is to cover the whole process,
//! a thread tells the accountant of the difference, and so the rest gives way to it.

use crate::error::{Error, Result};
use marigram_engine::MemoryAccountant;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two looks: little can be taken meanwhile that is not counted.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A thread that looks until this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to tell `memory` how much of the process is resident. Does nothing where the system
    /// does not say.
    ///
    /// # Errors
    /// If the machine gives no thread.
    pub(crate) fn start(memory: &Arc<MemoryAccountant>) -> Result<Self> {
        let memory: Weak<MemoryAccountant> = Arc::downgrade(memory);
        let (stop, stopped) = channel();
        let look = move || {
            while let (Some(memory), Some(bytes)) = (memory.upgrade(), resident_bytes()) {
                memory.measured(bytes);
                drop(memory);
                if stopped.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("marigram-memory".to_owned());
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread.spawn(look).map_err(Error::Runtime)?),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the watch over memory ended in a panic");
        }
    }
}

/// Memory of this process that is resident, bytes; `None` where the system does not say.
#[must_use]
pub fn resident_bytes() -> Option<usize> {
    // The file describes the process and is no part of a database, so it is read directly.
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
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
        let watch = Watch::start(&memory).unwrap();
        while memory.used_by(Holder::Process) == 0 {
            std::thread::yield_now();
        }
        drop(watch);
    }
}
