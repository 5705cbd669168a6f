//! Joins the rows of several devices with the same time, or of the same window, to one.
//!
//! The input is sorted by its key, so one group of rows at a time is incomplete. Windows without rows are
//! added.

mod once;
mod output;

use crate::device_rows::{DEVICE, TIME, column, time_type};
use crate::statement::{TreeRun, internal};
use arrow::array::{AsArray, Int64Array};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::DataFusionError;
use datafusion::datasource::provider_as_source;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{LogicalPlanBuilder, SortExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use marigram_influx::Budget;
use marigram_iotdb::WindowSequence;
use marigram_sql::{SqlError, SqlResult};
use once::OnceStream;
use std::collections::HashMap;
use std::sync::Arc;

/// Values of a batch, and rows of one.
const BATCH_VALUES: usize = 1 << 20;
const BATCH_ROWS: usize = 4096;

/// The column of keys in the input.
pub(crate) const KEY: &str = "k";

/// The column of keys in the output: two windows may show the same time.
pub(crate) const NUMBER: &str = "n";

/// What the keys of the input are.
#[derive(Clone, Debug)]
pub(crate) enum CombineKey {
    /// Times, ns.
    Time,
    /// The numbers of windows. Every window has a row.
    Windows {
        /// The windows.
        windows: WindowSequence,
        /// Whether the last window comes first.
        descends: bool,
    },
    /// There is one group of all rows, which is there even without rows.
    Whole,
}

/// A column of the output: the values of a column of the input in rows of one device.
#[derive(Clone, Debug)]
pub(crate) struct CombinedColumn {
    pub(crate) device: Arc<str>,
    pub(crate) place: usize,
}

/// The column with this number in the output.
pub(crate) fn combined_column(place: usize) -> String {
    format!("c{place}")
}

/// How rows are joined.
pub(crate) struct CombineRequest {
    pub(crate) key: CombineKey,
    pub(crate) columns: Vec<CombinedColumn>,
    /// The names of the columns of the input, by their places.
    pub(crate) inputs: Vec<String>,
    /// Whether each device has rows of its own: the columns of the input follow the device.
    pub(crate) by_device: Option<Vec<Arc<str>>>,
    /// Whether keys ascend.
    pub(crate) ascends: bool,
}

/// Rows that are joined, as the source of a plan: the column [`TIME`], one for each of the columns, and
/// [`NUMBER`]. By device, [`TIME`], [`DEVICE`], the columns of the input, and [`NUMBER`].
///
/// # Errors
/// If the input lacks a column.
pub(crate) fn combined(
    run: &TreeRun<'_>,
    request: CombineRequest,
    input: SendableRecordBatchStream,
) -> SqlResult<LogicalPlanBuilder> {
    let combiner = Combiner::new(&run.budget, request, input)?;
    let sorted = [TIME, NUMBER].map(|name| SortExpr::new(column(name), combiner.ascends, true));
    let is_sorted_by_time = combiner.by_device.is_none();
    let schema = Arc::clone(&combiner.schema);
    let batches = stream::try_unfold(combiner, |mut combiner| async move {
        let batch = combiner.next().await.map_err(external)?;
        Ok(batch.map(|batch| (batch, combiner)))
    });
    let adapted = RecordBatchStreamAdapter::new(Arc::clone(&schema), batches);
    let partition = OnceStream::new(Arc::clone(&schema), Box::pin(adapted));
    let mut table = StreamingTable::try_new(schema, vec![Arc::new(partition)])?;
    if is_sorted_by_time {
        table = table.with_sort_order(sorted.to_vec());
    }
    let source = provider_as_source(Arc::new(table));
    Ok(LogicalPlanBuilder::scan("combined", source, None)?)
}

fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Rows of the input with the same key (and device).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AlignedRows {
    /// The place of the device; 0 unless each has rows of its own.
    device: usize,
    key: i64,
    begin: usize,
    end: usize,
}

/// Complete groups that are being written.
struct GroupsInWork {
    batch: RecordBatch,
    groups: Vec<AlignedRows>,
    next: usize,
    /// The device of each row of the batch.
    devices: Vec<Option<usize>>,
}

/// A row of the output.
struct CombinedRow {
    device: usize,
    key: i64,
    /// The rows of the input, by their first and the one behind the last.
    rows: Option<(usize, usize)>,
}

struct Combiner {
    budget: Budget,
    key: CombineKey,
    columns: Vec<CombinedColumn>,
    inputs: Vec<usize>,
    device_input: usize,
    key_input: usize,
    by_device: Option<Vec<Arc<str>>>,
    ascends: bool,
    schema: SchemaRef,
    input: Option<SendableRecordBatchStream>,
    /// The places of devices.
    devices: HashMap<Arc<str>, usize>,
    /// The columns of each device.
    by_place: Vec<Vec<usize>>,
    carry: Option<RecordBatch>,
    carried_bytes: usize,
    work: Option<GroupsInWork>,
    /// The next window of the output: its device, and how many windows came before it.
    cursor: (usize, u64),
    window_count: u64,
}

impl Combiner {
    fn new(
        budget: &Budget,
        request: CombineRequest,
        input: SendableRecordBatchStream,
    ) -> SqlResult<Self> {
        let given = input.schema();
        let place = |name: &str| {
            let found = given.fields().iter().position(|field| field.name() == name);
            found.ok_or_else(|| internal(&format!("a plan lacks the column {name}")))
        };
        let inputs = request
            .inputs
            .iter()
            .map(|name| place(name))
            .collect::<SqlResult<Vec<usize>>>()?;
        let mut devices: HashMap<Arc<str>, usize> = HashMap::new();
        let mut by_place: Vec<Vec<usize>> = Vec::new();
        let listed = request.by_device.iter().flatten();
        let of_columns = request.columns.iter().map(|column| &column.device);
        for device in listed.chain(of_columns) {
            devices.entry(Arc::clone(device)).or_insert_with(|| {
                by_place.push(Vec::new());
                by_place.len() - 1
            });
        }
        let mut fields = vec![Field::new(TIME, time_type(), true)];
        if request.by_device.is_some() {
            fields.push(Field::new(DEVICE, DataType::Utf8, true));
            for (place, input) in inputs.iter().enumerate() {
                let kind = given.field(*input).data_type().clone();
                fields.push(Field::new(combined_column(place), kind, true));
            }
        } else {
            for (place, combined) in request.columns.iter().enumerate() {
                if let Some(device) = devices.get(&combined.device) {
                    by_place[*device].push(place);
                }
                let input = inputs.get(combined.place).copied();
                let input = input.ok_or_else(|| internal("a combined column has no input"))?;
                let kind = given.field(input).data_type().clone();
                fields.push(Field::new(combined_column(place), kind, true));
            }
        }
        fields.push(Field::new(NUMBER, DataType::Int64, true));
        let window_count = match &request.key {
            CombineKey::Time => 0,
            CombineKey::Windows { windows, .. } => windows.count(),
            CombineKey::Whole => 1,
        };
        Ok(Self {
            budget: budget.clone(),
            device_input: place(DEVICE)?,
            key_input: place(KEY)?,
            key: request.key,
            columns: request.columns,
            inputs,
            by_device: request.by_device,
            ascends: request.ascends,
            schema: Arc::new(Schema::new(fields)),
            input: Some(input),
            devices,
            by_place,
            carry: None,
            carried_bytes: 0,
            work: None,
            cursor: (0, 0),
            window_count,
        })
    }

    /// The next rows; `None` at the end.
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        loop {
            self.budget.check_interrupt()?;
            if self.work.is_none() && self.input.is_some() {
                self.read().await?;
                continue;
            }
            let rows = self.next_rows();
            if !rows.is_empty() {
                let batch = self.written(&rows)?;
                self.drop_written_work();
                return Ok(Some(batch));
            }
            if self.work.is_some() {
                self.drop_written_work();
            } else if self.input.is_none() {
                return Ok(None);
            }
        }
    }

    fn drop_written_work(&mut self) {
        if let Some(work) = &self.work
            && work.next >= work.groups.len()
        {
            self.work = None;
        }
    }

    /// Reads a batch, and finds its complete groups.
    async fn read(&mut self) -> SqlResult<()> {
        let Some(input) = &mut self.input else {
            return Ok(());
        };
        let Some(batch) = input.next().await else {
            self.input = None;
            if let Some(batch) = self.carry.take() {
                self.budget.give(std::mem::take(&mut self.carried_bytes));
                let groups = self.groups(&batch)?;
                self.begin(batch, groups)?;
            }
            return Ok(());
        };
        let mut batch = batch?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if let Some(carry) = self.carry.take() {
            self.budget.give(std::mem::take(&mut self.carried_bytes));
            batch =
                concat_batches(&batch.schema(), [&carry, &batch]).map_err(DataFusionError::from)?;
        }
        let mut groups = self.groups(&batch)?;
        // The rows that follow may belong to the last group.
        let last = groups.pop().map_or(batch.num_rows(), |last| last.begin);
        let rest = batch.slice(last, batch.num_rows() - last);
        self.carried_bytes = rest.get_array_memory_size();
        self.budget.keep(self.carried_bytes)?;
        self.carry = Some(rest);
        if !groups.is_empty() {
            self.begin(batch, groups)?;
        }
        Ok(())
    }

    fn begin(&mut self, batch: RecordBatch, groups: Vec<AlignedRows>) -> SqlResult<()> {
        let devices = self.devices_of(&batch)?;
        self.work = Some(GroupsInWork {
            batch,
            groups,
            next: 0,
            devices,
        });
        Ok(())
    }

    fn devices_of(&self, batch: &RecordBatch) -> SqlResult<Vec<Option<usize>>> {
        let texts = cast(batch.column(self.device_input), &DataType::Utf8);
        let texts = texts.map_err(DataFusionError::from)?;
        let texts = texts.as_string::<i32>();
        Ok(texts
            .iter()
            .map(|text| self.devices.get(text?).copied())
            .collect())
    }

    /// The groups of a batch.
    fn groups(&self, batch: &RecordBatch) -> SqlResult<Vec<AlignedRows>> {
        let keys = cast(batch.column(self.key_input), &DataType::Int64);
        let keys = keys.map_err(DataFusionError::from)?;
        let keys: &Int64Array = keys.as_primitive::<Int64Type>();
        let devices = match &self.by_device {
            Some(_) => self.devices_of(batch)?,
            None => Vec::new(),
        };
        let mut groups: Vec<AlignedRows> = Vec::new();
        for (row, key) in keys.values().iter().enumerate() {
            let device = match devices.get(row) {
                None => 0,
                Some(Some(device)) => *device,
                // The plan may find more devices than were asked for.
                Some(None) => continue,
            };
            match groups.last_mut() {
                Some(last) if last.key == *key && last.device == device => last.end = row + 1,
                _ => groups.push(AlignedRows {
                    device,
                    key: *key,
                    begin: row,
                    end: row + 1,
                }),
            }
        }
        Ok(groups)
    }

    /// The window at a place of the output.
    fn window_at(&self, place: u64) -> u64 {
        match &self.key {
            CombineKey::Windows { descends: true, .. } => self.window_count - 1 - place,
            _ => place,
        }
    }

    /// The next rows of the output, as many as a batch has.
    fn next_rows(&mut self) -> Vec<CombinedRow> {
        let width = self.schema.fields().len().max(1);
        let most = (BATCH_VALUES / width).clamp(1, BATCH_ROWS);
        let mut rows = Vec::new();
        while rows.len() < most {
            let group = self
                .work
                .as_ref()
                .and_then(|work| work.groups.get(work.next));
            let group = group.copied();
            if matches!(self.key, CombineKey::Time) {
                let Some(group) = group else { break };
                rows.push(CombinedRow {
                    device: group.device,
                    key: group.key,
                    rows: Some((group.begin, group.end)),
                });
                self.advance_group();
                continue;
            }
            if group.is_none() && self.input.is_some() {
                break;
            }
            let device_count = self.by_device.as_ref().map_or(1, Vec::len);
            let (device, place) = self.cursor;
            if device >= device_count || place >= self.window_count {
                // Nothing follows that has a window.
                if group.is_none() {
                    break;
                }
                self.advance_group();
                continue;
            }
            let window = i64::try_from(self.window_at(place)).unwrap_or(i64::MAX);
            let own = group.filter(|group| group.device == device && group.key == window);
            rows.push(CombinedRow {
                device,
                key: window,
                rows: own.map(|group| (group.begin, group.end)),
            });
            if own.is_some() {
                self.advance_group();
            }
            self.cursor = if place + 1 < self.window_count {
                (device, place + 1)
            } else {
                (device + 1, 0)
            };
        }
        rows
    }

    fn advance_group(&mut self) {
        if let Some(work) = &mut self.work {
            work.next += 1;
        }
    }
}
