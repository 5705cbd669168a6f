//! A client of a server, over HTTP.

use crate::credentials::ServerCredentials;
use crate::interrupt::{CANCELLED, InterruptHook};
use crate::line_sender::{LineSender, PartialWrite};
use crate::line_text;
use crate::names::texts;
use crate::reply::{ReplyRows, StatementFailure, StatementReply, tell_notice};
use crate::sql_rows;
use crate::tls_trust::{TlsTrust, tls_advice};
use anyhow::{Context, Result, bail};
use arrow::array::{Array, AsArray};
use arrow::ipc::reader::StreamReader;
use arrow::record_batch::RecordBatch;
use marigram_model::WriteBatch;
use marigram_model::always_quoted;
use marigram_service::{RejectedRow, WriteReport};
use serde::Deserialize;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use ureq::http::header::AUTHORIZATION;
use ureq::http::{Request, Response};
use ureq::middleware::MiddlewareNext;
use ureq::tls::TlsConfig;
use ureq::{Agent, Body, SendBody};

/// A server's HTTP address.
pub(crate) struct RemoteServer {
    /// Replaced after Ctrl-C has shut it down.
    agent: Mutex<SharedAgent>,
    url: String,
    credentials: ServerCredentials,
    tls: TlsConfig,
    kept: Mutex<KeptSettings>,
}

/// What the client keeps of a session: HTTP has none that could.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptSettings {
    /// The time zone of statements; `None` for the server's.
    pub zone: Option<String>,
    /// How long a statement may take; `None` for the server's limit.
    pub timeout_ms: Option<String>,
}

/// A client with its connections, and whether it was shut down.
#[derive(Clone)]
struct SharedAgent {
    agent: Agent,
    is_shut: Arc<AtomicBool>,
}

impl SharedAgent {
    fn new(credentials: &ServerCredentials, tls: &TlsConfig) -> Self {
        let header = credentials.header().map(str::to_owned);
        let log_in = move |mut request: Request<SendBody>, next: MiddlewareNext| {
            if let Some(value) = header.as_ref().and_then(|text| text.parse().ok()) {
                request.headers_mut().insert(AUTHORIZATION, value);
            }
            next.handle(request)
        };
        let config = Agent::config_builder()
            .middleware(log_in)
            .tls_config(tls.clone())
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(10)))
            .build();
        Self {
            agent: config.into(),
            is_shut: Arc::default(),
        }
    }

    /// Until the returned hook is dropped, Ctrl-C closes the connections: the server stops the
    /// statement of a client that disconnects.
    fn shut_by_interrupt(&self) -> InterruptHook {
        let shared = self.clone();
        InterruptHook::new(move || {
            shared.is_shut.store(true, Ordering::Release);
            shared.agent.clone().shutdown();
        })
    }

    /// The failure to report for a failed request of this client.
    fn explained(&self, failure: StatementFailure) -> StatementFailure {
        if self.is_shut.load(Ordering::Acquire) {
            return StatementFailure::new(CANCELLED);
        }
        failure
    }
}

const ARROW: &str = "application/vnd.apache.arrow.stream";
const TRIES_MAX: u32 = 20;

/// The answer of `/api/v1/backup`.
#[derive(Deserialize)]
pub(crate) struct RemoteBackup {
    /// Its number.
    pub number: u64,
    /// The folder on the server's machine.
    pub dir: String,
    /// The moment of the backup's content, ns since the epoch.
    pub taken_ns: i64,
    /// Size of all its files, in bytes.
    pub bytes: u64,
    /// Bytes that were not in the folder before.
    pub bytes_new: u64,
    /// Numbers of the older backups that were removed.
    pub pruned: Vec<u64>,
    /// Problems that did not make the backup fail.
    pub warnings: Vec<String>,
}

