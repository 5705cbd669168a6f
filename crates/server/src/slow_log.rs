//! Logs slow statements.
//!
//! The timing wraps the interface between all protocols and the database: it starts when a
//! statement is handed over, and ends when its last row was taken. So a client that reads slowly
//! counts, too.
//!
//! Invariant: the length of a line is bounded, and the number of lines per interval is limited as
//! in [`FailureLog`].
//!
//! [`FailureLog`]: crate::failures::FailureLog

use crate::failures::{ThrottledLines, kind_of};
use arrow::array::ArrayRef;
use async_trait::async_trait;
use futures::StreamExt;
use marigram_service::{Answer, Identity, Prepared, Query, Result, RowStream, Session};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Characters of a statement that are logged.
const STATEMENT_CHARS_MAX: usize = 1000;

tokio::task_local! {
    /// The client.
    pub static PEER: SocketAddr;
}

/// Answers SQL, and logs statements that took longer than `over`.
pub struct TimedQuery {
    query: Arc<dyn Query>,
    over: Duration,
    paced: Arc<ThrottledLines>,
}

impl TimedQuery {
    /// Wraps another one.
    pub fn new(query: Arc<dyn Query>, over: Duration) -> Self {
        Self {
            query,
            over,
            paced: Arc::default(),
        }
    }

    fn begin(&self, session: &Session, sql: &str) -> StatementTiming {
        let statement = if may_hold_password(sql) {
            kind_of(sql)
        } else {
            let mut statement: String = sql.chars().take(STATEMENT_CHARS_MAX).collect();
            if statement.len() < sql.len() {
                statement.push('…');
            }
            statement
        };
        StatementTiming {
            begin: Instant::now(),
            over: self.over,
            paced: Arc::clone(&self.paced),
            peer: PEER.try_with(|peer| *peer).ok(),
            user: session.identity.user.clone(),
            database: session.database.clone(),
            statement,
            rows: 0,
            outcome: "given up",
        }
    }
}

/// One statement; logged when dropped, if it took long.
struct StatementTiming {
    begin: Instant,
    over: Duration,
    paced: Arc<ThrottledLines>,
    peer: Option<SocketAddr>,
    user: String,
    database: String,
    statement: String,
    rows: u64,
    outcome: &'static str,
}

impl StatementTiming {
    /// Accompanies the answer to its end.
    fn watch(mut self, answer: Result<Answer>) -> Result<Answer> {
        match answer {
            Err(error) => {
                self.outcome = "failed";
                Err(error)
            }
            Ok(Answer::Rows(RowStream { schema, batches })) => {
                let watched = futures::stream::unfold(Some((batches, self)), |state| async move {
                    let (mut batches, mut timing) = state?;
                    match batches.next().await {
                        None => {
                            timing.outcome = "done";
                            None
                        }
                        Some(Ok(batch)) => {
                            timing.rows += batch.num_rows() as u64;
                            Some((Ok(batch), Some((batches, timing))))
                        }
                        Some(Err(error)) => {
                            timing.outcome = "failed";
                            Some((Err(error), None))
                        }
                    }
                });
                Ok(Answer::Rows(RowStream {
                    schema,
                    // The reader may poll again after the end.
                    batches: watched.fuse().boxed(),
                }))
            }
            Ok(done) => {
                self.outcome = "done";
                if let Answer::Done { rows, .. } = &done {
                    self.rows = *rows;
                }
                Ok(done)
            }
        }
    }
}

impl Drop for StatementTiming {
    fn drop(&mut self) {
        let took = self.begin.elapsed();
        if took < self.over || !self.paced.may_tell("slow statements") {
            return;
        }
        let Self {
            user,
            database,
            statement,
            rows,
            outcome,
            ..
        } = self;
        let peer = self.peer.map_or_else(String::new, |peer| peer.to_string());
        let took_ms = took.as_millis() as u64;
        tracing::warn!(
            took_ms,
            rows,
            outcome,
            user,
            peer,
            database,
            statement,
            "a slow statement"
        );
    }
}

/// Whether a text may be a statement with a password, which must not be logged.
fn may_hold_password(sql: &str) -> bool {
    const PASSWORD: &[u8] = b"password";
    sql.as_bytes()
        .windows(PASSWORD.len())
        .any(|part| part.eq_ignore_ascii_case(PASSWORD))
}

#[async_trait]
impl Query for TimedQuery {
    async fn session(&self, database: Option<&str>, identity: &Identity) -> Result<Session> {
        self.query.session(database, identity).await
    }

    async fn read_only_session(
        &self,
        database: Option<&str>,
        identity: &Identity,
    ) -> Result<Session> {
        self.query.read_only_session(database, identity).await
    }

    async fn execute(&self, session: &mut Session, statement: &str) -> Result<Answer> {
        let timing = self.begin(session, statement);
        let answer = self.query.execute(session, statement).await;
        timing.watch(answer)
    }

    async fn prepare(&self, session: &Session, statement: &str) -> Result<Arc<dyn Prepared>> {
        self.query.prepare(session, statement).await
    }

    async fn execute_prepared(
        &self,
        session: &mut Session,
        prepared: &dyn Prepared,
        parameters: Vec<ArrayRef>,
    ) -> Result<Answer> {
        let timing = self.begin(session, prepared.sql());
        let answer = self.query.execute_prepared(session, prepared, parameters);
        let answer = answer.await;
        timing.watch(answer)
    }
}
