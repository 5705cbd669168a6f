//! The troubles of a life.

use marigram_env::{FaultRepeat, OpKind, PlannedFault, SimFs};
use rand::RngExt as _;
use rand::rngs::Xoshiro256PlusPlus;

/// What goes wrong in a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashTrouble {
    /// Nothing: the process ends when the work is done.
    None,
    /// Power fails in the middle of an operation, counted from the first one in the life.
    Power(u64),
    /// An operation fails, counted from the first one of its kind in the life.
    Error(OpKind, u64, FaultRepeat),
    /// The disk has room for this many more bytes.
    Full(u64),
    /// This many files can be open at once.
    Files(usize),
}

impl CrashTrouble {
    /// Draws a trouble.
    pub fn draw(rng: &mut Xoshiro256PlusPlus) -> Self {
        match rng.random_range(0..22) {
            0..3 => Self::None,
            // Short ones fall into recovery.
            3..6 => Self::Power(rng.random_range(0..60)),
            6..13 => Self::Power(rng.random_range(0..600)),
            13..18 => {
                let kinds = [
                    (OpKind::Append, 60),
                    (OpKind::Append, 60),
                    (OpKind::Sync, 60),
                    (OpKind::Sync, 60),
                    (OpKind::Create, 20),
                    (OpKind::SyncDir, 20),
                    (OpKind::Rename, 5),
                    (OpKind::Remove, 10),
                    (OpKind::Read, 80),
                    (OpKind::Open, 20),
                    (OpKind::Truncate, 2),
                ];
                let (kind, after_max) = kinds[rng.random_range(0..kinds.len())];
                let repeat = if rng.random_bool(0.6) {
                    FaultRepeat::Once
                } else {
                    FaultRepeat::Forever
                };
                Self::Error(kind, rng.random_range(0..after_max), repeat)
            }
            18..20 => Self::Full(rng.random_range(0..60_000)),
            _ => Self::Files(rng.random_range(0..20)),
        }
    }

    /// Plans the trouble on a disk.
    pub fn plan(self, fs: &SimFs) {
        match self {
            Self::None => {}
            Self::Power(after) => fs.crash_at(fs.ops() + after),
            Self::Error(kind, after, repeat) => {
                fs.fail(PlannedFault {
                    kind: Some(kind),
                    after,
                    repeat,
                });
            }
            Self::Full(bytes) => fs.set_space(Some(bytes)),
            Self::Files(files) => fs.set_open_files_max(files),
        }
    }

    /// Whether it passes without lasting effects: operations that failed meanwhile work afterwards.
    pub fn passes(self) -> bool {
        matches!(self, Self::None | Self::Full(_) | Self::Files(_))
    }

    /// Frees space on the disk, and descriptors.
    pub fn relieve(fs: &SimFs) {
        fs.set_space(None);
        fs.set_open_files_max(usize::MAX);
    }

    /// Ends the trouble, except for a power loss that has happened.
    pub fn end(fs: &SimFs) {
        fs.cancel_crash();
        fs.clear_faults();
        Self::relieve(fs);
    }
}
