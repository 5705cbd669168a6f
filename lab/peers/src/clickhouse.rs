//! ClickHouse: a server that somebody else runs, over HTTP; rows as `RowBinary`, answers as
//! tab-separated text.

mod row_binary;
mod schema;
mod tab_separated;

pub use schema::{create, optimize, statement};

use anyhow::{Context, Result, bail};
use marigram_lab::data::{Rows, Table};
use marigram_lab::question::{Answer, Question};
use marigram_lab::target::{Body, Facts, Kind, Payload, Reply, Session, Settings, Target};
use marigram_lab_drivers::cells;
use marigram_lab_drivers::http::{Http, percent};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// ClickHouse over HTTP.
pub const KIND: Kind = Kind {
    name: "clickhouse",
    about: "ClickHouse of your own: RowBinary and SQL over HTTP",
    peer: true,
    make,
};

/// The database that belongs to the laboratory.
const DATABASE: &str = "marigram_lab";

/// What a reader must know of the tables, in every form of ClickHouse.
pub const TABLES: &str = "ReplacingMergeTree ORDER BY (key, ts), DoubleDelta and T64 with ZSTD(1); \
                          fields are Nullable. Rows that are sent twice count once when parts have \
                          been merged: settling is OPTIMIZE … FINAL.";

fn make(settings: &Settings) -> Result<Box<dyn Target>> {
    let url = settings.url.as_ref().context(
        "clickhouse needs the address of a server, `--peer clickhouse=http://127.0.0.1:8123`: the \
         package registries have no current one (peer chdb is ClickHouse as a library)",
    )?;
    Ok(Box::new(ClickHouse {
        http: Http::new(url),
        version: String::new(),
    }))
}

struct ClickHouse {
    http: Http,
    version: String,
}

/// Where statements go.
fn path() -> String {
    format!("/?database={DATABASE}&date_time_output_format=iso")
}

impl ClickHouse {
    /// Runs `sql` outside any database.
    fn run(&self, sql: &str) -> Result<String> {
        let answer = self.http.post("/", &[], sql.as_bytes());
        let answer = answer.with_context(|| sql.to_owned())?;
        Ok(String::from_utf8(answer)?.trim_end().to_owned())
    }

    fn run_within(&self, sql: &str) -> Result<()> {
        let answer = self.http.post(&path(), &[], sql.as_bytes());
        answer.with_context(|| sql.to_owned())?;
        Ok(())
    }
}

impl Target for ClickHouse {
    fn start(&mut self, _dir: &Path) -> Result<()> {
        self.version = self.run("SELECT version()")?;
        self.run(&format!("DROP DATABASE IF EXISTS {DATABASE} SYNC"))?;
        self.run(&format!("CREATE DATABASE {DATABASE}"))?;
        Ok(())
    }

    fn facts(&self) -> Facts {
        Facts {
            version: format!("ClickHouse {}", self.version),
            path: "RowBinary over HTTP; SQL over HTTP (tab-separated)".to_owned(),
            durability: "written, not synced (default)".to_owned(),
            notes: format!(
                "{TABLES} The server is somebody else's: its resources are not measured, its \
                 settings are its own. The laboratory uses database {DATABASE} and empties it."
            ),
        }
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn create(&self, tables: &[Table]) -> Result<()> {
        tables
            .iter()
            .try_for_each(|table| self.run_within(&create(table)))
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        Ok(Box::new(ClickHouseSession {
            http: Http::new(self.http.base()),
            optional: tables.iter().map(row_binary::optional_tags).collect(),
            tables: Arc::clone(tables),
        }))
    }

    fn settle(&self, tables: &[Table]) -> Result<()> {
        tables
            .iter()
            .try_for_each(|table| self.run_within(&optimize(table)))
    }

    fn disk_bytes(&self) -> Result<u64> {
        let bytes = self.run(&schema::bytes(DATABASE))?;
        bytes.parse().with_context(|| format!("a size: {bytes:?}"))
    }

    fn restart(&mut self, _tables: &[Table]) -> Result<Option<Duration>> {
        Ok(None)
    }

    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String> {
        cells::cannot(tables, question)
    }

    fn stop(&mut self) -> Result<()> {
        self.run(&format!("DROP DATABASE IF EXISTS {DATABASE} SYNC"))?;
        Ok(())
    }
}

struct ClickHouseSession {
    http: Http,
    tables: Arc<[Table]>,
    /// By table, which tags may be missing.
    optional: Vec<Vec<bool>>,
}

/// A batch and where it goes.
struct Batch {
    path: String,
    rows: Vec<u8>,
}

impl Session for ClickHouseSession {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        let table = &self.tables[rows.table];
        let sql = format!("INSERT INTO {} FORMAT RowBinary", table.name);
        let batch = Batch {
            path: format!("{}&query={}", path(), percent(&sql)),
            rows: row_binary::encode(table, &self.optional[rows.table], rows)?,
        };
        Ok(Payload {
            rows: rows.len(),
            points: rows.points(),
            body: Body::Own(Box::new(batch)),
        })
    }

    fn write(&mut self, payload: &Payload) -> Result<()> {
        let batch: Option<&Batch> = match &payload.body {
            Body::Own(own) => own.downcast_ref(),
            Body::Bytes(_) => None,
        };
        let batch = batch.context("a payload of another driver")?;
        self.http.post(&batch.path, &[], &batch.rows)?;
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Reply> {
        let select = cells::select(question)?;
        let sql = statement(&self.tables[select.table], select);
        let answer = self.http.post(&path(), &[], sql.as_bytes());
        Ok(Reply::Bytes(answer.with_context(|| sql)?))
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        let Reply::Bytes(bytes) = reply else {
            bail!("a reply of another driver");
        };
        let select = cells::select(question)?;
        tab_separated::decode(&bytes, &cells::kinds(&self.tables[select.table], select))
    }
}

#[cfg(test)]
mod tests;
