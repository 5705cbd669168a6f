//! The worker of one partition: assigns pages and rows to groups, and passes them to folds.

mod selected_rows;
mod slot_runs;

use super::fold::{FoldRows, SeriesFold, SlotRun, SlotStatistics};
use super::groups::{GroupMembers, GroupSlots, batch_of, bucket_error};
use super::recipe::{AggregateRecipe, FoldArgument};
use crate::rows::{OutputColumnSource, tag_column};
use crate::scan::external;
use arrow::array::{ArrayRef, TimestampNanosecondArray, new_null_array};
use arrow::compute::{not, nullif};
use arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use marigram_engine::{
    EngineError, PageNeed, PageOutline, PageReducer, PageRows, PageStats, PageTotals, TableSnapshot,
};
use marigram_functions::TimeBuckets;
use marigram_model::{FieldValue, SeriesId, SeriesRun, TimeRange};
use selected_rows::{SelectedRows, truths_of};
use slot_runs::CachedSlotRuns;
use std::sync::Arc;

/// Memory is reserved in steps of this many bytes.
const MEMORY_STEP: usize = 64 << 10;
/// The bytes that a slot takes in most folds.
const FOLD_SLOT_BYTES: usize = 16;

/// An error that passes through the engine.
#[derive(Debug)]
pub(super) struct WorkerFailure(pub DataFusionError);

impl From<EngineError> for WorkerFailure {
    fn from(error: EngineError) -> Self {
        Self(external(error))
    }
}

impl From<DataFusionError> for WorkerFailure {
    fn from(error: DataFusionError) -> Self {
        Self(error)
    }
}

/// The result of a partition's rows.
#[derive(Debug)]
pub(super) struct WorkerOutput {
    /// Slots of groups and buckets.
    pub slots: GroupSlots,
    /// Whether a slot has rows.
    pub present: Vec<bool>,
    /// One fold for each of the recipe's folds.
    pub folds: Vec<Box<dyn SeriesFold>>,
    /// The memory of the slots and folds.
    pub reservation: MemoryReservation,
}

impl WorkerOutput {
    /// Creates an empty output.
    ///
    /// # Errors
    /// If a function that is not ours cannot create an accumulator, or there is not enough memory
    /// for the slots.
    pub(super) fn new(
        recipe: &AggregateRecipe,
        slots: GroupSlots,
        reservation: MemoryReservation,
    ) -> Result<Self> {
        let folds = recipe.folds.iter().map(super::recipe::FoldSpec::fold);
        // Reserved before it is allocated; the actual size is reserved afterwards.
        let bytes = slots.len() * (1 + FOLD_SLOT_BYTES * recipe.folds.len());
        reservation.try_grow(bytes.next_multiple_of(MEMORY_STEP))?;
        let mut taken = Self {
            slots,
            present: Vec::new(),
            folds: folds.collect::<Result<_>>()?,
            reservation,
        };
        taken.grow();
        taken.account()?;
        Ok(taken)
    }

    /// Makes room for slots that were added.
    fn grow(&mut self) {
        let slots = self.slots.len();
        if slots == self.present.len() {
            return;
        }
        // Grow in powers of two, not for each slot.
        let room = if matches!(self.slots, GroupSlots::Made { .. }) {
            slots.next_power_of_two().max(64)
        } else {
            slots
        };
        if room > self.present.len() {
            self.present.resize(room, false);
            for fold in &mut self.folds {
                fold.resize(room);
            }
        }
    }

    fn account(&mut self) -> Result<()> {
        let folds: usize = self.folds.iter().map(|fold| fold.size()).sum();
        let bytes = folds + self.present.capacity() + self.slots.size();
        let held = self.reservation.size();
        if bytes > held || bytes + 4 * MEMORY_STEP < held {
            self.reservation
                .try_resize(bytes.next_multiple_of(MEMORY_STEP))?;
        }
        Ok(())
    }

    /// Merges the output of another partition.
    ///
    /// # Errors
    /// If there is not enough memory for it, or a function fails.
    pub(super) fn merge(&mut self, other: Self) -> Result<()> {
        let from: Vec<u32> = (0..other.present.len() as u32)
            .filter(|slot| other.present[*slot as usize])
            .collect();
        let to = from.iter().map(|slot| {
            let (group, start) = other.slots.key(*slot);
            self.slots.slot(group, start)
        });
        let to = to.collect::<Result<Vec<u32>>>()?;
        self.grow();
        for slot in &to {
            self.present[*slot as usize] = true;
        }
        for (fold, other) in self.folds.iter_mut().zip(other.folds) {
            fold.merge(other, &from, &to)?;
        }
        self.account()
    }
}

