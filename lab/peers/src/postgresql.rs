//! PostgreSQL, plain and with the extension TimescaleDB.
//!
//! Plain: a table with an index on (key, time). TimescaleDB: a hypertable in chunks of a day,
//! compressed by series when it settles.

mod cluster;
mod schema;

use anyhow::{Context, Result};
use cluster::Cluster;
use marigram_lab::data::Table;
use marigram_lab::question::{Ask, Question};
use marigram_lab::target::{Facts, Kind, Session, Settings, Target};
use marigram_lab_drivers::pg::{Connection, Manner, PgSession};
use marigram_lab_drivers::process::Process;
use marigram_lab_drivers::sql;
use schema::Flavour;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Plain PostgreSQL.
pub const POSTGRESQL: Kind = Kind {
    name: "postgresql",
    about: "PostgreSQL: tables with an index on (device, time), binary COPY",
    peer: true,
    make: |settings| Ok(Box::new(Server::new(settings, Flavour::Plain))),
};

/// PostgreSQL with TimescaleDB.
pub const TIMESCALEDB: Kind = Kind {
    name: "timescaledb",
    about: "TimescaleDB on PostgreSQL: compressed hypertables, binary COPY",
    peer: true,
    make: |settings| Ok(Box::new(Server::new(settings, Flavour::Timescale))),
};

struct Server {
    settings: Settings,
    flavour: Flavour,
    /// Configuration of a client.
    address: String,
    cluster: Option<Cluster>,
    process: Option<Process>,
    version: String,
    durability: String,
}

/// The first value of an answer of one row, as text.
fn text(connection: &Connection, statement: &str) -> Result<String> {
    let rows = connection.rows(statement)?;
    let row = rows.first().context("an answer without rows")?;
    Ok(row.try_get(0)?)
}

fn answers(address: &str) -> bool {
    Connection::open(address).is_ok_and(|connection| connection.rows("SELECT 1").is_ok())
}

/// Those of `tables` that show a row.
fn filled<'a>(address: &str, tables: &'a [Table]) -> Result<Vec<&'a Table>> {
    let connection = Connection::open(address)?;
    let mut filled = Vec::new();
    for table in tables {
        let probe = format!("SELECT time FROM {} LIMIT 1", table.name);
        if !connection.rows(&probe)?.is_empty() {
            filled.push(table);
        }
    }
    Ok(filled)
}

impl Server {
    fn new(settings: &Settings, flavour: Flavour) -> Self {
        Self {
            settings: settings.clone(),
            flavour,
            address: String::new(),
            cluster: None,
            process: None,
            version: String::new(),
            durability: String::new(),
        }
    }

    fn connection(&self) -> Result<Connection> {
        Connection::open(&self.address)
    }
}

impl Target for Server {
    fn start(&mut self, dir: &Path) -> Result<()> {
        if let Some(url) = &self.settings.url {
            self.address.clone_from(url);
        } else {
            let extension = match self.flavour {
                Flavour::Plain => None,
                Flavour::Timescale => Some("timescaledb"),
            };
            let cluster = Cluster::make(dir, &self.settings, extension)?;
            self.address = cluster.address();
            let up = || answers(&self.address);
            self.process = Some(Process::start(cluster.program().clone(), up)?);
            self.cluster = Some(cluster);
        }
        let connection = self.connection()?;
        self.version = format!("PostgreSQL {}", text(&connection, "SHOW server_version")?);
        if self.flavour == Flavour::Timescale {
            connection
                .run("CREATE EXTENSION IF NOT EXISTS timescaledb")
                .context("TimescaleDB is not installed in this PostgreSQL")?;
            let version = "SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'";
            let version = text(&connection, version)?;
            self.version = format!("TimescaleDB {version} on {}", self.version);
        }
        let fsync = text(&connection, "SHOW fsync")?;
        let commit = text(&connection, "SHOW synchronous_commit")?;
        self.durability = if (fsync.as_str(), commit.as_str()) == ("on", "on") {
            "fsync before acknowledgement".to_owned()
        } else {
            format!("written, not always synced: fsync = {fsync}, synchronous_commit = {commit}")
        };
        Ok(())
    }

    fn facts(&self) -> Facts {
        let settings = match &self.cluster {
            Some(cluster) => cluster.notes(),
            None => "Somebody else's instance; its settings are not known here.".to_owned(),
        };
        Facts {
            version: self.version.clone(),
            path: "binary COPY; SQL, answers in PostgreSQL's binary form".to_owned(),
            durability: self.durability.clone(),
            notes: format!("{settings} {}", self.flavour.notes()),
        }
    }

    fn processes(&self) -> Vec<u32> {
        self.process.iter().map(Process::id).collect()
    }

    fn create(&self, tables: &[Table]) -> Result<()> {
        let connection = self.connection()?;
        tables
            .iter()
            .try_for_each(|table| connection.run(&self.flavour.create(table)))
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        let manner = Manner {
            dialect: self.flavour.dialect(),
            aggregate: schema::aggregate,
        };
        Ok(Box::new(PgSession::new(self.connection()?, tables, manner)))
    }

    fn settle(&self, tables: &[Table]) -> Result<()> {
        let connection = self.connection()?;
        for table in tables {
            for statement in self.flavour.settle(table) {
                connection.run(&statement)?;
            }
        }
        connection.run("CHECKPOINT")
    }

    fn disk_bytes(&self) -> Result<u64> {
        let bytes: i64 = self
            .connection()?
            .rows(schema::DISK_BYTES)?
            .first()
            .context("an answer without rows")?
            .try_get(0)?;
        Ok(bytes.max(0) as u64)
    }

    fn restart(&mut self, tables: &[Table]) -> Result<Option<Duration>> {
        let (address, Some(process)) = (&self.address, &mut self.process) else {
            return Ok(None);
        };
        let before = filled(address, tables)?;
        cluster::kill(process.id())?;
        let up = || filled(address, tables).is_ok_and(|now| now.len() >= before.len());
        process.restart(up).map(Some)
    }

    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String> {
        match &question.ask {
            Ask::Sql(_) => Some("asked in Marigram's SQL".to_owned()),
            Ask::Select(select) => sql::cannot(tables.get(select.table)?, select),
        }
    }

    fn stop(&mut self) -> Result<()> {
        if let Some(process) = self.process.take() {
            cluster::kill(process.id())?;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Whatever could not be ended now ends by itself when it misses its parent.
        let _ = self.stop();
    }
}
