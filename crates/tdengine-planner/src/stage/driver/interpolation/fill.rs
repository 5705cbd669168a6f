//! FILL: windows without rows.
//!
//! Reads the windows of a partition in the order of time and adds those between them.

use crate::moments::Times;
use crate::relation::{builder, plan_column};
use crate::run::fault;
use crate::stage::driver::interpolation::on_line;
use crate::stage::streamed::streamed;
use crate::stage::windows::IntervalSpec;
use crate::taos_value::{Val, ValColumn, array_of, arrow_type};
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, SortExpr};
use futures::{StreamExt, stream};
use marigram_influx::Budget;
use marigram_sql::{SqlError, SqlResult};
use marigram_tdengine::{TaosCode, TaosType};
use std::sync::Arc;

/// Most windows of one partition.
const WINDOWS_MAX: i64 = 10_000_000;

/// Rows of a batch.
const BATCH_ROWS: usize = 4096;

/// What stands in windows without rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TaosFillWith {
    /// Nothing: there are no such windows.
    None,
    /// Null.
    Null,
    /// Constants, one for each result.
    Values(Vec<Val>),
    /// The value before.
    Previous,
    /// The value after.
    Next,
    /// On the line between both.
    Linear,
    /// The nearer of both.
    Near,
}

/// What is filled.
#[derive(Clone, Debug)]
pub(crate) struct TaosFillSpec {
    /// The windows.
    pub(crate) windows: IntervalSpec,
    /// The times of the query.
    pub(crate) times: Times,
    /// What stands there.
    pub(crate) with: TaosFillWith,
    /// Whether windows are there if no row is.
    pub(crate) is_forced: bool,
    /// How many keys there are.
    pub(crate) keys: usize,
    /// The types of all columns: keys, beginning and end, results.
    pub(crate) kinds: Vec<TaosType>,
}

/// The windows of a plan, with those between them. The columns are those of a stage.
pub(crate) async fn filled(
    state: &SessionState,
    input: LogicalPlan,
    spec: TaosFillSpec,
    budget: &Budget,
) -> SqlResult<LogicalPlan> {
    if !spec.times.is_bounded()
        || spec.windows.count_within(spec.times.min, spec.times.max) > WINDOWS_MAX
    {
        return Err(fault(TaosCode::FillTimeRange));
    }
    let order = (0..spec.keys).map(|place| format!("k{place}"));
    let order = order
        .chain(["ws".to_owned()])
        .map(|name| SortExpr::new(plan_column(&name), true, true));
    let input = builder(input).sort(order.collect::<Vec<_>>())?.build()?;
    let names = input.schema().fields().iter().zip(&spec.kinds);
    let fields: Vec<Field> = names
        .map(|(field, kind)| Field::new(field.name(), arrow_type(*kind), true))
        .collect();
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let (own, budget, spec) = (Arc::clone(&schema), budget.clone(), Arc::new(spec));
    let stage = move |rows: SendableRecordBatchStream| {
        let run = FillRun {
            next_start: 0,
            spec: Arc::clone(&spec),
            schema: Arc::clone(&own),
            rows,
            budget: budget.clone(),
            output: spec.kinds.iter().map(|_| Vec::new()).collect(),
            key: None,
            before: None,
            read: Vec::new(),
            place: 0,
            is_ended: false,
            is_any: false,
        };
        stream::try_unfold(run, |mut run| async move {
            let batch = run.next().await?;
            Ok::<_, SqlError>(batch.map(|batch| (batch, run)))
        })
        .boxed()
    };
    streamed(state, &input, schema, Arc::new(stage)).await
}

/// The values of a row.
type Row = Vec<Val>;

struct FillRun {
    spec: Arc<TaosFillSpec>,
    schema: SchemaRef,
    rows: SendableRecordBatchStream,
    budget: Budget,
    output: Vec<Vec<Val>>,
    /// The keys of the partition that is being filled.
    key: Option<Row>,
    /// The window before, of the same partition.
    before: Option<Row>,
    /// The beginning of the next window of the partition.
    next_start: i64,
    read: Vec<Row>,
    place: usize,
    is_ended: bool,
    is_any: bool,
}