/// See the module documentation.
#[derive(Debug)]
pub(super) struct AggregateWorker {
    recipe: Arc<AggregateRecipe>,
    snapshot: Arc<TableSnapshot>,
    shard: usize,
    members: GroupMembers,
    buckets: Option<TimeBuckets>,
    /// Start and end of the last bucket, ns.
    bucket: (i64, i64),
    taken: WorkerOutput,
    /// Whether a run may contain rows of several series: not if the order of times matters.
    joins: bool,
    /// The slots of the current page, with the number of rows of each; kept to reuse its memory.
    slots: Vec<(u32, u32)>,
    /// Kept to reuse its memory.
    stretches: Vec<SlotRun>,
    /// Pages whose runs are cached.
    outlines: Vec<CachedSlotRuns>,
}

impl AggregateWorker {
    /// Creates the worker of a partition of a shard, whose series are `members`.
    pub(super) fn new(
        recipe: Arc<AggregateRecipe>,
        snapshot: Arc<TableSnapshot>,
        shard: usize,
        members: GroupMembers,
        taken: WorkerOutput,
    ) -> Self {
        Self {
            buckets: recipe.buckets.clone(),
            joins: !recipe.needs_order(),
            recipe,
            snapshot,
            shard,
            members,
            bucket: (0, 0),
            taken,
            slots: Vec::new(),
            stretches: Vec::new(),
            outlines: Vec::new(),
        }
    }

    /// The result of the rows.
    pub(super) fn finish(self) -> WorkerOutput {
        self.taken
    }

    /// Start of the bucket of a time.
    fn bucket_of(&mut self, time: i64) -> Result<i64> {
        let (start, end) = self.bucket;
        if start <= time && time < end {
            return Ok(start);
        }
        let Some(buckets) = &mut self.buckets else {
            return Ok(0);
        };
        self.bucket = buckets.span(time, self.bucket).map_err(bucket_error)?;
        Ok(self.bucket.0)
    }

    /// The start of the bucket that contains all times of a range; `None` if there are several
    /// buckets.
    fn bucket_within(&mut self, range: TimeRange) -> Result<Option<i64>> {
        if self.buckets.is_some() && range == TimeRange::ALL {
            return Ok(None);
        }
        let start = self.bucket_of(range.min)?;
        let is_one = self.buckets.is_none() || self.bucket_of(range.max)? == start;
        Ok(is_one.then_some(start))
    }

    /// Finds the slots of spans whose rows are all between two times; returns `false` if they are
    /// in more than one bucket.
    fn find_slots(&mut self, outline: &PageOutline<'_>) -> Result<bool> {
        let Some(start) = self.bucket_within(outline.range)? else {
            return Ok(false);
        };
        self.slots.clear();
        for span in outline.spans {
            let group = self.members.group(span.series);
            let slot = self.taken.slots.slot(group, start)?;
            let rows = span.end - span.start;
            match self.slots.last_mut() {
                Some((last, known)) if *last == slot => *known += rows,
                _ => self.slots.push((slot, rows)),
            }
        }
        Ok(true)
    }

    /// Processes a page by its statistics, if they suffice.
    fn answer(&mut self, outline: &PageOutline<'_>, slots: &[(u32, u32)]) -> bool {
        if self.recipe.has_expressions() {
            return false;
        }
        let TimeRange { min, max } = outline.range;
        let times = PageStats {
            min: Some(FieldValue::Timestamp(min)),
            max: Some(FieldValue::Timestamp(max)),
            first: Some((min, FieldValue::Timestamp(min))),
            last: Some((max, FieldValue::Timestamp(max))),
            ..PageStats::default()
        };
        let stats = |args: &[FoldArgument]| match args {
            [FoldArgument::Field(place)] => outline.stats[*place],
            [FoldArgument::Time] => Some(&times),
            _ => None,
        };
        // The first and last values of a page are those of its first and last series.
        let ordered = self.joins || outline.spans.len() == 1;
        let whole = outline.whole && slots.len() == 1 && ordered;
        let specs = &self.recipe.folds;
        for (fold, spec) in self.taken.folds.iter().zip(specs) {
            let known = slots.iter().all(|(_, rows)| {
                fold.can_take_page(&SlotStatistics {
                    rows: u64::from(*rows),
                    whole,
                    stats: stats(&spec.args),
                })
            });
            if !known {
                return false;
            }
        }
        self.taken.grow();
        for (slot, rows) in slots {
            self.taken.present[*slot as usize] = true;
            for (fold, spec) in self.taken.folds.iter_mut().zip(specs) {
                let facts = SlotStatistics {
                    rows: u64::from(*rows),
                    whole,
                    stats: stats(&spec.args),
                };
                fold.take_page(*slot as usize, &facts);
            }
        }
        true
    }

