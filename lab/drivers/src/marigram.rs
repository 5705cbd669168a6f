//! Marigram's server, by HTTP and by PostgreSQL's protocol: one process, two faces.

mod http;
mod metrics;
pub mod schema;

pub use metrics::figures;

use crate::pg::{Connection, Manner, PgSession};
use crate::process::{Process, Program, free_port};
use crate::sql;
use anyhow::{Context, Result, ensure};
use arrow_array::RecordBatch;
use http::{Client, HttpSession};
use marigram_lab::data::Table;
use marigram_lab::monitor::folder_bytes;
use marigram_lab::question::{Ask, Question};
use marigram_lab::target::{Facts, Kind, Session, Settings, Target, Tuning};
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
    make: |settings| Ok(Box::new(Server::new(settings, Face::Http))),
};

/// Marigram over PostgreSQL's protocol.
pub const POSTGRES: Kind = Kind {
    name: "postgres",
    about: "Marigram's server: binary COPY and SQL over PostgreSQL's protocol",
    peer: false,
    make: |settings| Ok(Box::new(Server::new(settings, Face::Postgres))),
};

/// How clients reach the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Face {
    Http,
    Postgres,
}

struct Server {
    settings: Settings,
    face: Face,
    /// Of HTTP, or the configuration of a PostgreSQL client.
    address: String,
    /// Of HTTP, where the server tells about itself; empty when that is not known.
    told_at: String,
    data: PathBuf,
    process: Option<Process>,
    version: String,
}

/// Runs a statement at `address`, and gives the number of rows of its answer.
fn run(face: Face, address: &str, statement: &str) -> Result<usize> {
    match face {
        Face::Http => {
            let batches = Client::new(address).ask(statement)?;
            Ok(batches.iter().map(RecordBatch::num_rows).sum())
        }
        Face::Postgres => Ok(Connection::open(address)?.rows(statement)?.len()),
    }
}

/// Whether `table` shows a row.
fn has_rows(face: Face, address: &str, table: &Table) -> Result<bool> {
    let probe = format!("SELECT time FROM {} LIMIT 1", table.name);
    Ok(run(face, address, &probe)? > 0)
}

/// A port of loopback that nobody listens on, another than `port`.
fn other_port(port: u16) -> Result<u16> {
    loop {
        let other = free_port()?;
        if other != port {
            return Ok(other);
        }
    }
}

impl Server {
    fn new(settings: &Settings, face: Face) -> Self {
        Self {
            settings: settings.clone(),
            face,
            address: String::new(),
            told_at: String::new(),
            data: PathBuf::new(),
            process: None,
            version: String::new(),
        }
    }

    /// The command of a server with HTTP on `port` and PostgreSQL's protocol, if anybody wants it,
    /// on `postgres`, with its files in `dir`.
    fn program(&self, dir: &Path, port: u16, postgres: Option<u16>) -> Program {
        let http = format!("127.0.0.1:{port}");
        let postgres = postgres.map_or("off".to_owned(), |port| format!("127.0.0.1:{port}"));
        let (binary, data) = (self.settings.marigram.display(), self.data.display());
        let mut line = vec![
            binary.to_string(),
            "serve".to_owned(),
            format!("--data={data}"),
            format!("--http={http}"),
            format!("--postgres={postgres}"),
        ];
        if let Some(bytes) = self.settings.memory_bytes {
            line.push(format!("--memory-limit={bytes}"));
        }
        let settings = self.settings.tuning.server.iter();
        line.extend(settings.map(|(name, value)| format!("--{}={value}", name.replace('_', "-"))));
        Program {
            line,
            environment: Vec::new(),
            folder: dir.to_owned(),
            log: dir.join("server.log"),
            cores: self.settings.cores,
        }
    }

    fn run(&self, statement: &str) -> Result<usize> {
        run(self.face, &self.address, statement).with_context(|| statement.to_owned())
    }
}

