//! InfluxDB 1.x: line protocol in, `InfluxQL` out, both over HTTP.

mod answer;
mod influxql;
mod msgpack;
mod program;

pub use program::PEER;

use crate::line_server::{LineClient, LineServer};
use crate::write_history::WriteHistory;
use anyhow::{Context, Result, bail};
use marigram_lab::data::{Rows, Table};
use marigram_lab::line_protocol;
use marigram_lab::question::{Answer, Ask, Question};
use marigram_lab::target::{Kind, Payload, Reply, Session, Settings, Target, TargetFacts};
use marigram_lab_drivers::http::{FORM, Http, percent};
use marigram_lab_drivers::sql;
use marigram_lab_drivers::wait::wait_until;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The driver, for the command line.
pub const KIND: Kind = Kind {
    name: "influxdb",
    about: "InfluxDB 1.x: line protocol and InfluxQL over HTTP",
    peer: true,
    make,
};

/// The laboratory's own database.
const DATABASE: &str = "marigram_lab";

/// The longest wait for flushes and compactions.
const SETTLE_MAX: Duration = Duration::from_mins(30);

/// If nothing was flushed or compacted for this long, nothing more will be: a shard is compacted two
/// seconds after its last write.
const QUIET: Duration = Duration::from_secs(5);

struct InfluxDb {
    server: LineServer,
    dir: PathBuf,
}

fn make(settings: &Settings) -> Result<Box<dyn Target>> {
    Ok(Box::new(InfluxDb {
        server: LineServer::new("influxdb", "/ping", settings)?,
        dir: PathBuf::new(),
    }))
}

/// Runs a query, and returns the answer as `MessagePack`, which is faster than JSON. Errors of the
/// database have status 200.
fn query(http: &Http, text: &str) -> Result<Vec<u8>> {
    let body = format!("db={DATABASE}&epoch=ns&q={}", percent(text));
    let headers = [FORM, ("Accept", "application/x-msgpack")];
    let reply = http.post("/query", &headers, body.as_bytes())?;
    if ERRORS.iter().any(|start| reply.starts_with(start)) {
        bail!("{text}: {}", msgpack::decode(&reply)?);
    }
    Ok(reply)
}

/// Beginnings of answers that are errors: `{"results":[{"error":` and
/// `{"results":[{"statement_id":0,"error":`.
const ERRORS: [&[u8]; 2] = [
    b"\x81\xa7results\x91\x81\xa5error",
    b"\x81\xa7results\x91\x82\xacstatement_id\x00\xa5error",
];

/// A query for one row of the first table that has any: its answer depends on the data.
fn probe(history: &WriteHistory, tables: &[Table]) -> Option<String> {
    let table = tables.iter().find(|table| history.table(table).is_some())?;
    Some(influxql::newest(table))
}

impl Target for InfluxDb {
    fn start(&mut self, dir: &Path) -> Result<()> {
        dir.clone_into(&mut self.dir);
        self.server.start(program::server, dir)?;
        if self.server.instance.url().is_some() {
            query(&self.server.http, &format!("DROP DATABASE {DATABASE}"))?;
        }
        query(&self.server.http, &format!("CREATE DATABASE {DATABASE}"))?;
        Ok(())
    }

    fn facts(&self) -> TargetFacts {
        TargetFacts {
            version: format!("InfluxDB {}", self.server.version("1.x at ")),
            path: "line protocol over HTTP; InfluxQL over HTTP, answers as MessagePack".to_owned(),
            durability: "fsync of the write-ahead log before acknowledgement (wal-fsync-delay = 0s, \
                         the default)"
                .to_owned(),
            notes: "No command flushes or compacts, so shards that are not written to are flushed \
                    and compacted after 2 s (cache-snapshot-write-cold-duration, \
                    compact-full-write-cold-duration), not after 10 min and 4 h, and settling waits \
                    for that. No bounds on series, bodies and the write cache. The index is the \
                    default one, inmem. Devices below a number are a regular expression of all that \
                    are known, because tags are text. Where nulls were written, rows are asked for \
                    with all fields, because a row without a value does not exist."
                .to_owned(),
        }
    }

    fn processes(&self) -> Vec<u32> {
        self.server.instance.processes()
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        Ok(Box::new(InfluxSession(self.server.client(tables))))
    }

    fn settle(&self, _tables: &[Table]) -> Result<()> {
        let mut busy = Instant::now();
        let late = || "compaction does not end".to_owned();
        wait_until(SETTLE_MAX, Duration::from_millis(100), late, || {
            let work =
                answer::work(&self.server.http.get("/debug/vars")?).context("/debug/vars")?;
            if work.is_busy() {
                busy = Instant::now();
            }
            Ok(work.is_done() || busy.elapsed() > QUIET)
        })
    }

    fn disk_bytes(&self) -> Result<u64> {
        let folders = ["data", "wal", "meta"].map(|name| self.dir.join(name));
        let bytes = folders
            .iter()
            .map(|dir| self.server.instance.folder_bytes(dir));
        bytes.sum()
    }

    fn restart(&mut self, tables: &[Table]) -> Result<Option<Duration>> {
        let probe = probe(&self.server.history, tables);
        let probe = probe.map(|text| move |http: &Http| query(http, &text));
        self.server.restart(probe)
    }

    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String> {
        match &question.ask {
            Ask::Select(select) => influxql::cannot(&tables[select.table], select),
            Ask::Sql(_) => Some("it speaks InfluxQL, not SQL".to_owned()),
        }
    }

    fn stop(&mut self) -> Result<()> {
        self.server.instance.stop()
    }
}

struct InfluxSession(LineClient);

impl Session for InfluxSession {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        let table = &self.0.tables[rows.table];
        self.0.history.record(table, rows);
        let text = line_protocol::encode(table, rows, 1);
        Ok(Payload::from_bytes(rows, text))
    }

    fn write(&mut self, payload: &Payload) -> Result<()> {
        // If any row is refused, the status is an error, even if other rows were stored.
        let path = format!("/write?db={DATABASE}&precision=ns");
        self.0.http.post(&path, &[], payload.bytes()?)?;
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Reply> {
        let select = sql::select(question)?;
        let table = &self.0.tables[select.table];
        let text = influxql::statement(table, select, self.0.history.has_nulls(table));
        query(&self.0.http, &text).map(Reply::Bytes)
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        let select = sql::select(question)?;
        let document = msgpack::decode(&reply.into_bytes()?)?;
        answer::decode(&self.0.tables[select.table], select, document)
    }
}
