//! VictoriaMetrics: line protocol in, `MetricsQL` and exports out, all over HTTP.
//!
//! A field of a table is a metric, `table:field`; tags are labels. There are no rows: values of one
//! device and time are put together again by the client. Times are milliseconds, values doubles.

mod answer;
mod metricsql;

use crate::installed;
use crate::seen::Seen;
use anyhow::{Context, Result, anyhow, bail, ensure};
use marigram_lab::data::{Rows, Table};
use marigram_lab::line_protocol::{self, Style};
use marigram_lab::monitor::folder_bytes;
use marigram_lab::question::{Answer, Ask, Question};
use marigram_lab::target::{Body, Facts, Kind, Payload, Reply, Session, Settings, Target};
use marigram_lab_drivers::http::Http;
use marigram_lab_drivers::process::{Process, free_port};
use metricsql::{MILLISECOND_NS, Request};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The kind, for the command line.
pub const KIND: Kind = Kind {
    name: "victoriametrics",
    about: "VictoriaMetrics: line protocol and MetricsQL over HTTP",
    peer: true,
    make,
};

/// Labels that it keeps of a series (`-maxLabelsPerTimeseries`), the name of the metric among them.
const LABELS_MAX: usize = 30;

/// Longest wait for merges.
const SETTLE_MAX: Duration = Duration::from_mins(30);

struct VictoriaMetrics {
    settings: Settings,
    process: Option<Process>,
    http: Http,
    dir: PathBuf,
    seen: Arc<Seen>,
}

fn make(settings: &Settings) -> Result<Box<dyn Target>> {
    if settings.url.is_none() {
        installed::installed(&settings.peers, "victoriametrics")?;
    }
    Ok(Box::new(VictoriaMetrics {
        settings: settings.clone(),
        process: None,
        http: Http::new(settings.url.as_deref().unwrap_or_default()),
        dir: PathBuf::new(),
        seen: Arc::default(),
    }))
}

fn send(http: &Http, request: &Request) -> Result<Vec<u8>> {
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    http.post(request.path(), &[form], request.form().as_bytes())
}

impl VictoriaMetrics {
    /// Asks for the newest row of the first table that has any: an answer that depends on the data.
    fn probe(&self, tables: &[Table]) -> Option<Request> {
        let found = |table: &Table| Some(metricsql::newest(table, self.seen.of(table)?));
        tables.iter().find_map(found)
    }
}

impl Target for VictoriaMetrics {
    fn start(&mut self, dir: &Path) -> Result<()> {
        self.seen = Arc::default();
        if self.settings.url.is_some() {
            let answer = self.http.get("/health");
            answer.context("VictoriaMetrics does not answer")?;
            return Ok(());
        }
        let port = free_port()?;
        let memory = self.settings.memory_bytes;
        let mut program = installed::victoria_metrics(&self.settings.peers, dir, port, memory)?;
        program.cores = self.settings.cores;
        self.http = Http::new(&format!("http://127.0.0.1:{port}"));
        self.dir = dir.join("storage");
        let http = &self.http;
        self.process = Some(Process::start(program, || http.get("/health").is_ok())?);
        Ok(())
    }

    fn facts(&self) -> Facts {
        let version = match &self.settings.url {
            Some(url) => format!("at {url}"),
            None => installed::version(&self.settings.peers, "victoriametrics").unwrap_or_default(),
        };
        Facts {
            version: format!("VictoriaMetrics {version}"),
            path: "line protocol over HTTP; MetricsQL and export over HTTP, answers as JSON"
                .to_owned(),
            durability:
                "none before acknowledgement: rows are in memory for a second or more, and \
                         there is no write-ahead log"
                    .to_owned(),
            notes: "Milliseconds and doubles only; text is kept as 0. Rows sent twice count once \
                    (-dedup.minScrapeInterval=1ms, not the default). No cache of responses. A \
                    question without bounds of time gets those of the data that were written, \
                    because a query needs some; windows at the edge of a range that are not whole \
                    are asked for by queries of their own. Sums and counts of groups are taken in \
                    one pass, and the client divides them for a mean, because an expression that \
                    divides would pass twice. Newest rows are looked for in the last five minutes, \
                    and in all the time only if a device has none there. Rows are put together from their fields by the \
                    client. An instance elsewhere must be empty: nothing is deleted there."
                .to_owned(),
        }
    }

