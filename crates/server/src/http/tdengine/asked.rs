//! Statements, as the database runs them.

use super::columns::TaosColumns;
use super::error::TaosFailure;
use crate::http::client_share::StopTime;
use crate::listener::ServerState;
use arrow::record_batch::RecordBatch;
use futures::StreamExt;
use futures::stream::BoxStream;
use marigram_service::{
    Answer, Identity, Language, LanguageRequest, ServiceError, Session, StatementAnswers,
};
use marigram_tdengine::{TaosCode, TaosError};

/// What a statement answers.
pub(super) enum TaosAnswer {
    /// The number of rows that it changed.
    Done(u64),
    /// Rows.
    Rows(TaosRows),
}

/// Rows that stream in. Dropping them stops the statement.
pub(super) struct TaosRows {
    pub(super) columns: TaosColumns,
    batches: BoxStream<'static, Result<RecordBatch, ServiceError>>,
    stop: StopTime,
    /// Dropped after the rows.
    _answers: StatementAnswers,
}

impl TaosRows {
    /// The next batch that has rows; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>, ServiceError> {
        let batches = &mut self.batches;
        loop {
            let next = self.stop.guard(async { batches.next().await.transpose() });
            match next.await? {
                Some(batch) if batch.num_rows() == 0 => {}
                other => return Ok(other),
            }
        }
    }
}

/// The session of a client.
pub(super) fn session(server: &ServerState, database: &str, identity: &Identity) -> Session {
    let mut session = Session::new(database, identity.clone());
    session.statement_timeout = server.config.statement_timeout();
    session
}

/// Runs a statement.
///
/// # Errors
/// Why it failed.
pub(super) async fn run(
    server: &ServerState,
    session: &Session,
    sql: &str,
) -> Result<TaosAnswer, TaosFailure> {
    let request = LanguageRequest::new(Language::TDengine, sql);
    let stop = StopTime::after(session.statement_timeout, server.kill.clone());
    let languages = &server.services.languages;
    let begun = async {
        let mut answers = languages.run(session, request).await?;
        let first = answers.next().await;
        Ok((first, answers))
    };
    let (first, answers) = stop.guard(begun).await?;
    let Some(first) = first else {
        return Err(TaosError::new(TaosCode::IncompleteSql).into());
    };
    Ok(match first.answer? {
        Answer::Done { rows, .. } => TaosAnswer::Done(rows),
        Answer::Rows(rows) => TaosAnswer::Rows(TaosRows {
            columns: TaosColumns::new(&rows.schema),
            batches: rows.batches.fuse().boxed(),
            stop,
            _answers: answers,
        }),
    })
}
