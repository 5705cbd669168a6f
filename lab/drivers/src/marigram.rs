//! Marigram's server, by HTTP and by PostgreSQL's protocol.

mod http;
mod metrics;
pub mod schema;

pub use metrics::figures;

use crate::instance::{Instance, no_less};
use crate::pg::{Connection, PgSession};
use crate::process::{Program, free_port};
use anyhow::{Context, Result, ensure};
use arrow_array::RecordBatch;
use http::{HttpClient, HttpSession};
use marigram_lab::data::Table;
use marigram_lab::question::Question;
use marigram_lab::target::{Kind, Session, Settings, Target, TargetFacts, Tuning};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Marigram over HTTP.
pub const HTTP: Kind = Kind {
    name: "http",
    about: "Marigram's server: line protocol and SQL over HTTP",
    peer: false,
    make: |settings| Ok(Box::new(MarigramServer::new(settings, Interface::Http))),
};

/// Marigram over PostgreSQL's protocol.
pub const POSTGRES: Kind = Kind {
    name: "postgres",
    about: "Marigram's server: binary COPY and SQL over PostgreSQL's protocol",
    peer: false,
    make: |settings| Ok(Box::new(MarigramServer::new(settings, Interface::Postgres))),
};

/// How clients reach the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Interface {
    Http,
    Postgres,
}

struct MarigramServer {
    instance: Instance,
    interface: Interface,
    /// Of HTTP, or the configuration of a PostgreSQL client.
    address: String,
    /// The HTTP address of the server's metrics; empty if it is not known.
    metrics_address: String,
    data: PathBuf,
    version: String,
}

/// Runs a statement at `address`, and returns the number of rows of its answer.
fn run(interface: Interface, address: &str, statement: &str) -> Result<usize> {
    match interface {
        Interface::Http => {
            let batches = HttpClient::new(address).ask(statement)?;
            Ok(batches.iter().map(RecordBatch::num_rows).sum())
        }
        Interface::Postgres => Ok(Connection::open(address)?.rows(statement)?.len()),
    }
}

/// A port of loopback that nobody listens on, and that differs from `port`.
fn other_port(port: u16) -> Result<u16> {
    loop {
        let other = free_port()?;
        if other != port {
            return Ok(other);
        }
    }
}

impl MarigramServer {
    fn new(settings: &Settings, interface: Interface) -> Self {
        Self {
            instance: Instance::new(settings),
            interface,
            address: String::new(),
            metrics_address: String::new(),
            data: PathBuf::new(),
            version: String::new(),
        }
    }

    /// The command of a server with HTTP on `port`, with PostgreSQL's protocol on port `postgres` or
    /// without it, and with its files in `dir`.
    fn program(&self, dir: &Path, port: u16, postgres: Option<u16>) -> Program {
        let settings = self.instance.settings();
        let postgres = postgres.map_or("off".to_owned(), |port| format!("127.0.0.1:{port}"));
        let mut line = vec![
            settings.marigram.display().to_string(),
            "serve".to_owned(),
            format!("--data={}", self.data.display()),
            format!("--http=127.0.0.1:{port}"),
            format!("--postgres={postgres}"),
        ];
        line.extend(
            settings
                .memory_bytes
                .map(|bytes| format!("--memory-limit={bytes}")),
        );
        let options = settings.tuning.server.iter();
        line.extend(options.map(|(name, value)| format!("--{}={value}", name.replace('_', "-"))));
        Program::new(line, dir, dir.join("server.log"))
    }

    fn run(&self, statement: &str) -> Result<usize> {
        run(self.interface, &self.address, statement).with_context(|| statement.to_owned())
    }

    /// Starts a process on free ports, with its files in `dir`.
    fn start_process(&mut self, dir: &Path) -> Result<()> {
        let binary = &self.instance.settings().marigram;
        ensure!(
            binary.is_file(),
            "{} is no binary of Marigram's",
            binary.display()
        );
        self.data = dir.join("data");
        fs::create_dir_all(&self.data)?;
        let port = free_port()?;
        self.metrics_address = format!("http://127.0.0.1:{port}");
        let postgres = match self.interface {
            Interface::Http => {
                self.address.clone_from(&self.metrics_address);
                None
            }
            Interface::Postgres => {
                let port = other_port(port)?;
                self.address = format!("host=127.0.0.1 port={port} user=lab dbname=main");
                Some(port)
            }
        };
        let program = self.program(dir, port, postgres);
        let (interface, address) = (self.interface, &self.address);
        let is_up = || run(interface, address, "SELECT 1").is_ok();
        self.instance.start(program, is_up)
    }

