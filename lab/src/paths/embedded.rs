//! Embedded: columnar batches of 10,000 rows from one thread.

use super::{CREATE, Ingested};
use anyhow::{Result, ensure};
use marigram::Marigram;
use marigram_lab::set_s::SetS;
use std::path::Path;
use std::time::Instant;

const BATCH_ROWS: usize = 10_000;

/// Writes the set; also says how long opening it again takes.
pub fn ingest(set: &SetS, data: &Path) -> Result<Ingested> {
    let batches: Vec<_> = (0..set.len())
        .step_by(BATCH_ROWS)
        .map(|from| set.batch("s", from, (from + BATCH_ROWS).min(set.len())))
        .collect();
    let db = Marigram::open(data)?;
    db.sql(CREATE)?;
    let start = Instant::now();
    for batch in &batches {
        let report = db.write("main", batch)?;
        ensure!(
            report.rejected.is_empty(),
            "row refused: {}",
            report.rejected[0].reason
        );
    }
    let ingest = start.elapsed();
    let start = Instant::now();
    db.engine().flush()?;
    let flush = start.elapsed();
    db.close()?;
    drop(db);
    let start = Instant::now();
    let db = Marigram::open(data)?;
    let restart = start.elapsed();
    let replayed = db.engine().status().recovery_wal_bytes;
    db.close()?;
    Ok(Ingested {
        ingest,
        flush,
        restart,
        replayed,
    })
}
