//! What a database under test must do: one trait for the server, one for a connection.

use crate::data::{Rows, Table};
use crate::question::{Answer, Question};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A target's description in a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetFacts {
    /// The product with its version, `InfluxDB 1.6.7`.
    pub version: String,
    /// How rows are written and questions asked, `line protocol over HTTP; InfluxQL`.
    pub path: String,
    /// What happens before an acknowledgement. Begins with `fsync` if an acknowledged row survives
    /// a power cut, with `written` if the operating system has it, and otherwise with `none`.
    pub durability: String,
    /// What a fair reader must know: settings that differ from the defaults, and why.
    pub notes: String,
}

impl TargetFacts {
    /// What happens before an acknowledgement, in a word or two for tables.
    #[must_use]
    pub fn acknowledged_after(&self) -> &'static str {
        match self.durability.split_whitespace().next() {
            Some("fsync") => "fsync",
            Some("written" | "written,") => "write, no sync",
            _ => "memory only",
        }
    }
}

/// A batch in a target's own form, ready to be sent.
pub struct Payload {
    /// Rows.
    pub rows: usize,
    /// Values that are not null.
    pub points: u64,
    /// The batch, in the form that its session encoded.
    pub body: Body,
}

/// The form of a batch.
pub enum Body {
    /// Bytes for the wire.
    Bytes(Vec<u8>),
    /// A value of the driver's own type.
    Own(Box<dyn Any + Send>),
}

impl Payload {
    /// `rows` as bytes for the wire.
    #[must_use]
    pub fn from_bytes(rows: &Rows, bytes: Vec<u8>) -> Self {
        Self::new(rows, Body::Bytes(bytes))
    }

    /// `rows` as a value of the driver's own type.
    #[must_use]
    pub fn from_value(rows: &Rows, value: impl Any + Send) -> Self {
        Self::new(rows, Body::Own(Box::new(value)))
    }

    fn new(rows: &Rows, body: Body) -> Self {
        Self {
            rows: rows.len(),
            points: rows.points(),
            body,
        }
    }

    /// The bytes. Fails for a payload of another driver.
    pub fn bytes(&self) -> Result<&[u8]> {
        match &self.body {
            Body::Bytes(bytes) => Ok(bytes),
            Body::Own(_) => bail!(FOREIGN_PAYLOAD),
        }
    }

    /// The driver's own value. Fails for a payload of another driver.
    pub fn value<T: Any>(&self) -> Result<&T> {
        let value = match &self.body {
            Body::Own(own) => own.downcast_ref(),
            Body::Bytes(_) => None,
        };
        value.context(FOREIGN_PAYLOAD)
    }
}

const FOREIGN_PAYLOAD: &str = "another driver encoded this batch";

/// An answer as it came, not decoded yet.
pub enum Reply {
    /// Bytes from the wire.
    Bytes(Vec<u8>),
    /// A value of the driver's own type.
    Own(Box<dyn Any + Send>),
}

impl Reply {
    /// A value of the driver's own type.
    #[must_use]
    pub fn from_value(value: impl Any + Send) -> Self {
        Self::Own(Box::new(value))
    }

    /// The bytes. Fails for a reply to another driver.
    pub fn into_bytes(self) -> Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Own(_) => bail!(FOREIGN_REPLY),
        }
    }

    /// The driver's own value. Fails for a reply to another driver.
    pub fn into_value<T: Any>(self) -> Result<T> {
        let value = match self {
            Self::Own(own) => own.downcast().ok(),
            Self::Bytes(_) => None,
        };
        Ok(*value.context(FOREIGN_REPLY)?)
    }
}

const FOREIGN_REPLY: &str = "another driver received this answer";

/// A connection, used by one client thread.
///
/// The clock measures only `write` and `ask`: a batch is encoded before, and an answer is decoded
/// after. `ask` returns when the client has the last byte of the answer.
pub trait Session: Send {
    /// Encodes a batch in the target's own form.
    fn encode(&mut self, rows: &Rows) -> Result<Payload>;

    /// Sends a batch, and waits until it is acknowledged. Fails unless every row was accepted.
    fn write(&mut self, payload: &Payload) -> Result<()>;

