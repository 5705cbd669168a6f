//! Runs a stage: splits its rows into partitions and windows, and collects what they answer.

pub(in crate::stage) mod interpolation;
pub(in crate::stage) mod partition;

use crate::planned_call::PlannedCall;
use crate::relation::{builder, plan_column};
use crate::stage::driver::interpolation::InterpolationSpec;
use crate::stage::driver::partition::{
    OpenWindow, PartitionState, StageRow, begun, close, push, window_rows,
};
use crate::stage::streamed::streamed;
use crate::stage::windows::IntervalSpec;
use crate::taos_value::{Val, ValColumn, array_of, arrow_type};
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, SortExpr};
use futures::{StreamExt, stream};
use marigram_influx::Budget;
use marigram_sql::{SqlError, SqlResult};
use marigram_tdengine::TaosType;
use std::sync::Arc;

/// Rows of a batch of a stage.
const BATCH_ROWS: usize = 4096;

/// How rows belong together.
#[derive(Clone, Debug)]
pub(crate) enum StageMode {
    /// All rows of a partition.
    Whole,
    /// INTERVAL.
    Interval(IntervalSpec),
    /// SESSION, with its gap, ns.
    Session(i64),
    /// `STATE_WINDOW` over the extra column.
    State,
    /// `EVENT_WINDOW` over two extra columns.
    Event,
    /// `COUNT_WINDOW`: rows of a window, and between the beginnings of windows.
    Count(u64, u64),
    /// A row for each row.
    Rows,
    /// INTERP.
    Interpolation(InterpolationSpec),
}

/// What a stage computes. Its input has the keys of partitions, the time, the arguments of its calls, the
/// columns that are carried, and extra columns; its output the keys, the beginning and the end of the
/// window, the results, and the columns that are carried.
#[derive(Clone, Debug)]
pub(crate) struct StageSpec {
    /// Types of the keys.
    pub(crate) keys: Vec<TaosType>,
    /// The calls.
    pub(crate) calls: Vec<PlannedCall>,
    /// Types of the carried columns.
    pub(crate) carried: Vec<TaosType>,
    /// The call whose row is carried; the last row of the window if there is none.
    pub(crate) selector: Option<usize>,
    /// How rows belong together.
    pub(crate) mode: StageMode,
    /// Whether there is a row if there is none below.
    pub(crate) answers_nothing: bool,
    /// Nanoseconds of a tick.
    pub(crate) tick_ns: i64,
}

impl StageSpec {
    /// The types of the columns of the output.
    fn kinds(&self) -> Vec<TaosType> {
        let times = [TaosType::Timestamp, TaosType::Timestamp];
        let results = self.calls.iter().map(|call| call.kind);
        let kinds = self.keys.iter().copied().chain(times).chain(results);
        kinds.chain(self.carried.iter().copied()).collect()
    }

    /// The schema of the output: `k0`…, `ws`, `we`, `a0`…, `c0`….
    fn schema(&self) -> SchemaRef {
        let many = |letter: char, count: usize| (0..count).map(move |at| format!("{letter}{at}"));
        let names = many('k', self.keys.len())
            .chain(["ws".to_owned(), "we".to_owned()])
            .chain(many('a', self.calls.len()))
            .chain(many('c', self.carried.len()));
        let kinds = self.kinds();
        let fields = names
            .zip(kinds)
            .map(|(name, kind)| Field::new(name, arrow_type(kind), true));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    pub(in crate::stage) fn first_argument(&self) -> usize {
        self.keys.len() + 1
    }

    pub(in crate::stage) fn first_carried(&self) -> usize {
        let arguments: usize = self.calls.iter().map(|call| call.arguments.len()).sum();
        self.first_argument() + arguments
    }

    pub(in crate::stage) fn first_extra(&self) -> usize {
        self.first_carried() + self.carried.len()
    }
}

/// The rows of a stage over those of a plan, whose columns are as [`StageSpec`] says, called `i0`….
pub(crate) async fn staged(
    state: &SessionState,
    input: LogicalPlan,
    spec: StageSpec,
    budget: &Budget,
) -> SqlResult<LogicalPlan> {
    let order = (0..=spec.keys.len())
        .map(|place| SortExpr::new(plan_column(&format!("i{place}")), true, true));
    let input = builder(input).sort(order.collect::<Vec<_>>())?.build()?;
    let schema = spec.schema();
    let (own, budget, spec) = (Arc::clone(&schema), budget.clone(), Arc::new(spec));
    let stage = move |rows: SendableRecordBatchStream| {
        let run = StageRun::new(Arc::clone(&spec), Arc::clone(&own), budget.clone(), rows);
        stream::try_unfold(run, |mut run| async move {
            let batch = run.next().await?;
            Ok::<_, SqlError>(batch.map(|batch| (batch, run)))
        })
        .boxed()
    };
    streamed(state, &input, schema, Arc::new(stage)).await
}

/// The rows that a stage has made and not passed on.
pub(in crate::stage) struct StageOutput {
    columns: Vec<Vec<Val>>,
}

impl StageOutput {
    /// Adds a row.
    pub(in crate::stage) fn push(
        &mut self,
        key: &[Val],
        (start, end): (i64, i64),
        results: impl IntoIterator<Item = Val>,
        carried: impl IntoIterator<Item = Val>,
    ) {
        let times = [Val::Time(start), Val::Time(end)];
        let values = key
            .iter()
            .cloned()
            .chain(times)
            .chain(results)
            .chain(carried);
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.push(value);
        }
    }

