//! QuestDB: rows by line protocol over HTTP, questions in its SQL over HTTP.

mod question;
mod schema;
mod session;

use crate::installed;
use crate::installed::{QuestDbPorts, questdb};
use anyhow::{Context, Result, ensure};
use marigram_lab::data::Table;
use marigram_lab::monitor::folder_bytes;
use marigram_lab::question::Question;
use marigram_lab::target::{Facts, Kind, Session, Settings, Target};
use marigram_lab_drivers::cells;
use marigram_lab_drivers::http::{Http, percent};
use marigram_lab_drivers::process::{Process, Program, free_port};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// QuestDB.
pub const KIND: Kind = Kind {
    name: "questdb",
    about: "QuestDB: line protocol over HTTP, its SQL over HTTP",
    peer: true,
    make: |settings| {
        ensure!(
            settings.url.is_none(),
            "questdb is started by the laboratory: it takes no address"
        );
        installed::installed(&settings.peers, "questdb")?;
        Ok(Box::new(QuestDb::new(settings)))
    },
};

/// Longest wait for the log to be applied.
const APPLY_MAX: Duration = Duration::from_mins(10);

/// How long an idle writer keeps the space that it allocated ahead, milliseconds.
const WRITER_IDLE_MS: u32 = 500;

/// Longest wait for the writers to give that space back, and for applied logs to be removed.
const SHRINK_MAX: Duration = Duration::from_secs(30);

struct QuestDb {
    settings: Settings,
    running: Option<Running>,
}

struct Running {
    process: Process,
    http: Http,
    data: PathBuf,
    version: String,
}

/// The answer of `/exec`.
#[derive(Deserialize)]
struct Exec {
    #[serde(default)]
    dataset: Vec<Vec<serde_json::Value>>,
}

fn path(sql: &str) -> String {
    format!("/exec?query={}", percent(sql))
}

fn exec(http: &Http, sql: &str) -> Result<Exec> {
    let answer = http.get(&path(sql)).with_context(|| sql.to_owned())?;
    serde_json::from_slice(&answer).context("the answer's JSON")
}

/// The number of rows of `table` that questions see.
fn count(http: &Http, table: &Table) -> Result<u64> {
    let answer = exec(http, &format!("SELECT count() FROM {}", table.name))?;
    let first = answer.dataset.first().and_then(|row| row.first());
    first.and_then(serde_json::Value::as_u64).context("a count")
}

impl QuestDb {
    fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.clone(),
            running: None,
        }
    }

    fn running(&self) -> Result<&Running> {
        self.running.as_ref().context("questdb is not started")
    }

    fn program(&self, data: &Path, ports: QuestDbPorts) -> Result<Program> {
        let mut program = questdb(&self.settings.peers, data, ports)?;
        program.cores = self.settings.cores;
        let idle = WRITER_IDLE_MS.to_string();
        for (name, value) in [
            ("QDB_CAIRO_IDLE_CHECK_INTERVAL", "250"),
            ("QDB_CAIRO_INACTIVE_WRITER_TTL", &idle),
            ("QDB_CAIRO_WAL_INACTIVE_WRITER_TTL", &idle),
            ("QDB_CAIRO_WAL_PURGE_INTERVAL", "250"),
            // Questions about many devices are long.
            ("QDB_HTTP_REQUEST_HEADER_BUFFER_SIZE", "4m"),
        ] {
            program
                .environment
                .push((name.to_owned(), value.to_owned()));
        }
        if let Some(memory) = self.settings.memory_bytes {
            // A quarter for Java's heap, the rest for what QuestDB allocates outside it.
            let native = ("QDB_RAM_USAGE_LIMIT_BYTES", memory - memory / 4);
            program
                .environment
                .push((native.0.to_owned(), native.1.to_string()));
            for argument in program
                .line
                .iter_mut()
                .filter(|text| text.starts_with("-Xmx"))
            {
                *argument = format!("-Xmx{}m", (memory / 4) >> 20);
            }
        }
        Ok(program)
    }
}

