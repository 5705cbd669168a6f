//! Statements of a session, and requests that are statements in other words.

use super::connection::IotDbSession;
use super::fault::{note_failure, statement_fault, status_of};
use super::frames::{RequestHalt, RequestWatch};
use super::open_query::{OpenQuery, QueryState, rows_max};
use super::replies;
use crate::admission::RequestPermit;
use crate::failures::kind_of;
use crate::listener::ServerState;
use futures::StreamExt;
use marigram_iotdb::wire::MessageHead;
use marigram_iotdb::{FetchResultsRequest, IotDbFault, RowForm, StatusCode, StatusMessage};
use marigram_service::StatementAnswers;
use marigram_service::{Answer, Language, LanguageRequest, RowStream, ServiceError, Session};
use std::time::{Duration, Instant};

/// The routes, for figures.
const STATEMENT_ROUTE: &str = "iotdb statement";
const FETCH_ROUTE: &str = "iotdb fetch";

/// How long a request waits for its turn while too many run.
const TURN_WAIT_MAX: Duration = Duration::from_secs(10);
const TURN_ASK_EVERY: Duration = Duration::from_millis(20);

/// What a client asks a query with.
#[derive(Clone, Copy)]
pub(super) struct QueryTerms {
    /// The number of its statement.
    pub(super) statement_id: i64,
    /// Rows that an answer may have.
    pub(super) fetch_size: Option<i32>,
    /// The time that the query may take, ms.
    pub(super) timeout_ms: Option<i64>,
    /// How rows are sent.
    pub(super) form: RowForm,
}

/// The answer of a statement.
enum Executed {
    Done,
    Rows(RowStream, StatementAnswers),
}

/// The right to run a request, as soon as it has its turn.
///
/// # Errors
/// `Busy` if it does not come.
pub(super) async fn enter(server: &ServerState) -> Result<RequestPermit, ServiceError> {
    let mut waited = Duration::ZERO;
    loop {
        // The client waits, and sends no more meanwhile.
        if let Some(ticket) = server.gate.enter() {
            return Ok(ticket);
        }
        if waited >= TURN_WAIT_MAX {
            return Err(ServiceError::Busy {
                message: "too many requests are running; send this one again later".to_owned(),
                retry_after: Duration::from_secs(1),
            });
        }
        tokio::time::sleep(TURN_ASK_EVERY).await;
        waited += TURN_ASK_EVERY;
    }
}

impl IotDbSession {
    /// Answers a statement that may have rows.
    pub(super) async fn query(
        &mut self,
        head: &MessageHead<'_>,
        text: &str,
        terms: QueryTerms,
    ) -> Result<Vec<u8>, RequestHalt> {
        let begin = Instant::now();
        let reply = self.run_query(head, text, terms).await;
        self.count(STATEMENT_ROUTE, reply.as_ref().err(), Some(text), begin);
        reply
    }

    async fn run_query(
        &mut self,
        head: &MessageHead<'_>,
        text: &str,
        terms: QueryTerms,
    ) -> Result<Vec<u8>, RequestHalt> {
        let ticket = enter(&self.shared.server).await?;
        let timeout = self.timeout(terms.timeout_ms);
        let watch = RequestWatch::new(timeout, &self.shared.server.kill);
        let (rows, answers) = match self.execute(text, timeout, &watch).await? {
            Executed::Done => return Ok(replies::executed(head)),
            Executed::Rows(rows, answers) => (rows, answers),
        };
        let mut query = OpenQuery::new(rows, answers, ticket)?;
        let form = (rows_max(terms.fetch_size), terms.form);
        let (rows, has_more) = query.next_rows(&mut self.socket, &watch, form).await?;
        if has_more && !self.queries.has_room() {
            return Err(ServiceError::Busy {
                message: "too many queries of this session have rows left: fetch them, or close the queries"
                    .to_owned(),
                retry_after: Duration::from_secs(1),
            }
            .into());
        }
        let id = self.queries.next_id();
        let reply = rows.first_reply(head, id, &query.heading, has_more);
        let state = if has_more {
            QueryState::Open(Box::new(query))
        } else {
            QueryState::Ended
        };
        self.queries.insert(id, terms.statement_id, state);
        Ok(reply)
    }

