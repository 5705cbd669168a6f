//! The answer to a query, streamed as the body of a response.
//!
//! An error before the first bytes are sent becomes a status. A later one ends the body without its
//! end, so that the client cannot mistake a part of the answer for the whole.

use crate::admission::RequestPermit;
use crate::http::HttpShared;
use crate::http::client_share::{ClientShare, StopTime};
use crate::http::error::HttpError;
use crate::http::streamed_body::{BodySource, streamed, takes_gzip};
use crate::outgoing::PART_BYTES;
use arrow::array::AsArray;
use arrow::datatypes::{Float64Type, Int64Type};
use arrow::record_batch::RecordBatch;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures::StreamExt;
use futures::stream::BoxStream;
use marigram_opentsdb::{SERIES_KEY, SeriesHead, SeriesWriter};
use marigram_service::{Answer, InlinePolicy, ServiceError, StatementAnswers, run_inline_if};

/// Rows that are written on the thread that serves the connection.
const ROWS_INLINE: usize = InlinePolicy::DEFAULT.formatted_rows_max;

/// Bytes below which an answer that is whole is not packed.
const PACKED_BYTES_MIN: usize = 1 << 10;

/// What an answer looks like.
#[derive(Clone, Copy)]
pub(super) struct QueryAnswerForm {
    pub(super) has_arrays: bool,
    pub(super) has_milliseconds: bool,
    pub(super) ends_with_summary: bool,
}

/// Writes batches; moves to another thread for large ones.
struct BatchWriter {
    writer: SeriesWriter,
    text: String,
    /// The head of the series that is open, as it came.
    head: Option<String>,
}

/// Everything an answer on its way holds; dropping it stops the query.
struct QueryInFlight {
    shared: HttpShared,
    form: QueryAnswerForm,
    answers: StatementAnswers,
    rows: Option<(
        BoxStream<'static, Result<RecordBatch, ServiceError>>,
        StopTime,
    )>,
    /// `None` after the end.
    writer: Option<BatchWriter>,
    share: ClientShare,
}

/// The response that streams the answers.
///
/// # Errors
/// What goes wrong before the first bytes are there.
pub(super) async fn send(
    shared: &HttpShared,
    answers: StatementAnswers,
    form: QueryAnswerForm,
    headers: &HeaderMap,
    ticket: RequestPermit,
) -> Result<Response, HttpError> {
    let mut text = String::new();
    let writer = SeriesWriter::begin(form.has_arrays, form.has_milliseconds, &mut text);
    let sending = QueryInFlight {
        shared: shared.clone(),
        form,
        answers,
        rows: None,
        writer: Some(BatchWriter {
            writer,
            text,
            head: None,
        }),
        share: ClientShare::new(shared, ticket),
    };
    respond(sending, headers).await
}

/// The response whose body is made while it is sent.
///
/// # Errors
/// What goes wrong before the first bytes are there.
pub(super) async fn respond(
    mut sending: impl BodySource,
    headers: &HeaderMap,
) -> Result<Response, HttpError> {
    let head = sending.make().await?;
    let is_whole = sending.has_ended();
    let is_packed = takes_gzip(headers) && !(is_whole && head.len() < PACKED_BYTES_MIN);
    let mut response = Response::new(streamed(head, sending, is_packed).await?);
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("application/json; charset=UTF-8");
    headers.insert(header::CONTENT_TYPE, kind);
    if is_packed {
        let gzip = HeaderValue::from_static("gzip");
        headers.insert(header::CONTENT_ENCODING, gzip);
    }
    Ok(response)
}

impl BodySource for QueryInFlight {
    /// Makes bytes until there are enough, or the answer ends.
    async fn make(&mut self) -> Result<Vec<u8>, ServiceError> {
        loop {
            let Some(writer) = &mut self.writer else {
                return Ok(Vec::new());
            };
            if writer.text.len() >= PART_BYTES {
                return Ok(std::mem::take(&mut writer.text).into_bytes());
            }
            if let Some((batches, stop)) = &mut self.rows {
                let next = stop.guard(async { batches.next().await.transpose() });
                match next.await? {
                    Some(batch) => self.write(batch).await?,
                    None => self.rows = None,
                }
            } else if !self.next_answer().await? {
                return Ok(self.end());
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.writer.is_none()
    }

    fn give_up(&mut self) {
        self.writer = None;
    }

    fn share(&mut self) -> &mut ClientShare {
        &mut self.share
    }
}

impl QueryInFlight {
    /// The last bytes.
    fn end(&mut self) -> Vec<u8> {
        let Some(mut writer) = self.writer.take() else {
            return Vec::new();
        };
        writer
            .writer
            .end(self.form.ends_with_summary, &mut writer.text);
        writer.text.into_bytes()
    }

    /// Begins the answer of the next part of the query; returns whether there is one.
    async fn next_answer(&mut self) -> Result<bool, ServiceError> {
        let stop = StopTime::new(&self.shared, None);
        let answers = &mut self.answers;
        let next = stop.guard(async { Ok(answers.next().await) }).await?;
        let Some(next) = next else {
            return Ok(false);
        };
        if let Answer::Rows(rows) = next.answer? {
            let timeout = self.shared.server.config.statement_timeout();
            let stop = StopTime::new(&self.shared, timeout);
            self.rows = Some((rows.batches.fuse().boxed(), stop));
            if let Some(writer) = &mut self.writer {
                writer.head = None;
            }
        }
        Ok(true)
    }

    async fn write(&mut self, batch: RecordBatch) -> Result<(), ServiceError> {
        let Some(mut writer) = self.writer.take() else {
            return Ok(());
        };
        let is_short = batch.num_rows() <= ROWS_INLINE;
        let work = move || {
            let written = writer.write(&batch);
            (writer, written)
        };
        let (writer, written) = run_inline_if(is_short, work).await?;
        self.writer = Some(writer);
        written
    }
}

impl BatchWriter {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ServiceError> {
        let wrong = |what: &str| ServiceError::Internal(format!("an answer has no {what}"));
        let schema = batch.schema();
        let metadata = schema.metadata().get(SERIES_KEY);
        let text = metadata.ok_or_else(|| wrong("series"))?;
        if self.head.as_ref() != Some(text) {
            let head: SeriesHead = serde_json::from_str(text).map_err(|_| wrong("series"))?;
            self.writer.series(&head, &mut self.text);
            self.head = Some(text.clone());
        }
        let [times, values] = batch.columns() else {
            return Err(wrong("times and values"));
        };
        let times = times.as_primitive_opt::<Int64Type>();
        let values = values.as_primitive_opt::<Float64Type>();
        let (Some(times), Some(values)) = (times, values) else {
            return Err(wrong("times and values"));
        };
        for (time_ms, value) in times.values().iter().zip(values.values()) {
            self.writer.point(*time_ms, *value, &mut self.text);
        }
        Ok(())
    }
}
