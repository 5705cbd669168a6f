//! The connections of HTTP: how many there are, and how long an idle one may keep its slot.
//!
//! A connection is *busy* from the head of a request to the end of its answer. One that is not busy
//! is closed after a while, whether it is silent or sends a head byte by byte: otherwise a few
//! thousand such clients would hold every slot.
//!
//! A request may be answered before its body was read to the end, because it is too large or its
//! path does not exist. The connection then [lingers](LingeringConnection).

use crate::linger::LingeringConnection;
use crate::write_stall::WriteStall;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use futures::{StreamExt, stream};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;

/// Slots in addition to the others, for health checks.
const RESERVED_PLACES: usize = 4;

/// Pause after a connection could not be accepted (too many files are open).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Stands for an address that the system does not report; no connection comes to it.
const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// A listener with a number of slots; connections beyond it wait in the system's queue. If all
/// slots are taken, a few more connections may ask for the server's status.
pub struct HttpConnections {
    listener: TcpListener,
    places: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
    idle_max: Duration,
    write_max: Option<Duration>,
    stop: CancellationToken,
}

impl HttpConnections {
    /// Accepts on a listening socket until `stop` fires.
    pub fn new(
        listener: TcpListener,
        connections_max: usize,
        idle_max: Duration,
        write_max: Option<Duration>,
        stop: CancellationToken,
    ) -> Self {
        let places = Arc::new(Semaphore::new(
            connections_max.clamp(1, Semaphore::MAX_PERMITS),
        ));
        Self {
            listener,
            places,
            reserved: Arc::new(Semaphore::new(RESERVED_PLACES)),
            idle_max,
            write_max,
            stop,
        }
    }
}

impl Listener for HttpConnections {
    type Io = HttpConnection;
    type Addr = ConnectedPeer;

    async fn accept(&mut self) -> (HttpConnection, ConnectedPeer) {
        // Do not hold a regular slot while waiting for a connection: one that has a reserved slot
        // may be waiting for it.
        let (mut place, mut is_regular) = tokio::select! {
            biased;
            place = self.reserved.clone().acquire_owned() => (place.ok(), false),
            place = self.places.clone().acquire_owned() => (place.ok(), true),
        };
        loop {
            match self.listener.accept().await {
                Ok((socket, address)) => {
                    if !is_regular && let Ok(regular) = self.places.clone().try_acquire_owned() {
                        place = Some(regular);
                        is_regular = true;
                    }
                    let place = ConnectionSlot {
                        permit: place,
                        is_regular,
                        regular: self.places.clone(),
                    };
                    let place = Arc::new(AsyncMutex::new(place));
                    if let Err(error) = socket.set_nodelay(true) {
                        tracing::debug!(%error, "TCP_NODELAY could not be set");
                    }
                    let activity = Arc::new(ConnectionActivity::default());
                    let local = socket.local_addr().map_or(UNKNOWN, |local| local.ip());
                    let connection = HttpConnection {
                        socket,
                        activity: activity.clone(),
                        timer: Box::pin(sleep(self.idle_max)),
                        idle_max: self.idle_max,
                        stall: WriteStall::new(self.write_max),
                        linger: None,
                        stop: self.stop.clone(),
                        _place: place.clone(),
                    };
                    let peer = ConnectedPeer {
                        address,
                        local,
                        activity,
                        place: Some(place),
                    };
                    return (connection, peer);
                }
                Err(error) => {
                    tracing::warn!(%error, "an HTTP connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<ConnectedPeer> {
        let address = self.listener.local_addr()?;
        let activity = Arc::default();
        Ok(ConnectedPeer {
            address,
            local: address.ip(),
            activity,
            place: None,
        })
    }
}

/// The client of a connection.
#[derive(Clone, Debug)]
pub struct ConnectedPeer {
    address: SocketAddr,
    local: IpAddr,
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
    pub async fn has_place(&self, wait_max: Duration) -> bool {
        match &self.place {
            Some(place) => place.lock().await.become_regular(wait_max).await,
            None => true,
        }
    }

    /// The remote address of the connection.
    pub fn remote(&self) -> SocketAddr {
        self.address
    }

    /// The local address of the connection.
    pub fn local(&self) -> IpAddr {
        self.local
    }

    /// Marks the connection as busy until the returned guard is dropped.
    pub fn busy(&self) -> BusyGuard {
        self.activity.used().requests += 1;
        BusyGuard(self.activity.clone())
    }

    /// Marks the connection as busy until the returned guard is dropped; also returns the request,
    /// whose body it watches.
    pub fn begin(&self, request: Request) -> (Request, BusyGuard) {
        let unread = !request.body().is_end_stream();
        {
            let mut used = self.activity.used();
            used.requests += 1;
            used.unread = unread;
        }
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

/// The recent use of a connection.
#[derive(Debug)]
struct ConnectionActivity(Mutex<ConnectionUse>);

#[derive(Debug)]
struct ConnectionUse {
    requests: usize,
    /// Whether a body has begun that was not read to its end.
    unread: bool,
    /// When the connection was last busy.
    last: Instant,
}

impl Default for ConnectionActivity {
    fn default() -> Self {
        let last = Instant::now();
        Self(Mutex::new(ConnectionUse {
            requests: 0,
            unread: false,
            last,
        }))
    }
}

impl ConnectionActivity {
    fn used(&self) -> MutexGuard<'_, ConnectionUse> {
        // No holder of the lock can panic halfway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in progress.
#[derive(Debug)]
pub struct BusyGuard(Arc<ConnectionActivity>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        let mut used = self.0.used();
        used.requests -= 1;
        used.last = Instant::now();
    }
}

/// A connection with its slot.
pub struct HttpConnection {
    socket: TcpStream,
    activity: Arc<ConnectionActivity>,
    timer: Pin<Box<Sleep>>,
    idle_max: Duration,
    stall: WriteStall,
    linger: Option<LingeringConnection>,
    stop: CancellationToken,
    /// Released when the connection and everything that refers to it is gone.
    _place: Arc<AsyncMutex<ConnectionSlot>>,
}

impl HttpConnection {
    /// Notes whether bytes went out or the client takes none; an error if it has taken none for too
    /// long.
    fn after_write(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stall.end();
            self.activity.used().last = Instant::now();
            return written;
        }
        ready!(self.stall.poll(context));
        tracing::info!("an HTTP client takes nothing of its answer; its connection is closed");
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
        Pin::new(&mut this.socket).poll_read(context, into)
    }
}

impl AsyncWrite for HttpConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.after_write(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, parts);
        self.after_write(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            ready!(Pin::new(&mut this.socket).poll_shutdown(context))?;
            if !this.activity.used().unread {
                return Poll::Ready(Ok(()));
            }
        }
        let begin = || LingeringConnection::until(this.stop.clone());
        let linger = this.linger.get_or_insert_with(begin);
        linger.poll(&mut this.socket, context).map(Ok)
    }
}
