//! What a connection holds.

use super::IotDbShared;
use super::frames::{FrameLimit, FrameSocket};
use super::login::OpenedSession;
use super::open_query::SessionQueries;
use crate::tls::ClientStream;
use std::net::SocketAddr;
use tokio::sync::OwnedSemaphorePermit;

/// A connection.
pub(super) struct IotDbSession {
    pub(super) socket: FrameSocket,
    pub(super) shared: IotDbShared,
    pub(super) opened: Option<OpenedSession>,
    pub(super) queries: SessionQueries,
    pub(super) peer: SocketAddr,
    pub(super) last_statement: i64,
    /// Taken with the first session, and held until the connection ends.
    pub(super) place: Option<OwnedSemaphorePermit>,
    pub(super) frame_limit: FrameLimit,
}

impl IotDbSession {
    /// The session of a connection.
    pub(super) fn new(stream: ClientStream, peer: SocketAddr, shared: &IotDbShared) -> Self {
        let server = &shared.server;
        let limit = server
            .gate
            .body_limit("body_limit", server.config.body_limit);
        Self {
            socket: FrameSocket::new(stream, &server.gate, server.config.write_timeout()),
            shared: shared.clone(),
            opened: None,
            queries: SessionQueries::default(),
            peer,
            last_statement: 0,
            place: None,
            frame_limit: FrameLimit {
                bytes: limit.bytes,
                setting: limit.setting,
            },
        }
    }
}
