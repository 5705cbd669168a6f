//! Reads a partition ahead of its reader, in steps on threads for blocking work; but reads the
//! first rows of a few series inline, since handing over such a step takes longer than the step
//! itself.
//!
//! If scans hold much of the memory that they may use, nothing is read ahead, and each step
//! releases its pages: readers that do not read must not keep others from reading.

use super::external;
use super::newest::TimeWindows;
use crate::rows::{OutputColumnSource, to_batch};
use arrow::array::Array;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_plan::metrics::BaselineMetrics;
use futures::Stream;
use marigram_engine::{EngineError, Holder, MemoryReservation, ScanPartition, TableSnapshot};
use marigram_model::SortedRows;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinHandle;

/// The largest number of batches of a step, and the bytes after which it ends earlier.
const STEP_BATCHES_MAX: usize = 8;
const STEP_BYTES_MAX: usize = 4 << 20;

/// The source of a partition's rows.
pub(super) enum PartitionFeed {
    /// All of them, in order.
    Whole(Box<ScanPartition>),
    /// The newest first, until there are enough.
    Newest(TimeWindows),
}

impl PartitionFeed {
    fn shard(&self) -> usize {
        match self {
            Self::Whole(partition) => partition.shard(),
            Self::Newest(windows) => windows.shard(),
        }
    }

    /// Releases data that can be read again.
    fn release_pages(&mut self) {
        match self {
            Self::Whole(partition) => partition.release_pages(),
            // It holds its results, and no pages.
            Self::Newest(_) => {}
        }
    }

    fn next_rows(&mut self) -> Result<Option<SortedRows>, EngineError> {
        match self {
            Self::Whole(partition) => partition.next_rows(),
            Self::Newest(windows) => windows.next_rows(),
        }
    }
}

/// The state of reading a partition; it passes from step to step.
pub(super) struct PartitionReader {
    /// The sources, which are read one after the other.
    pub(super) feeds: VecDeque<PartitionFeed>,
    pub(super) schema: SchemaRef,
    pub(super) sources: Arc<[OutputColumnSource]>,
    pub(super) snapshot: Arc<TableSnapshot>,
    pub(super) batches_next: usize,
    pub(super) rows_left: usize,
    /// The number of rows to read on the polling thread before other threads read ahead.
    pub(super) rows_inline: usize,
    /// Set when another thread reads.
    pub(super) handed_over: Arc<AtomicBool>,
    pub(super) baseline: BaselineMetrics,
}

/// The result of a step: batches, and the reader if there may be more.
struct ReadStep {
    batches: VecDeque<(Result<RecordBatch>, MemoryReservation)>,
    reader: Option<Box<PartitionReader>>,
}

impl PartitionReader {
    /// Accounts for the bytes of a batch that waits for its reader: the pages with which it may
    /// share memory are released already.
    fn held(&self, bytes: usize) -> MemoryReservation {
        MemoryReservation::counted(self.snapshot.memory(), Holder::Scan, bytes)
    }

    /// Whether scans hold so much memory that each must use little.
    fn is_tight(&self) -> bool {
        let memory = self.snapshot.memory();
        memory.used_by(Holder::Scan) > memory.share(Holder::Scan) / 2
    }

    /// Reads a few batches: one at first, so that the first rows arrive soon, then more.
    fn step(mut self: Box<Self>) -> ReadStep {
        let is_tight = self.is_tight();
        if is_tight {
            self.batches_next = 1;
        }
        let mut step = self.read();
        if is_tight && let Some(reader) = &mut step.reader {
            reader
                .feeds
                .iter_mut()
                .for_each(PartitionFeed::release_pages);
        }
        step
    }

    fn read(mut self: Box<Self>) -> ReadStep {
        let compute = self.baseline.elapsed_compute().clone();
        let _timer = compute.timer();
        let mut batches = VecDeque::with_capacity(self.batches_next);
        let mut bytes = 0;
        while batches.len() < self.batches_next && bytes < STEP_BYTES_MAX && self.rows_left > 0 {
            let Some(feed) = self.feeds.front_mut() else {
                return ReadStep {
                    batches,
                    reader: None,
                };
            };
            let shard = feed.shard();
            let rows = match feed.next_rows() {
                Ok(Some(rows)) => rows,
                Ok(None) => {
                    self.feeds.pop_front();
                    continue;
                }
                Err(error) => {
                    batches.push_back((Err(external(error)), self.held(0)));
                    return ReadStep {
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
                return ReadStep {
                    batches,
                    reader: None,
                };
            }
        }
        self.batches_next = (self.batches_next * 2).min(STEP_BATCHES_MAX);
        let reader = (self.rows_left > 0).then_some(self);
        ReadStep { batches, reader }
    }
}

/// The bytes of a batch's own rows, without the rest of the buffers that its arrays may share.
fn bytes_of(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter().map(|values| {
        let sliced = values.to_data().get_slice_memory_size();
        sliced.unwrap_or_else(|_| values.get_array_memory_size())
    });
    columns.sum()
}

struct ReadAheadStream {
    ready: VecDeque<(Result<RecordBatch>, MemoryReservation)>,
    running: Option<JoinHandle<ReadStep>>,
    idle: Option<Box<PartitionReader>>,
    /// The number of rows that may still be read on the reader's thread.
    inline: usize,
}

impl ReadAheadStream {
    /// Begins the next step, ahead of the reader if there is memory for it.
    fn go_on(&mut self, reader: Box<PartitionReader>) {
        if self.inline > 0 || reader.is_tight() {
            self.idle = Some(reader);
        } else {
            self.start(reader);
        }
    }

    fn start(&mut self, reader: Box<PartitionReader>) {
        reader.handed_over.store(true, Ordering::Relaxed);
        self.running = Some(tokio::task::spawn_blocking(move || reader.step()));
    }

    fn take(&mut self, step: ReadStep) {
        let rows = step.batches.iter().map(|(batch, _)| batch.as_ref());
        let rows = rows.map(|batch| batch.map_or(0, RecordBatch::num_rows));
        self.inline = self.inline.saturating_sub(rows.sum::<usize>().max(1));
        self.ready = step.batches;
        if let Some(reader) = step.reader {
            self.go_on(reader);
        }
    }
}

pub(super) fn read_ahead(
    reader: PartitionReader,
) -> impl Stream<Item = Result<RecordBatch>> + Send {
    let mut state = ReadAheadStream {
        ready: VecDeque::new(),
        running: None,
        idle: None,
        inline: reader.rows_inline,
    };
    state.idle = Some(Box::new(reader));
    futures::stream::unfold(state, |mut state| async move {
        loop {
            // From here on, the reader accounts for the batch.
            if let Some((batch, _)) = state.ready.pop_front() {
                return Some((batch, state));
            }
            let step = if let Some(reader) = state.idle.take() {
                if state.inline == 0 {
                    state.start(reader);
                    continue;
                }
                reader.step()
            } else {
                match state.running.take()?.await {
                    Ok(step) => step,
                    Err(error) => {
                        let failed = DataFusionError::ExecutionJoin(Box::new(error));
                        return Some((Err(failed), state));
                    }
                }
            };
            state.take(step);
        }
    })
}
