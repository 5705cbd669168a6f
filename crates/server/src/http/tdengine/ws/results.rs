//! The results of a connection's statements: rows that stream in, and that the client fetches block by block.

use super::reply::{Reply, ReplyHead};
use crate::admission::AdmissionControl;
use crate::admission::MemoryPermit;
use crate::http::tdengine::asked::TaosRows;
use crate::http::tdengine::columns::{TaosColumns, block_of};
use crate::http::tdengine::error::TaosFailure;
use crate::outgoing::next_part;
use arrow::record_batch::RecordBatch;
use marigram_service::{InlinePolicy, run_inline_if};
use marigram_tdengine::{TaosCode, TaosError, raw_block_head, type_code};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Results that a connection may have open.
const RESULTS_MAX: usize = 64;

/// Rows that become a block on the thread that serves the connection.
const ROWS_INLINE: usize = InlinePolicy::DEFAULT.formatted_rows_max;

/// Rows, and what was made of them.
struct OpenResult {
    rows: TaosRows,
    /// What is left of the batch that came last.
    rest: Option<RecordBatch>,
    /// The block that `fetch` made.
    block: Option<RowBlock>,
}

/// A block, and the memory that it takes.
struct RowBlock {
    bytes: Vec<u8>,
    rows: usize,
    permit: MemoryPermit,
}

/// The open results of a connection.
pub(super) struct OpenResults {
    results: HashMap<u64, OpenResult>,
    last_id: u64,
    gate: AdmissionControl,
}

impl OpenResults {
    pub(super) fn new(gate: AdmissionControl) -> Self {
        Self {
            results: HashMap::new(),
            last_id: 0,
            gate,
        }
    }

    /// Keeps rows; returns the id of their result.
    ///
    /// # Errors
    /// If there are too many results.
    pub(super) fn keep(&mut self, rows: TaosRows) -> Result<u64, TaosFailure> {
        if self.results.len() >= RESULTS_MAX {
            let message = format!(
                "a connection may have {RESULTS_MAX} results open; fetch them to their ends or free them"
            );
            return Err(TaosError::with_message(TaosCode::OutOfMemory, message).into());
        }
        self.last_id += 1;
        let result = OpenResult {
            rows,
            rest: None,
            block: None,
        };
        self.results.insert(self.last_id, result);
        Ok(self.last_id)
    }

    /// Frees a result; its statement stops.
    pub(super) fn free(&mut self, id: u64) {
        self.results.remove(&id);
    }

    /// The number of columns of a result.
    pub(super) fn column_count(&self, id: u64) -> Result<usize, TaosFailure> {
        let result = self.results.get(&id).ok_or_else(no_result)?;
        Ok(result.rows.columns.columns.len())
    }

    /// Makes the next block of a result; its rows, or `None` at the end.
    async fn next_block(&mut self, id: u64) -> Result<Option<RowBlock>, TaosFailure> {
        let gate = self.gate.clone();
        let result = self.results.get_mut(&id).ok_or_else(no_result)?;
        let next = result.next_block(&gate).await;
        if !matches!(next, Ok(Some(_))) {
            self.results.remove(&id);
        }
        next
    }

    /// `fetch`: makes a block, which `fetch_block` sends.
    pub(super) async fn fetch(&mut self, id: u64) -> Result<Value, TaosFailure> {
        let Some(block) = self.next_block(id).await? else {
            return Ok(json!({"id": id, "completed": true, "lengths": null, "rows": 0}));
        };
        let result = self.results.get_mut(&id).ok_or_else(no_result)?;
        let columns = result.rows.columns.columns.iter();
        let lengths: Vec<u32> = columns.map(|column| column.kind.length()).collect();
        let rows = block.rows;
        result.block = Some(block);
        Ok(json!({"id": id, "completed": false, "lengths": lengths, "rows": rows}))
    }

    /// `fetch_block`: sends the block that `fetch` made.
    pub(super) fn fetch_block(&mut self, id: u64, head: &ReplyHead) -> Result<Reply, TaosFailure> {
        let result = self.results.get_mut(&id).ok_or_else(no_result)?;
        let block = result.block.take();
        let block = block.ok_or_else(|| TaosFailure::other("block is nil"))?;
        let mut bytes = Vec::with_capacity(16 + block.bytes.len());
        bytes.extend_from_slice(&head.timing_ns().to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
        bytes.extend_from_slice(&block.bytes);
        Ok(Reply::Binary(bytes, Some(block.permit)))
    }

    /// `fetch_raw_block`: makes a block and sends it.
    pub(super) async fn fetch_raw_block(&mut self, id: u64, head: &ReplyHead) -> Reply {
        let ids = (head.req_id, id);
        let made = self.next_block(id).await;
        let timing = head.timing_ns();
        match made {
            Ok(None) => Reply::Binary(raw_block_head(ids, timing, (0, ""), None), None),
            Ok(Some(block)) => {
                let length = u32::try_from(block.bytes.len()).unwrap_or(u32::MAX);
                let mut bytes = raw_block_head(ids, timing, (0, ""), Some(length));
                bytes.extend_from_slice(&block.bytes);
                Reply::Binary(bytes, Some(block.permit))
            }
            Err(failure) => raw_failure(head, id, &failure),
        }
    }
}

/// The answer to a request for rows that failed.
pub(super) fn raw_failure(head: &ReplyHead, id: u64, failure: &TaosFailure) -> Reply {
    let error = (failure.code, failure.message.as_str());
    let ids = (head.req_id, id);
    Reply::Binary(raw_block_head(ids, head.timing_ns(), error, None), None)
}

fn no_result() -> TaosFailure {
    TaosFailure::other("result is nil")
}

impl OpenResult {
    async fn next_block(
        &mut self,
        gate: &AdmissionControl,
    ) -> Result<Option<RowBlock>, TaosFailure> {
        let batch = match self.rest.take() {
            Some(batch) => Some(batch),
            None => self.rows.next().await?,
        };
        let Some(batch) = batch else {
            return Ok(None);
        };
        let (part, rest) = next_part(batch);
        self.rest = rest;
        let rows = part.num_rows();
        let columns = self.rows.columns.clone();
        let is_short = rows <= ROWS_INLINE;
        let made = run_inline_if(is_short, move || block_of(&columns, &part)).await?;
        let bytes = made?;
        let mut permit = gate.lease();
        // It exists twice while it is sent.
        if !permit.grow_in_time(bytes.len().saturating_mul(2)).await {
            return Err(TaosFailure::no_memory());
        }
        Ok(Some(RowBlock {
            bytes,
            rows,
            permit,
        }))
    }
}

/// The fields of an answer that tell its columns.
pub(super) fn column_fields(columns: &TaosColumns) -> Value {
    let all = columns.columns.iter();
    let names: Vec<&str> = all.clone().map(|column| column.name.as_str()).collect();
    let types: Vec<u8> = all.clone().map(|column| type_code(column.kind)).collect();
    let lengths: Vec<u32> = all.map(|column| column.kind.length()).collect();
    let zeros = vec![0; names.len()];
    json!({
        "is_update": false, "affected_rows": 0, "fields_count": names.len(),
        "fields_names": names, "fields_types": types, "fields_lengths": lengths,
        "precision": columns.precision_number(), "fields_precisions": zeros, "fields_scales": zeros,
    })
}
