//! The memory of one call's messages.
//!
//! tonic gathers a message before anyone sees it. So the bytes are counted where they arrive: a body
//! takes memory for each frame, waits a little where there is none, and the handler gives the memory
//! back after each message that it has dealt with.

use super::fault::FlightFault;
use crate::admission::MemoryPermit;
use crate::write_stall::WriteStall;
use http_body::{Body as HttpBody, Frame, SizeHint};
use prost::bytes::Bytes;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tonic::Status;
use tonic::body::Body;

/// How long a frame waits for memory at most, and how often it asks.
const WAIT_MAX: Duration = Duration::from_secs(2);
const ASK_EVERY: Duration = Duration::from_millis(20);

/// Memory that the messages of a call hold; all of it is given back with the last clone.
#[derive(Clone, Debug)]
pub(super) struct CallMemory(Arc<Mutex<MemoryPermit>>);

impl CallMemory {
    /// None yet.
    pub(super) fn new(permit: MemoryPermit) -> Self {
        Self(Arc::new(Mutex::new(permit)))
    }

    fn with<T>(&self, work: impl FnOnce(&mut MemoryPermit) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes `bytes`; says whether there were that many.
    pub(super) fn grow(&self, bytes: usize) -> bool {
        self.with(|permit| permit.grow(bytes))
    }

    /// Like [`grow`](Self::grow), but waits a little.
    pub(super) async fn grow_in_time(&self, bytes: usize) -> bool {
        let mut waited = Duration::ZERO;
        while !self.grow(bytes) {
            if waited >= WAIT_MAX {
                return false;
            }
            tokio::time::sleep(ASK_EVERY).await;
            waited += ASK_EVERY;
        }
        true
    }

    /// Gives all back: the messages so far are dealt with.
    pub(super) fn release(&self) {
        self.with(|permit| permit.shrink(permit.held()));
    }
}

type Wait = Pin<Box<dyn Future<Output = bool> + Send>>;

/// A request's body whose bytes are counted.
pub(super) struct CountedBody {
    body: Body,
    memory: CallMemory,
    /// A frame that waits for memory.
    waiting: Option<(Frame<Bytes>, Wait)>,
    /// How long the client may send nothing.
    pause: WriteStall,
}

impl CountedBody {
    /// Counts `body` in `memory`; its client may pause for `pause_max`.
    pub(super) fn new(body: Body, memory: CallMemory, pause_max: Duration) -> Self {
        Self {
            body,
            memory,
            waiting: None,
            pause: WriteStall::new(Some(pause_max)),
        }
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if let Some((frame, mut wait)) = this.waiting.take() {
            match wait.as_mut().poll(context) {
                Poll::Pending => {
                    this.waiting = Some((frame, wait));
                    return Poll::Pending;
                }
                Poll::Ready(true) => return Poll::Ready(Some(Ok(frame))),
                Poll::Ready(false) => {
                    return Poll::Ready(Some(Err(FlightFault::no_memory().to_status())));
                }
            }
        }
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
            ready!(this.pause.poll(context));
            let message = "the client sent nothing for too long within a message or a stream";
            let fault = FlightFault::new(tonic::Code::DeadlineExceeded, "57014", message);
            return Poll::Ready(Some(Err(fault.to_status())));
        };
        this.pause.end();
        let Some(Ok(frame)) = frame else {
            return Poll::Ready(frame);
        };
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        if bytes == 0 || this.memory.grow(bytes) {
            return Poll::Ready(Some(Ok(frame)));
        }
        let memory = this.memory.clone();
        let wait: Wait = Box::pin(async move { memory.grow_in_time(bytes).await });
        this.waiting = Some((frame, wait));
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body that keeps its connection busy until it was sent.
pub(super) struct BusyBody<G> {
    /// The body.
    pub body: Body,
    /// What marks the connection.
    pub _busy: G,
}

impl<G: Unpin> HttpBody for BusyBody<G> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
