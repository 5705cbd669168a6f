//! The session of a WebSocket: its messages, one after the other.
//!
//! Invariant: the messages that wait are few, their bytes are counted, and a client that leaves stops what
//! runs for it.

use super::LOGIN_BYTES;
use super::actions::TaosActions;
use super::reply::{Reply, ReplyHead};
use super::results::raw_failure;
use crate::admission::MemoryPermit;
use crate::http::HttpShared;
use crate::http::connections::ConnectedPeer;
use crate::http::credentials::Credentials;
use crate::http::tdengine::error::TaosFailure;
use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use marigram_tdengine::BinaryRequest;
use serde::Deserialize;
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// How long a client may take to log in.
const LOGIN_WAIT_MAX: Duration = Duration::from_secs(30);

/// After which silence the server asks whether the client lives, and after which it closes the connection.
const PING_EVERY: Duration = Duration::from_secs(30);
const SILENCE_MAX: Duration = Duration::from_mins(2);

/// Messages that wait while another one is answered.
const WAITING_MAX: usize = 16;

/// Bytes of JSON above which the memory of its values is reserved, and how much that is for each byte.
const JSON_BYTES_FREE: usize = 16 << 10;
const JSON_FACTOR: usize = 16;

/// Codes of closing: the server stops, the client is late, a message is none.
const GOING_AWAY: u16 = 1001;
const POLICY: u16 = 1008;
const NOT_UNDERSTOOD: u16 = 1003;

/// The session.
pub(super) struct TaosSession {
    actions: TaosActions,
    peer: ConnectedPeer,
    /// The longest message of a client that has logged in.
    bytes_max: usize,
}

/// A message, and the memory that it takes.
struct ReceivedMessage {
    message: Message,
    permit: MemoryPermit,
}

/// A request in JSON.
#[derive(Deserialize)]
struct TextRequest {
    #[serde(default)]
    action: String,
    #[serde(default)]
    req_id: u64,
    #[serde(default)]
    args: Value,
}

impl TaosSession {
    /// The session of a client; `credentials` came with the request for the WebSocket.
    pub(super) fn new(
        shared: HttpShared,
        peer: ConnectedPeer,
        (credentials, bytes_max): (Credentials, usize),
    ) -> Self {
        Self {
            actions: TaosActions::new(shared, peer.remote(), credentials),
            peer,
            bytes_max,
        }
    }

    /// Serves the client until it leaves, or the server stops.
    pub(super) async fn run(mut self, mut socket: WebSocket, stop: CancellationToken) {
        let kill = self.actions.kill();
        let served = self.serve(&mut socket, &stop);
        let close = tokio::select! {
            close = served => close,
            () = kill.cancelled() => None,
        };
        if let Some((code, reason)) = close {
            let reason = reason.into();
            let _ = socket
                .send(Message::Close(Some(CloseFrame { code, reason })))
                .await;
        }
    }

    /// Serves messages; returns how to close the connection, if it is still there.
    async fn serve(
        &mut self,
        socket: &mut WebSocket,
        stop: &CancellationToken,
    ) -> Option<(u16, &'static str)> {
        let login_by = Instant::now() + LOGIN_WAIT_MAX;
        let mut waiting = VecDeque::new();
        let mut last = Instant::now();
        loop {
            let message = match waiting.pop_front() {
                Some(message) => message,
                None => {
                    let login_by = (!self.actions.has_login()).then_some(login_by);
                    let timers = (login_by, last + SILENCE_MAX);
                    match self.next_message(socket, stop, timers).await {
                        Ok(message) => message,
                        Err(close) => return close,
                    }
                }
            };
            let reply = self.answered(socket, message, &mut waiting).await?;
            match reply {
                Ok(reply) => send(socket, reply).await?,
                Err(reason) => return Some((NOT_UNDERSTOOD, reason)),
            }
            if self.actions.has_login()
                && let Some(budget) = self.peer.budget().as_mut()
            {
                budget.allow(self.bytes_max.saturating_add(LOGIN_BYTES));
            }
            last = Instant::now();
        }
    }

    /// Waits for a message.
    ///
    /// # Errors
    /// How to close the connection, if it is still there.
    async fn next_message(
        &mut self,
        socket: &mut WebSocket,
        stop: &CancellationToken,
        (login_by, silent_until): (Option<Instant>, Instant),
    ) -> Result<ReceivedMessage, Option<(u16, &'static str)>> {
        let mut silent_until = silent_until;
        let mut ping_at = Instant::now() + PING_EVERY;
        loop {
            let wake_at = login_by.into_iter().chain([ping_at, silent_until]).min();
            tokio::select! {
                message = socket.recv() => {
                    let message = message.and_then(Result::ok).ok_or(None)?;
                    silent_until = Instant::now() + SILENCE_MAX;
                    if let Some(message) = self.received(message)? {
                        return Ok(message);
                    }
                }
                () = stop.cancelled() => return Err(Some((GOING_AWAY, "the server is stopping"))),
                () = sleep_until(wake_at.unwrap_or(ping_at)) => {
                    let now = Instant::now();
                    if login_by.is_some_and(|login_by| login_by <= now) {
                        return Err(Some((POLICY, "no conn was sent for too long")));
                    }
                    if silent_until <= now {
                        return Err(Some((GOING_AWAY, "nothing was sent for too long")));
                    }
                    ping_at = now + PING_EVERY;
                    let ping = Message::Ping(Bytes::new());
                    socket.send(ping).await.map_err(|_| None)?;
                }
            }
        }
    }

