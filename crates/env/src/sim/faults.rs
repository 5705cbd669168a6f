//! Planned faults, and the counts of operations that trigger them.

use std::collections::HashMap;
use std::io;

/// Kinds of operations on the simulated file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// `LogStore::create_dir_all`
    CreateDir,
    /// `LogStore::create`
    Create,
    /// `LogStore::open`
    Open,
    /// `LogStore::list`
    List,
    /// `LogStore::exists`
    Exists,
    /// `LogStore::rename`, `LogStore::rename_new`
    Rename,
    /// `LogStore::remove`
    Remove,
    /// `LogStore::remove_dir_all`
    RemoveDir,
    /// `LogStore::sync_dir`
    SyncDir,
    /// `LogStore::lock`
    Lock,
    /// `ReadAt::len`
    Len,
    /// `ReadAt::read_exact_at`
    Read,
    /// `File::append`
    Append,
    /// `File::sync`
    Sync,
    /// `File::truncate`
    Truncate,
    /// `File::reserve`
    Reserve,
}

/// How long a fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultRepeat {
    /// One operation fails.
    Once,
    /// That operation and every later one of the kind fails.
    Forever,
}

/// An I/O error (EIO) to come.
#[derive(Clone, Copy, Debug)]
pub struct PlannedFault {
    /// Which operations count; `None`: all.
    pub kind: Option<OpKind>,
    /// How many of them still succeed before.
    pub after: u64,
    /// How long it lasts.
    pub repeat: FaultRepeat,
}

/// Marks the error of every operation after the power was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the simulated machine has lost power")]
pub struct SimCrash;

impl SimCrash {
    /// Whether an I/O error, or one that it wraps, comes from the loss of power.
    pub fn caused(error: &(dyn std::error::Error + 'static)) -> bool {
        if error.is::<Self>() {
            return true;
        }
        // `io::Error::source` skips the error it wraps and goes to that one's source.
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        match wrapped {
            Some(wrapped) => Self::caused(wrapped),
            None => error.source().is_some_and(Self::caused),
        }
    }

    pub(super) fn error() -> io::Error {
        io::Error::other(Self)
    }
}

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationFate {
    Succeed,
    /// EIO.
    Fail,
    /// Power fails while the operation runs: chance decides whether and how far it got.
    Crash,
}

/// The planned faults, and what has happened so far.
#[derive(Debug, Default)]
pub(super) struct FaultPlan {
    ops: u64,
    /// By kind.
    counts: HashMap<OpKind, u64>,
    crash_at: Option<u64>,
    crashed: bool,
    faults: Vec<PlannedFault>,
}

impl FaultPlan {
    pub(super) fn ops(&self) -> u64 {
        self.ops
    }

    pub(super) fn count(&self, kind: OpKind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or_default()
    }

    pub(super) fn is_crashed(&self) -> bool {
        self.crashed
    }

    pub(super) fn crash_at(&mut self, op: Option<u64>) {
        self.crash_at = op;
    }

    pub(super) fn add(&mut self, fault: PlannedFault) {
        self.faults.push(fault);
    }

    pub(super) fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// Power is back: no fault is planned any more. The count goes on.
    pub(super) fn restart(&mut self) {
        self.crashed = false;
        self.crash_at = None;
        self.faults.clear();
    }

    /// Counts an operation and says what becomes of it.
    pub(super) fn next(&mut self, kind: OpKind) -> io::Result<OperationFate> {
        if self.crashed {
            return Err(SimCrash::error());
        }
        let op = self.ops;
        self.ops += 1;
        *self.counts.entry(kind).or_default() += 1;
        if self.crash_at.is_some_and(|at| op >= at) {
            self.crashed = true;
            return Ok(OperationFate::Crash);
        }
        let mut fails = false;
        self.faults.retain_mut(|fault| {
            if fault.kind.is_some_and(|wanted| wanted != kind) {
                return true;
            }
            if fault.after > 0 {
                fault.after -= 1;
                return true;
            }
            fails = true;
            fault.repeat == FaultRepeat::Forever
        });
        Ok(if fails {
            OperationFate::Fail
        } else {
            OperationFate::Succeed
        })
    }
}

/// EIO, as the kernel gives it.
pub(super) fn io_error() -> io::Error {
    io::Error::from_raw_os_error(5)
}

/// EMFILE, as the kernel gives it.
pub(super) fn too_many_open_files() -> io::Error {
    io::Error::from_raw_os_error(24)
}

/// ENOSPC, as the kernel gives it.
pub(super) fn no_space() -> io::Error {
    io::Error::from_raw_os_error(28)
}
