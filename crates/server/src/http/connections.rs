//! The connections of HTTP: how many there are, and how long an idle one may keep its slot.
//!
//! A connection is *busy* from the head of a request to the end of its answer. One that is not busy
//! is closed after a while, whether it is silent or sends a head byte by byte: otherwise a few
//! thousand such clients would hold every slot. It is closed sooner while another client waits for a
//! slot ([`OpenConnections`]).
//!
//! A request may be answered before its body was read to the end, because it is too large or its
//! path does not exist. The connection then [lingers](LingeringConnection).

use super::connection_activity::{BusyGuard, ConnectionActivity, OpenConnections};
use super::read_budget::ReadBudget;
use crate::config::ServerConfig;
use crate::held_bytes::HeldBytes;
use crate::linger::LingeringConnection;
use crate::tls::{ClientListener, ClientStream};
use crate::write_stall::{StalledClients, WriteStall};
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use futures::{StreamExt, stream};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;

/// Slots in addition to the others, for health checks.
const RESERVED_PLACES: usize = 4;

/// How long a WebSocket waits for memory for a message, and how often it asks.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(10);
const ROOM_ASK_EVERY: Duration = Duration::from_millis(20);

/// Stands for an address that the system does not report; no connection comes to it.
const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// A listener with a number of slots; connections beyond it wait in the system's queue. If all
/// slots are taken, a few more connections may ask for the server's status.
pub(crate) struct HttpConnections {
    listener: ClientListener,
    open: OpenConnections,
    places: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    idle_max: Duration,
    write_max: Option<Duration>,
    stalled: StalledClients,
    stop: CancellationToken,
}

impl HttpConnections {
    /// Accepts from a listener until `stop` fires. Clients who read nothing are listed in `stalled`.
    pub(crate) fn new(
        listener: ClientListener,
        config: &ServerConfig,
        stalled: &StalledClients,
        stop: CancellationToken,
    ) -> Self {
        let connections_max = config.connections_max.clamp(1, Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(connections_max));
        Self {
            listener,
            open: OpenConnections::default(),
            places,
            reserved: Arc::new(Semaphore::new(RESERVED_PLACES)),
            idle_max: Duration::from_millis(config.http_idle_timeout_ms.max(1)),
            write_max: config.write_timeout(),
            stalled: stalled.clone(),
            stop,
        }
    }

    /// A slot for a connection that was accepted: a regular one, or else a reserved one. If there is
    /// neither, idle connections give way.
    async fn slot(&self) -> ConnectionSlot {
        let slot = |permit, is_regular| ConnectionSlot {
            permit,
            is_regular,
            regular: self.places.clone(),
        };
        loop {
            if let Ok(place) = self.places.clone().try_acquire_owned() {
                return slot(Some(place), true);
            }
            if let Ok(place) = self.reserved.clone().try_acquire_owned() {
                return slot(Some(place), false);
            }
            let next_attempt = self.open.close_idle();
            // A reserved slot comes first: its connection may be waiting for a regular one.
            tokio::select! {
                biased;
                place = self.reserved.clone().acquire_owned() => return slot(place.ok(), false),
                place = self.places.clone().acquire_owned() => return slot(place.ok(), true),
                () = sleep(next_attempt) => {}
            }
        }
    }
}

impl Listener for HttpConnections {
    type Io = HttpConnection;
    type Addr = ConnectedPeer;

    async fn accept(&mut self) -> (HttpConnection, ConnectedPeer) {
        // Too many files may be open: an idle connection then gives its descriptor back.
        let open = &self.open;
        let (stream, address) = self
            .listener
            .accept(|| {
                open.close_idle();
            })
            .await;
        // Until it has a slot, it is one connection beyond them.
        let place = self.slot().await;
        let place = Arc::new(AsyncMutex::new(place));
        let activity = Arc::new(ConnectionActivity::default());
        self.open.add(&activity);
        let local = stream.socket().and_then(|socket| socket.local_addr().ok());
        let peer = ConnectedPeer {
            address,
            local: local.map_or(UNKNOWN, |local| local.ip()),
            is_encrypted: stream.is_encrypted(),
            activity: activity.clone(),
            place: Some(place.clone()),
        };
        let stall = WriteStall::new(self.write_max).among(&self.stalled, activity.held());
        let connection = HttpConnection {
            stream,
            activity,
            timer: Box::pin(sleep(self.idle_max)),
            idle_max: self.idle_max,
            stall,
            linger: None,
            room: None,
            stop: self.stop.clone(),
            _place: place,
        };
        (connection, peer)
    }

    fn local_addr(&self) -> io::Result<ConnectedPeer> {
        let address = self.listener.local_addr()?;
        let activity = Arc::default();
        Ok(ConnectedPeer {
            address,
            local: address.ip(),
            is_encrypted: false,
            activity,
            place: None,
        })
    }
}

/// The client of a connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectedPeer {
    address: SocketAddr,
    local: IpAddr,
    is_encrypted: bool,
    activity: Arc<ConnectionActivity>,
    place: Option<Arc<AsyncMutex<ConnectionSlot>>>,
}

/// A connection's slot.
#[derive(Debug)]
struct ConnectionSlot {
    permit: Option<OwnedSemaphorePermit>,
    /// Whether it is a regular slot.
    is_regular: bool,
    /// The regular slots.
    regular: Arc<Semaphore>,
}

impl ConnectionSlot {
    /// Takes a regular slot in place of a reserved one; returns whether there was one in time.
    async fn become_regular(&mut self, wait_max: Duration) -> bool {
        if self.is_regular {
            return true;
        }
        let regular = self.regular.clone().acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout(wait_max, regular).await else {
            return false;
        };
        self.permit = Some(permit);
        self.is_regular = true;
        true
    }
}