    fn read_version(&self) -> Result<String> {
        let version = match self.interface {
            Interface::Http => HttpClient::new(&self.address).version()?,
            Interface::Postgres => Connection::open(&self.address)?.value("SELECT version()")?,
        };
        // `PostgreSQL 16.6 (Marigram 0.1.0)`: what PostgreSQL's clients expect, and the product.
        let own = version
            .split_once('(')
            .and_then(|(_, own)| own.strip_suffix(')'));
        Ok(own.unwrap_or(&version).to_owned())
    }
}

impl Target for MarigramServer {
    fn start(&mut self, dir: &Path) -> Result<()> {
        match self.instance.url() {
            None => self.start_process(dir)?,
            Some(url) => {
                self.address = url.to_owned();
                if self.interface == Interface::Http {
                    self.metrics_address = url.to_owned();
                }
            }
        }
        self.version = self.read_version()?;
        Ok(())
    }

    fn facts(&self) -> TargetFacts {
        let path = match self.interface {
            Interface::Http => "line protocol over HTTP; SQL over HTTP, answers in Arrow",
            Interface::Postgres => "binary COPY; SQL, answers in PostgreSQL's binary form",
        };
        let tags = match self.interface {
            Interface::Http => "Line protocol's tags are text, integer tags are STRING here. ",
            Interface::Postgres => "Times have microseconds on this protocol. ",
        };
        let own = match self.instance.url() {
            Some(_) => "Somebody else's instance; its settings are not known here. ",
            None if self.instance.settings().tuning.is_default() => "Default settings. ",
            None => "Default settings but for those that the study chooses. ",
        };
        TargetFacts {
            version: self.version.clone(),
            path: path.to_owned(),
            durability: "fsync before acknowledgement".to_owned(),
            notes: format!("{own}{tags}Settling is FLUSH and COMPACT."),
        }
    }

    fn processes(&self) -> Vec<u32> {
        self.instance.processes()
    }

    fn refuses(&self, tuning: &Tuning) -> Option<String> {
        let fixed = self.instance.url().is_some() && !tuning.server.is_empty();
        fixed.then(|| "it is somebody else's instance, which runs already".to_owned())
    }

    fn tell(&self) -> Result<BTreeMap<String, f64>> {
        if self.metrics_address.is_empty() {
            return Ok(BTreeMap::new());
        }
        metrics::parse(&HttpClient::new(&self.metrics_address).metrics()?)
    }

    fn create(&self, tables: &[Table]) -> Result<()> {
        for table in tables {
            let options = &self.instance.settings().tuning.table;
            self.run(&schema::create(
                table,
                self.interface == Interface::Postgres,
                options,
            ))?;
        }
        Ok(())
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        Ok(match self.interface {
            Interface::Http => Box::new(HttpSession::new(HttpClient::new(&self.address), tables)),
            Interface::Postgres => {
                let connection = Connection::open(&self.address)?;
                Box::new(PgSession::new(connection, tables, &schema::DIALECT))
            }
        })
    }

    fn settle(&self, _tables: &[Table]) -> Result<()> {
        self.flush()?;
        self.run("COMPACT")?;
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.run("FLUSH")?;
        Ok(())
    }

    fn disk_bytes(&self) -> Result<u64> {
        self.instance.folder_bytes(&self.data)
    }

    fn restart(&mut self, tables: &[Table]) -> Result<Option<Duration>> {
        let (interface, address) = (self.interface, &self.address);
        let has_rows = |table: &Table| {
            let probe = format!("SELECT time FROM {} LIMIT 1", table.name);
            Ok(run(interface, address, &probe)? > 0)
        };
        let filled_tables = || {
            run(interface, address, "SELECT 1")?;
            tables.iter().map(has_rows).collect::<Result<Vec<bool>>>()
        };
        self.instance.restart(filled_tables, no_less)
    }

    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String> {
        schema::cannot(tables, question)
    }

    fn stop(&mut self) -> Result<()> {
        self.instance.stop()
    }
}
