//! Reading a partition ahead of its reader, in steps on threads for blocking work.

use super::external;
use super::newest::Windows;
use crate::rows::{Source, to_batch};
use arrow::array::Array;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_plan::metrics::BaselineMetrics;
use futures::Stream;
use marigram_engine::{EngineError, Held, Holder, ScanPartition, TableSnapshot};
use marigram_model::SortedRows;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Most batches of one step, and bytes after which it ends before.
const STEP_BATCHES_MAX: usize = 8;
const STEP_BYTES_MAX: usize = 4 << 20;

/// Where a partition's rows come from.
pub(super) enum Feed {
    /// All of them, in order.
    Whole(Box<ScanPartition>),
    /// The newest first, until there are enough.
    Newest(Windows),
}

impl Feed {
    fn shard(&self) -> usize {
        match self {
            Self::Whole(partition) => partition.shard(),
            Self::Newest(windows) => windows.shard(),
        }
    }

    fn next_rows(&mut self) -> Result<Option<SortedRows>, EngineError> {
        match self {
            Self::Whole(partition) => partition.next_rows(),
            Self::Newest(windows) => windows.next_rows(),
        }
    }
}

/// What reads a partition; goes from step to step.
pub(super) struct Reader {
    pub(super) feed: Feed,
    pub(super) schema: SchemaRef,
    pub(super) sources: Arc<[Source]>,
    pub(super) snapshot: Arc<TableSnapshot>,
    pub(super) batches_next: usize,
    pub(super) rows_left: usize,
    pub(super) baseline: BaselineMetrics,
}

/// What a step gives: batches, and the reader where there may be more.
struct Step {
    batches: VecDeque<(Result<RecordBatch>, Held)>,
    reader: Option<Reader>,
}

impl Reader {
    /// Bytes of a batch that waits for its reader, counted: the pages that it may share memory
    /// with are given back already.
    fn held(&self, bytes: usize) -> Held {
        Held::counted(self.snapshot.memory(), Holder::Scan, bytes)
    }

    /// Reads a few batches: one at first, so that the first rows come soon, then more.
    fn step(mut self) -> Step {
        let compute = self.baseline.elapsed_compute().clone();
        let _timer = compute.timer();
        let mut batches = VecDeque::with_capacity(self.batches_next);
        let shard = self.feed.shard();
        let mut bytes = 0;
        while batches.len() < self.batches_next && bytes < STEP_BYTES_MAX && self.rows_left > 0 {
            let rows = match self.feed.next_rows() {
                Ok(Some(rows)) => rows,
                Ok(None) => {
                    return Step {
                        batches,
                        reader: None,
                    };
                }
                Err(error) => {
                    batches.push_back((Err(external(error)), self.held(0)));
                    return Step {
                        batches,
                        reader: None,
                    };
                }
            };
            if rows.is_empty() {
                continue;
            }
            let batch = to_batch(rows, &self.schema, &self.sources, &self.snapshot, shard);
            let batch = batch.map_err(DataFusionError::from).map(|batch| {
                let len = batch.num_rows().min(self.rows_left);
                self.rows_left -= len;
                self.baseline.record_output(len);
                batch.slice(0, len)
            });
            let failed = batch.is_err();
            let batch_bytes = batch.as_ref().map_or(0, bytes_of);
            bytes += batch_bytes;
            batches.push_back((batch, self.held(batch_bytes)));
            if failed {
                return Step {
                    batches,
                    reader: None,
                };
            }
        }
        self.batches_next = (self.batches_next * 2).min(STEP_BATCHES_MAX);
        let reader = (self.rows_left > 0).then_some(self);
        Step { batches, reader }
    }
}

/// Bytes of a batch's own rows: not of the larger buffers that its arrays may be slices of.
fn bytes_of(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter().map(|values| {
        let sliced = values.to_data().get_slice_memory_size();
        sliced.unwrap_or_else(|_| values.get_array_memory_size())
    });
    columns.sum()
}

struct ReadAhead {
    ready: VecDeque<(Result<RecordBatch>, Held)>,
    running: Option<JoinHandle<Step>>,
    first: Option<Reader>,
}

fn start(reader: Reader) -> JoinHandle<Step> {
    tokio::task::spawn_blocking(move || reader.step())
}

pub(super) fn read_ahead(reader: Option<Reader>) -> impl Stream<Item = Result<RecordBatch>> + Send {
    let state = ReadAhead {
        ready: VecDeque::new(),
        running: None,
        first: reader,
    };
    futures::stream::unfold(state, |mut state| async move {
        if let Some(reader) = state.first.take() {
            state.running = Some(start(reader));
        }
        loop {
            // From here on the batch is its reader's.
            if let Some((batch, _)) = state.ready.pop_front() {
                return Some((batch, state));
            }
            let step = match state.running.take()?.await {
                Ok(step) => step,
                Err(error) => {
                    let failed = DataFusionError::ExecutionJoin(Box::new(error));
                    return Some((Err(failed), state));
                }
            };
            state.ready = step.batches;
            state.running = step.reader.map(start);
        }
    })
}
