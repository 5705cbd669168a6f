//! Databases that are Python packages: each runs in a child process, which is started, killed and
//! measured like a server.
//!
//! The child (`python/child.py`, which describes the protocol of its socket) gives batches to the
//! package as Arrow tables, and keeps answers as Arrow tables. Users of such a database have their
//! answers in this form, so the clock stops there. The laboratory fetches an answer afterwards to
//! check it.

mod batch;
mod link;

use crate::install;
use anyhow::{Context, Result, ensure};
use link::Link;
use marigram_lab::data::{Rows, Table};
use marigram_lab::question::{Answer, Question};
use marigram_lab::target::{Payload, Reply, Session, Settings, Target, TargetFacts};
use marigram_lab_drivers::cells;
use marigram_lab_drivers::instance::{Instance, no_less};
use marigram_lab_drivers::process::Program;
use marigram_lab_drivers::sql::{self, Dialect};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The child's program.
const CHILD: &str = include_str!("python/child.py");

/// For [`TargetFacts::notes`] of all packages.
const NOTES: &str = "In process (Python): batches reach that process through a socket, which is \
                     timed; answers stay in it, where its users have them.";

/// What is particular to a package.
pub(crate) struct PythonPackage {
    /// The package, and the child's name for it.
    pub package: &'static str,
    /// The name of the product, without its version.
    pub product: &'static str,
    /// For [`TargetFacts::path`].
    pub path: &'static str,
    /// For [`TargetFacts::durability`].
    pub durability: &'static str,
    /// For [`TargetFacts::notes`], in addition to the notes for all packages.
    pub notes: &'static [&'static str],
    /// `CREATE TABLE …` with the columns of [`batch`]: the tags, the time `ts`, the fields.
    pub create: fn(&Table) -> String,
    /// Its SQL.
    pub dialect: Dialect,
    /// Statements that flush and merge.
    pub settle: fn(&[Table]) -> Vec<String>,
    /// How its size is determined.
    pub size: Size,
}

/// How a package's bytes on disk are determined.
#[derive(Clone, Copy)]
pub(crate) enum Size {
    /// All files of its folder.
    Folder,
    /// The answer to a query for one integer.
    Sql(&'static str),
}

/// A package in a child process.
pub(crate) struct PythonTarget {
    package: &'static PythonPackage,
    instance: Instance,
    version: String,
    data: PathBuf,
    /// The socket's folder, as long as the child runs. The path of a socket has at most 107 bytes,
    /// and the path of the data may be longer.
    folder: Option<tempfile::TempDir>,
}

/// Number of rows of `table`.
fn count(socket: &Path, table: &Table) -> Result<u64> {
    Link::open(socket)?.value(&format!("SELECT count(*) FROM {}", table.name))
}

impl PythonTarget {
    /// A target for `package` that is not started yet. Fails unless the package is installed.
    pub(crate) fn make(
        package: &'static PythonPackage,
        settings: &Settings,
    ) -> Result<Box<dyn Target>> {
        ensure!(
            settings.url.is_none(),
            "{} runs in a process of the laboratory's: it takes no address",
            package.package
        );
        install::installed(&settings.peers, package.package)?;
        Ok(Box::new(Self {
            package,
            instance: Instance::new(settings),
            version: String::new(),
            data: PathBuf::new(),
            folder: None,
        }))
    }

    fn socket(&self) -> Result<PathBuf> {
        let folder = self.folder.as_ref();
        let folder = folder.with_context(|| format!("{} is not started", self.package.package))?;
        Ok(folder.path().join("socket"))
    }

