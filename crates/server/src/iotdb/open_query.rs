//! A query whose rows a client fetches, and the queries of a session.
//!
//! Invariants: rows are read when the client asks for them, and at most some megabytes at once; a query that
//! failed is gone, so that its rows before cannot be taken for all.

use super::arrow_rows::AnswerHeading;
use super::frames::{FrameSocket, RequestHalt, RequestWatch};
use crate::admission::RequestPermit;
use crate::outgoing::{PART_BYTES, rows_within};
use arrow::record_batch::RecordBatch;
use futures::StreamExt;
use futures::stream::BoxStream;
use marigram_iotdb::wire::{MessageHead, WireMap, write_reply};
use marigram_iotdb::{
    AnswerRows, DataSetBytes, ExecuteStatementResponse, FetchResultsResponse, QueryDataSet,
    RowForm, StatusMessage,
};
use marigram_service::{InlinePolicy, RowStream, ServiceError, StatementAnswers, run_inline_if};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of rows in one answer, beyond which the rest waits.
const ANSWER_BYTES: usize = 2 << 20;

/// An answer is its rows, their encoding, and the message.
const COPIES: usize = 3;

/// Values that are converted on the thread that serves the connection.
const VALUES_INLINE: usize = InlinePolicy::DEFAULT.encoded_values_max;

/// Rows of an answer, if the client names no number, and at most.
const ROWS_USUAL: usize = 5_000;
const ROWS_MAX: usize = 1 << 20;

/// Queries of a session that have more rows.
const OPEN_MAX: usize = 16;

/// Queries whose rows were all sent, and that were not closed.
const ENDED_MAX: usize = 1_000;

/// A query that has more rows.
pub(super) struct OpenQuery {
    pub(super) heading: Arc<AnswerHeading>,
    batches: BoxStream<'static, Result<RecordBatch, ServiceError>>,
    /// Rows that were read and not sent.
    ahead: Option<RecordBatch>,
    /// The statement itself, as long as its rows stream.
    _answers: StatementAnswers,
    _ticket: RequestPermit,
}

/// Rows as they are sent.
pub(super) enum TreeAnswerBytes {
    Blocks(Vec<Vec<u8>>),
    DataSet(DataSetBytes),
}

/// The number of rows that an answer may have.
pub(super) fn rows_max(fetch_size: Option<i32>) -> usize {
    let asked = fetch_size.and_then(|size| usize::try_from(size).ok());
    let asked = asked.filter(|size| *size > 0);
    asked.unwrap_or(ROWS_USUAL).min(ROWS_MAX)
}

impl OpenQuery {
    /// The query with these rows.
    ///
    /// # Errors
    /// If its columns have types that IoTDB does not have.
    pub(super) fn new(
        rows: RowStream,
        answers: StatementAnswers,
        ticket: RequestPermit,
    ) -> Result<Self, ServiceError> {
        Ok(Self {
            heading: Arc::new(AnswerHeading::from_schema(&rows.schema)?),
            batches: rows.batches.fuse().boxed(),
            ahead: None,
            _answers: answers,
            _ticket: ticket,
        })
    }

    /// The next rows, and whether there are more.
    pub(super) async fn next_rows(
        &mut self,
        socket: &mut FrameSocket,
        watch: &RequestWatch,
        (rows_max, form): (usize, RowForm),
    ) -> Result<(TreeAnswerBytes, bool), RequestHalt> {
        let mut rows = self.heading.no_rows();
        while rows.len() < rows_max && rows.memory_bytes() < ANSWER_BYTES {
            if !self.has_more(socket, watch).await? {
                break;
            }
            let Some(batch) = self.ahead.take() else {
                break;
            };
            let left = rows_max - rows.len();
            let part = rows_within(&batch, PART_BYTES).min(left);
            if part < batch.num_rows() {
                self.ahead = Some(batch.slice(part, batch.num_rows() - part));
            }
            let heading = Arc::clone(&self.heading);
            rows = append(heading, batch.slice(0, part), rows).await?;
            socket.hold_output(COPIES * rows.memory_bytes()).await?;
        }
        let has_more = self.has_more(socket, watch).await?;
        let is_short = rows.memory_bytes() <= PART_BYTES;
        let sent = run_inline_if(is_short, move || encode(rows, form)).await?;
        Ok((sent, has_more))
    }