    /// A message with its memory; `None` for those that need no answer.
    ///
    /// # Errors
    /// If the client closes the connection.
    fn received(
        &self,
        message: Message,
    ) -> Result<Option<ReceivedMessage>, Option<(u16, &'static str)>> {
        match &message {
            Message::Close(_) => return Err(None),
            Message::Ping(_) | Message::Pong(_) => return Ok(None),
            Message::Text(_) | Message::Binary(_) => {}
        }
        let next = self.actions.lease(&self.peer);
        let permit = match self.peer.budget().as_mut() {
            Some(budget) => budget.take(next),
            None => next,
        };
        Ok(Some(ReceivedMessage { message, permit }))
    }

    /// Answers a message, and collects those that come meanwhile; `None` if the client left.
    async fn answered(
        &mut self,
        socket: &mut WebSocket,
        message: ReceivedMessage,
        waiting: &mut VecDeque<ReceivedMessage>,
    ) -> Option<Result<Reply, &'static str>> {
        let (peer, actions) = (&self.peer, &mut self.actions);
        let leases = actions.leases();
        let mut answer = std::pin::pin!(answer(actions, message));
        loop {
            let has_room = waiting.len() < WAITING_MAX;
            tokio::select! {
                biased;
                reply = &mut answer => return Some(reply),
                message = socket.recv(), if has_room => {
                    let message = message?.ok()?;
                    match message {
                        Message::Close(_) => return None,
                        Message::Ping(_) | Message::Pong(_) => {}
                        message => {
                            let next = leases.lease_of(peer.held());
                            let permit = match peer.budget().as_mut() {
                                Some(budget) => budget.take(next),
                                None => next,
                            };
                            waiting.push_back(ReceivedMessage { message, permit });
                        }
                    }
                }
            }
        }
    }
}

/// Sends a reply; `None` if the client left.
async fn send(socket: &mut WebSocket, reply: Reply) -> Option<()> {
    let sent = match reply {
        Reply::None => return Some(()),
        Reply::Text(text) => socket.send(Message::Text(text.into())).await,
        Reply::Binary(bytes, _permit) => socket.send(Message::Binary(bytes.into())).await,
    };
    sent.ok()
}

/// The reply to a message.
///
/// # Errors
/// Why the connection must be closed.
async fn answer(
    actions: &mut TaosActions,
    received: ReceivedMessage,
) -> Result<Reply, &'static str> {
    let ReceivedMessage {
        message,
        mut permit,
    } = received;
    match message {
        Message::Text(text) => {
            if text.len() > JSON_BYTES_FREE
                && !permit
                    .grow_in_time(text.len().saturating_mul(JSON_FACTOR))
                    .await
            {
                let head = ReplyHead::new("", 0);
                return Ok(head.failed(&TaosFailure::no_memory()));
            }
            let request: Result<TextRequest, _> = serde_json::from_str(text.as_str());
            drop(text);
            let Ok(request) = request else {
                return Ok(malformed());
            };
            let own = request.args.get("req_id").and_then(Value::as_u64);
            let req_id = if request.req_id > 0 {
                request.req_id
            } else {
                own.unwrap_or(0)
            };
            let mut head = ReplyHead::new(&request.action, req_id);
            head.stmt_id = request.args.get("stmt_id").and_then(Value::as_u64);
            let reply = actions.text(&head, &request.args).await;
            Ok(reply.unwrap_or_else(|failure| head.failed(&failure)))
        }
        Message::Binary(bytes) => {
            let Some(request) = BinaryRequest::parse(&bytes) else {
                return Err("a binary message is shorter than its head");
            };
            let mut head = ReplyHead::new(request.action_name(), request.req_id);
            if matches!(request.action, 1 | 2 | 9) {
                head.stmt_id = Some(request.id);
            }
            let reply = actions.binary(&head, &request, &bytes).await;
            Ok(reply.unwrap_or_else(|failure| {
                if head.action == "fetch_raw_block" {
                    raw_failure(&head, request.id, &failure)
                } else {
                    head.failed(&failure)
                }
            }))
        }
        _ => Ok(Reply::None),
    }
}

fn malformed() -> Reply {
    let head = ReplyHead::new("", 0);
    head.failed(&TaosFailure::other("unmarshal ws request error"))
}
