//! PostgreSQL: one binary COPY on one connection.

use super::process::Process;
use super::{CREATE, Ingested};
use anyhow::{Result, ensure};
use marigram_lab::set_s::SetS;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio_postgres::NoTls;

/// Seconds from the Unix epoch to PostgreSQL's (2000-01-01).
const POSTGRES_EPOCH_S: i64 = 946_684_800;
const CHUNK_ROWS: usize = 10_000;

/// The set in PostgreSQL's binary COPY format, in chunks.
fn encode(set: &SetS) -> Vec<Vec<u8>> {
    let mut chunks = Vec::with_capacity(set.len() / CHUNK_ROWS + 2);
    chunks.push([b"PGCOPY\n\xff\r\n\0".as_slice(), &[0; 8]].concat());
    for from in (0..set.len()).step_by(CHUNK_ROWS) {
        let mut chunk = Vec::with_capacity(CHUNK_ROWS * 72);
        for row in from..(from + CHUNK_ROWS).min(set.len()) {
            let (device, second, temperature, humidity) = set.row(row);
            chunk.extend_from_slice(&6i16.to_be_bytes());
            let mut field = |bytes: &[u8]| {
                chunk.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
                chunk.extend_from_slice(bytes);
            };
            field(&((second - POSTGRES_EPOCH_S) * 1_000_000).to_be_bytes());
            field(&(device as i64).to_be_bytes());
            field(format!("device_{device:06}").as_bytes());
            field(&((device % 100) as i64).to_be_bytes());
            field(&temperature.to_be_bytes());
            field(&humidity.to_be_bytes());
        }
        chunks.push(chunk);
    }
    chunks.push((-1i16).to_be_bytes().to_vec());
    chunks
}

/// Writes the set; also says how long a restart takes.
pub fn ingest(set: &SetS, data: &Path, binary: &Path) -> Result<Ingested> {
    let chunks = encode(set);
    let mut server = Process::start(binary, data)?;
    server.sql(CREATE)?;
    let config = format!(
        "host=127.0.0.1 port={} user=bench dbname=main",
        server.postgres
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ingest = runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
        tokio::spawn(connection);
        let start = Instant::now();
        let columns = "time, devid, devname, devgroup, temperature, humidity";
        let sink = client
            .copy_in(&format!("COPY s ({columns}) FROM STDIN BINARY"))
            .await?;
        let mut sink = std::pin::pin!(sink);
        for chunk in chunks {
            futures::SinkExt::send(&mut sink, bytes::Bytes::from(chunk)).await?;
        }
        let stored = sink.finish().await?;
        ensure!(stored == set.len() as u64, "{stored} rows stored");
        anyhow::Ok(start.elapsed())
    })?;
    let (restart, replayed) = server.restart()?;
    Ok(Ingested {
        ingest,
        flush: Duration::ZERO,
        restart,
        replayed,
    })
}
