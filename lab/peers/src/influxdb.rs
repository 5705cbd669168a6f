//! InfluxDB 1.x: line protocol in, `InfluxQL` out, both over HTTP.

mod answer;
mod influxql;
mod msgpack;

use crate::installed;
use crate::seen::Seen;
use anyhow::{Context, Result, bail, ensure};
use marigram_lab::data::{Rows, Table};
use marigram_lab::line_protocol::{self, Style};
use marigram_lab::monitor::folder_bytes;
use marigram_lab::question::{Answer, Ask, Question};
use marigram_lab::target::{Body, Facts, Kind, Payload, Reply, Session, Settings, Target};
use marigram_lab_drivers::http::{Http, percent};
use marigram_lab_drivers::process::{Process, free_port};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The kind, for the command line.
pub const KIND: Kind = Kind {
    name: "influxdb",
    about: "InfluxDB 1.x: line protocol and InfluxQL over HTTP",
    peer: true,
    make,
};

/// The laboratory's own database.
const DATABASE: &str = "marigram_lab";

/// Longest wait for flush and compaction.
const SETTLE_MAX: Duration = Duration::from_mins(30);

/// Without anything to flush or compact for so long, nothing will come any more: a shard that is
/// not written to is compacted after two seconds.
const QUIET: Duration = Duration::from_secs(5);

struct InfluxDb {
    settings: Settings,
    process: Option<Process>,
    http: Http,
    dir: PathBuf,
    seen: Arc<Seen>,
}

fn make(settings: &Settings) -> Result<Box<dyn Target>> {
    if settings.url.is_none() {
        installed::installed(&settings.peers, "influxdb")?;
    }
    Ok(Box::new(InfluxDb {
        settings: settings.clone(),
        process: None,
        http: Http::new(settings.url.as_deref().unwrap_or_default()),
        dir: PathBuf::new(),
        seen: Arc::default(),
    }))
}

/// Asks, and takes the answer as `MessagePack`, which comes sooner than JSON. An error of the
/// database has status 200.
fn query(http: &Http, text: &str) -> Result<Vec<u8>> {
    let body = format!("db={DATABASE}&epoch=ns&q={}", percent(text));
    let headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Accept", "application/x-msgpack"),
    ];
    let reply = http.post("/query", &headers, body.as_bytes())?;
    if ERRORS.iter().any(|start| reply.starts_with(start)) {
        bail!("{text}: {}", msgpack::decode(&reply)?);
    }
    Ok(reply)
}

/// How answers that are errors begin: `{"results":[{"error":` and `{"results":[{"statement_id":0,
/// "error":`.
const ERRORS: [&[u8]; 2] = [
    b"\x81\xa7results\x91\x81\xa5error",
    b"\x81\xa7results\x91\x82\xacstatement_id\x00\xa5error",
];

/// Asks for one row of the first table that has any: an answer that depends on the data.
fn probe(seen: &Seen, tables: &[Table]) -> Option<String> {
    let table = tables.iter().find(|table| seen.of(table).is_some())?;
    Some(influxql::newest(table))
}

impl Target for InfluxDb {
    fn start(&mut self, dir: &Path) -> Result<()> {
        self.seen = Arc::default();
        if self.settings.url.is_some() {
            self.http.get("/ping").context("InfluxDB does not answer")?;
            query(&self.http, &format!("DROP DATABASE {DATABASE}"))?;
        } else {
            let port = free_port()?;
            let memory = self.settings.memory_bytes;
            let mut program = installed::influxdb(&self.settings.peers, dir, port, memory)?;
            program.cores = self.settings.cores;
            self.http = Http::new(&format!("http://127.0.0.1:{port}"));
            dir.clone_into(&mut self.dir);
            let http = &self.http;
            self.process = Some(Process::start(program, || http.get("/ping").is_ok())?);
        }
        query(&self.http, &format!("CREATE DATABASE {DATABASE}"))?;
        Ok(())
    }

    fn facts(&self) -> Facts {
        let version = match &self.settings.url {
            Some(url) => format!("1.x at {url}"),
            None => installed::version(&self.settings.peers, "influxdb").unwrap_or_default(),
        };
        Facts {
            version: format!("InfluxDB {version}"),
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
        self.process.iter().map(Process::id).collect()
    }

    fn create(&self, _tables: &[Table]) -> Result<()> {
        // Measurements come into being with their first row.
        Ok(())
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        Ok(Box::new(Connection {
            http: Http::new(self.http.base()),
            tables: Arc::clone(tables),
            seen: Arc::clone(&self.seen),
        }))
    }

    fn settle(&self, _tables: &[Table]) -> Result<()> {
        let start = Instant::now();
        let mut quiet = Instant::now();
        loop {
            let vars = self.http.get("/debug/vars")?;
            let work = answer::work(&vars).context("/debug/vars")?;
            if work.is_done() || (!work.is_busy() && quiet.elapsed() > QUIET) {
                return Ok(());
            }
            if work.is_busy() {
                quiet = Instant::now();
            }
            ensure!(start.elapsed() < SETTLE_MAX, "compaction does not end");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn disk_bytes(&self) -> Result<u64> {
        ensure!(
            self.settings.url.is_none(),
            "the folder of an instance elsewhere cannot be seen"
        );
        let folders = ["data", "wal", "meta"].map(|name| folder_bytes(&self.dir.join(name)));
        folders.into_iter().sum()
    }

    fn restart(&mut self, tables: &[Table]) -> Result<Option<Duration>> {
        let Some(process) = &mut self.process else {
            return Ok(None);
        };
        let http = &self.http;
        let Some(probe) = probe(&self.seen, tables) else {
            return process.restart(|| http.get("/ping").is_ok()).map(Some);
        };
        let before = query(http, &probe)?;
        let is_up = || query(http, &probe).is_ok_and(|answer| answer == before);
        process.restart(is_up).map(Some)
    }

    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String> {
        match &question.ask {
            Ask::Select(select) => influxql::cannot(&tables[select.table], select),
            Ask::Sql(_) => Some("it speaks InfluxQL, not SQL".to_owned()),
        }
    }

    fn stop(&mut self) -> Result<()> {
        self.process = None;
        Ok(())
    }
}

/// A client.
struct Connection {
    http: Http,
    tables: Arc<[Table]>,
    seen: Arc<Seen>,
}

impl Session for Connection {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        let table = &self.tables[rows.table];
        self.seen.note(table, rows);
        let style = Style {
            unit_ns: 1,
            integer_suffix: true,
        };
        Ok(Payload {
            rows: rows.len(),
            points: rows.points(),
            body: Body::Bytes(line_protocol::encode(table, rows, style)),
        })
    }

    fn write(&mut self, payload: &Payload) -> Result<()> {
        let Body::Bytes(body) = &payload.body else {
            bail!("a batch of another target");
        };
        // A row that is refused makes it an error, even when the others were taken.
        let path = format!("/write?db={DATABASE}&precision=ns");
        self.http.post(&path, &[], body)?;
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Reply> {
        let Ask::Select(select) = &question.ask else {
            bail!("InfluxDB speaks InfluxQL, not SQL");
        };
        let table = &self.tables[select.table];
        let text = influxql::statement(table, select, self.seen.nulls(table));
        query(&self.http, &text).map(Reply::Bytes)
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        match (&question.ask, reply) {
            (Ask::Select(select), Reply::Bytes(body)) => {
                let document = msgpack::decode(&body)?;
                answer::decode(&self.tables[select.table], select, document)
            }
            _ => bail!("an answer of another target"),
        }
    }
}