    fn processes(&self) -> Vec<u32> {
        self.process.iter().map(Process::id).collect()
    }

    fn cannot_keep(&self, tables: &[Table]) -> Option<String> {
        // Metrics come into being with their first value; what it could only lose is refused here.
        tables.iter().find_map(|table| {
            if !table.fields.iter().any(metricsql::is_number) {
                Some(format!(
                    "it keeps numbers only, and {} has none",
                    table.name
                ))
            } else if table.tags.len() >= LABELS_MAX {
                Some(format!(
                    "it keeps fewer than {LABELS_MAX} tags, and {} has {}",
                    table.name,
                    table.tags.len()
                ))
            } else {
                None
            }
        })
    }

    fn create(&self, _tables: &[Table]) -> Result<()> {
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
        self.http.get("/internal/force_flush")?;
        self.http.get("/internal/force_merge")?;
        let start = Instant::now();
        // A merge that was asked for may not have begun yet when it is looked for.
        let mut idle = 0;
        while idle < 3 {
            std::thread::sleep(Duration::from_millis(50));
            let merges = answer::merges(&self.http.get("/metrics")?);
            idle = if merges == 0 { idle + 1 } else { 0 };
            ensure!(start.elapsed() < SETTLE_MAX, "merging does not end");
        }
        Ok(())
    }

    fn disk_bytes(&self) -> Result<u64> {
        ensure!(
            self.settings.url.is_none(),
            "the folder of an instance elsewhere cannot be seen"
        );
        folder_bytes(&self.dir)
    }

    fn restart(&mut self, tables: &[Table]) -> Result<Option<Duration>> {
        let probe = self.probe(tables);
        let Some(process) = &mut self.process else {
            return Ok(None);
        };
        let http = &self.http;
        let Some(probe) = probe else {
            return process.restart(|| http.get("/health").is_ok()).map(Some);
        };
        let before = send(http, &probe)?;
        let is_up = || send(http, &probe).is_ok_and(|answer| answer == before);
        process.restart(is_up).map(Some)
    }

    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String> {
        match &question.ask {
            Ask::Select(select) => metricsql::cannot(&tables[select.table], select),
            Ask::Sql(_) => Some("it speaks MetricsQL, not SQL".to_owned()),
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

/// Requests that answer a question together, each with its answer.
type Answered = Vec<(Request, Vec<u8>)>;

impl Session for Connection {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        let table = &self.tables[rows.table];
        let odd = |ns: &&i64| **ns < 0 || **ns % MILLISECOND_NS != 0;
        if let Some(ns) = rows.times.iter().find(odd) {
            bail!("VictoriaMetrics keeps whole milliseconds since 1970; {ns} ns is none");
        }
        self.seen.note(table, rows);
        let style = Style {
            unit_ns: MILLISECOND_NS,
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
        self.http.post("/write?precision=ms", &[], body)?;
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Reply> {
        let Ask::Select(select) = &question.ask else {
            bail!("VictoriaMetrics speaks MetricsQL, not SQL");
        };
        let table = &self.tables[select.table];
        let seen = self.seen.of(table);
        let mut answered: Answered = Vec::new();
        if let Some((request, numbers)) = metricsql::recent(table, select, seen) {
            let body = send(&self.http, &request)?;
            if answer::numbers(&body) == numbers {
                answered.push((request, body));
                return Ok(Reply::Own(Box::new(answered)));
            }
        }
        for request in metricsql::requests(table, select, seen) {
            let body = send(&self.http, &request)?;
            answered.push((request, body));
        }
        Ok(Reply::Own(Box::new(answered)))
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        let (Ask::Select(select), Reply::Own(answered)) = (&question.ask, reply) else {
            bail!("an answer of another target");
        };
        let answered = answered.downcast::<Answered>();
        let answered = answered.map_err(|_| anyhow!("an answer of another target"))?;
        answer::decode(&self.tables[select.table], select, &answered)
    }
}