    /// Asks a question, and reads the whole answer.
    fn ask(&mut self, question: &Question) -> Result<Reply>;

    /// The answer in the laboratory's form.
    fn decode(&mut self, question: &Question, reply: Reply) -> Result<Answer>;
}

/// A database under test.
pub trait Target: Send + Sync {
    /// Starts it on the empty folder `dir`, and waits until it answers. After `stop`, it may be
    /// started again on another folder.
    fn start(&mut self, dir: &Path) -> Result<()>;

    /// Its description; called after `start`.
    fn facts(&self) -> TargetFacts;

    /// Processes of the server, without their children; none if the laboratory did not start them.
    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Why the target cannot have these settings; `None` if it can. If not, it is started without
    /// them, and every step counts as something that it cannot do. Called before `start`.
    fn refuses(&self, tuning: &Tuning) -> Option<String> {
        (!tuning.is_default()).then(|| "it has no such settings".to_owned())
    }

    /// Why the target cannot store these tables; `None` if it can. If not, they are not created,
    /// and every step about them counts as something that it cannot do.
    fn cannot_keep(&self, _tables: &[Table]) -> Option<String> {
        None
    }

    /// Creates the tables, if the target does not create them with their first row. Called again
    /// for further tables.
    fn create(&self, _tables: &[Table]) -> Result<()> {
        Ok(())
    }

    /// A connection for one client that will use these tables.
    fn connect(&self, tables: &Arc<[Table]>) -> Result<Box<dyn Session>>;

    /// Waits until every question sees what was written, and flushes and merges if the target has
    /// commands for it.
    fn settle(&self, tables: &[Table]) -> Result<()>;

    /// Flushes memory to disk if the target has a command for it.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// Bytes on disk.
    fn disk_bytes(&self) -> Result<u64>;

    /// Its own metrics, if it has any: `write_amplification` (bytes written by flushes and
    /// compactions for each byte of flushes), `segments`, `segment_bytes`, `index_bytes` (memory of
    /// the index of series), `wal_bytes`, `late_rows`, `flushes`, `compactions`. Counts begin with
    /// its process.
    fn tell(&self) -> Result<BTreeMap<String, f64>> {
        Ok(BTreeMap::new())
    }

    /// Kills it (SIGKILL), starts it again, and returns the time from the start of the process to the
    /// first right answer; `None` for a target that is not a process of the laboratory's.
    fn restart(&mut self, _tables: &[Table]) -> Result<Option<Duration>> {
        Ok(None)
    }

    /// Why the target cannot answer `question`; `None` if it can.
    fn cannot(&self, tables: &[Table], question: &Question) -> Option<String>;

    /// Stops it. Dropping stops it as well.
    fn stop(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Settings of a database, name → value as a person would write it.
pub type Options = BTreeMap<String, String>;

/// Marigram's settings that a study chooses. Peers have other settings, and refuse these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tuning {
    /// Settings of every table: `CREATE TABLE … WITH (…)`.
    pub table: Options,
    /// Settings of the server or the library, by their names in the configuration file.
    pub server: Options,
}

impl Tuning {
    /// Whether all settings have their defaults.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.table.is_empty() && self.server.is_empty()
    }
}

/// How a target is to be run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Folder of the installed peers.
    pub peers: PathBuf,
    /// Marigram's own binary, for the targets that are its server.
    pub marigram: PathBuf,
    /// The address of an instance that somebody else runs; `None`: the driver starts one.
    pub url: Option<String>,
    /// Cores that its process may use (the first ones of the machine); `None`: all.
    pub cores: Option<usize>,
    /// Limit of its memory, bytes, if it has such a setting.
    pub memory_bytes: Option<u64>,
    /// Marigram's settings that differ from the defaults.
    pub tuning: Tuning,
}

/// Makes a target that is not started yet.
pub type Make = fn(&Settings) -> Result<Box<dyn Target>>;

/// A kind of target.
#[derive(Clone, Copy)]
pub struct Kind {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Whether it is another product, chosen with `--peer`.
    pub peer: bool,
    /// Makes one.
    pub make: Make,
}
