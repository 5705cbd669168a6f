//! A connection of the telnet protocol: lines in, and a line out where something is wrong or was asked
//! for.
//!
//! Points of lines that arrive together are stored together. `put` has no answer, so a client learns
//! only of points that were refused; a point whose connection breaks may be stored or not.

use super::LISTENER;
use super::line_buffer::{LINE_BYTES_MAX, LineBuffer, ReceivedLine};
use super::pending_points::PendingPoints;
use crate::audit::ClientAddress;
use crate::http::{NO_USERS, is_loopback};
use crate::linger::LingeringConnection;
use crate::listener::{ListenerContext, ServerState};
use crate::metric_rows::{PointSource, store_points};
use crate::tls::ClientStream;
use bytes::BytesMut;
use marigram_opentsdb::{DataPoint, PutFault, TELNET_COMMANDS, TelnetCommand};
use marigram_service::{Identity, ServiceError};
use std::fmt::Write;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The route of points, for figures.
const ROUTE: &str = "telnet put";

/// The name of a client that does not say who it is.
const NOBODY: &str = "telnet";

/// How long a client may say nothing, and how long it may pause within a line.
const IDLE_MAX: Duration = Duration::from_mins(10);
const REST_WAIT_MAX: Duration = Duration::from_mins(1);

/// How long a client may take to say who it is, and how long it then has to take the answer that it is late.
const LOGIN_WAIT_MAX: Duration = Duration::from_secs(15);
const FAREWELL_WAIT_MAX: Duration = Duration::from_secs(1);

/// Bytes of replies that are collected before they are sent.
const REPLY_BYTES: usize = 32 << 10;

/// How long points wait for their turn while too many requests run.
const TURN_WAIT_MAX: Duration = Duration::from_secs(10);
const TURN_ASK_EVERY: Duration = Duration::from_millis(20);

/// A connection.
pub(super) struct TelnetSession {
    stream: ClientStream,
    peer: SocketAddr,
    server: ServerState,
    stop: CancellationToken,
    /// The client; `None` before it proved who it is.
    identity: Option<Identity>,
    /// When the client must have proved it; `None` once it has.
    login_by: Option<tokio::time::Instant>,
    pending: PendingPoints,
    replies: String,
}

/// Whether a session continues.
#[derive(PartialEq, Eq)]
enum SessionStep {
    Continue,
    End,
}

impl TelnetSession {
    /// The session of a connection.
    pub(super) fn new(stream: ClientStream, peer: SocketAddr, context: &ListenerContext) -> Self {
        Self {
            stream,
            peer,
            server: context.server.clone(),
            stop: context.stop.clone(),
            identity: None,
            login_by: None,
            pending: PendingPoints::new(&context.server.gate),
            replies: String::new(),
        }
    }

    /// Tells the client that there are too many connections.
    pub(super) async fn refuse_for_lack_of_places(mut self) -> io::Result<()> {
        self.replies
            .push_str("error: as many connections as connections_max allows are open\n");
        self.close().await
    }

    /// Serves the client until it leaves, or the server stops.
    pub(super) async fn run(mut self) -> io::Result<()> {
        if self.server.services.access.is_open() {
            if !is_loopback(self.peer.ip()) {
                let _ = writeln!(self.replies, "error: {NO_USERS}");
                return self.close().await;
            }
            self.identity = Some(Identity::unproved(NOBODY));
        } else {
            self.login_by = Some(tokio::time::Instant::now() + LOGIN_WAIT_MAX);
        }
        let mut lines = LineBuffer::default();
        loop {
            let kill = self.server.kill.clone();
            let step = tokio::select! {
                step = self.serve_lines(&mut lines) => step?,
                () = kill.cancelled() => return Ok(()),
            };
            if step == SessionStep::End {
                return self.close().await;
            }
            let idle_max = if lines.has_part() {
                REST_WAIT_MAX
            } else {
                IDLE_MAX
            };
            let login_max = self.login_time_left();
            let wait_max = login_max.map_or(idle_max, |left| left.min(idle_max));
            let stop = self.stop.clone();
            let read = tokio::select! {
                read = timeout(wait_max, self.stream.read_buf(lines.bytes())) => read,
                () = stop.cancelled() => return self.close().await,
            };
            match read {
                Ok(Ok(0)) => return Ok(()),
                Ok(read) => lines.note_read(read?),
                Err(_) => {
                    if !self.is_late_to_log_in() {
                        self.replies += "error: nothing was sent for too long\n";
                    }
                    return self.close().await;
                }
            }
        }
    }

