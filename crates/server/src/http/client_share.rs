//! What an answer takes of the server while it streams: time until it must stop, and memory for the
//! bytes that its client did not take yet.

use crate::admission::{AdmissionControl, MemoryPermit, RequestPermit};
use crate::held_bytes::HeldBytes;
use crate::http::HttpShared;
use bytes::Bytes;
use marigram_service::{CommitPoint, ServiceError, timed_out};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Bytes of a part that every answer may hold; larger parts reserve memory.
pub(super) const BYTES_FREE: usize = 64 << 10;

/// How long an answer waits for memory before it begins.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(2);

/// When to stop a statement.
pub(crate) struct StopTime {
    /// The moment of its timeout.
    pub deadline: Option<tokio::time::Instant>,
    /// The timeout itself, for the message.
    pub timeout: Option<Duration>,
    /// Fires when the server stops.
    pub kill: CancellationToken,
}

impl StopTime {
    /// That of a statement which begins now.
    pub(super) fn new(shared: &HttpShared, timeout: Option<Duration>) -> Self {
        Self::after(timeout, shared.server.kill.clone())
    }

    /// That of a statement which begins now, on a server that stops with `kill`.
    pub(crate) fn after(timeout: Option<Duration>, kill: CancellationToken) -> Self {
        let deadline = timeout.and_then(|timeout| tokio::time::Instant::now().checked_add(timeout));
        Self {
            deadline,
            timeout,
            kill,
        }
    }

    /// Waits for `work`, for the timeout, or for the end of the server. Work that commits is awaited
    /// beyond its timeout.
    pub(crate) async fn guard<T>(
        &self,
        work: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, ServiceError> {
        let commit = CommitPoint::of_task();
        let timeout = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
            commit
                .stopped(&timed_out(self.timeout.unwrap_or_default()))
                .await
        };
        let stopping = async {
            self.kill.cancelled().await;
            commit.stopped("the server is stopping; try again").await
        };
        tokio::select! {
            biased;
            done = commit.scope(work) => done,
            error = timeout => Err(error),
            error = stopping => Err(error),
        }
    }
}

/// The resources of the server that a client may hold for its answer.
pub(super) struct ClientShare {
    gate: AdmissionControl,
    /// What the client's connection holds.
    held: HeldBytes,
    /// For bytes that are formatted and not ready to be sent.
    lease: MemoryPermit,
    /// How long to wait for memory after the answer began.
    wait_max: Duration,
    _ticket: RequestPermit,
}

impl ClientShare {
    /// The share of the request that was admitted with `ticket`.
    pub(super) fn new(shared: &HttpShared, ticket: RequestPermit) -> Self {
        Self {
            gate: shared.server.gate.clone(),
            held: HeldBytes::of_task(),
            lease: shared.server.gate.lease(),
            wait_max: shared.server.config.write_timeout().unwrap_or(WAIT_MAX),
            _ticket: ticket,
        }
    }

    /// How long to wait for memory once the answer began.
    pub(super) fn wait_max(&self) -> Duration {
        self.wait_max
    }

    /// Holds `bytes` for what is encoded and not ready to be sent; says whether there was room.
    pub(super) async fn hold(&mut self, bytes: usize) -> bool {
        self.lease.hold_in_time(bytes).await
    }

    /// Counts bytes until they are sent.
    ///
    /// # Errors
    /// `Busy` where there is no memory for them in time.
    pub(super) async fn count(
        &mut self,
        bytes: Vec<u8>,
        wait_max: Duration,
    ) -> Result<Bytes, ServiceError> {
        if bytes.len() <= BYTES_FREE {
            return Ok(Bytes::from(bytes));
        }
        let mut lease = self.gate.lease_of(&self.held);
        if !lease.grow_within(bytes.len(), wait_max).await {
            return Err(ServiceError::Busy {
                message: "answers that wait for their readers fill the memory set aside for \
                          requests"
                    .to_owned(),
                retry_after: Duration::from_secs(1),
            });
        }
        Ok(Bytes::from_owner(CountedBytes {
            bytes,
            _lease: lease,
        }))
    }
}

/// Bytes, and the permit to hold them.
struct CountedBytes {
    bytes: Vec<u8>,
    _lease: MemoryPermit,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