impl FillRun {
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        while self
            .output
            .first()
            .is_some_and(|column| column.len() < BATCH_ROWS)
        {
            if !self.step().await? {
                break;
            }
        }
        if self.output.first().is_none_or(Vec::is_empty) {
            return Ok(None);
        }
        let columns = self.output.iter_mut().zip(&self.spec.kinds);
        let columns = columns.map(|(column, kind)| {
            let array = array_of(column, *kind);
            column.clear();
            array
        });
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns.collect());
        Ok(Some(batch.map_err(DataFusionError::from)?))
    }

    /// Adds a window; returns whether there was one.
    async fn step(&mut self) -> SqlResult<bool> {
        if self.place >= self.read.len() && !self.is_ended {
            self.read_batch().await?;
        }
        let keys = self.spec.keys;
        let Some(next) = self.read.get(self.place).cloned() else {
            // After the last window of all.
            if !self.is_any && self.spec.is_forced && keys == 0 {
                return Ok(self.forced());
            }
            return Ok(self.fill_end());
        };
        self.is_any = true;
        let start = next.get(keys).and_then(Val::integer).unwrap_or(0);
        if self.key.as_deref() != Some(&next[..keys]) {
            if self.fill_end() {
                return Ok(true);
            }
            self.key = Some(next[..keys].to_vec());
            self.before = None;
            self.next_start = self
                .spec
                .windows
                .first_start(self.spec.times.min)
                .min(start);
        }
        if self.next_start < start {
            self.add(Some(&next));
            return Ok(true);
        }
        for (column, value) in self.output.iter_mut().zip(&next) {
            column.push(value.clone());
        }
        self.next_start = self.spec.windows.next_start(start);
        self.before = Some(next);
        self.place += 1;
        Ok(true)
    }

    /// Fills one window behind the last one of a partition; returns whether there was one.
    fn fill_end(&mut self) -> bool {
        if self.key.is_none() || self.next_start > self.spec.times.max {
            return false;
        }
        self.add(None);
        true
    }

    /// Begins the only partition, which has no rows, and fills it.
    fn forced(&mut self) -> bool {
        if self.key.is_none() {
            self.key = Some(Vec::new());
            self.next_start = self.spec.windows.first_start(self.spec.times.min);
        }
        self.fill_end()
    }

    /// Adds the window at the next beginning; `after` is the row behind it.
    fn add(&mut self, after: Option<&Row>) {
        let spec = Arc::clone(&self.spec);
        let (keys, start) = (spec.keys, self.next_start);
        let key = self.key.as_deref().unwrap_or_default();
        for (place, column) in self.output.iter_mut().enumerate() {
            let value = if place < keys {
                key.get(place).cloned().unwrap_or(Val::Null)
            } else if place == keys {
                Val::Time(start)
            } else if place == keys + 1 {
                Val::Time(spec.windows.end(start))
            } else {
                value_of(&spec, place, start, self.before.as_ref(), after)
            };
            column.push(value);
        }
        self.next_start = spec.windows.next_start(start);
    }

    async fn read_batch(&mut self) -> SqlResult<()> {
        self.budget.check_interrupt()?;
        self.read.clear();
        self.place = 0;
        match self.rows.next().await {
            None => self.is_ended = true,
            Some(batch) => {
                let batch = batch?;
                let columns = batch.columns().iter().map(ValColumn::new);
                let columns = columns
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(DataFusionError::from)?;
                let rows = 0..batch.num_rows();
                self.read.extend(rows.map(|row| {
                    columns
                        .iter()
                        .map(|column| column.get(row))
                        .collect::<Row>()
                }));
            }
        }
        Ok(())
    }
}

fn value_of(
    spec: &TaosFillSpec,
    place: usize,
    start: i64,
    before: Option<&Row>,
    after: Option<&Row>,
) -> Val {
    let of = |row: Option<&Row>| row.and_then(|row| row.get(place).cloned());
    let at = |row: Option<&Row>| row.and_then(|row| row.get(spec.keys)?.integer());
    match &spec.with {
        TaosFillWith::None | TaosFillWith::Null => Val::Null,
        TaosFillWith::Values(values) => {
            let value = values.get(place - spec.keys - 2).or(values.last());
            value.cloned().unwrap_or(Val::Null)
        }
        TaosFillWith::Previous => of(before).unwrap_or(Val::Null),
        TaosFillWith::Next => of(after).unwrap_or(Val::Null),
        TaosFillWith::Linear => match (at(before), of(before), at(after), of(after)) {
            (Some(t0), Some(v0), Some(t1), Some(v1)) => on_line(&(t0, v0), &(t1, v1), start),
            _ => Val::Null,
        },
        TaosFillWith::Near => match (at(before), at(after)) {
            (Some(t0), Some(t1)) if start - t0 > t1 - start => of(after).unwrap_or(Val::Null),
            (Some(_), _) => of(before).unwrap_or(Val::Null),
            (None, _) => of(after).unwrap_or(Val::Null),
        },
    }
}