    /// Processes rows by evaluating expressions: these only see the requested rows, so that no
    /// other row can make them fail.
    fn take_expressions(&mut self, rows: &PageRows<'_>) -> Result<()> {
        let mut part = SelectedRows::from_page(rows, &self.recipe)?;
        let mut batch = self.batch(&part)?;
        if let Some(predicate) = &self.recipe.predicate {
            let truths = predicate.evaluate(&batch)?.into_array(part.rows)?;
            let truths = truths_of(&truths)?;
            part.filter(&truths)?;
            batch = arrow::compute::filter_record_batch(&batch, &truths)?;
        }
        if part.rows == 0 {
            return Ok(());
        }
        let mut computed = Vec::with_capacity(self.recipe.computed.len());
        for wanted in &self.recipe.computed {
            let mut values = wanted.expr.evaluate(&batch)?.into_array(part.rows)?;
            if let Some(mask) = &wanted.mask {
                let mask = mask.evaluate(&batch)?.into_array(part.rows)?;
                values = nullif(&values, &not(&truths_of(&mask)?)?)?;
            }
            computed.push(values);
        }
        let start = self.bucket_of(rows.range.min)?;
        let spans = std::mem::take(&mut part.spans);
        self.stretch(&spans, &part.times, start)?;
        self.fold(&part.columns, &part.times, &computed)
    }

    /// The columns that expressions use.
    fn batch(&self, part: &SelectedRows) -> Result<RecordBatch> {
        let schema = &self.recipe.inputs_schema;
        let mut columns = Vec::with_capacity(self.recipe.inputs.len());
        for (input, field) in self.recipe.inputs.iter().zip(schema.fields()) {
            columns.push(match input {
                OutputColumnSource::Time => {
                    Arc::new(TimestampNanosecondArray::from(part.times.clone())) as ArrayRef
                }
                OutputColumnSource::Field(place) => match &part.columns[*place] {
                    Some(values) => Arc::clone(values),
                    None => new_null_array(field.data_type(), part.rows),
                },
                OutputColumnSource::Tag(ordinal, kind) => {
                    let series: Vec<SeriesId> = part.spans.iter().map(|span| span.series).collect();
                    let values = self.snapshot.tag_values(self.shard, &series, *ordinal);
                    let runs: Vec<SeriesRun> = part
                        .spans
                        .iter()
                        .map(|span| SeriesRun {
                            series: span.series,
                            rows: span.end - span.start,
                        })
                        .collect();
                    tag_column(&values, *kind, &runs, part.rows)?
                }
            });
        }
        batch_of(schema, columns, part.rows)
    }

    fn fold(
        &mut self,
        columns: &[Option<ArrayRef>],
        times: &[i64],
        computed: &[ArrayRef],
    ) -> Result<()> {
        let mut by_time = None;
        for (fold, spec) in self.taken.folds.iter_mut().zip(&self.recipe.folds) {
            let args: Vec<Option<ArrayRef>> = spec
                .args
                .iter()
                .map(|arg| match arg {
                    FoldArgument::Field(place) => columns[*place].clone(),
                    FoldArgument::Computed(place) => Some(Arc::clone(&computed[*place])),
                    FoldArgument::Time => {
                        let array = by_time.get_or_insert_with(|| {
                            Arc::new(TimestampNanosecondArray::from(times.to_vec())) as ArrayRef
                        });
                        Some(Arc::clone(array))
                    }
                })
                .collect();
            fold.take_rows(FoldRows {
                args: &args,
                times,
                stretches: &self.stretches,
            })?;
        }
        self.taken.account()
    }
}

impl PageReducer for AggregateWorker {
    type Error = WorkerFailure;

    fn takes_totals(&mut self, range: TimeRange) -> Result<bool, WorkerFailure> {
        // With several groups, or if the order of times matters, the pages must be inspected.
        let may = matches!(self.members, GroupMembers::One) && self.joins;
        Ok(may && !self.recipe.has_expressions() && self.bucket_within(range)?.is_some())
    }

    fn totals(&mut self, totals: PageTotals<'_>) -> Result<bool, WorkerFailure> {
        let Some(start) = self.bucket_within(totals.range)? else {
            return Ok(false);
        };
        let slot = self.taken.slots.slot(0, start)?;
        let outline = PageOutline {
            spans: &[],
            range: totals.range,
            whole: true,
            stats: totals.stats,
        };
        Ok(self.answer(&outline, &[(slot, totals.rows)]))
    }

    fn outline(&mut self, outline: PageOutline<'_>) -> Result<PageNeed, WorkerFailure> {
        let in_one_bucket = self.find_slots(&outline)?;
        let slots = std::mem::take(&mut self.slots);
        let answered = in_one_bucket && self.answer(&outline, &slots);
        self.slots = slots;
        if answered {
            return Ok(PageNeed::Nothing);
        }
        Ok(if self.recipe.needs_times() {
            PageNeed::Rows
        } else if in_one_bucket {
            PageNeed::Values
        } else if self.recipe.has_expressions() {
            PageNeed::Rows
        } else {
            PageNeed::Steps
        })
    }

    fn rows(&mut self, rows: PageRows<'_>) -> Result<(), WorkerFailure> {
        if self.recipe.has_expressions() {
            return Ok(self.take_expressions(&rows)?);
        }
        if let Some(times) = rows.steps {
            self.stretch_regular(rows.spans, times)?;
        } else {
            let start = self.bucket_of(rows.range.min)?;
            self.stretch(rows.spans, rows.times, start)?;
        }
        Ok(self.fold(rows.columns, rows.times, &[])?)
    }
}