    /// Reads ahead; returns whether there are rows.
    async fn has_more(
        &mut self,
        socket: &mut FrameSocket,
        watch: &RequestWatch,
    ) -> Result<bool, RequestHalt> {
        while self.ahead.is_none() {
            let batches = &mut self.batches;
            let next = async { batches.next().await.transpose() };
            match socket.guard(watch, next).await? {
                Some(batch) if batch.num_rows() > 0 => self.ahead = Some(batch),
                Some(_) => {}
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Adds a batch to rows; on another thread if it is large.
async fn append(
    heading: Arc<AnswerHeading>,
    batch: RecordBatch,
    mut rows: AnswerRows,
) -> Result<AnswerRows, ServiceError> {
    let is_short = batch.num_rows().saturating_mul(batch.num_columns()) <= VALUES_INLINE;
    let work = move || {
        let appended = heading.append(&batch, &mut rows);
        appended.map(|()| rows)
    };
    run_inline_if(is_short, work).await?
}

fn encode(rows: AnswerRows, form: RowForm) -> TreeAnswerBytes {
    match form {
        RowForm::DataSet => TreeAnswerBytes::DataSet(rows.into_data_set()),
        RowForm::Blocks if rows.is_empty() => TreeAnswerBytes::Blocks(Vec::new()),
        RowForm::Blocks => TreeAnswerBytes::Blocks(vec![rows.block()]),
    }
}

impl TreeAnswerBytes {
    fn are_some(&self) -> bool {
        match self {
            Self::Blocks(blocks) => !blocks.is_empty(),
            Self::DataSet(set) => !set.times.is_empty(),
        }
    }

    fn blocks(&self) -> Option<Vec<&[u8]>> {
        match self {
            Self::Blocks(blocks) => Some(blocks.iter().map(Vec::as_slice).collect()),
            Self::DataSet(_) => None,
        }
    }

    fn data_set(&self) -> Option<QueryDataSet<'_>> {
        match self {
            Self::Blocks(_) => None,
            Self::DataSet(set) => Some(QueryDataSet {
                times: &set.times,
                values: set.values.iter().map(Vec::as_slice).collect(),
                bitmaps: set.bitmaps.iter().map(Vec::as_slice).collect(),
            }),
        }
    }

    /// The answer to the statement.
    pub(super) fn first_reply(
        &self,
        head: &MessageHead<'_>,
        query_id: i64,
        heading: &AnswerHeading,
        has_more: bool,
    ) -> Vec<u8> {
        let names = heading.columns.iter().map(|(name, _)| name.as_str());
        let places = heading.places.iter();
        let places = places.map(|place| i32::try_from(*place).unwrap_or(i32::MAX));
        let mut by_name: Vec<(&str, i32)> = Vec::new();
        let mut known = std::collections::HashSet::new();
        for (name, place) in names.clone().zip(places.clone()) {
            if known.insert(name) {
                by_name.push((name, place));
            }
        }
        let types = heading.columns.iter().map(|(_, kind)| kind.name());
        let response = ExecuteStatementResponse {
            status: StatusMessage::SUCCESS,
            query_id: Some(query_id),
            columns: Some(names.collect()),
            operation: Some("QUERY"),
            ignores_time: Some(heading.ignores_time),
            types: Some(types.collect()),
            data_set: self.data_set(),
            column_places: Some(WireMap(by_name)),
            blocks: self.blocks(),
            has_more: Some(has_more),
            block_places: Some(places.collect()),
        };
        write_reply(head, &response)
    }

    /// The answer to a request for more rows.
    pub(super) fn next_reply(&self, head: &MessageHead<'_>, has_more: bool) -> Vec<u8> {
        let response = FetchResultsResponse {
            status: StatusMessage::SUCCESS,
            has_rows: self.are_some(),
            is_aligned: true,
            data_set: self.data_set(),
            blocks: self.blocks(),
            has_more: Some(has_more),
        };
        write_reply(head, &response)
    }
}

/// A query of a session.
pub(super) enum QueryState {
    /// It has more rows.
    Open(Box<OpenQuery>),
    /// All of its rows were sent.
    Ended,
}

/// The queries of a session.
#[derive(Default)]
pub(super) struct SessionQueries {
    last: i64,
    /// By their numbers, each with the number of the client's statement.
    queries: BTreeMap<i64, (i64, QueryState)>,
}

impl SessionQueries {
    /// A number for the next query.
    pub(super) fn next_id(&mut self) -> i64 {
        self.last += 1;
        self.last
    }

    /// Whether one more may have rows left.
    pub(super) fn has_room(&self) -> bool {
        let states = self.queries.values();
        let open = states.filter(|(_, state)| matches!(state, QueryState::Open(_)));
        open.count() < OPEN_MAX
    }

    /// Keeps a query.
    pub(super) fn insert(&mut self, id: i64, statement_id: i64, state: QueryState) {
        self.queries.insert(id, (statement_id, state));
        if self.queries.len() > ENDED_MAX {
            let mut ended = self.queries.iter();
            let ended = ended.find(|(_, (_, state))| matches!(state, QueryState::Ended));
            if let Some(id) = ended.map(|(id, _)| *id) {
                self.queries.remove(&id);
            }
        }
    }

    /// Takes a query out, to go on with it.
    pub(super) fn take(&mut self, id: i64) -> Option<(i64, QueryState)> {
        self.queries.remove(&id)
    }

    /// Ends a query, or those of a statement.
    pub(super) fn close(&mut self, query_id: Option<i64>, statement_id: Option<i64>) {
        match (query_id, statement_id) {
            (Some(id), _) => {
                self.queries.remove(&id);
            }
            (None, Some(id)) => self.queries.retain(|_, (of, _)| *of != id),
            (None, None) => {}
        }
    }

    /// Ends all queries.
    pub(super) fn close_all(&mut self) {
        self.queries.clear();
    }

    /// Ends those that have more rows, which the client does not fetch.
    pub(super) fn close_open(&mut self) {
        self.queries
            .retain(|_, (_, state)| matches!(state, QueryState::Ended));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_end_with_their_statement_and_are_bounded() {
        let mut queries = SessionQueries::default();
        for statement in [1, 1, 2] {
            let id = queries.next_id();
            queries.insert(id, statement, QueryState::Ended);
        }
        queries.close(None, Some(1));
        assert!(queries.take(1).is_none() && queries.take(2).is_none());
        queries.close(Some(3), Some(7));
        assert!(queries.take(3).is_none());
        for _ in 0..2 * ENDED_MAX {
            let id = queries.next_id();
            queries.insert(id, 1, QueryState::Ended);
        }
        assert!(queries.queries.len() <= ENDED_MAX);
        assert!(queries.take(queries.last).is_some(), "the newest is kept");
    }

    #[test]
    fn numbers_of_rows_are_bounded() {
        for (asked, rows) in [
            (None, ROWS_USUAL),
            (Some(0), ROWS_USUAL),
            (Some(-1), ROWS_USUAL),
            (Some(7), 7),
            (Some(i32::MAX), ROWS_MAX),
        ] {
            assert_eq!(rows_max(asked), rows);
        }
    }
}
