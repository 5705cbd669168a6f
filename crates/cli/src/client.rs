//! Where commands find their data: in a directory that this process opens, or on a server.

pub(crate) use crate::directory::IfMissing;

use crate::directory;
use crate::interrupt::or_cancelled;
use crate::names::texts;
use crate::remote::RemoteServer;
use crate::reply::{ReplyRows, StatementFailure, StatementReply, tell_notice};
use crate::terminal;
use crate::tls_trust::TlsTrust;
use anyhow::{Result, bail};
use arrow::record_batch::RecordBatch;
use clap::Args;
use futures::{StreamExt, TryStreamExt};
use marigram::{
    Answer, DEFAULT_DATABASE, Identity, Ingest, Marigram, OpenOptions, Query, ServiceError, Session,
};
use marigram_model::WriteBatch;
use marigram_service::WriteReport;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Which data a command uses.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ClientTarget {
    /// Data directory to open in this process (or MARIGRAM_DATA)
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub data: Option<PathBuf>,
    /// Server to ask, such as http://127.0.0.1:8086 (or MARIGRAM_URL); the environment may have
    /// MARIGRAM_USER and MARIGRAM_PASSWORD, or MARIGRAM_TOKEN
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    #[command(flatten)]
    pub tls: TlsTrust,
    /// Database in which to look up tables
    #[arg(long, short = 'd', value_name = "NAME", env = "MARIGRAM_DATABASE",
          default_value = DEFAULT_DATABASE)]
    pub database: String,
}

/// A connection to data.
pub(crate) struct DataClient {
    place: ClientBackend,
    database: String,
}

enum ClientBackend {
    Local {
        db: Marigram,
        session: Session,
        runtime: Rc<Runtime>,
    },
    Remote(RemoteServer),
}

impl ClientTarget {
    /// The directory or the server that the options or the environment name.
    fn place(&self) -> (Option<PathBuf>, Option<String>) {
        let from_env = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        match (&self.data, &self.url) {
            (None, None) => (
                from_env("MARIGRAM_DATA").map(PathBuf::from),
                from_env("MARIGRAM_URL"),
            ),
            (data, url) => (data.clone(), url.clone()),
        }
    }

    /// Whether the target is a directory that has no database yet.
    ///
    /// # Errors
    /// If no database can be created there.
    pub(crate) fn is_new(&self) -> Result<bool> {
        match self.place() {
            (Some(dir), _) if !directory::holds_database(&dir) => {
                directory::check_room(&dir).map(|()| true)
            }
            _ => Ok(false),
        }
    }

    /// Opens the directory or connects to the server.
    pub(crate) fn connect(&self, if_missing: IfMissing) -> Result<DataClient> {
        match self.place() {
            (Some(dir), _) => DataClient::open(&dir, &self.database, if_missing),
            (None, Some(url)) => {
                let place = ClientBackend::Remote(RemoteServer::new(&url, &self.tls)?);
                Ok(DataClient {
                    place,
                    database: self.database.clone(),
                })
            }
            (None, None) => bail!(
                "which data? Give --data DIR to open a directory here, or --url URL to ask a server"
            ),
        }
    }
}

impl DataClient {
    /// Opens a data directory in this process.
    pub(crate) fn open(dir: &Path, database: &str, if_missing: IfMissing) -> Result<Self> {
        directory::check(dir, if_missing)?;
        // Whoever can run a command on this machine can access its files anyway.
        let db = OpenOptions::default()
            .any_file(true)
            .open(dir)
            .map_err(|error| directory::not_opened(dir, error, ""))?;
        let damaged = db.engine().status().segments_damaged;
        if damaged > 0 {
            erroutln!(
                "warning: {} in {} missing or truncated: a statement that needs one fails; \
                 `marigram verify {}` names them",
                terminal::counted(damaged, "segment"),
                dir.display(),
                dir.display()
            );
        }
        Self::over(db, database)
    }

    /// A client of a database that is already open.
    pub(crate) fn over(db: Marigram, database: &str) -> Result<Self> {
        let runtime = Rc::new(tokio::runtime::Builder::new_current_thread().build()?);
        let session = Session::new(database, Identity::owner("marigram"));
        let place = ClientBackend::Local {
            db,
            session,
            runtime,
        };
        Ok(Self {
            place,
            database: database.to_owned(),
        })
    }

    /// The database in which tables are currently looked up.
    pub(crate) fn database(&self) -> &str {
        match &self.place {
            ClientBackend::Local { session, .. } => &session.database,
            ClientBackend::Remote(_) => &self.database,
        }
    }

    /// The open database, if this process opened it.
    pub(crate) fn local(&self) -> Option<&Marigram> {
        match &self.place {
            ClientBackend::Local { db, .. } => Some(db),
            ClientBackend::Remote(_) => None,
        }
    }

    /// Describes the target to the user.
    pub(crate) fn describe(&self) -> String {
        match &self.place {
            ClientBackend::Local { .. } => "embedded".to_owned(),
            ClientBackend::Remote(remote) => remote.url().to_owned(),
        }
    }

