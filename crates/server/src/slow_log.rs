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

use crate::failures::ThrottledLines;
use crate::statement_text::loggable;
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use async_trait::async_trait;
use futures::StreamExt;
use marigram_service::{
    Answer, LanguageQuery, LanguageRequest, Prepared, Query, Result, RowStream, Session,
    StatementAnswer, StatementAnswers,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

tokio::task_local! {
    /// The client.
    pub static PEER: SocketAddr;
}

/// Answers SQL, and logs statements that took longer than `over`.
pub(crate) struct TimedQuery {
    query: Arc<dyn Query>,
    slow: SlowStatements,
}

impl TimedQuery {
    /// Wraps another one.
    pub(crate) fn new(query: Arc<dyn Query>, over: Duration) -> Self {
        Self {
            query,
            slow: SlowStatements::new(over),
        }
    }
}

/// The same for requests in other languages. The log shows the text of the whole request.
pub(crate) struct TimedLanguages {
    languages: Arc<dyn LanguageQuery>,
    slow: SlowStatements,
}

impl TimedLanguages {
    /// Wraps another one.
    pub(crate) fn new(languages: Arc<dyn LanguageQuery>, over: Duration) -> Self {
        Self {
            languages,
            slow: SlowStatements::new(over),
        }
    }
}

/// When a statement is slow, and how often the log says so.
struct SlowStatements {
    over: Duration,
    paced: Arc<ThrottledLines>,
}

impl SlowStatements {
    fn new(over: Duration) -> Self {
        Self {
            over,
            paced: Arc::default(),
        }
    }

    fn begin(&self, session: &Session, sql: &str) -> StatementTiming {
        StatementTiming {
            begin: Instant::now(),
            over: self.over,
            paced: Arc::clone(&self.paced),
            peer: PEER.try_with(|peer| *peer).ok(),
            user: session.identity.user.clone(),
            database: session.database.clone(),
            statement: loggable(sql),
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
            Ok(Answer::Rows(RowStream {
                schema,
                batches,
                notices,
            })) => {
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
                    notices,
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
        if took < self.over || !self.paced.may_log("slow statements") {
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

#[async_trait]
impl Query for TimedQuery {
    fn wrapped(&self) -> Option<&dyn Query> {
        Some(&*self.query)
    }

    async fn execute(&self, session: &mut Session, statement: &str) -> Result<Answer> {
        let timing = self.slow.begin(session, statement);
        let answer = self.query.execute(session, statement).await;
        timing.watch(answer)
    }

    async fn prepare_typed(
        &self,
        session: &Session,
        statement: &str,
        types: &[DataType],
    ) -> Result<Arc<dyn Prepared>> {
        self.query.prepare_typed(session, statement, types).await
    }

    async fn execute_prepared(
        &self,
        session: &mut Session,
        prepared: &dyn Prepared,
        parameters: Vec<ArrayRef>,
    ) -> Result<Answer> {
        let timing = self.slow.begin(session, prepared.sql());
        let answer = self.query.execute_prepared(session, prepared, parameters);
        let answer = answer.await;
        timing.watch(answer)
    }
}

#[async_trait]
impl LanguageQuery for TimedLanguages {
    async fn run(&self, session: &Session, request: LanguageRequest) -> Result<StatementAnswers> {
        let mut timing = self.slow.begin(session, &request.text);
        let slow = SlowStatements {
            over: self.slow.over,
            paced: Arc::clone(&self.slow.paced),
        };
        let (session, text) = (session.clone(), request.text.clone());
        match self.languages.run(&session, request).await {
            Err(error) => {
                timing.outcome = "failed";
                Err(error)
            }
            Ok(answers) => {
                let state = (answers, Some(timing), slow);
                let timed = futures::stream::unfold(state, move |(mut answers, first, slow)| {
                    let timing = first.unwrap_or_else(|| slow.begin(&session, &text));
                    async move {
                        let answer = answers.next().await?;
                        let answer = StatementAnswer {
                            answer: timing.watch(answer.answer),
                            ..answer
                        };
                        Some((answer, (answers, None, slow)))
                    }
                });
                Ok(timed.boxed())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_service::{Identity, ServiceError};

    /// Says which of its functions was called.
    struct NamedCalls;

    fn called(name: &str) -> ServiceError {
        ServiceError::Internal(name.to_owned())
    }

    #[async_trait]
    impl Query for NamedCalls {
        async fn execute(&self, _: &mut Session, _: &str) -> Result<Answer> {
            Err(called("execute"))
        }

        async fn prepare_typed(
            &self,
            _: &Session,
            _: &str,
            types: &[DataType],
        ) -> Result<Arc<dyn Prepared>> {
            Err(called(&format!("prepare with {}", types.len())))
        }

        async fn execute_prepared(
            &self,
            _: &mut Session,
            _: &dyn Prepared,
            _: Vec<ArrayRef>,
        ) -> Result<Answer> {
            Err(called("execute_prepared"))
        }
    }

    #[tokio::test]
    async fn named_types_of_parameters_reach_the_database() {
        let timed = TimedQuery::new(Arc::new(NamedCalls), Duration::from_secs(1));
        let session = Session::new("main", Identity::owner("test"));
        let types = [DataType::Int64, DataType::Utf8];
        let prepared = timed.prepare_typed(&session, "SELECT $1, $2", &types).await;
        let error = prepared.err().expect("it fails");
        assert!(error.to_string().contains("prepare with 2"), "{error}");
    }
}