    /// Serves the lines that are complete.
    async fn serve_lines(&mut self, lines: &mut LineBuffer) -> io::Result<SessionStep> {
        while let Some(line) = lines.next_line() {
            if self.is_late_to_log_in() {
                return Ok(SessionStep::End);
            }
            let step = match line {
                ReceivedLine::TooLong => {
                    self.store().await;
                    let _ = writeln!(
                        self.replies,
                        "error: a line has more than {LINE_BYTES_MAX} bytes"
                    );
                    SessionStep::Continue
                }
                ReceivedLine::Line(line) => self.serve_line(&line).await,
            };
            if self.replies.len() >= REPLY_BYTES {
                self.send().await?;
            }
            if step == SessionStep::End {
                return Ok(step);
            }
        }
        self.store().await;
        self.send().await?;
        Ok(SessionStep::Continue)
    }

    /// The time in which the client must say who it is; `None` if it has.
    fn login_time_left(&self) -> Option<Duration> {
        Some(self.login_by?.duration_since(tokio::time::Instant::now()))
    }

    /// Whether that time is over; tells the client so.
    fn is_late_to_log_in(&mut self) -> bool {
        let is_late = self.login_time_left().is_some_and(|left| left.is_zero());
        if is_late {
            self.replies += "error: no auth was sent for too long\n";
        }
        is_late
    }

    async fn serve_line(&mut self, line: &BytesMut) -> SessionStep {
        let command = TelnetCommand::parse(line);
        if let TelnetCommand::Put(point) = command {
            self.put(point).await;
            return SessionStep::Continue;
        }
        // Replies come in the order of the lines.
        self.store().await;
        match command {
            TelnetCommand::Put(_) | TelnetCommand::Nothing => {}
            TelnetCommand::Exit => return SessionStep::End,
            TelnetCommand::Version => {
                let version = env!("CARGO_PKG_VERSION");
                let _ = writeln!(
                    self.replies,
                    "net.opentsdb 2.4.0, as Marigram {version} speaks it"
                );
            }
            TelnetCommand::Help => {
                let _ = writeln!(self.replies, "available commands: {TELNET_COMMANDS}");
            }
            TelnetCommand::DropCaches => self.replies.push_str("Caches dropped.\n"),
            TelnetCommand::Stats => self.stats(),
            TelnetCommand::Password { user, password } => {
                let access = &self.server.services.access;
                let found = access.check_password(&user, &password).await;
                return self.log_in(&user, found).await;
            }
            TelnetCommand::Token(token) => {
                let access = &self.server.services.access;
                let found = access.check_token(&token).ok_or_else(|| {
                    ServiceError::Unauthenticated("the token is wrong or has expired".to_owned())
                });
                return self.log_in(NOBODY, found).await;
            }
            TelnetCommand::Unknown(word) => {
                let _ = writeln!(self.replies, "unknown command: {word}.  Try `help'.");
            }
        }
        SessionStep::Continue
    }

    async fn log_in(&mut self, user: &str, found: Result<Identity, ServiceError>) -> SessionStep {
        let client = ClientAddress {
            listener: LISTENER.setting,
            address: self.peer,
        };
        match found {
            Ok(identity) => {
                self.server.audit.note_login(client, &identity, false);
                self.identity = Some(identity);
                self.login_by = None;
                self.replies.push_str("AUTH_SUCCESS\r\n");
                SessionStep::Continue
            }
            Err(error) => {
                if matches!(error, ServiceError::Unauthenticated(_)) {
                    self.server.audit.note_failed_login(client, user);
                    self.server.failed_logins.slow_down(self.peer.ip()).await;
                }
                self.replies.push_str("AUTH_FAIL\r\n");
                SessionStep::End
            }
        }
    }

    async fn put(&mut self, point: Result<DataPoint, PutFault>) {
        let fault = match point {
            Ok(_) if self.identity.is_none() => {
                "not authorized: send auth USER PASSWORD or auth TOKEN first".to_owned()
            }
            Ok(point) => {
                if !self.pending.reserve(&point) {
                    // Those before make room.
                    self.store().await;
                    self.pending.reserve(&point);
                }
                self.pending.push(point);
                if self.pending.are_full() {
                    self.store().await;
                }
                return;
            }
            Err(PutFault::IllegalArgument(text)) => format!("illegal argument: {text}"),
            Err(PutFault::InvalidValue(text)) => format!("invalid value: {text}"),
        };
        let _ = writeln!(self.replies, "put: {fault}");
    }