    /// How many rows there are.
    pub(in crate::stage) fn len(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }
}

struct StageRun {
    spec: Arc<StageSpec>,
    schema: SchemaRef,
    budget: Budget,
    rows: SendableRecordBatchStream,
    partition: Option<(Vec<Val>, PartitionState)>,
    output: StageOutput,
    held_bytes: usize,
    is_ended: bool,
    is_any: bool,
}

impl StageRun {
    fn new(
        spec: Arc<StageSpec>,
        schema: SchemaRef,
        budget: Budget,
        rows: SendableRecordBatchStream,
    ) -> Self {
        let columns = schema.fields().iter().map(|_| Vec::new()).collect();
        Self {
            spec,
            schema,
            budget,
            rows,
            partition: None,
            output: StageOutput { columns },
            held_bytes: 0,
            is_ended: false,
            is_any: false,
        }
    }

    /// The next rows; `None` after the last ones.
    async fn next(&mut self) -> SqlResult<Option<RecordBatch>> {
        while !self.is_ended && self.output.len() < BATCH_ROWS {
            match self.rows.next().await {
                Some(batch) => self.read(&batch?)?,
                None => {
                    self.end_partition();
                    self.is_ended = true;
                    if !self.is_any && self.spec.answers_nothing {
                        let window = OpenWindow::new(&self.spec, 0, 0);
                        close(&window_rows(window), &[], &mut self.output);
                    }
                }
            }
            self.reserve()?;
        }
        if self.output.len() == 0 {
            self.budget.give(self.held_bytes);
            self.held_bytes = 0;
            return Ok(None);
        }
        let kinds = self.spec.kinds();
        let columns = self.output.columns.iter_mut().zip(kinds);
        let columns = columns.map(|(column, kind)| {
            let array = array_of(column, kind);
            column.clear();
            array
        });
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns.collect());
        Ok(Some(
            batch.map_err(datafusion::common::DataFusionError::from)?,
        ))
    }

    /// Reserves the memory that the stage holds now.
    fn reserve(&mut self) -> SqlResult<()> {
        self.budget.check_interrupt()?;
        let rows = self.output.len() * self.output.columns.len() * size_of::<Val>();
        let open = match &self.partition {
            Some((_, PartitionState::Windows { open, .. })) => {
                open.iter().map(OpenWindow::held_bytes).sum()
            }
            Some((_, PartitionState::Interpolation(state))) => state.held_bytes(),
            _ => 0,
        };
        let bytes: usize = rows + open;
        if bytes > self.held_bytes {
            self.budget.take(bytes - self.held_bytes);
        } else {
            self.budget.give(self.held_bytes - bytes);
        }
        self.held_bytes = bytes;
        self.budget.check()
    }

    fn read(&mut self, batch: &RecordBatch) -> SqlResult<()> {
        let columns = batch.columns().iter().map(ValColumn::new);
        let columns = columns
            .collect::<Result<Vec<_>, _>>()
            .map_err(datafusion::common::DataFusionError::from)?;
        let keys = self.spec.keys.len();
        for row in 0..batch.num_rows() {
            self.is_any = true;
            let time = columns.get(keys).and_then(|times| times.get(row).integer());
            let row = StageRow {
                time: time.unwrap_or(0),
                columns: &columns,
                row,
            };
            let is_same = match &self.partition {
                Some((key, _)) => key
                    .iter()
                    .enumerate()
                    .all(|(at, value)| row.get(at) == *value),
                None => false,
            };
            if !is_same {
                self.end_partition();
                let key = (0..keys).map(|at| row.get(at)).collect();
                self.partition = Some((key, begun(&self.spec)));
            }
            if let Some((key, state)) = &mut self.partition {
                push(&self.spec, (key, state), &row, &mut self.output)?;
            }
        }
        Ok(())
    }

    fn end_partition(&mut self) {
        let Some((key, state)) = self.partition.take() else {
            return;
        };
        match state {
            PartitionState::Windows { open, .. } => {
                // A window of EVENT_WINDOW that nothing has ended is none.
                if matches!(self.spec.mode, StageMode::Event) {
                    return;
                }
                for window in open {
                    close(&window_rows(window), &key, &mut self.output);
                }
            }
            PartitionState::Rows(_) => {}
            PartitionState::Interpolation(mut state) => state.finish(&key, &mut self.output),
        }
    }
}
