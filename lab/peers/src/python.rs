//! Databases that are Python packages: each runs in a child process, which is started, killed and
//! measured as a server is.
//!
//! The child (`python/child.py`, which describes what goes over its socket) hands batches to the
//! package as Arrow tables, and keeps answers as Arrow tables: that is where such a database's users
//! have them, so the clock stops there. The laboratory fetches an answer afterwards to look at it.

mod batch;
mod link;

use crate::installed;
use anyhow::{Context, Result, bail, ensure};
use link::Link;
use marigram_lab::data::{Rows, Table};
use marigram_lab::monitor::folder_bytes;
use marigram_lab::question::{Answer, Question, Select};
use marigram_lab::target::{Body, Facts, Payload, Reply, Session, Settings, Target};
use marigram_lab_drivers::cells;
use marigram_lab_drivers::process::{Process, Program};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The child's program.
const CHILD: &str = include_str!("python/child.py");

/// What holds for all of them.
const NOTES: &str = "In process (Python): batches reach that process through a socket, which is \
                     timed; answers stay in it, where its users have them.";

/// What is a package's own.
pub struct Backend {
    /// The package, and the child's name for it.
    pub package: &'static str,
    /// The product, without version.
    pub product: &'static str,
    /// For [`Facts::path`].
    pub path: &'static str,
    /// For [`Facts::durability`].
    pub durability: &'static str,
    /// For [`Facts::notes`], added to what holds for all.
    pub notes: &'static [&'static str],
    /// `CREATE TABLE …` with the columns of [`batch`]: the tags, the time `ts`, the fields.
    pub create: fn(&Table) -> String,
    /// The statement for a question.
    pub statement: fn(&Table, &Select) -> String,
    /// Flushes and merges.
    pub settle: fn(&[Table]) -> Vec<String>,
    /// How its size is found.
    pub size: Size,
}

/// How a package's bytes on disk are found.
#[derive(Clone, Copy)]
pub enum Size {
    /// All files of its folder.
    Folder,
    /// It knows itself: a query for one integer.
    Sql(&'static str),
}

/// A package in a child process.
pub struct Embedded {
    backend: &'static Backend,
    settings: Settings,
    running: Option<Running>,
}

struct Running {
    process: Process,
    version: String,
    data: PathBuf,
    socket: PathBuf,
    /// Keeps the socket's folder: the path of a socket is at most 107 bytes long, which the folder
    /// of the data need not keep to.
    _folder: tempfile::TempDir,
}

/// Rows of `table` that questions see.
fn count(socket: &Path, table: &Table) -> Result<u64> {
    Link::open(socket)?.value(&format!("SELECT count(*) FROM {}", table.name))
}

impl Embedded {
    /// A target for `backend`, not started yet.
    pub fn make(backend: &'static Backend, settings: &Settings) -> Result<Box<dyn Target>> {
        ensure!(
            settings.url.is_none(),
            "{} runs in a process of the laboratory's: it takes no address",
            backend.package
        );
        installed::installed(&settings.peers, backend.package)?;
        Ok(Box::new(Self {
            backend,
            settings: settings.clone(),
            running: None,
        }))
    }

    fn running(&self) -> Result<&Running> {
        let running = self.running.as_ref();
        running.with_context(|| format!("{} is not started", self.backend.package))
    }

    fn link(&self) -> Result<Link> {
        Link::open(&self.running()?.socket)
    }
}

impl Target for Embedded {
    fn start(&mut self, dir: &Path) -> Result<()> {
        let python = installed::python(&self.settings.peers, self.backend.package)?;
        let data = std::path::absolute(dir.join("data"))?;
        std::fs::create_dir_all(&data)?;
        let folder = tempfile::tempdir().context("a folder for a socket")?;
        let script = folder.path().join("child.py");
        std::fs::write(&script, CHILD)?;
        let socket = folder.path().join("socket");
        let text = |path: &Path| path.display().to_string();
        let program = Program {
            line: vec![
                text(&python),
                text(&script),
                self.backend.package.to_owned(),
                text(&data),
                text(&socket),
                self.settings.cores.unwrap_or(0).to_string(),
                self.settings.memory_bytes.unwrap_or(0).to_string(),
            ],
            environment: Vec::new(),
            folder: data.clone(),
            log: std::path::absolute(dir.join("log"))?,
            cores: self.settings.cores,
        };
        let process = Process::start(program, || Link::open(&socket).is_ok())?;
        let version = Link::open(&socket)?.version()?;
        self.running = Some(Running {
            process,
            version,
            data,
            socket,
            _folder: folder,
        });
        Ok(())
    }