    /// Stores the points that were read, and tells what is wrong with those that cannot be.
    async fn store(&mut self) {
        let (Some(identity), false) = (&self.identity, self.pending.is_empty()) else {
            return;
        };
        let none = PendingPoints::new(&self.server.gate);
        let pending = std::mem::replace(&mut self.pending, none);
        let source = PointSource {
            listener: LISTENER.setting,
            route: ROUTE,
            identity,
        };
        let begin = Instant::now();
        let stored = self.store_in_turn(source, pending).await;
        let status = match &stored {
            Ok(stored) if stored.is_empty() => 204,
            Ok(_) => 400,
            Err(ServiceError::Forbidden(_)) => 403,
            Err(ServiceError::Internal(_)) => 500,
            Err(_) => 503,
        };
        self.server.telemetry.request(ROUTE, status, begin);
        match stored {
            Ok(reasons) => {
                for reason in reasons {
                    let reason = reason.replace(['\r', '\n'], " ");
                    let _ = writeln!(self.replies, "put: illegal argument: {reason}");
                }
            }
            Err(error) => {
                let reason = error.to_string().replace(['\r', '\n'], " ");
                let kind = match error {
                    ServiceError::Busy { .. } => "Please throttle writes",
                    ServiceError::Forbidden(_) | ServiceError::Unauthenticated(_) => {
                        "not authorized"
                    }
                    _ => "storage error",
                };
                let _ = writeln!(self.replies, "put: {kind}: {reason}");
            }
        }
    }

    /// Stores points as soon as there is a place among the requests that run.
    ///
    /// # Errors
    /// Why none was stored.
    async fn store_in_turn(
        &self,
        source: PointSource<'_>,
        mut pending: PendingPoints,
    ) -> Result<Vec<String>, ServiceError> {
        let mut waited = Duration::ZERO;
        let _ticket = loop {
            // The client waits, and sends no more meanwhile.
            if let Some(ticket) = self.server.gate.enter()
                && pending.are_counted()
            {
                break ticket;
            }
            if waited >= TURN_WAIT_MAX {
                return Err(ServiceError::Busy {
                    message: "too many requests are running".to_owned(),
                    retry_after: Duration::from_secs(1),
                });
            }
            tokio::time::sleep(TURN_ASK_EVERY).await;
            waited += TURN_ASK_EVERY;
        };
        let (points, _lease) = pending.into_parts();
        let stored = store_points(&self.server, source, points).await?;
        let rejected = stored.rejected.into_iter();
        Ok(rejected.map(|(_, reason)| reason).collect())
    }

    fn stats(&mut self) {
        let Some(identity) = &self.identity else {
            self.replies.push_str("stats: not authorized\n");
            return;
        };
        let Ok(rights) = self.server.services.access.rights(identity) else {
            return;
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.map_or(0, |now| now.as_secs());
        for metric in self.server.services.status.metrics() {
            let mut databases = metric.labels.iter().filter(|(name, _)| *name == "database");
            if !databases.all(|(_, database)| rights.see(database)) {
                continue;
            }
            let _ = write!(self.replies, "{} {seconds} {}", metric.name, metric.value);
            for (name, value) in &metric.labels {
                let _ = write!(self.replies, " {name}={}", value.replace([' ', '\n'], "_"));
            }
            self.replies.push('\n');
        }
    }

    /// Sends the replies, to a client that takes them in time.
    async fn send(&mut self) -> io::Result<()> {
        if self.replies.is_empty() {
            return Ok(());
        }
        let replies = std::mem::take(&mut self.replies);
        let write_max = self.server.config.write_timeout();
        let login_left = self.login_time_left();
        let login_max = login_left.map(|left| left.max(FAREWELL_WAIT_MAX));
        let stream = &mut self.stream;
        let sent = async {
            stream.write_all(replies.as_bytes()).await?;
            stream.flush().await
        };
        match write_max.into_iter().chain(login_max).min() {
            None => sent.await,
            Some(wait_max) => match timeout(wait_max, sent).await {
                Ok(sent) => sent,
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            },
        }
    }

    /// Sends the replies and closes the connection, also while the client still sends.
    async fn close(mut self) -> io::Result<()> {
        self.send().await?;
        self.stream.shutdown().await?;
        let mut linger = LingeringConnection::while_it_sends(self.stop.clone());
        poll_fn(|context| linger.poll(&mut self.stream, context)).await;
        Ok(())
    }
}
