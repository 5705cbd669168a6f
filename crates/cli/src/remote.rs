//! A server, asked over HTTP.

use crate::line_text;
use crate::reply::{Failure, Reply, Rows, tell_notice};
use anyhow::{Context, Result, bail};
use arrow::array::{Array, AsArray};
use arrow::ipc::reader::StreamReader;
use marigram_model::WriteBatch;
use marigram_service::{Rejected, WriteReport};
use serde::Deserialize;
use std::io::Read;
use std::path::Path;
use std::time::Duration;
use ureq::http::Response;
use ureq::{Agent, Body};

/// A server's HTTP address.
pub struct Remote {
    agent: Agent,
    url: String,
}

const ARROW: &str = "application/vnd.apache.arrow.stream";
const TRIES_MAX: u32 = 20;

/// What `/api/v1/backup` answers.
#[derive(Deserialize)]
pub struct RemoteBackup {
    /// Its number.
    pub number: u64,
    /// The folder on the server's machine.
    pub dir: String,
    /// The moment that it shows, ns since the epoch.
    pub taken_ns: i64,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Bytes that the folder did not have before.
    pub bytes_new: u64,
    /// Numbers of older backups that were removed.
    pub pruned: Vec<u64>,
    /// What did not go as it should.
    pub warnings: Vec<String>,
}

/// What `/write` answers when lines were refused.
#[derive(Default, Deserialize)]
struct Partial {
    rejected: usize,
    lines: Vec<BadLine>,
}

#[derive(Deserialize)]
struct BadLine {
    line: usize,
    message: String,
}

impl Remote {
    /// A server at `url`; nothing is sent yet.
    pub fn new(url: &str) -> Result<Self> {
        if !url.starts_with("http://") {
            bail!("'{url}' is not an address that I can ask: it begins with http://");
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(10)))
            .build();
        Ok(Self {
            agent: config.into(),
            url: url.trim_end_matches('/').to_owned(),
        })
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs one statement in `database`.
    pub fn execute(&self, database: &str, statement: &str) -> Result<Reply, Failure> {
        let request = self
            .agent
            .post(format!("{}/api/v1/sql", self.url))
            .query("db", database)
            .header("Accept", ARROW)
            .content_type("application/sql");
        let response = request
            .send(statement)
            .map_err(|error| self.unreachable(&error))?;
        if !response.status().is_success() {
            return Err(failure(response));
        }
        for notice in response.headers().get_all(NOTICE) {
            tell_notice(&String::from_utf8_lossy(notice.as_bytes()));
        }
        let body = response.into_body().into_reader();
        let broken = |error| Failure::new(format!("the server's answer ends early: {error}"));
        let reader = StreamReader::try_new(body, None).map_err(broken)?;
        let schema = reader.schema();
        let columns: Vec<&str> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        let mut batches = reader.map(move |batch| batch.map_err(broken));
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
            return Ok(Reply::Done(tag.unwrap_or_default()));
        }
        Ok(Reply::Rows(Rows {
            schema,
            batches: Box::new(batches),
        }))
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        Failure::new(format!(
            "cannot reach {}: {error}; is `marigram serve` running?",
            self.url
        ))
    }

    /// Asks the server for a backup into `dir` on its machine (none: its own folder of backups).
    pub fn backup(&self, dir: Option<&Path>, keep: Option<usize>) -> Result<RemoteBackup> {
        let mut request = self.agent.post(format!("{}/api/v1/backup", self.url));
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

    /// Stores batches as line protocol; waits where the server is busy.
    pub fn write(&self, database: &str, batches: &[WriteBatch]) -> Result<Vec<WriteReport>> {
        let mut body = String::new();
        let mut lines = Vec::new();
        let mut reports = Vec::new();
        for (at, batch) in batches.iter().enumerate() {
            let mut report = WriteReport::default();
            for row in 0..batch.len() {
                match line_text::put_row(batch, row, &mut body) {
                    Ok(()) => lines.push((at, row)),
                    Err(reason) => report.rejected.push(Rejected { row, reason }),
                }
            }
            reports.push(report);
        }
        let refused = if lines.is_empty() {
            Partial::default()
        } else {
            self.send(database, &body)?
        };
        for bad in refused.lines {
            if let Some((at, row)) = bad.line.checked_sub(1).and_then(|line| lines.get(line)) {
                reports[*at].rejected.push(Rejected {
                    row: *row,
                    reason: bad.message,
                });
            }
        }
        for (report, batch) in reports.iter_mut().zip(batches) {
            report.stored = batch.len() - report.rejected.len();
            report.rejected.sort_by_key(|rejected| rejected.row);
        }
        // The server names the first refused lines; of the others it tells only the number.
        let named: usize = reports.iter().map(|report| report.rejected.len()).sum();
        let unnamed = (refused.rejected + batches.iter().map(WriteBatch::len).sum::<usize>())
            .saturating_sub(lines.len() + named);
        if let Some(report) = reports.iter_mut().find(|report| report.stored >= unnamed) {
            report.stored -= unnamed;
            let reason = "refused by the server, which named only the first ones".to_owned();
            let unnamed = (0..unnamed).map(|_| Rejected {
                row: usize::MAX,
                reason: reason.clone(),
            });
            report.rejected.extend(unnamed);
        }
        Ok(reports)
    }

    /// Sends lines until the server took them; what it refused.
    fn send(&self, database: &str, body: &str) -> Result<Partial> {
        for _ in 0..TRIES_MAX {
            let request = self
                .agent
                .post(format!("{}/write", self.url))
                .query("db", database)
                .query("precision", "ns");
            let response = request
                .send(body)
                .map_err(|error| self.unreachable(&error))?;
            match response.status().as_u16() {
                204 => return Ok(Partial::default()),
                429 | 503 => std::thread::sleep(retry_after(&response)),
                400 => {
                    let text = text(response);
                    return match serde_json::from_str(&text) {
                        Ok(partial) => Ok(partial),
                        Err(_) => bail!("{}", parse_failure(&text).message),
                    };
                }
                _ => bail!("{}", failure(response).message),
            }
        }
        bail!("{} stayed busy; try again later", self.url)
    }
}

/// Header with what the server tells beside an answer.
const NOTICE: &str = "marigram-notice";
/// The columns in which the server tells what a statement without rows did.
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
    let mut text = String::new();
    let read = response
        .into_body()
        .into_reader()
        .take(1 << 20)
        .read_to_string(&mut text);
    if read.is_err() && text.is_empty() {
        "the answer could not be read".into()
    } else {
        text
    }
}

fn failure(response: Response<Body>) -> Failure {
    let status = response.status();
    let text = text(response);
    if text.trim().is_empty() {
        return Failure::new(format!("the server answered {status}"));
    }
    parse_failure(&text)
}

/// `{"error": {"message", "position"}}`, as the server says it; other texts as they are.
fn parse_failure(text: &str) -> Failure {
    let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let error = &value["error"];
    let message = error["message"].as_str().or(error.as_str()).unwrap_or(text);
    let position = error["position"]
        .as_u64()
        .and_then(|position| usize::try_from(position).ok());
    Failure {
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
        assert!(Remote::new("ftp://example.org").is_err());
        assert_eq!(
            Remote::new("http://localhost:8086/").unwrap().url(),
            "http://localhost:8086"
        );
    }
}
