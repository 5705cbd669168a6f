//! A connection: its session, and which request is answered how.

use super::connection::IotDbSession;
use super::fault::{insert_fault, statement_fault};
use super::frames::{FrameConnectionEnd, FrameLimit, RequestHalt};
use super::insert::{InsertFault, is_insert, lists_bytes_max};
use super::login::{OpenedSession, check_zone, log_in};
use super::replies;
use super::statements::{QueryTerms, enter};
use super::store::store_insert;
use bytes::Bytes;
use marigram_iotdb::wire::{MessageHead, MessageKind, message_head};
use marigram_iotdb::{
    ClientCall, ExecuteStatementRequest, IotDbFault, OpenSessionRequest, RowForm, StatusCode,
    request_text,
};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, sleep_until};

/// Bytes of a frame before the login.
const LOGIN_FRAME_BYTES: usize = 64 << 10;

/// The longest name of a method that is answered.
const METHOD_BYTES_MAX: usize = 256;

/// How long a client may take to say who it is.
const LOGIN_WAIT_MAX: Duration = Duration::from_secs(30);

/// How long a session may be silent. Pools of clients keep sessions for later.
const IDLE_MAX: Duration = Duration::from_hours(8);

/// How long a query keeps its rows while nothing is fetched.
const FETCH_WAIT_MAX: Duration = Duration::from_mins(10);

impl IotDbSession {
    /// Serves the client until it leaves, or the server stops.
    ///
    /// # Errors
    /// Why the connection ended.
    pub(super) async fn run(mut self) -> Result<(), FrameConnectionEnd> {
        let ended = self.serve().await;
        let stop = self.shared.stop.clone();
        match ended {
            Err(FrameConnectionEnd::Left) => Ok(()),
            Err(FrameConnectionEnd::Socket(_) | FrameConnectionEnd::Stalled) => ended,
            other => {
                self.socket.close(stop).await;
                other
            }
        }
    }

    async fn serve(&mut self) -> Result<(), FrameConnectionEnd> {
        let login_by = Instant::now() + LOGIN_WAIT_MAX;
        let opening = self.shared.openings.enter();
        while self.place.is_none() {
            let limit = FrameLimit {
                bytes: LOGIN_FRAME_BYTES.min(self.frame_limit.bytes),
                setting: "a login",
            };
            let stop = self.shared.stop.clone();
            let frame = tokio::select! {
                frame = self.socket.next(limit) => frame?,
                () = stop.cancelled() => return Err(FrameConnectionEnd::Stopping),
                () = opening.must_end() => return Err(FrameConnectionEnd::Idle),
                () = sleep_until(login_by) => return Err(FrameConnectionEnd::Idle),
            };
            self.reply(frame).await?;
        }
        drop(opening);
        loop {
            let frame = self.next_frame().await?;
            self.reply(frame).await?;
        }
    }

    async fn next_frame(&mut self) -> Result<Bytes, FrameConnectionEnd> {
        let begin = Instant::now();
        let stop = self.shared.stop.clone();
        for until in [begin + FETCH_WAIT_MAX, begin + IDLE_MAX] {
            tokio::select! {
                frame = self.socket.next(self.frame_limit) => return frame,
                () = stop.cancelled() => return Err(FrameConnectionEnd::Stopping),
                () = sleep_until(until) => self.queries.close_open(),
            }
        }
        Err(FrameConnectionEnd::Idle)
    }

    async fn reply(&mut self, frame: Bytes) -> Result<(), FrameConnectionEnd> {
        let kill = self.shared.server.kill.clone();
        let reply = tokio::select! {
            biased;
            reply = self.answer(&frame) => reply?,
            () = kill.cancelled() => return Err(FrameConnectionEnd::Stopping),
        };
        drop(frame);
        tokio::select! {
            biased;
            sent = self.socket.send(reply) => sent,
            () = kill.cancelled() => Err(FrameConnectionEnd::Stopping),
        }
    }

