//! What is durable is recorded in the witness of the shard and in that of the data directory.

use super::{Shard, ShardLog};
use marigram_manifest::WitnessedShard;
use std::sync::atomic::Ordering;

/// The time between two records of a write in the witness of the data directory. An older copy of the
/// shard that is younger than the last record goes unnoticed.
const DIRECTORY_NOTE_NS: u64 = 1_000_000_000;

impl Shard {
    /// Records how far the log is synced: in the witness of the shard, and in that of the data
    /// directory if the last record there is [`DIRECTORY_NOTE_NS`] old.
    pub(crate) fn note_synced(&self, log: &ShardLog) {
        let wal = (log.wal.number(), log.wal.synced());
        self.witness.lock().note_wal(wal.0, wal.1);
        let now_ns = self.context.env.clock.monotonic_ns();
        let noted_ns = self.noted_ns.load(Ordering::Relaxed);
        // Whoever holds the log is alone here.
        if now_ns.saturating_sub(noted_ns) >= DIRECTORY_NOTE_NS {
            self.noted_ns.store(now_ns, Ordering::Relaxed);
            self.note_in_directory(WitnessedShard {
                wal: Some(wal),
                log: None,
            });
        }
    }

    /// Records in the witness of the data directory how far the shard is durable. Called when the
    /// directory opens and closes: in between, each flush, each edit of the manifest and one write a
    /// second record it.
    pub(crate) fn note_extent(&self) {
        let log = Some(self.durable.lock().manifest.extent());
        let wal = self.log().wal.newest_durable();
        self.note_in_directory(WitnessedShard { log, wal });
    }

    /// Records in the witness of the data directory that this much is durable.
    pub(crate) fn note_in_directory(&self, shard: WitnessedShard) {
        let number = self.number as u32;
        self.context.witness.lock().note_shard(number, shard);
    }
}
