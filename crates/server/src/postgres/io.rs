//! The socket of a connection: it reads messages, writes bytes, and watches the client while a
//! query runs.

use crate::admission::{AdmissionControl, MemoryPermit};
use crate::held_bytes::HeldBytes;
use crate::linger::LingeringConnection;
use crate::postgres::cancel::CancelFlag;
use crate::postgres::error::PgError;
use crate::postgres::messages::{self, BackendMessages, FrontendMessage, StartupMessage};
use crate::tls::{ClientStream, ServerTls, TlsProtocol};
use crate::write_stall::{StalledClients, WriteStall};
use bytes::BytesMut;
use marigram_service::{CommitPoint, timed_out};
use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Bytes for a client that are collected before they are sent.
const FLUSH_BYTES: usize = 128 << 10;
/// Bytes of a message that every connection may hold; larger messages reserve memory.
const INPUT_BYTES_FREE: usize = 64 << 10;
/// Bytes that a client may send ahead while its query runs; further ones stay in the socket.
const AHEAD_BYTES: usize = INPUT_BYTES_FREE;
/// Bytes of an answer that every connection may hold; larger answers reserve memory.
const OUTPUT_BYTES_FREE: usize = FLUSH_BYTES;
/// Largest empty buffer that is kept for the next answer.
const IDLE_BYTES_MAX: usize = 2 * FLUSH_BYTES;
/// How long the server waits for the rest of a message.
const REST_WAIT_MAX: Duration = Duration::from_mins(1);

