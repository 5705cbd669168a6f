//! VictoriaMetrics: line protocol in, `MetricsQL` and exports out, all over HTTP.
//!
//! A field of a table is a metric, `table:field`; tags are labels. There are no rows: the client
//! combines the values of one device and time. Times are milliseconds, values are doubles.

mod answer;
mod metricsql;
mod program;

pub use program::PEER;

use crate::line_server::{LineClient, LineServer};
use anyhow::{Result, bail};
use marigram_lab::data::{Rows, Table};
use marigram_lab::line_protocol;
use marigram_lab::question::{Answer, Ask, Question};
use marigram_lab::target::{Kind, Payload, Reply, Session, Settings, Target, TargetFacts};
use marigram_lab_drivers::http::{FORM, Http};
use marigram_lab_drivers::sql;
use marigram_lab_drivers::wait::wait_until;
use metricsql::{MILLISECOND_NS, Request};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

/// The driver, for the command line.
pub const KIND: Kind = Kind {
    name: "victoriametrics",
    about: "VictoriaMetrics: line protocol and MetricsQL over HTTP",
    peer: true,
    make,
};

/// Labels of a series that it stores (`-maxLabelsPerTimeseries`), including the name of the metric.
const LABELS_MAX: usize = 30;

/// The longest wait for merges.
const SETTLE_MAX: Duration = Duration::from_mins(30);

/// How often [`Target::settle`] looks for merges.
const SETTLE_INTERVAL: Duration = Duration::from_millis(50);

struct VictoriaMetrics {
    server: LineServer,
    dir: PathBuf,
}

fn make(settings: &Settings) -> Result<Box<dyn Target>> {
    Ok(Box::new(VictoriaMetrics {
        server: LineServer::new("victoriametrics", "/health", settings)?,
        dir: PathBuf::new(),
    }))
}

fn send(http: &Http, request: &Request) -> Result<Vec<u8>> {
    http.post(request.path(), &[FORM], request.form().as_bytes())
}

impl VictoriaMetrics {
    /// A query for the newest row of the first table that has any: its answer depends on the data.
    fn probe(&self, tables: &[Table]) -> Option<Request> {
        let history = &self.server.history;
        let newest = |table: &Table| Some(metricsql::newest(table, history.table(table)?));
        tables.iter().find_map(newest)
    }
}

impl Target for VictoriaMetrics {
    fn start(&mut self, dir: &Path) -> Result<()> {
        self.dir = dir.join("storage");
        self.server.start(program::server, dir)
    }

    fn facts(&self) -> TargetFacts {
        TargetFacts {
            version: format!("VictoriaMetrics {}", self.server.version("at ")),
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
        self.server.instance.processes()
    }

    fn cannot_keep(&self, tables: &[Table]) -> Option<String> {
        // The first value of a metric creates it, so what would be lost is refused here.
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

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        let client = self.server.client(tables);
        Ok(Box::new(VictoriaMetricsSession(client)))
    }

    fn settle(&self, _tables: &[Table]) -> Result<()> {
        self.server.http.get("/internal/force_flush")?;
        self.server.http.get("/internal/force_merge")?;
        // A merge that was requested may not have begun when it is looked for.
        let mut idle = 0;
        sleep(SETTLE_INTERVAL);
        let late = || "merging does not end".to_owned();
        wait_until(SETTLE_MAX, SETTLE_INTERVAL, late, || {
            let merges = answer::merges(&self.server.http.get("/metrics")?);
            idle = if merges == 0 { idle + 1 } else { 0 };
            Ok(idle >= 3)
        })
    }

    fn disk_bytes(&self) -> Result<u64> {
        self.server.instance.folder_bytes(&self.dir)
    }

    fn restart(&mut self, tables: &[Table]) -> Result<Option<Duration>> {
        let probe = self.probe(tables);
        let probe = probe.map(|request| move |http: &Http| send(http, &request));
        self.server.restart(probe)
    }

    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String> {
        match &question.ask {
            Ask::Select(select) => metricsql::cannot(&tables[select.table], select),
            Ask::Sql(_) => Some("it speaks MetricsQL, not SQL".to_owned()),
        }
    }

    fn stop(&mut self) -> Result<()> {
        self.server.instance.stop()
    }
}

struct VictoriaMetricsSession(LineClient);

/// Requests that answer a question together, each with its answer.
type Answered = Vec<(Request, Vec<u8>)>;

impl Session for VictoriaMetricsSession {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        let table = &self.0.tables[rows.table];
        let odd = |ns: &&i64| **ns < 0 || **ns % MILLISECOND_NS != 0;
        if let Some(ns) = rows.times.iter().find(odd) {
            bail!("VictoriaMetrics keeps whole milliseconds since 1970, not {ns} ns");
        }
        self.0.history.record(table, rows);
        let text = line_protocol::encode(table, rows, MILLISECOND_NS);
        Ok(Payload::from_bytes(rows, text))
    }

    fn write(&mut self, payload: &Payload) -> Result<()> {
        let path = "/write?precision=ms";
        self.0.http.post(path, &[], payload.bytes()?)?;
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Reply> {
        let select = sql::select(question)?;
        let table = &self.0.tables[select.table];
        let history = self.0.history.table(table);
        let mut answered: Answered = Vec::new();
        if let Some((request, numbers)) = metricsql::recent(table, select, history) {
            let body = send(&self.0.http, &request)?;
            if answer::numbers(&body) == numbers {
                answered.push((request, body));
                return Ok(Reply::from_value(answered));
            }
        }
        for request in metricsql::requests(table, select, history) {
            let body = send(&self.0.http, &request)?;
            answered.push((request, body));
        }
        Ok(Reply::from_value(answered))
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        let select = sql::select(question)?;
        let answered: Answered = reply.into_value()?;
        answer::decode(&self.0.tables[select.table], select, &answered)
    }
}
