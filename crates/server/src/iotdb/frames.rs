//! The socket of a connection: frames in, frames out, and the client watched while its request runs.
//!
//! A frame is its length in four bytes, and a message of Thrift.
//!
//! Invariants: the length of a frame is checked before it is waited for; memory is taken for bytes that
//! arrived, not for those that a client announces; a client that takes nothing is disconnected.

use crate::admission::{AdmissionControl, MemoryPermit};
use crate::held_bytes::HeldBytes;
use crate::linger::LingeringConnection;
use crate::tls::ClientStream;
use crate::write_stall::{StalledClients, WriteStall};
use bytes::{Buf, Bytes, BytesMut};
use marigram_service::{CommitPoint, ServiceError, timed_out};
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// Bytes of a frame that every connection may hold; larger ones reserve memory.
const INPUT_BYTES_FREE: usize = 64 << 10;

/// Bytes of an answer that every connection may hold.
const OUTPUT_BYTES_FREE: usize = 64 << 10;

/// Room for each read.
const READ_BYTES_MIN: usize = 4 << 10;
const READ_BYTES_MAX: usize = 256 << 10;

/// The largest buffer that a connection keeps while it waits.
const IDLE_BYTES_MAX: usize = 128 << 10;

/// How long the server waits for more of a frame.
const REST_WAIT_MAX: Duration = Duration::from_mins(1);

/// How long the end of an encrypted connection may wait for its client.
const SHUTDOWN_MAX: Duration = Duration::from_secs(1);

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameConnectionEnd {
    /// The network failed.
    #[error(transparent)]
    Socket(#[from] io::Error),
    /// The client left.
    #[error("the client left")]
    Left,
    /// The client sends something else than frames, or too long ones.
    #[error("a frame of {len} bytes was announced; at most {max}, as {setting} allows")]
    Length {
        /// The length that it announced.
        len: u32,
        /// The limit.
        max: usize,
        /// What sets the limit.
        setting: &'static str,
    },
    /// The bytes are no message.
    #[error("{0}")]
    Malformed(String),
    /// The client began a frame and did not finish it.
    #[error("the rest of a frame did not arrive within {} s", REST_WAIT_MAX.as_secs())]
    Slow,
    /// The client takes nothing of its answer.
    #[error("the client reads nothing of its answer")]
    Stalled,
    /// There is no memory for the frame.
    #[error("there is no memory for a frame of more than {0} bytes now")]
    Full(usize),
    /// The client did not say who it is, or said nothing for too long.
    #[error("the client said nothing for too long")]
    Idle,
    /// The server stops.
    #[error("the server stops")]
    Stopping,
}

/// Why a request ends early.
#[derive(Debug)]
pub(super) enum RequestHalt {
    /// With an error; the connection continues.
    Error(ServiceError),
    /// With the connection.
    Gone(FrameConnectionEnd),
}

impl From<ServiceError> for RequestHalt {
    fn from(error: ServiceError) -> Self {
        Self::Error(error)
    }
}

impl From<FrameConnectionEnd> for RequestHalt {
    fn from(gone: FrameConnectionEnd) -> Self {
        Self::Gone(gone)
    }
}

/// The longest frame, and the setting that says so.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameLimit {
    pub(super) bytes: usize,
    pub(super) setting: &'static str,
}

/// The socket.
pub(super) struct FrameSocket {
    stream: ClientStream,
    input: BytesMut,
    /// The room that the next read gets.
    read_bytes: usize,
    /// Memory for the frame, and for what was read of the next one.
    lease: MemoryPermit,
    /// Memory for the answer, and its count.
    out_lease: MemoryPermit,
    out_held: HeldBytes,
    write_timeout: Option<Duration>,
    stalled: StalledClients,
}

impl FrameSocket {
    /// The socket of a connection. A client that takes nothing for `write_timeout` is disconnected.
    pub(super) fn new(
        stream: ClientStream,
        gate: &AdmissionControl,
        write_timeout: Option<Duration>,
    ) -> Self {
        let out_held = HeldBytes::default();
        Self {
            stream,
            input: BytesMut::new(),
            read_bytes: READ_BYTES_MIN,
            lease: gate.lease(),
            out_lease: gate.lease_of(&out_held),
            out_held,
            write_timeout,
            stalled: gate.stalled().clone(),
        }
    }

    /// The next frame. The one before must have been dropped.
    pub(super) async fn next(&mut self, limit: FrameLimit) -> Result<Bytes, FrameConnectionEnd> {
        let needed = self.input.len().saturating_sub(INPUT_BYTES_FREE);
        self.lease.shrink(self.lease.held().saturating_sub(needed));
        if self.input.is_empty() && self.input.capacity() > IDLE_BYTES_MAX {
            self.input = BytesMut::new();
        }
        loop {
            if let Some(frame) = self.take(limit)? {
                return Ok(frame);
            }
            if self.input.is_empty() {
                self.fill().await?;
                continue;
            }
            let rest = timeout(REST_WAIT_MAX, self.fill()).await;
            rest.map_err(|_| FrameConnectionEnd::Slow)??;
        }
    }

    /// The frame that is complete, if there is one.
    fn take(&mut self, limit: FrameLimit) -> Result<Option<Bytes>, FrameConnectionEnd> {
        let Some((head, rest)) = self.input.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let announced = u32::from_be_bytes(*head);
        let len = usize::try_from(announced).unwrap_or(usize::MAX);
        if len > limit.bytes {
            return Err(FrameConnectionEnd::Length {
                len: announced,
                max: limit.bytes,
                setting: limit.setting,
            });
        }
        if rest.len() < len {
            return Ok(None);
        }
        self.input.advance(4);
        let frame = self.input.split_to(len).freeze();
        if len > IDLE_BYTES_MAX {
            // What follows would keep the memory of the whole frame.
            self.input = BytesMut::from(&self.input[..]);
        }
        Ok(Some(frame))
    }