    fn link(&self) -> Result<Link> {
        Link::open(&self.socket()?)
    }
}

impl Target for PythonTarget {
    fn start(&mut self, dir: &Path) -> Result<()> {
        let settings = self.instance.settings();
        let home = install::installed(&settings.peers, self.package.package)?;
        self.data = std::path::absolute(dir.join("data"))?;
        std::fs::create_dir_all(&self.data)?;
        let folder = tempfile::tempdir().context("a folder for a socket")?;
        let script = folder.path().join("child.py");
        std::fs::write(&script, CHILD)?;
        let socket = folder.path().join("socket");
        let text = |path: &Path| path.display().to_string();
        let line = [
            text(&home.join("bin/python")),
            text(&script),
            self.package.package.to_owned(),
            text(&self.data),
            text(&socket),
            settings.cores.unwrap_or(0).to_string(),
            settings.memory_bytes.unwrap_or(0).to_string(),
        ];
        let program = Program::new(line, &self.data, std::path::absolute(dir.join("log"))?);
        self.instance
            .start(program, || Link::open(&socket).is_ok())?;
        self.folder = Some(folder);
        self.version = self.link()?.version()?;
        Ok(())
    }

    fn facts(&self) -> TargetFacts {
        TargetFacts {
            version: format!("{} {}", self.package.product, self.version),
            path: self.package.path.to_owned(),
            durability: self.package.durability.to_owned(),
            notes: format!("{NOTES} {}", self.package.notes.join(" ")),
        }
    }

    fn processes(&self) -> Vec<u32> {
        self.instance.processes()
    }

    fn create(&self, tables: &[Table]) -> Result<()> {
        let mut link = self.link()?;
        tables
            .iter()
            .try_for_each(|table| link.run(&(self.package.create)(table)))
    }

    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>> {
        Ok(Box::new(PythonSession {
            package: self.package,
            link: self.link()?,
            shapes: tables.iter().map(batch::BatchShape::new).collect(),
            tables: Arc::clone(tables),
            asked: 0,
        }))
    }

    fn settle(&self, tables: &[Table]) -> Result<()> {
        let mut link = self.link()?;
        (self.package.settle)(tables)
            .iter()
            .try_for_each(|sql| link.run(sql))
    }

    fn disk_bytes(&self) -> Result<u64> {
        match self.package.size {
            Size::Folder => self.instance.folder_bytes(&self.data),
            Size::Sql(sql) => self.link()?.value(sql),
        }
    }

    fn restart(&mut self, tables: &[Table]) -> Result<Option<Duration>> {
        let socket = self.socket()?;
        let counts = || tables.iter().map(|table| count(&socket, table)).collect();
        self.instance.restart::<Vec<u64>>(counts, no_less)
    }

    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String> {
        sql::cannot_ask(tables, question)
    }

    fn stop(&mut self) -> Result<()> {
        self.folder = None;
        self.instance.stop()
    }
}

struct PythonSession {
    package: &'static PythonPackage,
    link: Link,
    tables: Arc<[Table]>,
    shapes: Vec<batch::BatchShape>,
    /// Number of the last question, whose answer the child keeps.
    asked: u64,
}

impl Session for PythonSession {
    fn encode(&mut self, rows: &Rows) -> Result<Payload> {
        let table = &self.tables[rows.table];
        let frame = batch::encode(table, &self.shapes[rows.table], rows)?;
        Ok(Payload::from_bytes(rows, frame))
    }

    fn write(&mut self, payload: &Payload) -> Result<()> {
        self.link.send(payload.bytes()?)?;
        self.link.receive()?;
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Reply> {
        let select = sql::select(question)?;
        let table = &self.tables[select.table];
        let sql = sql::statement(&self.package.dialect, table, select);
        self.asked += 1;
        self.link.call(&json!({"op": "ask", "sql": sql}))?;
        Ok(Reply::from_value(self.asked))
    }

    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer> {
        ensure!(
            reply.into_value::<u64>()? == self.asked,
            "only the answer to a session's last question is kept"
        );
        let select = sql::select(question)?;
        let kinds = cells::kinds(&self.tables[select.table], select);
        self.link.fetch(&kinds)
    }
}

#[cfg(test)]
mod tests;
