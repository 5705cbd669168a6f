//! QuestDB: line protocol in, its SQL out, both over HTTP.

mod program;
mod question;
mod schema;
mod session;

pub use program::PEER;

use crate::install;
use anyhow::{Context, Result, ensure};
use marigram_lab::data::Table;
use marigram_lab::monitor::folder_bytes;
use marigram_lab::question::Question;
use marigram_lab::target::{Kind, Session, Settings, Target, TargetFacts};
use marigram_lab_drivers::http::{Http, percent};
use marigram_lab_drivers::instance::{Instance, no_less};
use marigram_lab_drivers::process::{Program, free_port};
use marigram_lab_drivers::sql;
use marigram_lab_drivers::wait::wait_until;
use program::QuestDbPorts;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The driver, for the command line.
pub const KIND: Kind = Kind {
    name: "questdb",
    about: "QuestDB: line protocol over HTTP, its SQL over HTTP",
    peer: true,
    make: |settings| {
        ensure!(
            settings.url.is_none(),
            "questdb is started by the laboratory: it takes no address"
        );
        install::installed(&settings.peers, "questdb")?;
        Ok(Box::new(QuestDb::new(settings)))
    },
};

/// The longest wait for the log to be applied.
const APPLY_MAX: Duration = Duration::from_mins(10);

/// How long an idle writer keeps space that it allocated ahead, milliseconds.
const WRITER_IDLE_MS: u32 = 500;

/// The longest wait until writers give that space back and applied logs are removed.
const SHRINK_MAX: Duration = Duration::from_secs(30);

struct QuestDb {
    instance: Instance,
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

/// The number of rows of `table` that queries see.
fn count(http: &Http, table: &Table) -> Result<u64> {
    let answer = exec(http, &format!("SELECT count() FROM {}", table.name))?;
    let first = answer.dataset.first().and_then(|row| row.first());
    first.and_then(serde_json::Value::as_u64).context("a count")
}

impl QuestDb {
    fn new(settings: &Settings) -> Self {
        Self {
            instance: Instance::new(settings),
            http: Http::new(""),
            data: PathBuf::new(),
            version: "QuestDB".to_owned(),
        }
    }

    fn program(&self, ports: QuestDbPorts) -> Result<Program> {
        let settings = self.instance.settings();
        let mut program = program::server(&settings.peers, &self.data, ports)?;
        let idle = WRITER_IDLE_MS.to_string();
        let environment = [
            ("QDB_CAIRO_IDLE_CHECK_INTERVAL", "250"),
            ("QDB_CAIRO_INACTIVE_WRITER_TTL", &idle),
            ("QDB_CAIRO_WAL_INACTIVE_WRITER_TTL", &idle),
            ("QDB_CAIRO_WAL_PURGE_INTERVAL", "250"),
            // Questions about many devices are long.
            ("QDB_HTTP_REQUEST_HEADER_BUFFER_SIZE", "4m"),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        program.environment.extend(environment);
        if let Some(memory) = settings.memory_bytes {
            // A quarter for Java's heap, the rest for what QuestDB allocates outside it.
            let native = (memory - memory / 4).to_string();
            let limit = ("QDB_RAM_USAGE_LIMIT_BYTES".to_owned(), native);
            program.environment.push(limit);
            let heap = program
                .line
                .iter_mut()
                .filter(|text| text.starts_with("-Xmx"));
            for argument in heap {
                *argument = format!("-Xmx{}m", (memory / 4) >> 20);
            }
        }
        Ok(program)
    }

    /// Waits until the logs of `tables` are applied, because rows are visible only then.
    fn apply(&self, tables: &[Table]) -> Result<()> {
        let names = tables.iter().map(|table| format!("'{}'", table.name));
        let names: Vec<String> = names.collect();
        let sql = format!(
            "SELECT name, suspended, writerTxn, sequencerTxn FROM wal_tables() WHERE name IN ({})",
            names.join(", ")
        );
        let late = || format!("the log is not applied within {APPLY_MAX:?}");
        wait_until(APPLY_MAX, Duration::from_millis(5), late, || {
            let logs = exec(&self.http, &sql)?.dataset;
            let (found, expected) = (logs.len(), tables.len());
            ensure!(found == expected, "{found} of {expected} logs");
            for log in &logs {
                ensure!(log[1] == false, "the log of {} is suspended", log[0]);
            }
            Ok(logs.iter().all(|log| log[2] == log[3]))
        })
    }

    /// The folders of all tables but QuestDB's own.
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

    /// Bytes of all tables, and whether they include a log that is applied and about to be removed.
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
        self.data = dir.join("data");
        std::fs::create_dir_all(&self.data)?;
        let ports = QuestDbPorts {
            http: free_port()?,
            ilp: free_port()?,
            postgres: free_port()?,
            min_http: free_port()?,
        };
        self.http = Http::new(&format!("http://127.0.0.1:{}", ports.http));
        let (program, http) = (self.program(ports)?, &self.http);
        self.instance
            .start(program, || exec(http, "SELECT 1").is_ok())?;
        let build = exec(&self.http, "SELECT build()")?;
        let build = build.dataset.first().and_then(|row| row.first()?.as_str());
        if let Some(version) = build.and_then(|text| text.split([':', ',']).nth(1)) {
            version.trim().clone_into(&mut self.version);
        }
        Ok(())
    }

    fn facts(&self) -> TargetFacts {
        TargetFacts {
            version: self.version.clone(),
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
        self.instance.processes()
    }

    fn create(&self, tables: &[Table]) -> Result<()> {
        tables.iter().try_for_each(|table| {
            exec(&self.http, &schema::create(table))?;
            Ok(())
        })
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        let session = session::QuestDbSession::new(self.http.base(), tables);
        Ok(Box::new(session))
    }

    fn settle(&self, tables: &[Table]) -> Result<()> {
        self.apply(tables)
    }

    fn disk_bytes(&self) -> Result<u64> {
        let deadline = Instant::now() + SHRINK_MAX;
        let (mut before, _) = self.table_bytes()?;
        loop {
            std::thread::sleep(Duration::from_millis(u64::from(WRITER_IDLE_MS) + 500));
            let (bytes, has_log) = self.table_bytes()?;
            if (bytes == before && !has_log) || Instant::now() > deadline {
                return Ok(bytes);
            }
            before = bytes;
        }
    }

    fn restart(&mut self, tables: &[Table]) -> Result<Option<Duration>> {
        let http = &self.http;
        let counts = || tables.iter().map(|table| count(http, table)).collect();
        self.instance.restart::<Vec<u64>>(counts, no_less)
    }

    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String> {
        sql::cannot_ask(tables, question)
    }

    fn stop(&mut self) -> Result<()> {
        self.instance.stop()
    }
}

#[cfg(test)]
mod tests;
