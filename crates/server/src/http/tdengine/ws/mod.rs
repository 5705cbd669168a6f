//! The WebSocket: messages of JSON and of bytes, which are answered one after the other.
//!
//! A message is answered before the next one is looked at; but the connection is read meanwhile, so that a
//! client that leaves stops its statement, and one that asks whether the server lives is answered.

mod actions;
mod bound_fields;
mod reply;
mod results;
mod session;
mod statement_actions;
mod statements;

use crate::http::HttpShared;
use crate::http::connections::ConnectedPeer;
use crate::http::read_budget::ReadBudget;
use crate::http::request_context::RequestContext;
use crate::slow_log::PEER;
use axum::Extension;
use axum::extract::ConnectInfo;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use session::TaosSession;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Bytes that a client may send before it logs in.
const LOGIN_BYTES: usize = 64 << 10;

/// Bytes that a connection reads at once.
const READ_BYTES: usize = 16 << 10;

/// The open WebSocket connections of a listener. Cheap to clone.
#[derive(Clone)]
pub(in crate::http) struct TaosSessions {
    /// Fires when no new request may begin.
    stop: CancellationToken,
    open: Arc<watch::Sender<usize>>,
}

impl TaosSessions {
    /// Those of a listener that stops with `stop`.
    pub(in crate::http) fn new(stop: CancellationToken) -> Self {
        Self {
            stop,
            open: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Waits until all have ended.
    pub(in crate::http) async fn ended(&self) {
        let _ = self.open.subscribe().wait_for(|open| *open == 0).await;
    }

    fn begin(&self) -> OpenSession {
        self.open.send_modify(|open| *open += 1);
        OpenSession(self.open.clone())
    }
}

/// Counts a WebSocket while it exists.
struct OpenSession(Arc<watch::Sender<usize>>);

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

/// `GET /ws`: makes a WebSocket of the connection.
pub(in crate::http) async fn upgrade(
    RequestContext(shared): RequestContext,
    Extension(sessions): Extension<TaosSessions>,
    ConnectInfo(peer): ConnectInfo<ConnectedPeer>,
    uri: Uri,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let bytes_max = message_bytes_max(&shared);
    let open = sessions.begin();
    // Otherwise the connection would be closed as an idle one.
    let busy = peer.busy();
    let permit = shared.server.gate.lease_of(peer.held());
    *peer.budget() = Some(ReadBudget::new(permit, LOGIN_BYTES));
    let credentials = super::credentials(&uri, &headers);
    let upgrade = upgrade
        .read_buffer_size(READ_BYTES)
        .max_message_size(bytes_max)
        .max_frame_size(bytes_max);
    upgrade.on_upgrade(move |socket| async move {
        let (remote, held) = (peer.remote(), peer.held().clone());
        let session = TaosSession::new(shared, peer, (credentials, bytes_max));
        let served = session.run(socket, sessions.stop.clone());
        PEER.scope(remote, held.scope(served)).await;
        drop((busy, open));
    })
}

/// The longest message.
fn message_bytes_max(shared: &HttpShared) -> usize {
    let config = &shared.server.config;
    let gate = &shared.server.gate;
    gate.body_limit("body_limit", config.body_limit).bytes
}
