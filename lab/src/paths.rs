//! The three ways in: embedded batches, line protocol over HTTP, binary COPY.

mod copy;
mod embedded;
mod http;
mod process;

use crate::report::Measured;
use anyhow::{Context, Result, bail};
use marigram_lab::set_s::SetS;
use std::path::Path;
use std::time::{Duration, Instant};

/// The table with the types that the set has.
const CREATE: &str = "CREATE TABLE s (time TIMESTAMP, devid BIGINT TAG, devname STRING TAG, \
                      devgroup BIGINT TAG, temperature INT FIELD, humidity FLOAT FIELD)";

/// What a way in measured.
struct Ingested {
    /// To the last acknowledgement.
    ingest: Duration,
    /// Of a flush right after it, where the way in makes one.
    flush: Duration,
    /// Of a restart.
    restart: Duration,
    /// WAL that the restart replayed, bytes.
    replayed: u64,
}

/// One repetition of the way in called `path`, in the empty directory `data`.
pub fn measure(path: &str, set: &SetS, data: &Path, binary: &Path) -> Result<Measured> {
    let done = match path {
        "embedded" => embedded::ingest(set, data)?,
        "http" => http::ingest(set, data, binary)?,
        "copy" => copy::ingest(set, data, binary)?,
        other => bail!("there is no way in called '{other}': embedded, http, copy"),
    };
    let (flush, disk_bytes) = settle(set, data)?;
    Ok(Measured {
        ingest: done.ingest,
        flushed: done.ingest + done.flush + flush,
        disk_bytes,
        restart: done.restart,
        restart_wal_bytes: done.replayed,
        rows: set.len(),
    })
}

/// Flushes and compacts what stands in `data`, checks that every row is there, and gives the time
/// of the flush and the bytes on disk.
fn settle(set: &SetS, data: &Path) -> Result<(Duration, u64)> {
    let db = marigram::Marigram::open(data)?;
    let start = Instant::now();
    db.engine().flush()?;
    let flush = start.elapsed();
    db.engine().compact()?;
    let answer = db.sql("SELECT count(*) FROM s")?;
    let counted = answer
        .first()
        .context("a count has a row")?
        .column(0)
        .to_data();
    let counted = arrow_array::Int64Array::from(counted).value(0);
    anyhow::ensure!(
        counted == i64::try_from(set.len())?,
        "{counted} of {} rows",
        set.len()
    );
    db.close()?;
    Ok((flush, folder_bytes(data)?))
}

/// Bytes of all files under `dir`.
fn folder_bytes(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.metadata()?;
        bytes += if kind.is_dir() {
            folder_bytes(&entry.path())?
        } else {
            kind.len()
        };
    }
    Ok(bytes)
}
