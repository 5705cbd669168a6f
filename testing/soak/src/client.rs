//! Requests to the server, and their outcomes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Longest duration of a request.
const REQUEST_MAX: Duration = Duration::from_mins(2);

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoakOutcome {
    /// Answered.
    Done,
    /// The client must retry later, or there is not enough memory.
    Refused,
    /// Anything else.
    Failed,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub outcome: SoakOutcome,
    pub body: String,
}

/// A client of the server on a loopback port.
#[derive(Debug)]
pub(crate) struct SoakClient {
    port: u16,
    agent: ureq::Agent,
}

impl SoakClient {
    pub(crate) fn new(port: u16) -> Self {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(REQUEST_MAX))
            .build();
        Self {
            port,
            agent: agent.into(),
        }
    }

    pub(crate) fn is_healthy(&self) -> bool {
        let url = format!("http://127.0.0.1:{}/health", self.port);
        self.agent.get(url).call().is_ok_and(|a| a.status() == 200)
    }

    /// The server's metrics, as text.
    pub(crate) fn metrics(&self) -> String {
        let url = format!("http://127.0.0.1:{}/metrics", self.port);
        let answer = self.agent.get(url).call();
        answer
            .ok()
            .and_then(|mut answer| answer.body_mut().read_to_string().ok())
            .unwrap_or_default()
    }

    pub(crate) fn write(&self, lines: &str) -> HttpResponse {
        self.post("/write?db=main&precision=ms", lines)
    }

    pub(crate) fn sql(&self, sql: &str) -> HttpResponse {
        self.post("/api/v1/sql?db=main", sql)
    }

    fn post(&self, target: &str, body: &str) -> HttpResponse {
        let url = format!("http://127.0.0.1:{}{target}", self.port);
        let sent = self.agent.post(url).header("Accept", "text/csv").send(body);
        let answered = sent.and_then(|mut answer| {
            let status = answer.status().as_u16();
            let body = answer.body_mut().with_config().limit(1 << 28);
            Ok((status, body.read_to_string()?))
        });
        match answered {
            Ok((200..=299, body)) => HttpResponse {
                outcome: SoakOutcome::Done,
                body,
            },
            Ok((status, body)) => HttpResponse {
                outcome: refusal(status, &body),
                body: format!("{status}: {body}"),
            },
            Err(error) => HttpResponse {
                outcome: SoakOutcome::Failed,
                body: error.to_string(),
            },
        }
    }

    /// Requests an answer and reads it slowly, in small pieces, until `over` returns true or the
    /// answer ends.
    pub(crate) fn read_slowly(&self, sql: &str, over: impl Fn() -> bool) -> SoakOutcome {
        let read = || -> std::io::Result<SoakOutcome> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
            write!(
                stream,
                "POST /api/v1/sql?db=main HTTP/1.1\r\nHost: localhost\r\nAccept: text/csv\r\n\
                 Connection: close\r\nContent-Length: {}\r\n\r\n{sql}",
                sql.len()
            )?;
            let (mut part, mut all, begun) = ([0; 2048], 0, Instant::now());
            let mut outcome = SoakOutcome::Failed;
            while !over() && begun.elapsed() < Duration::from_secs(20) {
                match stream.read(&mut part) {
                    Ok(0) => break,
                    Ok(read) => {
                        if all == 0 {
                            let text = String::from_utf8_lossy(&part[..read]);
                            let status = text.split(' ').nth(1).unwrap_or_default();
                            outcome = match status.parse() {
                                Ok(200) => SoakOutcome::Done,
                                Ok(status) => refusal(status, &text),
                                Err(_) => SoakOutcome::Failed,
                            };
                        }
                        all += read;
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                    // The server may close the connection of such a slow reader.
                    Err(_) if all > 0 => break,
                    Err(error) => return Err(error),
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            Ok(if all == 0 {
                SoakOutcome::Refused
            } else {
                outcome
            })
        };
        read().unwrap_or(SoakOutcome::Failed)
    }
}

/// The outcome for a status other than success.
fn refusal(status: u16, body: &str) -> SoakOutcome {
    let memory = body.contains("memory_limit") || body.contains("of memory");
    match status {
        429 | 503 => SoakOutcome::Refused,
        _ if memory => SoakOutcome::Refused,
        _ => SoakOutcome::Failed,
    }
}