    async fn answer(&mut self, frame: &Bytes) -> Result<Vec<u8>, FrameConnectionEnd> {
        let malformed = |reason: String| FrameConnectionEnd::Malformed(reason);
        let (head, mut reader) = message_head(frame, lists_bytes_max(frame))
            .map_err(|fault| malformed(fault.to_string()))?;
        if head.kind != MessageKind::Call || head.method.len() > METHOD_BYTES_MAX {
            return Err(malformed("the message is no call of a method".to_owned()));
        }
        if is_insert(head.method) {
            return Ok(self.insert(&head, frame).await);
        }
        let call = match ClientCall::read(head.method, &mut reader) {
            Ok(Some(call)) => call,
            Ok(None) => return Ok(replies::unknown_method(&head)),
            Err(fault) => return Ok(replies::unreadable(&head, &fault.to_string())),
        };
        match self.answer_call(&head, call).await {
            Ok(reply) => Ok(reply),
            Err(RequestHalt::Error(error)) => Ok(replies::fault(&head, &statement_fault(&error))),
            Err(RequestHalt::Gone(gone)) => Err(gone),
        }
    }

    async fn answer_call(
        &mut self,
        head: &MessageHead<'_>,
        call: ClientCall<'_>,
    ) -> Result<Vec<u8>, RequestHalt> {
        let config = &self.shared.server.config;
        match call {
            ClientCall::OpenSession(request) => return Ok(self.open(head, &request).await),
            ClientCall::CloseSession(_) => {
                self.opened = None;
                self.queries.close_all();
                return Ok(replies::done(head));
            }
            ClientCall::TestConnection => return Ok(replies::done(head)),
            ClientCall::GetProperties => {
                let (clients, bytes) = (config.connections_max, self.frame_limit.bytes);
                return Ok(replies::properties(head, clients, bytes));
            }
            _ => {}
        }
        let Some(opened) = &mut self.opened else {
            return Ok(replies::fault(head, &not_logged_in()));
        };
        match call {
            ClientCall::RequestStatementId => {
                self.last_statement += 1;
                Ok(replies::number(head, self.last_statement))
            }
            ClientCall::CloseOperation(request) => {
                self.queries.close(request.query_id, request.statement_id);
                Ok(replies::done(head))
            }
            ClientCall::GetTimeZone => Ok(replies::zone(head, &opened.zone)),
            ClientCall::SetTimeZone(request) => Ok(match check_zone(request.zone) {
                Ok(()) => {
                    request.zone.clone_into(&mut opened.zone);
                    replies::done(head)
                }
                Err(fault) => replies::fault(head, &fault),
            }),
            ClientCall::FetchConnections => {
                let user = &opened.identity.user;
                let (login_ms, id) = (opened.login_ms, opened.id);
                Ok(replies::connections(head, user, login_ms, id))
            }
            ClientCall::BackupConfiguration => Ok(replies::backup_configuration(head)),
            ClientCall::FetchMetadata(_) => {
                let fault = IotDbFault::unsupported(
                    "metadata is not supported as JSON: use SHOW DEVICES and SHOW TIMESERIES",
                );
                Ok(replies::fault(head, &fault))
            }
            other => self.answer_statement(head, other).await,
        }
    }

    /// Answers requests that are statements, or stand for some.
    async fn answer_statement(
        &mut self,
        head: &MessageHead<'_>,
        call: ClientCall<'_>,
    ) -> Result<Vec<u8>, RequestHalt> {
        let texts = match call {
            ClientCall::ExecuteStatement(request, form) => {
                let terms = statement_terms(&request, form);
                return self.query(head, request.statement, terms).await;
            }
            ClientCall::ExecuteBatch(request) => {
                return self.run_batch(head, &request.statements).await;
            }
            ClientCall::FetchResults(request, form) => {
                return self.fetch(head, &request, form).await;
            }
            ClientCall::RawDataQuery(..)
            | ClientCall::LastDataQuery(..)
            | ClientCall::FastLastDataQuery(..)
            | ClientCall::AggregationQuery(..) => {
                return match query_text(&call) {
                    Ok((text, terms)) => self.query(head, &text, terms).await,
                    Err(fault) => Ok(replies::fault(head, &fault)),
                };
            }
            ClientCall::SetStorageGroup(path) => {
                request_text::create_database(path).map(|text| vec![text])
            }
            ClientCall::DeleteStorageGroups(paths) => {
                request_text::drop_databases(&paths).map(|text| vec![text])
            }
            ClientCall::CreateTimeseries(request) => request_text::create_timeseries(&request),
            ClientCall::CreateAlignedTimeseries(request) => {
                request_text::create_aligned_timeseries(&request)
            }
            ClientCall::CreateMultiTimeseries(request) => {
                request_text::create_multi_timeseries(&request)
            }
            ClientCall::DeleteTimeseries(paths) => {
                request_text::drop_timeseries(&paths).map(|text| vec![text])
            }
            ClientCall::DeleteData(request) => {
                request_text::delete_data(&request).map(|text| vec![text])
            }
            _ => return Ok(replies::unknown_method(head)),
        };
        match texts {
            Ok(texts) => self.run_all(head, &texts).await,
            Err(fault) => Ok(replies::fault(head, &fault)),
        }
    }