impl Running {
    /// Waits until the log of `tables` is applied: rows are visible only then.
    fn apply(&self, tables: &[Table]) -> Result<()> {
        let deadline = Instant::now() + APPLY_MAX;
        let names: Vec<String> = tables
            .iter()
            .map(|table| format!("'{}'", table.name))
            .collect();
        let sql = format!(
            "SELECT name, suspended, writerTxn, sequencerTxn FROM wal_tables() WHERE name IN ({})",
            names.join(", ")
        );
        loop {
            let logs = exec(&self.http, &sql)?.dataset;
            ensure!(
                logs.len() == tables.len(),
                "{} of {} logs",
                logs.len(),
                tables.len()
            );
            for log in &logs {
                ensure!(log[1] == false, "the log of {} is suspended", log[0]);
            }
            if logs.iter().all(|log| log[2] == log[3]) {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "the log is not applied within {APPLY_MAX:?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The tables' folders; the system's own tables hold no rows of ours.
    fn table_folders(&self) -> Result<Vec<PathBuf>> {
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(self.data.join("db"))? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_system = ["_", ".", "sys.", "telemetry"]
                .iter()
                .any(|start| name.starts_with(start));
            if !is_system && entry.path().is_dir() {
                folders.push(entry.path());
            }
        }
        Ok(folders)
    }

    /// Bytes of all tables, and whether some of them are those of a log that is applied and about to
    /// be removed.
    fn table_bytes(&self) -> Result<(u64, bool)> {
        let (mut bytes, mut has_log) = (0, false);
        for folder in self.table_folders()? {
            bytes += folder_bytes(&folder)?;
            for entry in std::fs::read_dir(&folder)? {
                let entry = entry?;
                let is_log = entry.file_name().to_string_lossy().starts_with("wal");
                has_log |= is_log && entry.path().is_dir();
            }
        }
        Ok((bytes, has_log))
    }
}

impl Target for QuestDb {
    fn start(&mut self, dir: &Path) -> Result<()> {
        let data = dir.join("data");
        std::fs::create_dir_all(&data)?;
        let ports = QuestDbPorts {
            http: free_port()?,
            ilp: free_port()?,
            postgres: free_port()?,
            min_http: free_port()?,
        };
        let http = Http::new(&format!("http://127.0.0.1:{}", ports.http));
        let program = self.program(&data, ports)?;
        let process = Process::start(program, || exec(&http, "SELECT 1").is_ok())?;
        let build = exec(&http, "SELECT build()")?;
        let build = build.dataset.first().and_then(|row| row.first()?.as_str());
        let version = build
            .and_then(|text| text.split([':', ',']).nth(1))
            .unwrap_or("QuestDB");
        self.running = Some(Running {
            process,
            version: version.trim().to_owned(),
            http,
            data,
        });
        Ok(())
    }

    fn facts(&self) -> Facts {
        let running = self.running.as_ref();
        Facts {
            version: running
                .map_or("QuestDB", |running| &running.version)
                .to_owned(),
            path: "line protocol over HTTP; its SQL over HTTP (JSON)".to_owned(),
            durability: "written to the log, not synced (default)".to_owned(),
            notes: format!(
                "Tables with WAL and DEDUP UPSERT KEYS(ts, key), partitioned by day. Rows are \
                 visible when the log has been applied, a moment after acknowledgement. Sums of \
                 FLOAT are asked as sum(x::double): the type's own sum is off by a thousandth over \
                 millions of rows. A null BOOLEAN is false. Idle writers give back space allocated \
                 ahead after {WRITER_IDLE_MS} ms, so that the size is that of the rows; system tables are not \
                 counted."
            ),
        }
    }

    fn processes(&self) -> Vec<u32> {
        self.running
            .iter()
            .map(|running| running.process.id())
            .collect()
    }

    fn create(&self, tables: &[Table]) -> Result<()> {
        let http = &self.running()?.http;
        tables.iter().try_for_each(|table| {
            exec(http, &schema::create(table))?;
            Ok(())
        })
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        let base = self.running()?.http.base();
        Ok(Box::new(session::QuestDbSession::new(base, tables)))
    }

    fn settle(&self, tables: &[Table]) -> Result<()> {
        self.running()?.apply(tables)
    }

    fn disk_bytes(&self) -> Result<u64> {
        let running = self.running()?;
        let deadline = Instant::now() + SHRINK_MAX;
        let (mut before, _) = running.table_bytes()?;
        loop {
            std::thread::sleep(Duration::from_millis(u64::from(WRITER_IDLE_MS) + 500));
            let (bytes, has_log) = running.table_bytes()?;
            if (bytes == before && !has_log) || Instant::now() > deadline {
                return Ok(bytes);
            }
            before = bytes;
        }
    }

    fn restart(&mut self, tables: &[Table]) -> Result<Option<Duration>> {
        let running = self.running.as_mut().context("questdb is not started")?;
        let http = &running.http;
        let before = tables.iter().map(|table| count(http, table));
        let before = before.collect::<Result<Vec<_>>>()?;
        let all_there = || {
            let mut counts = tables.iter().zip(&before);
            counts.all(|(table, before)| count(http, table).is_ok_and(|now| now >= *before))
        };
        running.process.restart(all_there).map(Some)
    }

    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String> {
        cells::cannot(tables, question)
    }

    fn stop(&mut self) -> Result<()> {
        self.running = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