impl ConnectedPeer {
    /// Whether the connection has a slot for any request. A connection with a reserved slot waits
    /// up to `wait_max` for a regular one.
    pub(crate) async fn has_slot(&self, wait_max: Duration) -> bool {
        match &self.place {
            Some(place) => place.lock().await.become_regular(wait_max).await,
            None => true,
        }
    }

    /// The remote address of the connection.
    pub(crate) fn remote(&self) -> SocketAddr {
        self.address
    }

    /// The local address of the connection.
    pub(crate) fn local(&self) -> IpAddr {
        self.local
    }

    /// Whether the connection is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// The memory that the connection's requests and answers hold.
    pub(crate) fn held(&self) -> &HeldBytes {
        self.activity.held()
    }

    /// Marks the connection as busy until the returned guard is dropped, for a protocol whose
    /// bodies are read to their end or given up with their stream.
    pub(crate) fn busy(&self) -> BusyGuard {
        self.activity.begin(false);
        BusyGuard(self.activity.clone())
    }

    /// What the client may send, if the connection is a WebSocket.
    pub(crate) fn budget(&self) -> MutexGuard<'_, Option<ReadBudget>> {
        self.activity.budget()
    }

    /// Whether the body of the last request was not read to its end. The connection cannot be used again
    /// then, because the rest of the body is still to come.
    pub(crate) fn has_unread_body(&self) -> bool {
        self.activity.used().unread
    }

    /// Marks the connection as busy until the returned guard is dropped; also returns the request,
    /// whose body it watches.
    pub(crate) fn begin(&self, request: Request) -> (Request, BusyGuard) {
        let unread = !request.body().is_end_stream();
        self.activity.begin(unread);
        let busy = BusyGuard(self.activity.clone());
        if !unread {
            return (request, busy);
        }
        let activity = self.activity.clone();
        let end = stream::poll_fn(move |_| {
            activity.used().unread = false;
            Poll::Ready(None)
        });
        let watch = |body: Body| Body::from_stream(body.into_data_stream().chain(end));
        (request.map(watch), busy)
    }
}

impl Connected<IncomingStream<'_, HttpConnections>> for ConnectedPeer {
    fn connect_info(stream: IncomingStream<'_, HttpConnections>) -> Self {
        stream.remote_addr().clone()
    }
}

/// A connection with its slot.
pub(crate) struct HttpConnection {
    stream: ClientStream,
    activity: Arc<ConnectionActivity>,
    timer: Pin<Box<Sleep>>,
    idle_max: Duration,
    stall: WriteStall,
    linger: Option<LingeringConnection>,
    /// Waits for memory: when to ask again, and until when.
    room: Option<(Pin<Box<Sleep>>, Instant)>,
    stop: CancellationToken,
    /// Released when the connection and everything that refers to it is gone.
    _place: Arc<AsyncMutex<ConnectionSlot>>,
}

impl HttpConnection {
    /// Waits for memory for what a WebSocket has read.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let has_room = self
                .activity
                .budget()
                .as_mut()
                .is_none_or(ReadBudget::has_room);
            if has_room {
                self.room = None;
                return Poll::Ready(Ok(()));
            }
            let (next, last) = self.room.get_or_insert_with(|| {
                let last = Instant::now() + ROOM_WAIT_MAX;
                (Box::pin(sleep(ROOM_ASK_EVERY)), last)
            });
            ready!(next.as_mut().poll(context));
            if Instant::now() > *last {
                return Poll::Ready(Err(io::ErrorKind::OutOfMemory.into()));
            }
            next.as_mut().reset(Instant::now() + ROOM_ASK_EVERY);
        }
    }

    /// Notes whether bytes went out or the client takes none; an error if it has taken none for too
    /// long.
    fn after_write<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stall.end();
            let mut used = self.activity.used();
            used.last = Instant::now();
            used.is_stalled = false;
            drop(used);
            return written;
        }
        self.activity.used().is_stalled = true;
        ready!(self.stall.poll(context));
        tracing::info!(
            "an HTTP client reads nothing of its answer, so the server closes its connection"
        );
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for HttpConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.activity.must_give_way(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        while this.timer.as_mut().poll(context).is_ready() {
            let now = Instant::now();
            let until = {
                let used = this.activity.used();
                let since = if used.requests > 0 { now } else { used.last };
                since + this.idle_max
            };
            if until <= now {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            this.timer.as_mut().reset(until);
        }
        ready!(this.poll_room(context))?;
        let before = into.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, into))?;
        let read = into.filled().len().saturating_sub(before);
        let mut budget = this.activity.budget();
        Poll::Ready(budget.as_mut().map_or(Ok(()), |budget| budget.note(read)))
    }
}

impl AsyncWrite for HttpConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.after_write(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.after_write(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if flushed.is_pending() {
            // What TLS has encrypted waits for the socket.
            return self.after_write(context, flushed);
        }
        if self.stream.is_encrypted() {
            self.stall.end();
            self.activity.used().is_stalled = false;
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            let shut = Pin::new(&mut this.stream).poll_shutdown(context);
            ready!(this.after_write(context, shut))?;
            if !this.activity.used().unread {
                return Poll::Ready(Ok(()));
            }
        }
        let begin = || LingeringConnection::until(this.stop.clone());
        let linger = this.linger.get_or_insert_with(begin);
        linger.poll(&mut this.stream, context).map(Ok)
    }
}
