//! PostgreSQL, plain and with the extension TimescaleDB.
//!
//! Plain: a table with an index on (key, time). TimescaleDB: a hypertable in chunks of a day,
//! compressed by series when it settles.

mod cluster;
mod peer;
mod schema;

pub use peer::PEER;

use anyhow::{Context, Result};
use cluster::{Cluster, LAB_USER};
use marigram_lab::data::Table;
use marigram_lab::question::Question;
use marigram_lab::target::{Kind, Session, Settings, Target, TargetFacts};
use marigram_lab_drivers::instance::{Instance, no_less};
use marigram_lab_drivers::pg::{Connection, PgSession};
use marigram_lab_drivers::process::{Program, free_port};
use marigram_lab_drivers::sql;
use procfs::Current;
use schema::Flavour;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Plain PostgreSQL.
pub const POSTGRESQL: Kind = Kind {
    name: "postgresql",
    about: "PostgreSQL: tables with an index on (device, time), binary COPY",
    peer: true,
    make: |settings| Ok(Box::new(PostgresServer::new(settings, Flavour::Plain))),
};

/// PostgreSQL with TimescaleDB.
pub const TIMESCALEDB: Kind = Kind {
    name: "timescaledb",
    about: "TimescaleDB on PostgreSQL: compressed hypertables, binary COPY",
    peer: true,
    make: |settings| Ok(Box::new(PostgresServer::new(settings, Flavour::Timescale))),
};

struct PostgresServer {
    instance: Instance,
    flavour: Flavour,
    /// Configuration of a client.
    address: String,
    /// PostgreSQL's memory in a process of the laboratory's, MiB.
    shared_buffers_mb: u64,
    version: String,
    durability: String,
}

impl PostgresServer {
    fn new(settings: &Settings, flavour: Flavour) -> Self {
        Self {
            instance: Instance::new(settings),
            flavour,
            address: String::new(),
            shared_buffers_mb: 0,
            version: String::new(),
            durability: String::new(),
        }
    }

    fn connection(&self) -> Result<Connection> {
        Connection::open(&self.address)
    }

    /// A server on a free port, with a new cluster in `dir`.
    fn program(&mut self, dir: &Path) -> Result<Program> {
        let settings = self.instance.settings();
        let cluster = Cluster::find(&settings.peers, dir, "data")?;
        let extension = self.flavour.extension();
        if let Some(name) = extension {
            cluster.check_extension(name)?;
        }
        cluster.init(LAB_USER)?;
        let memory = match settings.memory_bytes {
            Some(bytes) => bytes,
            None => procfs::Meminfo::current()?.mem_total,
        };
        // A quarter of the memory, as PostgreSQL's manual recommends for a server.
        self.shared_buffers_mb = (memory >> 22).max(1);
        let mut options = vec![
            format!("shared_buffers={}MB", self.shared_buffers_mb),
            "max_wal_size=4GB".to_owned(),
            "max_connections=500".to_owned(),
        ];
        options.extend(extension.map(|name| format!("shared_preload_libraries={name}")));
        let port = free_port()?;
        self.address = format!("host=127.0.0.1 port={port} user={LAB_USER} dbname=postgres");
        Ok(cluster.program(port, &options, &dir.join("server.log")))
    }

    fn read_version(&self, connection: &Connection) -> Result<String> {
        let version: String = connection.value("SHOW server_version")?;
        let version = format!("PostgreSQL {version}");
        if self.flavour == Flavour::Plain {
            return Ok(version);
        }
        connection
            .run("CREATE EXTENSION IF NOT EXISTS timescaledb")
            .context("TimescaleDB is not installed in this PostgreSQL")?;
        let query = "SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'";
        let extension: String = connection.value(query)?;
        Ok(format!("TimescaleDB {extension} on {version}"))
    }
}

/// What comes before an acknowledgement, from the server's settings.
fn read_durability(connection: &Connection) -> Result<String> {
    let fsync: String = connection.value("SHOW fsync")?;
    let commit: String = connection.value("SHOW synchronous_commit")?;
    Ok(if (fsync.as_str(), commit.as_str()) == ("on", "on") {
        "fsync before acknowledgement".to_owned()
    } else {
        format!("written, not always synced: fsync = {fsync}, synchronous_commit = {commit}")
    })
}

impl Target for PostgresServer {
    fn start(&mut self, dir: &Path) -> Result<()> {
        if let Some(url) = self.instance.url() {
            self.address = url.to_owned();
        } else {
            let program = self.program(dir)?;
            let address = &self.address;
            let is_up = || Connection::open(address).is_ok_and(|it| it.run("SELECT 1").is_ok());
            self.instance.start(program, is_up)?;
        }
        let connection = self.connection()?;
        self.version = self.read_version(&connection)?;
        self.durability = read_durability(&connection)?;
        Ok(())
    }

    fn facts(&self) -> TargetFacts {
        let settings = match self.instance.url() {
            None => format!(
                "shared_buffers a quarter of the memory ({} MB), max_wal_size 4 GB.",
                self.shared_buffers_mb
            ),
            Some(_) => "Somebody else's instance; its settings are not known here.".to_owned(),
        };
        TargetFacts {
            version: self.version.clone(),
            path: "binary COPY; SQL, answers in PostgreSQL's binary form".to_owned(),
            durability: self.durability.clone(),
            notes: format!("{settings} {}", self.flavour.notes()),
        }
    }

    fn processes(&self) -> Vec<u32> {
        self.instance.processes()
    }

    fn create(&self, tables: &[Table]) -> Result<()> {
        let connection = self.connection()?;
        tables
            .iter()
            .try_for_each(|table| connection.run(&self.flavour.create(table)))
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        let dialect = self.flavour.dialect();
        let session = PgSession::new(self.connection()?, tables, dialect);
        Ok(Box::new(session))
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
        let bytes: i64 = self.connection()?.value(schema::DISK_BYTES)?;
        Ok(bytes.max(0) as u64)
    }

    fn restart(&mut self, tables: &[Table]) -> Result<Option<Duration>> {
        let address = &self.address;
        let filled_tables = || Connection::open(address)?.have_rows(tables);
        self.instance.restart(filled_tables, no_less)
    }

    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String> {
        sql::cannot_ask(tables, question)
    }

    fn stop(&mut self) -> Result<()> {
        self.instance.stop()
    }
}