    async fn fill(&mut self) -> Result<(), FrameConnectionEnd> {
        let needed = self.input.len().saturating_sub(INPUT_BYTES_FREE);
        let more = needed.saturating_sub(self.lease.held());
        if more > 0 && !self.lease.grow_in_time(more).await {
            return Err(FrameConnectionEnd::Full(self.input.len()));
        }
        self.input.reserve(self.read_bytes);
        let read = self.stream.read_buf(&mut self.input).await?;
        if read == 0 {
            return Err(FrameConnectionEnd::Left);
        }
        self.read_bytes = (2 * read).clamp(READ_BYTES_MIN, READ_BYTES_MAX);
        Ok(())
    }

    /// Takes memory for what was read out of the frame, until the next one.
    ///
    /// # Errors
    /// `Busy` if there is none.
    pub(super) async fn hold_input(&mut self, bytes: usize) -> Result<(), ServiceError> {
        let more = bytes.saturating_sub(INPUT_BYTES_FREE);
        if more == 0 || self.lease.grow_in_time(more).await {
            return Ok(());
        }
        Err(no_memory())
    }

    /// Takes memory for an answer, until it is sent.
    ///
    /// # Errors
    /// `Busy` if there is none.
    pub(super) async fn hold_output(&mut self, bytes: usize) -> Result<(), ServiceError> {
        let needed = bytes.saturating_sub(OUTPUT_BYTES_FREE);
        if self.out_lease.hold_in_time(needed).await {
            return Ok(());
        }
        Err(no_memory())
    }

    /// Sends a frame.
    pub(super) async fn send(&mut self, message: Vec<u8>) -> Result<(), FrameConnectionEnd> {
        let Ok(len) = u32::try_from(message.len()) else {
            return Err(FrameConnectionEnd::Malformed(
                "an answer is too long for a frame".to_owned(),
            ));
        };
        let head = len.to_be_bytes();
        let mut frame = Buf::chain(&head[..], message.as_slice());
        let stall = WriteStall::new(self.write_timeout);
        let mut stall = stall.among(&self.stalled, &self.out_held);
        let stream = &mut self.stream;
        while frame.has_remaining() {
            if in_time(&mut stall, stream.write_buf(&mut frame)).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::WriteZero).into());
            }
        }
        // What TLS has encrypted may wait for the socket.
        in_time(&mut stall, stream.flush()).await?;
        self.out_lease.shrink(self.out_lease.held());
        Ok(())
    }

    /// Waits for `work`; stops it if the client leaves, the time is up, or the server stops. Work that
    /// commits is not stopped by time.
    pub(super) async fn guard<T>(
        &mut self,
        watch: &RequestWatch,
        work: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, RequestHalt> {
        let commit = CommitPoint::default();
        let work = commit.scope(work);
        tokio::pin!(work);
        let stopped = async {
            match watch.deadline {
                Some((deadline, timeout)) => {
                    sleep_until(deadline).await;
                    commit.stopped(&timed_out(timeout)).await
                }
                None => std::future::pending().await,
            }
        };
        tokio::pin!(stopped);
        loop {
            let has_room = self.input.len() < INPUT_BYTES_FREE;
            tokio::select! {
                biased;
                done = &mut work => return Ok(done?),
                error = &mut stopped => return Err(error.into()),
                () = watch.kill.cancelled() => return Err(FrameConnectionEnd::Stopping.into()),
                read = self.stream.read_buf(&mut self.input), if has_room => {
                    if read.map_err(FrameConnectionEnd::from)? == 0 {
                        return Err(FrameConnectionEnd::Left.into());
                    }
                }
            }
        }
    }

    /// Ends the connection, also while the client still sends.
    pub(super) async fn close(self, stop: CancellationToken) {
        let Self { mut stream, .. } = self;
        // A client that is gone needs no orderly end, nor does one that does not read.
        let _ = timeout(SHUTDOWN_MAX, stream.shutdown()).await;
        let mut linger = LingeringConnection::while_it_sends(stop);
        poll_fn(|context| linger.poll(&mut stream, context)).await;
    }
}

/// What stops a request.
pub(super) struct RequestWatch {
    /// When its time is up, and how much it had.
    pub(super) deadline: Option<(Instant, Duration)>,
    /// Fires when running requests must stop.
    pub(super) kill: CancellationToken,
}

impl RequestWatch {
    /// For a request that begins now.
    pub(super) fn new(timeout: Option<Duration>, kill: &CancellationToken) -> Self {
        let deadline = timeout.and_then(|timeout| {
            let end = Instant::now().checked_add(timeout)?;
            Some((end, timeout))
        });
        Self {
            deadline,
            kill: kill.clone(),
        }
    }
}

fn no_memory() -> ServiceError {
    ServiceError::Busy {
        message: "requests and answers fill the memory set aside for them; try again later"
            .to_owned(),
        retry_after: Duration::from_secs(1),
    }
}

/// Sends something; ends the connection of a client that takes nothing for too long.
async fn in_time<T>(
    stall: &mut WriteStall,
    sending: impl Future<Output = io::Result<T>>,
) -> Result<T, FrameConnectionEnd> {
    tokio::pin!(sending);
    let sent = poll_fn(|context| match sending.as_mut().poll(context) {
        Poll::Pending => stall.poll(context).map(|()| None),
        Poll::Ready(sent) => Poll::Ready(Some(sent)),
    });
    match sent.await {
        Some(sent) => {
            stall.end();
            Ok(sent?)
        }
        None => Err(FrameConnectionEnd::Stalled),
    }
}