impl RemoteServer {
    /// A client of the server at `url`; sends nothing yet.
    pub(crate) fn new(url: &str, trust: &TlsTrust) -> Result<Self> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            bail!("the address of a server must begin with https:// or http://");
        }
        let tls = trust.config()?;
        let from_env = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let (credentials, url) = ServerCredentials::split(url, from_env)?;
        Ok(Self {
            agent: Mutex::new(SharedAgent::new(&credentials, &tls)),
            url: url.trim_end_matches('/').to_owned(),
            credentials,
            tls,
            kept: Mutex::default(),
        })
    }

    /// The server's address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    fn agent(&self) -> SharedAgent {
        let mut agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        if agent.is_shut.load(Ordering::Acquire) {
            *agent = SharedAgent::new(&self.credentials, &self.tls);
        }
        agent.clone()
    }

    /// All rows of a query if it finishes within `time`; `None` if it takes longer or fails.
    pub(crate) fn query_within(
        &self,
        database: &str,
        statement: &str,
        time: Duration,
    ) -> Option<Vec<RecordBatch>> {
        let request = self
            .agent()
            .agent
            .post(format!("{}/api/v1/sql", self.url))
            .query("db", database)
            .query("timeout_ms", time.as_millis().max(1).to_string())
            .header("Accept", ARROW)
            .content_type("application/sql")
            .config()
            .timeout_global(Some(time))
            .build();
        let response = request.send(statement).ok()?;
        if !response.status().is_success() {
            return None;
        }
        let body = response.into_body().into_reader();
        StreamReader::try_new(body, None)
            .ok()?
            .collect::<Result<_, _>>()
            .ok()
    }

    /// Whether a server answers at the address within `time`.
    pub(crate) fn answers(&self, time: Duration) -> bool {
        let request = self.agent().agent.get(format!("{}/ping", self.url));
        let request = request.config().timeout_global(Some(time)).build();
        request
            .call()
            .is_ok_and(|response| response.headers().contains_key("x-influxdb-version"))
    }

    /// Changes the settings of later statements.
    pub(crate) fn keep(&self, change: impl FnOnce(&mut KeptSettings)) {
        change(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn kept(&self) -> KeptSettings {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone()
    }

    /// Runs one statement in `database`.
    pub(crate) fn execute(
        &self,
        database: &str,
        statement: &str,
    ) -> Result<StatementReply, StatementFailure> {
        let shared = self.agent();
        let hook = shared.shut_by_interrupt();
        let mut request = shared
            .agent
            .post(format!("{}/api/v1/sql", self.url))
            .query("db", database)
            .header("Accept", ARROW)
            .content_type("application/sql");
        let kept = self.kept();
        if let Some(zone) = &kept.zone {
            request = request.query("tz", zone);
        }
        if let Some(timeout_ms) = &kept.timeout_ms {
            request = request.query("timeout_ms", timeout_ms);
        }
        let response = request
            .send(statement)
            .map_err(|error| shared.explained(self.unreachable(&error)))?;
        if !response.status().is_success() {
            return Err(failure(response));
        }
        for notice in response.headers().get_all(NOTICE) {
            tell_notice(&String::from_utf8_lossy(notice.as_bytes()));
        }
        let body = response.into_body().into_reader();
        let broken = move |error| {
            let failure = StatementFailure::new(format!("the server's answer ends early: {error}"));
            shared.explained(failure)
        };
        let reader = StreamReader::try_new(body, None).map_err(&broken)?;
        let schema = reader.schema();
        let columns: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let mut batches = reader.map(move |batch| {
            let _until_dropped = &hook;
            batch.map_err(&broken)
        });
        if columns == COMMAND_COLUMNS {
            let tag = match batches.next() {
                Some(batch) => {
                    let batch = batch?;
                    let tags = batch.column(0).as_string_opt::<i32>();
                    tags.filter(|tags| !tags.is_empty())
                        .map(|tags| tags.value(0).to_owned())
                }
                None => None,
            };
            return Ok(StatementReply::Done(tag.unwrap_or_default()));
        }
        Ok(StatementReply::Rows(ReplyRows {
            schema,
            batches: Box::new(batches),
            zone: kept.zone,
        }))
    }

    fn unreachable(&self, error: &ureq::Error) -> StatementFailure {
        let advice = tls_advice(&error.to_string()).unwrap_or("is `marigram serve` running?");
        StatementFailure::new(format!("cannot reach {}: {error}; {advice}", self.url))
    }

    /// Asks the server for a backup into `dir` on its machine (`None`: its own backup folder).
    pub(crate) fn backup(&self, dir: Option<&Path>, keep: Option<usize>) -> Result<RemoteBackup> {
        let mut request = self
            .agent()
            .agent
            .post(format!("{}/api/v1/backup", self.url));
        if let Some(dir) = dir {
            request = request.query("dir", dir.to_string_lossy());
        }
        if let Some(keep) = keep {
            request = request.query("keep", keep.to_string());
        }
        let response = request
            .send_empty()
            .map_err(|error| self.unreachable(&error))?;
        if !response.status().is_success() {
            bail!("{}", failure(response).message);
        }
        let text = text(response);
        serde_json::from_str(&text)
            .with_context(|| format!("the server's answer is not understood: {text}"))
    }

    /// Stores batches as line protocol, and the values that it cannot hold with statements; waits
    /// while the server is busy.
    pub(crate) fn write(&self, database: &str, batches: &[WriteBatch]) -> Result<Vec<WriteReport>> {
        let mut sender = LineSender::new(batches.len());
        let send = |body: &str| self.send(database, body);
        let mut unsent = Vec::new();
        for (at, batch) in batches.iter().enumerate() {
            let mut beyond = Vec::new();
            for row in 0..batch.len() {
                match line_text::put_row(batch, row, &mut sender.body) {
                    Ok(()) => sender.pushed((at, row), &send)?,
                    Err(reason) => beyond.push(RejectedRow { row, reason }),
                }
            }
            unsent.push(beyond);
        }
        sender.flush(&send)?;
        let mut reports = sender.reports;
        for ((report, batch), rows) in reports.iter_mut().zip(batches).zip(unsent) {
            report.rejected.extend(self.insert(database, batch, rows));
            report.stored = batch.len().saturating_sub(report.rejected.len());
            report.rejected.sort_by_key(|rejected| rejected.row);
        }
        Ok(reports)
    }

    /// Stores rows that line protocol cannot hold with statements; returns those that stay refused.
    fn insert(
        &self,
        database: &str,
        batch: &WriteBatch,
        rows: Vec<RejectedRow>,
    ) -> Vec<RejectedRow> {
        let has_value = |row: usize| batch.fields.iter().any(|f| f.values.is_valid(row));
        let (rows, mut refused): (Vec<_>, Vec<_>) = rows
            .into_iter()
            .partition(|rejected| has_value(rejected.row));
        if rows.is_empty() {
            return refused;
        }
        let show = format!("SHOW COLUMNS FROM {}", always_quoted(&batch.table));
        let Some(time) = self.time_name(database, &show) else {
            // The table does not exist: lines create one, statements do not.
            refused.extend(rows);
            return refused;
        };
        let places: Vec<usize> = rows.iter().map(|rejected| rejected.row).collect();
        for (statement, places) in sql_rows::inserts(batch, &time, &places) {
            let Err(failure) = self.execute(database, &statement) else {
                continue;
            };
            if let [row] = places[..] {
                let reason = failure.message;
                refused.push(RejectedRow { row, reason });
                continue;
            }
            // One row may be the reason, so send each one alone.
            for row in places {
                for (statement, _) in sql_rows::inserts(batch, &time, &[row]) {
                    if let Err(failure) = self.execute(database, &statement) {
                        let reason = failure.message;
                        refused.push(RejectedRow { row, reason });
                    }
                }
            }
        }
        refused
    }

    /// The name of a table's time column, from the answer to the statement `show`.
    fn time_name(&self, database: &str, show: &str) -> Option<String> {
        let Ok(StatementReply::Rows(rows)) = self.execute(database, show) else {
            return None;
        };
        let batches: Vec<RecordBatch> = rows.batches.collect::<Result<_, _>>().ok()?;
        let names = texts(&batches, &["column_name"]).into_iter();
        let mut columns = names.zip(texts(&batches, &["role"]));
        columns
            .find(|(_, role)| role == "time")
            .map(|(name, _)| name)
    }

    /// Sends lines until the server accepts them; returns what it refused.
    fn send(&self, database: &str, body: &str) -> Result<PartialWrite> {
        for _ in 0..TRIES_MAX {
            let request = self
                .agent()
                .agent
                .post(format!("{}/api/v1/write", self.url))
                .query("db", database)
                .query("precision", "ns");
            let response = request
                .send(body)
                .map_err(|error| self.unreachable(&error))?;
            match response.status().as_u16() {
                204 => return Ok(PartialWrite::default()),
                429 | 503 => std::thread::sleep(retry_after(&response)),
                200 => {
                    let report = serde_json::from_str(&text_up_to(response, REPORT_BYTES_MAX));
                    return report.context("the server's report on the rows is not understood");
                }
                _ => bail!("{}", failure(response).message),
            }
        }
        bail!("{} stayed busy; try again later", self.url)
    }
}

/// Bytes of the longest report on refused lines.
const REPORT_BYTES_MAX: u64 = 32 << 20;
/// Header with the server's notice about an answer.
const NOTICE: &str = "marigram-notice";
/// The columns in which the server reports the result of a statement without rows.
const COMMAND_COLUMNS: [&str; 2] = ["tag", "rows_affected"];

fn retry_after(response: &Response<Body>) -> Duration {
    let header = response
        .headers()
        .get("Retry-After")
        .and_then(|value| value.to_str().ok());
    let seconds = header.and_then(|text| text.parse().ok()).unwrap_or(1u64);
    Duration::from_secs(seconds.clamp(1, 30))
}

fn text(response: Response<Body>) -> String {
    text_up_to(response, 1 << 20)
}

fn text_up_to(response: Response<Body>, bytes_max: u64) -> String {
    let mut text = String::new();
    let read = response
        .into_body()
        .into_reader()
        .take(bytes_max)
        .read_to_string(&mut text);
    if read.is_err() && text.is_empty() {
        "the answer could not be read".into()
    } else {
        text
    }
}

fn failure(response: Response<Body>) -> StatementFailure {
    let status = response.status();
    let text = text(response);
    if text.trim().is_empty() {
        return StatementFailure::new(format!("the server answered {status}"));
    }
    parse_failure(&text)
}

/// Parses `{"error": {"message", "position"}}`, the server's format; takes other texts unchanged.
fn parse_failure(text: &str) -> StatementFailure {
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let error = &value["error"];
    let message = error["message"].as_str().or(error.as_str()).unwrap_or(text);
    let position = error["position"]
        .as_u64()
        .and_then(|position| usize::try_from(position).ok());
    StatementFailure {
        message: message.trim().to_owned(),
        position,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_position() {
        let failure = parse_failure(r#"{"error":{"code":"x","message":"no","position":8}}"#);
        assert_eq!(
            (failure.message.as_str(), failure.position),
            ("no", Some(8))
        );
        assert_eq!(parse_failure("plain text").message, "plain text");
    }

    #[test]
    fn only_http_addresses_are_taken() {
        let new = |url| RemoteServer::new(url, &TlsTrust::default());
        assert!(new("ftp://example.org").is_err());
        assert!(new("https://example.org").is_ok());
        assert_eq!(
            new("http://localhost:8086/").unwrap().url(),
            "http://localhost:8086"
        );
    }
}
