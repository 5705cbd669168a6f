//! ClickHouse: a server that somebody else runs, over HTTP; rows as `RowBinary`, answers as
//! tab-separated text.

mod row_binary;
mod schema;
mod tab_separated;

pub use schema::{DIALECT, create, optimize};

use anyhow::{Context, Result};
use marigram_lab::data::{Rows, Table};
use marigram_lab::question::{Answer, Question};
use marigram_lab::target::{Kind, Payload, Reply, Session, Settings, Target, TargetFacts};
use marigram_lab_drivers::cells;
use marigram_lab_drivers::http::{Http, percent};
use marigram_lab_drivers::sql;
use std::path::Path;
use std::sync::Arc;

/// The driver, for the command line.
pub const KIND: Kind = Kind {
    name: "clickhouse",
    about: "ClickHouse of your own: RowBinary and SQL over HTTP",
    peer: true,
    make,
};

/// The laboratory's own database.
const DATABASE: &str = "marigram_lab";

/// For [`TargetFacts::notes`]: the tables, in every form of ClickHouse.
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

/// The path for statements.
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

    /// Runs `sql` in the laboratory's database.
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

    fn facts(&self) -> TargetFacts {
        TargetFacts {
            version: format!("ClickHouse {}", self.version),
            path: "RowBinary over HTTP; SQL over HTTP (tab-separated)".to_owned(),
            durability: "written, not synced (default)".to_owned(),
            notes: format!(
                "{TABLES} The server is somebody else's: its resources are not measured, its \
                 settings are its own. The laboratory uses database {DATABASE} and empties it."
            ),
        }
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

    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String> {
        sql::cannot_ask(tables, question)
    }

    fn stop(&mut self) -> Result<()> {
        self.run(&format!("DROP DATABASE IF EXISTS {DATABASE} SYNC"))?;
        Ok(())
    }
}

struct ClickHouseSession {
    http: Http,
    tables: Arc<[Table]>,
    /// Which tags of each table may be missing.
    optional: Vec<Vec<bool>>,
}

/// A batch and the path for it.
struct InsertBatch {
    path: String,
    rows: Vec<u8>,
}

impl Session for ClickHouseSession {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        let table = &self.tables[rows.table];
        let sql = format!("INSERT INTO {} FORMAT RowBinary", table.name);
        let batch = InsertBatch {
            path: format!("{}&query={}", path(), percent(&sql)),
            rows: row_binary::encode(table, &self.optional[rows.table], rows)?,
        };
        Ok(Payload::from_value(rows, batch))
    }

    fn write(&mut self, payload: &Payload) -> Result<()> {
        let batch: &InsertBatch = payload.value()?;
        self.http.post(&batch.path, &[], &batch.rows)?;
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Reply> {
        let select = sql::select(question)?;
        let sql = sql::statement(&DIALECT, &self.tables[select.table], select);
        let answer = self.http.post(&path(), &[], sql.as_bytes());
        Ok(Reply::Bytes(answer.with_context(|| sql)?))
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        let select = sql::select(question)?;
        let kinds = cells::kinds(&self.tables[select.table], select);
        tab_separated::decode(&reply.into_bytes()?, &kinds)
    }
}

#[cfg(test)]
mod tests;
