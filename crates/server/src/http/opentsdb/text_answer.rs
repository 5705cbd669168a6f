//! An answer whose text the database writes piece by piece, streamed as the body of a response.

use super::answer::respond;
use crate::admission::RequestPermit;
use crate::http::HttpShared;
use crate::http::client_share::{ClientShare, StopTime};
use crate::http::error::HttpError;
use crate::http::streamed_body::BodySource;
use crate::outgoing::PART_BYTES;
use arrow::array::AsArray;
use arrow::record_batch::RecordBatch;
use axum::http::HeaderMap;
use axum::response::Response;
use futures::StreamExt;
use futures::stream::BoxStream;
use marigram_service::{Answer, ServiceError, StatementAnswers};

/// Everything an answer on its way holds; dropping it stops the statement.
struct TextInFlight {
    shared: HttpShared,
    answers: StatementAnswers,
    rows: Option<(
        BoxStream<'static, Result<RecordBatch, ServiceError>>,
        StopTime,
    )>,
    text: String,
    /// The last text; `None` after the end.
    end: Option<String>,
    share: ClientShare,
}

/// The response that streams the pieces, between a text before and one behind them.
///
/// # Errors
/// What goes wrong before the first bytes are there.
pub(super) async fn send_text(
    shared: &HttpShared,
    answers: StatementAnswers,
    (begin, end): (String, String),
    headers: &HeaderMap,
    ticket: RequestPermit,
) -> Result<Response, HttpError> {
    let sending = TextInFlight {
        shared: shared.clone(),
        answers,
        rows: None,
        text: begin,
        end: Some(end),
        share: ClientShare::new(shared, ticket),
    };
    respond(sending, headers).await
}

impl BodySource for TextInFlight {
    /// Collects pieces until there are enough bytes, or the answer ends.
    async fn make(&mut self) -> Result<Vec<u8>, ServiceError> {
        while self.end.is_some() && self.text.len() < PART_BYTES {
            if let Some((batches, stop)) = &mut self.rows {
                let next = stop.guard(async { batches.next().await.transpose() });
                match next.await? {
                    Some(batch) => self.add(&batch)?,
                    None => self.rows = None,
                }
                continue;
            }
            let stop = StopTime::new(&self.shared, None);
            let answers = &mut self.answers;
            match stop.guard(async { Ok(answers.next().await) }).await? {
                Some(next) => {
                    if let Answer::Rows(rows) = next.answer? {
                        let timeout = self.shared.server.config.statement_timeout();
                        let stop = StopTime::new(&self.shared, timeout);
                        self.rows = Some((rows.batches.fuse().boxed(), stop));
                    }
                }
                None => self.text.push_str(&self.end.take().unwrap_or_default()),
            }
        }
        Ok(std::mem::take(&mut self.text).into_bytes())
    }

    fn has_ended(&self) -> bool {
        self.end.is_none()
    }

    fn give_up(&mut self) {
        self.end = None;
    }

    fn share(&mut self) -> &mut ClientShare {
        &mut self.share
    }
}

impl TextInFlight {
    fn add(&mut self, batch: &RecordBatch) -> Result<(), ServiceError> {
        let column = batch.columns().first();
        let column = column.and_then(|column| column.as_string_opt::<i32>());
        let column = column
            .ok_or_else(|| ServiceError::Internal("an answer has no column of texts".to_owned()))?;
        for piece in column.iter().flatten() {
            self.text.push_str(piece);
        }
        Ok(())
    }
}