/// How long the end of an encrypted connection may wait for its client.
const SHUTDOWN_MAX: Duration = Duration::from_secs(1);

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectionEnd {
    /// The client left, or the network failed.
    #[error(transparent)]
    Socket(#[from] io::Error),
    /// The client broke the protocol.
    #[error(transparent)]
    Malformed(#[from] messages::MalformedMessage),
    /// The client uses another protocol.
    #[error("this is not PostgreSQL's protocol")]
    Foreign,
    /// The server stops.
    #[error("the server stops")]
    Stopping,
    /// The client takes nothing of its answer.
    #[error("the client reads nothing of its answer")]
    Stalled,
    /// The client began a message and did not finish it.
    #[error("the rest of a message did not arrive within {} s", REST_WAIT_MAX.as_secs())]
    Slow,
    /// There is no memory for the client's message.
    #[error("there is no memory for a message of more than {0} bytes now; send it again later")]
    Full(usize),
}

/// Why a statement ends early.
#[derive(Debug)]
pub(super) enum StatementHalt {
    /// With an error; the connection continues.
    Error(PgError),
    /// With the connection.
    Gone(ConnectionEnd),
}

impl From<PgError> for StatementHalt {
    fn from(error: PgError) -> Self {
        Self::Error(error)
    }
}

impl From<ConnectionEnd> for StatementHalt {
    fn from(gone: ConnectionEnd) -> Self {
        Self::Gone(gone)
    }
}

impl From<marigram_service::ServiceError> for StatementHalt {
    fn from(error: marigram_service::ServiceError) -> Self {
        Self::Error(error.into())
    }
}

/// External events that stop a statement.
pub(super) struct HaltWatch {
    /// A cancel request on another connection.
    pub flag: Arc<CancelFlag>,
    /// The end of the server's grace period.
    pub kill: CancellationToken,
    /// The deadline of the statement, and its timeout.
    pub deadline: Option<(Instant, Duration)>,
}

/// The socket.
pub(super) struct PostgresSocket {
    stream: ClientStream,
    input: BytesMut,
    /// Messages that have not been sent yet.
    pub out: BackendMessages,
    bytes_max: usize,
    /// Memory reserved for the current message and for `input`.
    lease: MemoryPermit,
    /// Memory reserved for `out`, and its count.
    out_lease: MemoryPermit,
    out_held: HeldBytes,
    write_timeout: Option<Duration>,
    stalled: StalledClients,
}

impl PostgresSocket {
    /// Wraps a connected socket. No message of the client may have more than `bytes_max` bytes, and
    /// large ones reserve memory at `gate`. A client that takes nothing for `write_timeout` is
    /// disconnected.
    pub(super) fn new(
        stream: ClientStream,
        bytes_max: usize,
        gate: &AdmissionControl,
        write_timeout: Option<Duration>,
    ) -> Self {
        let input = BytesMut::with_capacity(8 << 10);
        let out_held = HeldBytes::default();
        Self {
            stream,
            input,
            out: BackendMessages::default(),
            bytes_max,
            lease: gate.lease(),
            out_lease: gate.lease_of(&out_held),
            out_held,
            write_timeout,
            stalled: gate.stalled().clone(),
        }
    }

    async fn fill(&mut self) -> Result<(), ConnectionEnd> {
        let needed = self.input.len().saturating_sub(INPUT_BYTES_FREE);
        let more = needed.saturating_sub(self.lease.held());
        if more > 0 && !self.lease.grow_in_time(more).await {
            return Err(ConnectionEnd::Full(self.input.len()));
        }
        if self.stream.read_buf(&mut self.input).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }

    /// Reads the opening message.
    pub(super) async fn opening(&mut self) -> Result<StartupMessage, ConnectionEnd> {
        loop {
            if messages::is_foreign(&self.input) {
                return Err(ConnectionEnd::Foreign);
            }
            if let Some(opening) = messages::take_opening(&mut self.input)? {
                return Ok(opening);
            }
            self.fill().await?;
        }
    }

    /// The connection under the messages.
    pub(super) fn stream(&self) -> &ClientStream {
        &self.stream
    }

    /// Encrypts the connection, after the client asked for it.
    pub(super) async fn encrypt(&mut self, tls: &ServerTls) -> io::Result<()> {
        self.stream.encrypt(tls, TlsProtocol::Postgres).await
    }

    /// Sets the largest message from here on, in bytes.
    pub(super) fn allow_messages_of(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Whether the client has sent bytes that were not read.
    pub(super) fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// Reads the next message.
    pub(super) async fn next(&mut self) -> Result<FrontendMessage, ConnectionEnd> {
        // The previous message is no longer needed.
        let needed = self.input.len().saturating_sub(INPUT_BYTES_FREE);
        self.lease.shrink(self.lease.held().saturating_sub(needed));
        loop {
            if let Some(message) = messages::take(&mut self.input, self.bytes_max)? {
                return Ok(message);
            }
            if self.input.is_empty() {
                self.fill().await?;
                continue;
            }
            // The bytes that have arrived already hold memory.
            let rest = tokio::time::timeout(REST_WAIT_MAX, self.fill()).await;
            rest.map_err(|_| ConnectionEnd::Slow)??;
        }
    }

    /// Reserves memory for the collected answer if it is large.
    ///
    /// # Errors
    /// If there is no memory.
    pub(super) async fn count_output(&mut self) -> Result<(), PgError> {
        let needed = self.out.bytes.len().saturating_sub(OUTPUT_BYTES_FREE);
        if self.out_lease.hold_in_time(needed).await {
            return Ok(());
        }
        let message = "answers that wait for their readers fill the memory set aside for requests; \
                       try again later";
        Err(PgError::new("53200", message))
    }

    /// Sends the collected messages.
    pub(super) async fn flush(&mut self) -> Result<(), ConnectionEnd> {
        let stall = WriteStall::new(self.write_timeout);
        let mut stall = stall.among(&self.stalled, &self.out_held);
        let stream = &mut self.stream;
        while !self.out.bytes.is_empty() {
            if in_time(&mut stall, stream.write_buf(&mut self.out.bytes)).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::WriteZero).into());
            }
        }
        // What TLS has encrypted may wait for the socket.
        in_time(&mut stall, stream.flush()).await?;
        self.out_lease.shrink(self.out_lease.held());
        if self.out.bytes.capacity() > IDLE_BYTES_MAX {
            self.out.bytes = BytesMut::new();
        }
        Ok(())
    }

    /// Sends the collected messages if they are large.
    pub(super) async fn flush_if_much(&mut self) -> Result<(), ConnectionEnd> {
        if self.out.bytes.len() < FLUSH_BYTES {
            return Ok(());
        }
        self.flush().await
    }

    /// Ends the connection in the way that its client can tell from one that was cut off.
    pub(super) async fn close(mut self) {
        // A client that is gone needs no orderly end, nor does one that does not read.
        let _ = tokio::time::timeout(SHUTDOWN_MAX, self.stream.shutdown()).await;
    }

    /// [Lingers](LingeringConnection), and shuts the sending side once the client pauses.
    pub(super) async fn linger(self, stop: CancellationToken) {
        let Self {
            mut stream,
            input,
            lease,
            ..
        } = self;
        drop((input, lease));
        // libpq gives up at the end of the stream while it sends, before it reads what else
        // arrived.
        let mut linger = LingeringConnection::while_it_sends(stop.clone());
        poll_fn(|context| linger.poll(&mut stream, context)).await;
        // A client that is gone needs no orderly end, nor does one that does not read.
        let _ = tokio::time::timeout(SHUTDOWN_MAX, stream.shutdown()).await;
        let mut linger = LingeringConnection::until(stop);
        poll_fn(|context| linger.poll(&mut stream, context)).await;
    }

    /// Waits for `work`; stops it if the client cancels or disconnects, the time is up, or the
    /// server stops. Work that commits is neither cancelled nor timed out.
    pub(super) async fn guard<T, E>(
        &mut self,
        watch: &HaltWatch,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, StatementHalt>
    where
        StatementHalt: From<E>,
    {
        let commit = CommitPoint::default();
        let work = commit.scope(work);
        tokio::pin!(work);
        let timeout = async {
            match watch.deadline {
                Some((deadline, timeout)) => {
                    tokio::time::sleep_until(deadline).await;
                    timed_out(timeout)
                }
                None => std::future::pending().await,
            }
        };
        let stopped = async {
            let reason = tokio::select! {
                biased;
                () = watch.flag.raised() => "the statement was cancelled by its client".to_owned(),
                reason = timeout => reason,
            };
            let error = commit.stopped(&reason).await;
            watch.flag.lower();
            error
        };
        tokio::pin!(stopped);
        loop {
            let room = self.input.len() < AHEAD_BYTES;
            tokio::select! {
                biased;
                done = &mut work => return Ok(done?),
                error = &mut stopped => return Err(error.into()),
                () = watch.kill.cancelled() => return Err(ConnectionEnd::Stopping.into()),
                read = self.stream.read_buf(&mut self.input), if room => {
                    if read.map_err(ConnectionEnd::from)? == 0 {
                        return Err(ConnectionEnd::from(io::Error::from(io::ErrorKind::UnexpectedEof)).into());
                    }
                }
            }
        }
    }
}

/// Sends something; ends the connection of a client that takes nothing for too long.
async fn in_time<T>(
    stall: &mut WriteStall,
    sending: impl Future<Output = io::Result<T>>,
) -> Result<T, ConnectionEnd> {
    tokio::pin!(sending);
    let sent = poll_fn(|context| match sending.as_mut().poll(context) {
        Poll::Pending => stall
            .poll(context)
            .map(|()| Err(io::Error::from(io::ErrorKind::TimedOut))),
        sent @ Poll::Ready(_) => sent,
    });
    match sent.await {
        Ok(sent) => {
            stall.end();
            Ok(sent)
        }
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(ConnectionEnd::Stalled),
        Err(error) => Err(error.into()),
    }
}