    async fn open(&mut self, head: &MessageHead<'_>, request: &OpenSessionRequest<'_>) -> Vec<u8> {
        self.opened = None;
        self.queries.close_all();
        if self.place.is_none() {
            let places = self.shared.places.clone();
            let Ok(place) = places.try_acquire_owned() else {
                let max = self.shared.server.config.connections_max;
                let fault = IotDbFault::new(
                    StatusCode::TOO_MANY_QUERIES,
                    format!("all {max} connections that connections_max allows are taken"),
                );
                return replies::fault(head, &fault);
            };
            // Given back if the login fails.
            match self.log_in(request).await {
                Ok(id) => {
                    self.place = Some(place);
                    return replies::opened(head, id);
                }
                Err(fault) => return replies::fault(head, &fault),
            }
        }
        match self.log_in(request).await {
            Ok(id) => replies::opened(head, id),
            Err(fault) => replies::fault(head, &fault),
        }
    }

    async fn log_in(&mut self, request: &OpenSessionRequest<'_>) -> Result<i64, IotDbFault> {
        let identity = log_in(&self.shared, self.peer, request).await?;
        let id = self.shared.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let login_ms = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        self.opened = Some(OpenedSession {
            id,
            identity,
            zone: request.zone.to_owned(),
            login_ms,
        });
        Ok(id)
    }

    async fn insert(&mut self, head: &MessageHead<'_>, frame: &Bytes) -> Vec<u8> {
        let Some(opened) = &self.opened else {
            return replies::fault(head, &not_logged_in());
        };
        let identity = opened.identity.clone();
        // The rows need room beside the frame.
        if let Err(error) = self.socket.hold_input(frame.len()).await {
            return replies::fault(head, &insert_fault(&error));
        }
        let _ticket = match enter(&self.shared.server).await {
            Ok(ticket) => ticket,
            Err(error) => return replies::fault(head, &insert_fault(&error)),
        };
        match store_insert(&self.shared, &identity, frame).await {
            Ok(outcome) => replies::parts(head, &outcome),
            Err(InsertFault::Request(fault)) => replies::fault(head, &fault),
            Err(InsertFault::UnknownMethod) => replies::unknown_method(head),
            Err(InsertFault::Wire(reason)) => replies::unreadable(head, &reason),
        }
    }
}

fn not_logged_in() -> IotDbFault {
    IotDbFault::new(
        StatusCode::NOT_LOGIN,
        "Log in failed. Either you are not authorized or the session has timed out.",
    )
}

fn statement_terms(request: &ExecuteStatementRequest<'_>, form: RowForm) -> QueryTerms {
    QueryTerms {
        statement_id: request.statement_id,
        fetch_size: request.fetch_size,
        timeout_ms: request.timeout_ms,
        form,
    }
}

/// The statement of a query that is sent without SQL.
fn query_text(call: &ClientCall<'_>) -> Result<(String, QueryTerms), IotDbFault> {
    let terms = |statement_id, fetch_size, timeout_ms, form| QueryTerms {
        statement_id,
        fetch_size,
        timeout_ms,
        form,
    };
    Ok(match call {
        ClientCall::RawDataQuery(it, form) => (
            request_text::raw_data_query(it)?,
            terms(it.statement_id, it.fetch_size, it.timeout_ms, *form),
        ),
        ClientCall::LastDataQuery(it, form) => (
            request_text::last_data_query(it)?,
            terms(it.statement_id, it.fetch_size, it.timeout_ms, *form),
        ),
        ClientCall::FastLastDataQuery(it, form) => (
            request_text::fast_last_data_query(it)?,
            terms(it.statement_id, it.fetch_size, it.timeout_ms, *form),
        ),
        ClientCall::AggregationQuery(it, form) => (
            request_text::aggregation_query(it)?,
            terms(it.statement_id, it.fetch_size, it.timeout_ms, *form),
        ),
        _ => return Err(IotDbFault::unsupported("the method is no query")),
    })
}