    /// Answers a request for more rows.
    pub(super) async fn fetch(
        &mut self,
        head: &MessageHead<'_>,
        request: &FetchResultsRequest<'_>,
        form: RowForm,
    ) -> Result<Vec<u8>, RequestHalt> {
        let begin = Instant::now();
        let id = request.query_id;
        let (statement_id, mut query) = match self.queries.take(id) {
            Some((statement_id, QueryState::Open(query))) => (statement_id, query),
            Some((statement_id, QueryState::Ended)) => {
                self.queries.insert(id, statement_id, QueryState::Ended);
                return Ok(replies::no_more_rows(head));
            }
            None => {
                let fault = IotDbFault::new(
                    StatusCode::NO_SUCH_QUERY,
                    format!(
                        "there is no query {id}: it was closed, it failed, or nothing was fetched for too long"
                    ),
                );
                return Ok(replies::fault(head, &fault));
            }
        };
        let timeout = self.timeout(request.timeout_ms);
        let watch = RequestWatch::new(timeout, &self.shared.server.kill);
        let form = (rows_max(Some(request.fetch_size)), form);
        let next = query.next_rows(&mut self.socket, &watch, form).await;
        self.count(FETCH_ROUTE, next.as_ref().err(), None, begin);
        let (rows, has_more) = next?;
        let state = if has_more {
            QueryState::Open(query)
        } else {
            QueryState::Ended
        };
        self.queries.insert(id, statement_id, state);
        Ok(rows.next_reply(head, has_more))
    }

    /// Runs statements that have no rows, until one fails.
    pub(super) async fn run_all(
        &mut self,
        head: &MessageHead<'_>,
        texts: &[String],
    ) -> Result<Vec<u8>, RequestHalt> {
        for text in texts {
            self.run_one(text).await?;
        }
        Ok(replies::done(head))
    }

    /// Runs statements that have no rows, and tells what became of each.
    pub(super) async fn run_batch(
        &mut self,
        head: &MessageHead<'_>,
        texts: &[&str],
    ) -> Result<Vec<u8>, RequestHalt> {
        let mut faults = Vec::with_capacity(texts.len());
        for text in texts {
            faults.push(match self.run_one(text).await {
                Ok(()) => None,
                Err(RequestHalt::Error(error)) => Some(statement_fault(&error)),
                Err(gone) => return Err(gone),
            });
        }
        if faults.iter().all(Option::is_none) {
            return Ok(replies::done(head));
        }
        let parts = faults.iter();
        let parts = parts.map(|fault| match fault {
            None => StatusMessage::SUCCESS,
            Some(fault) => fault.status(),
        });
        let whole = StatusMessage {
            code: StatusCode::MULTIPLE.0,
            message: None,
            parts: Some(parts.collect()),
        };
        Ok(replies::status(head, &whole))
    }

    async fn run_one(&mut self, text: &str) -> Result<(), RequestHalt> {
        let begin = Instant::now();
        let run = async {
            let _ticket = enter(&self.shared.server).await?;
            let timeout = self.timeout(None);
            let watch = RequestWatch::new(timeout, &self.shared.server.kill);
            self.execute(text, timeout, &watch).await.map(drop)
        };
        let run = run.await;
        self.count(STATEMENT_ROUTE, run.as_ref().err(), Some(text), begin);
        run
    }

    async fn execute(
        &mut self,
        text: &str,
        timeout: Option<Duration>,
        watch: &RequestWatch,
    ) -> Result<Executed, RequestHalt> {
        let Some(opened) = &self.opened else {
            let message = "open a session first".to_owned();
            return Err(ServiceError::Unauthenticated(message).into());
        };
        let mut session = Session::new("", opened.identity.clone());
        session.time_zone.clone_from(&opened.zone);
        session.statement_timeout = timeout;
        let request = LanguageRequest::new(Language::IotDb, text);
        let languages = &self.shared.server.services.languages;
        let work = async {
            let mut answers = languages.run(&session, request).await?;
            while let Some(answer) = answers.next().await {
                if let Answer::Rows(rows) = answer.answer? {
                    return Ok(Executed::Rows(rows, answers));
                }
            }
            Ok(Executed::Done)
        };
        let executed = self.socket.guard(watch, work).await;
        let is_change = !matches!(executed, Ok(Executed::Rows(..)));
        if is_change {
            // Also after an error: some of it may be done.
            match kind_of(text).as_str() {
                "INSERT" => self.shared.catalog.forget_tables(),
                "SELECT" | "SHOW" | "COUNT" => {}
                _ => self.shared.catalog.forget(),
            }
        }
        executed
    }

    /// The time that a request may take.
    fn timeout(&self, timeout_ms: Option<i64>) -> Option<Duration> {
        let asked = timeout_ms.and_then(|ms| u64::try_from(ms).ok());
        let asked = asked.filter(|ms| *ms > 0).map(Duration::from_millis);
        asked.or_else(|| self.shared.server.config.statement_timeout())
    }

    fn count(
        &self,
        route: &'static str,
        halt: Option<&RequestHalt>,
        text: Option<&str>,
        begin: Instant,
    ) {
        let server = &self.shared.server;
        let status = match halt {
            None => 200,
            Some(RequestHalt::Error(error)) => {
                note_failure(server, route, error, text);
                status_of(error)
            }
            Some(RequestHalt::Gone(_)) => 499,
        };
        server.telemetry.request(route, status, begin);
    }
}