    fn facts(&self) -> Facts {
        let version = self.running.as_ref().map_or("", |running| &running.version);
        Facts {
            version: format!("{} {version}", self.backend.product),
            path: self.backend.path.to_owned(),
            durability: self.backend.durability.to_owned(),
            notes: format!("{NOTES} {}", self.backend.notes.join(" ")),
        }
    }

    fn processes(&self) -> Vec<u32> {
        self.running
            .iter()
            .map(|running| running.process.id())
            .collect()
    }

    fn create(&self, tables: &[Table]) -> Result<()> {
        let mut link = self.link()?;
        tables
            .iter()
            .try_for_each(|table| link.run(&(self.backend.create)(table)))
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        Ok(Box::new(EmbeddedSession {
            backend: self.backend,
            link: self.link()?,
            shapes: tables.iter().map(batch::Shape::new).collect(),
            tables: Arc::clone(tables),
            asked: 0,
        }))
    }

    fn settle(&self, tables: &[Table]) -> Result<()> {
        let mut link = self.link()?;
        (self.backend.settle)(tables)
            .iter()
            .try_for_each(|sql| link.run(sql))
    }

    fn disk_bytes(&self) -> Result<u64> {
        match self.backend.size {
            Size::Folder => folder_bytes(&self.running()?.data),
            Size::Sql(sql) => self.link()?.value(sql),
        }
    }

    fn restart(&mut self, tables: &[Table]) -> Result<Option<Duration>> {
        let running = self.running.as_mut().context("nothing is started")?;
        let socket = &running.socket;
        let before = tables.iter().map(|table| count(socket, table));
        let before = before.collect::<Result<Vec<_>>>()?;
        let all_there = || {
            let mut counts = tables.iter().zip(&before);
            counts.all(|(table, before)| count(socket, table).is_ok_and(|now| now >= *before))
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

struct EmbeddedSession {
    backend: &'static Backend,
    link: Link,
    tables: Arc<[Table]>,
    shapes: Vec<batch::Shape>,
    /// Number of the last question, whose answer the child keeps.
    asked: u64,
}

impl Session for EmbeddedSession {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        let table = &self.tables[rows.table];
        Ok(Payload {
            rows: rows.len(),
            points: rows.points(),
            body: Body::Bytes(batch::encode(table, &self.shapes[rows.table], rows)?),
        })
    }

    fn write(&mut self, payload: &Payload) -> Result<()> {
        let Body::Bytes(frame) = &payload.body else {
            bail!("a payload of another driver");
        };
        self.link.send(frame)?;
        self.link.receive()?;
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Reply> {
        let select = cells::select(question)?;
        let sql = (self.backend.statement)(&self.tables[select.table], select);
        self.asked += 1;
        self.link.call(&json!({"op": "ask", "sql": sql}))?;
        Ok(Reply::Own(Box::new(self.asked)))
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        let asked = match reply {
            Reply::Own(own) => own.downcast::<u64>().ok(),
            Reply::Bytes(_) => None,
        };
        ensure!(
            asked.is_some_and(|asked| *asked == self.asked),
            "only the answer to a session's last question is kept"
        );
        let select = cells::select(question)?;
        let kinds = cells::kinds(&self.tables[select.table], select);
        self.link.fetch(&kinds)
    }
}

#[cfg(test)]
mod tests;