    /// Runs one statement.
    pub(crate) fn execute(&mut self, statement: &str) -> Result<StatementReply, StatementFailure> {
        match &mut self.place {
            ClientBackend::Local {
                db,
                session,
                runtime,
            } => {
                let run = db.execute_with_files(session, statement);
                let answer = runtime.block_on(or_cancelled(run))?;
                Ok(match answer {
                    Answer::Done { tag, notices, .. } => {
                        for notice in &notices {
                            tell_notice(notice);
                        }
                        StatementReply::Done(tag)
                    }
                    Answer::Rows(rows) => {
                        for notice in &rows.notices {
                            tell_notice(notice);
                        }
                        let (runtime, mut stream) = (Rc::clone(runtime), rows.batches);
                        let next = move || {
                            let next = async { stream.next().await.transpose() };
                            runtime.block_on(or_cancelled(next)).transpose()
                        };
                        let batches = Box::new(std::iter::from_fn(next));
                        StatementReply::Rows(ReplyRows {
                            schema: rows.schema,
                            batches,
                            zone: Some(session.time_zone.clone()),
                        })
                    }
                })
            }
            ClientBackend::Remote(remote) => {
                if let Some((tag, setting)) = kept_setting(statement) {
                    let statement = statement.trim_end().trim_end_matches(';');
                    let script = format!("{statement}; SHOW {setting}");
                    let value = first_text(remote.execute(&self.database, &script)?)?;
                    match setting {
                        DATABASE => self.database = value.unwrap_or_else(|| self.database.clone()),
                        TIME_ZONE => remote.keep(|kept| kept.zone = value),
                        _ => {
                            let ms = value.map(|ms| ms.trim_end_matches("ms").to_owned());
                            remote.keep(|kept| kept.timeout_ms = ms);
                        }
                    }
                    return Ok(StatementReply::Done(tag.to_owned()));
                }
                remote.execute(&self.database, statement)
            }
        }
    }

    /// All rows of a query.
    pub(crate) fn query(&mut self, statement: &str) -> Result<Vec<RecordBatch>, StatementFailure> {
        match self.execute(statement)? {
            StatementReply::Rows(rows) => rows.batches.collect(),
            StatementReply::Done(_) => Ok(Vec::new()),
        }
    }

    /// All rows of a query if it finishes within `time`; no rows if it takes longer or fails.
    pub(crate) fn query_within(&mut self, statement: &str, time: Duration) -> Vec<RecordBatch> {
        let rows = match &mut self.place {
            ClientBackend::Local {
                db,
                session,
                runtime,
            } => {
                let before = session.statement_timeout.replace(time);
                let rows = runtime.block_on(async {
                    match db.execute(session, statement).await {
                        Ok(Answer::Rows(rows)) => rows.batches.try_collect().await.ok(),
                        _ => None,
                    }
                });
                session.statement_timeout = before;
                rows
            }
            ClientBackend::Remote(remote) => remote.query_within(&self.database, statement, time),
        };
        rows.unwrap_or_default()
    }

    /// Stores batches and creates missing tables; waits while the database is busy, for a minute at most.
    /// Returns one report per batch.
    pub(crate) fn write(&self, batches: Vec<WriteBatch>) -> Result<Vec<WriteReport>> {
        match &self.place {
            ClientBackend::Remote(remote) => remote.write(&self.database, &batches),
            ClientBackend::Local {
                db,
                session,
                runtime,
            } => {
                let begin = Instant::now();
                loop {
                    let write = Ingest::write(db, &session.database, batches.clone(), true);
                    match runtime.block_on(write) {
                        // A full disk may stay full.
                        Err(ServiceError::Busy { retry_after, .. })
                            if begin.elapsed() < BUSY_MAX =>
                        {
                            std::thread::sleep(retry_after.clamp(PAUSE_MIN, PAUSE_MAX));
                        }
                        done => return Ok(done?),
                    }
                }
            }
        }
    }

    /// Closes the database if this client opened it.
    pub(crate) fn close(self) -> Result<()> {
        match self.place {
            ClientBackend::Local { db, .. } => Ok(db.close()?),
            ClientBackend::Remote(_) => Ok(()),
        }
    }
}

const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How long one write waits for a database that is busy.
const BUSY_MAX: Duration = Duration::from_mins(1);

const DATABASE: &str = "database";
const TIME_ZONE: &str = "timezone";
const TIMEOUT: &str = "statement_timeout";

/// The tag of a statement that changes a setting of its session, and the setting, if the client keeps it
/// likewise: HTTP has no session that could.
fn kept_setting(statement: &str) -> Option<(&'static str, &'static str)> {
    let folded = statement.to_ascii_lowercase().replace('=', " ");
    let mut words = folded.split_whitespace();
    let tag = match words.next()? {
        "use" => return Some(("USE", DATABASE)),
        "set" => "SET",
        "reset" => "RESET",
        _ => return None,
    };
    let word = words.find(|word| !["session", "local"].contains(word))?;
    let setting = match word.trim_end_matches(';').trim_matches('"') {
        "time" if words.next() == Some("zone") => TIME_ZONE,
        word => [TIME_ZONE, TIMEOUT]
            .into_iter()
            .find(|name| *name == word)?,
    };
    Some((tag, setting))
}

/// The text of the first row of an answer.
fn first_text(reply: StatementReply) -> Result<Option<String>, StatementFailure> {
    let StatementReply::Rows(mut rows) = reply else {
        return Ok(None);
    };
    let batch = rows.batches.next().transpose()?;
    Ok(texts(batch.as_slice(), &[]).into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_settings_are_recognised() {
        for (statement, expected) in [
            ("SET TIME ZONE 'Europe/Berlin'", ("SET", TIME_ZONE)),
            ("set timezone='UTC'", ("SET", TIME_ZONE)),
            ("SET SESSION timezone TO 'UTC'", ("SET", TIME_ZONE)),
            ("set \"timezone\" = 'UTC'", ("SET", TIME_ZONE)),
            ("RESET timezone;", ("RESET", TIME_ZONE)),
            ("SET statement_timeout = '1s'", ("SET", TIMEOUT)),
            ("use \"My plant\"", ("USE", DATABASE)),
        ] {
            assert_eq!(kept_setting(statement), Some(expected), "{statement}");
        }
        for statement in ["SHOW timezone", "SET datestyle = ISO", "SELECT use", "set"] {
            assert_eq!(kept_setting(statement), None, "{statement}");
        }
    }
}