impl Target for Server {
    fn start(&mut self, dir: &Path) -> Result<()> {
        if let Some(url) = &self.settings.url {
            self.address.clone_from(url);
            if self.face == Face::Http {
                self.told_at.clone_from(url);
            }
        } else {
            ensure!(
                self.settings.marigram.is_file(),
                "{} is no binary of Marigram's",
                self.settings.marigram.display()
            );
            self.data = dir.join("data");
            fs::create_dir_all(&self.data)?;
            let port = free_port()?;
            let postgres = match self.face {
                Face::Http => None,
                Face::Postgres => Some(other_port(port)?),
            };
            self.told_at = format!("http://127.0.0.1:{port}");
            self.address = match postgres {
                None => self.told_at.clone(),
                Some(port) => format!("host=127.0.0.1 port={port} user=lab dbname=main"),
            };
            let up = || run(self.face, &self.address, "SELECT 1").is_ok();
            self.process = Some(Process::start(self.program(dir, port, postgres), up)?);
        }
        let version: String = match self.face {
            Face::Http => Client::new(&self.address).version()?,
            Face::Postgres => Connection::open(&self.address)?
                .rows("SELECT version()")?
                .first()
                .context("no version")?
                .try_get(0)?,
        };
        // `PostgreSQL 16.6 (Marigram 0.1.0)`: what clients take it for, and what it is.
        let own = version
            .split_once('(')
            .and_then(|(_, own)| own.strip_suffix(')'));
        own.unwrap_or(&version).clone_into(&mut self.version);
        Ok(())
    }

    fn facts(&self) -> Facts {
        let path = match self.face {
            Face::Http => "line protocol over HTTP; SQL over HTTP, answers in Arrow",
            Face::Postgres => "binary COPY; SQL, answers in PostgreSQL's binary form",
        };
        let tags = match self.face {
            Face::Http => "Line protocol's tags are text, integer tags are STRING here. ",
            Face::Postgres => "Times have microseconds on this protocol. ",
        };
        let own = match self.settings.url {
            Some(_) => "Somebody else's instance; its settings are not known here. ",
            None if self.settings.tuning.is_default() => "Default settings. ",
            None => "Default settings but for those that the study chooses. ",
        };
        Facts {
            version: self.version.clone(),
            path: path.to_owned(),
            durability: "fsync before acknowledgement".to_owned(),
            notes: format!("{own}{tags}Settling is FLUSH and COMPACT."),
        }
    }

    fn processes(&self) -> Vec<u32> {
        self.process.iter().map(Process::id).collect()
    }

    fn refuses(&self, tuning: &Tuning) -> Option<String> {
        let fixed = self.settings.url.is_some() && !tuning.server.is_empty();
        fixed.then(|| "it is somebody else's instance, which runs already".to_owned())
    }

    fn tell(&self) -> Result<BTreeMap<String, f64>> {
        if self.told_at.is_empty() {
            return Ok(BTreeMap::new());
        }
        metrics::read(&Client::new(&self.told_at).metrics()?)
    }

    fn create(&self, tables: &[Table]) -> Result<()> {
        for table in tables {
            let options = &self.settings.tuning.table;
            self.run(&schema::create(table, self.face == Face::Postgres, options))?;
        }
        Ok(())
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        Ok(match self.face {
            Face::Http => Box::new(HttpSession::new(Client::new(&self.address), tables)),
            Face::Postgres => {
                let manner = Manner {
                    dialect: &schema::DIALECT,
                    aggregate: sql::aggregate,
                };
                let connection = Connection::open(&self.address)?;
                Box::new(PgSession::new(connection, tables, manner))
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
        ensure!(
            self.settings.url.is_none(),
            "the files of somebody else's instance cannot be seen"
        );
        folder_bytes(&self.data)
    }

    fn restart(&mut self, tables: &[Table]) -> Result<Option<Duration>> {
        let (face, address) = (self.face, self.address.clone());
        let Some(process) = &mut self.process else {
            return Ok(None);
        };
        let mut filled = Vec::new();
        for table in tables {
            if has_rows(face, &address, table)? {
                filled.push(table);
            }
        }
        let shown = |table: &&Table| has_rows(face, &address, table).unwrap_or(false);
        let up = || run(face, &address, "SELECT 1").is_ok() && filled.iter().all(shown);
        process.restart(up).map(Some)
    }

    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String> {
        match &question.ask {
            Ask::Sql(_) => None,
            Ask::Select(select) => sql::cannot(tables.get(select.table)?, select),
        }
    }

    fn stop(&mut self) -> Result<()> {
        self.process = None;
        Ok(())
    }
}
