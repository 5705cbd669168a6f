//! What stands before every call: its connection has a place, its client proved who it is, and the
//! bytes that it sends are counted. Nothing of a message is read before.

use super::call::{FlightCaller, FlightShared};
use super::call_memory::{BusyBody, CallMemory, CountedBody};
use super::fault::FlightFault;
use super::service::FlightSqlServer;
use crate::http::ConnectedPeer;
use crate::slow_log::PEER;
use arrow_flight::flight_service_server::FlightServiceServer;
use axum::http::request::Parts;
use axum::http::{Request, Response};
use futures::future::BoxFuture;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;

/// How long a call of a connection beyond `connections_max` waits for a place.
const SLOT_WAIT_MAX: Duration = Duration::from_secs(1);

/// The Flight service behind its gate.
#[derive(Clone)]
pub(super) struct FlightGate {
    service: FlightServiceServer<FlightSqlServer>,
    shared: Arc<FlightShared>,
}

impl FlightGate {
    /// The gate before `service`.
    pub(super) fn new(
        service: FlightServiceServer<FlightSqlServer>,
        shared: Arc<FlightShared>,
    ) -> Self {
        Self { service, shared }
    }
}

impl NamedService for FlightGate {
    const NAME: &'static str = <FlightServiceServer<FlightSqlServer> as NamedService>::NAME;
}

impl Service<Request<Body>> for FlightGate {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (service, shared) = (self.service.clone(), Arc::clone(&self.shared));
        Box::pin(async move {
            let Some(peer) = request.extensions().get::<ConnectedPeer>().cloned() else {
                let fault = FlightFault::new(tonic::Code::Internal, "XX000", "there is no peer");
                return Ok(fault.to_status().into_http());
            };
            let busy = peer.busy();
            let begin = Instant::now();
            let (head, body) = request.into_parts();
            let answer = async {
                match admit(&shared, &peer, &head).await {
                    Ok(caller) => pass(service, &shared, caller, head, body).await,
                    Err(fault) => {
                        shared.count("flight/refused", &fault, peer.remote(), begin);
                        fault.to_status().into_http()
                    }
                }
            };
            let response = peer.held().scope(answer).await;
            Ok(response.map(|body| Body::new(BusyBody { body, _busy: busy })))
        })
    }
}

/// Who sends a request that may pass.
async fn admit(
    shared: &FlightShared,
    peer: &ConnectedPeer,
    head: &Parts,
) -> Result<FlightCaller, FlightFault> {
    if !peer.has_slot(SLOT_WAIT_MAX).await {
        return Err(FlightFault::no_slot());
    }
    let address = peer.remote();
    let (identity, proof) = shared
        .authenticate(&head.uri, &head.headers, address)
        .await?;
    Ok(FlightCaller {
        identity,
        proof,
        peer: address,
        memory: CallMemory::new(shared.server.gate.lease()),
    })
}

async fn pass(
    mut service: FlightServiceServer<FlightSqlServer>,
    shared: &FlightShared,
    caller: FlightCaller,
    mut head: Parts,
    body: Body,
) -> Response<Body> {
    let (peer, memory) = (caller.peer, caller.memory.clone());
    let pause_max = Duration::from_millis(shared.server.config.http_idle_timeout_ms.max(1));
    head.extensions.insert(caller);
    let body = Body::new(CountedBody::new(body, memory, pause_max));
    let request = Request::from_parts(head, body);
    match PEER.scope(peer, service.call(request)).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
