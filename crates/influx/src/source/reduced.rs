//! Groups of a table that the series-aware aggregate computes: one row for each group of tags and time,
//! with a value for each function.
//!
//! The rows are those that the stage of a function would have made of the table's rows: in the same order,
//! with the start of the group as their time, and null where no row has a value. Where this is not certain
//! (a sum that does not fit into its type, an empty tag beside a missing one, a group before the first
//! time), the plan fails before the first row, and the caller reads rows instead.

mod planned;
mod staged;

pub(crate) use staged::ReducedFallback;

use super::measurement::columns::{ColumnReader, Texts, texts, times};
use super::measurement::{ShownSeries, column, pushed_down, scan_of, time_filters};
use super::{RowSource, SourceColumn};
use crate::budget::Budget;
use crate::expression::Expression;
use crate::point::Row;
use crate::reducer::{Aggregate, minus};
use crate::schema::{StoredMeasurement, refused};
use crate::series::SeriesKey;
use crate::value::Value;
use crate::window::Windows;
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use arrow::record_batch::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::execution::session_state::SessionState;
use datafusion::functions::datetime::expr_fn::date_bin;
use datafusion::logical_expr::{Expr, LogicalPlan, SortExpr, cast};
use datafusion::physical_plan::execute_stream;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use marigram_influxql::ast::BinaryOp;
use marigram_influxql::time_range::TIME_MIN_NS;
use marigram_sql::SqlResult;
use planned::{FromPartials, PartialInput, ReducedPlan};
use staged::StagedRows;
use std::collections::HashMap;
use std::sync::Arc;

/// The number of rows that are returned at once.
const ROWS_AT_ONCE: usize = 8_192;

/// A function over rows of a table.
#[derive(Clone, Debug)]
pub(crate) struct ReducedCall {
    /// The function.
    pub aggregate: Aggregate,
    /// Its input.
    pub input: ReducedInput,
}

/// The input of a function.
#[derive(Clone, Debug)]
pub(crate) enum ReducedInput {
    /// A column of the table.
    Column(SourceColumn),
    /// The result of `+`, `-`, `*` or `/`, which is a float.
    Arithmetic(ReducedOperand, BinaryOp, ReducedOperand),
}

/// An operand of arithmetic.
#[derive(Clone, Debug)]
pub(crate) enum ReducedOperand {
    /// A column of the table.
    Column(SourceColumn),
    /// A number.
    Constant(f64),
}

/// A request for groups of a table.
#[derive(Clone)]
pub(crate) struct ReducedRequest {
    /// The table.
    pub measurement: StoredMeasurement,
    /// The functions: one value each.
    pub calls: Vec<ReducedCall>,
    /// WHERE without its conditions on time.
    pub condition: Option<Expression>,
    /// The first and last time, both included.
    pub range: (i64, i64),
    /// The groups of time.
    pub windows: Windows,
    /// The tags by which the whole statement orders, sorted by key.
    pub order: Arc<[Arc<str>]>,
    /// The tags by which rows are grouped, sorted by key.
    pub keys: Arc<[Arc<str>]>,
    /// From old to new.
    pub ascending: bool,
    /// The series to return; `None` for all.
    pub series: Option<ShownSeries>,
}

/// Whether the aggregate computes a request as InfluxQL does.
pub(crate) fn can_reduce(request: &ReducedRequest) -> bool {
    let zone = &request.windows.zone;
    let is_utc = zone
        .as_ref()
        .is_none_or(|zone| zone.iana_name() == Some("UTC"));
    (is_utc || !request.windows.is_grouped()) && ReducedPlan::new(request).is_some()
}

/// The groups of a table.
pub(crate) struct ReducedRows {
    state: Arc<SessionState>,
    request: ReducedRequest,
    budget: Budget,
    reading: ReducedReading,
}

/// The state of reading.
enum ReducedReading {
    /// Computing has not begun; if it fails, rows are read.
    NotBegun(Option<ReducedFallback>),
    /// The groups.
    Computed(std::vec::IntoIter<Row>),
    /// The aggregate failed: groups are made of rows.
    Staged(Box<StagedRows>),
}

impl ReducedRows {
    /// The groups of a request. Computing begins when the first rows are requested; where it is not
    /// possible, rows are read instead.
    pub(crate) fn new(
        state: Arc<SessionState>,
        request: ReducedRequest,
        budget: Budget,
        fallback: Option<ReducedFallback>,
    ) -> Self {
        Self {
            state,
            request,
            budget,
            reading: ReducedReading::NotBegun(fallback),
        }
    }

    async fn begin(&mut self, fallback: Option<ReducedFallback>) -> SqlResult<()> {
        let failed = match self.compute().await {
            Ok(Some(rows)) => {
                self.reading = ReducedReading::Computed(rows.into_iter());
                return Ok(());
            }
            Ok(None) => None,
            Err(error) => Some(error),
        };
        self.reading = match (fallback, failed) {
            (Some(fallback), error) => {
                if let Some(error) = error {
                    tracing::debug!(%error, "an aggregate failed; it is computed row by row");
                }
                let staged = StagedRows::new(fallback, &self.request, &self.budget);
                ReducedReading::Staged(Box::new(staged))
            }
            (None, Some(error)) => return Err(error),
            (None, None) => ReducedReading::Computed(Vec::new().into_iter()),
        };
        Ok(())
    }

    /// The plan that computes the groups.
    async fn plan(&mut self, planned: &ReducedPlan) -> SqlResult<LogicalPlan> {
        let request = &self.request;
        let table = &request.measurement.table;
        let mut plan = scan_of(&self.state, table).await?;
        let mut filters = time_filters(table, request.range);
        if let Some(condition) = &request.condition {
            filters.extend(pushed_down(condition, &request.measurement));
        }
        for filter in filters {
            plan = plan.filter(filter)?;
        }
        let mut shown = vec![column(&table.time_name).alias("t")];
        let mut groups = Vec::new();
        let mut order = Vec::new();
        let by = |name: &str| SortExpr::new(column(name), request.ascending, request.ascending);
        for (place, key) in request.keys.iter().enumerate() {
            if let Some((_, tag)) = table.tag(key) {
                let name = format!("k{place}");
                shown.push(column(&tag.name).alias(&name));
                groups.push(column(&name));
                order.push(by(&name));
            }
        }
        let mut inputs: Vec<&PartialInput> = Vec::new();
        let mut calls = Vec::new();
        for (place, partial) in planned.partials.iter().enumerate() {
            let known = inputs.iter().position(|input| **input == partial.input);
            let input = known.unwrap_or_else(|| {
                inputs.push(&partial.input);
                inputs.len() - 1
            });
            let mut args = vec![column(&format!("f{input}"))];
            if matches!(partial.function, "first" | "last") {
                args.push(column("t"));
            }
            let function = self.state.aggregate_functions().get(partial.function);
            let function = function
                .ok_or_else(|| refused(format!("{}() is not supported", partial.function)))?;
            calls.push(function.call(args).alias(format!("a{place}")));
        }
        for (place, input) in inputs.iter().enumerate() {
            shown.push(input.expression().alias(format!("f{place}")));
        }
        if request.windows.is_grouped() {
            groups.push(self.bucket().alias("w"));
            order.push(by("w"));
        }
        let mut plan = plan.project(shown)?.aggregate(groups, calls)?;
        if !order.is_empty() {
            plan = plan.sort(order)?;
        }
        Ok(plan.build()?)
    }

    /// The start of the group of a row's time.
    fn bucket(&self) -> Expr {
        let windows = &self.request.windows;
        let width = IntervalMonthDayNano::new(0, 0, windows.every_ns);
        let width = ScalarValue::IntervalMonthDayNano(Some(width));
        let origin = ScalarValue::TimestampNanosecond(Some(windows.offset_ns), None);
        let literal = |value| Expr::Literal(value, None);
        let plain = DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, None);
        date_bin(literal(width), cast(column("t"), plain), literal(origin))
    }

    /// Computes the groups at once; `None` if rows must be read.
    ///
    /// # Errors
    /// The plan's errors.
    pub(crate) async fn compute(&mut self) -> SqlResult<Option<Vec<Row>>> {
        let Some(planned) = ReducedPlan::new(&self.request) else {
            return Ok(None);
        };
        let mut found = Vec::new();
        if planned.partials.is_empty() {
            return Ok(Some(found));
        }
        let plan = self.plan(&planned).await?;
        let plan = self.state.create_physical_plan(&plan).await?;
        let mut stream = execute_stream(plan, self.state.task_ctx())?;
        let mut reading = GroupReader::new(&self.request, &planned);
        while let Some(batch) = stream.next().await {
            let rows = reading.rows(&batch?)?;
            let bytes = rows.len() * (size_of::<Row>() + planned.values.len() * size_of::<Value>());
            self.budget.keep(bytes)?;
            found.extend(rows);
        }
        if reading.is_ambiguous() {
            return Ok(None);
        }
        if self.request.order != self.request.keys {
            let request = &self.request;
            let ranks = SeriesRanks::new(&found, request);
            let in_order = |number: i64| {
                if request.ascending { number } else { !number }
            };
            found.sort_by_cached_key(|row| {
                let (group, rank) = ranks.ranks_of(&row.series);
                (in_order(i64::from(group)), in_order(row.time), rank)
            });
        }
        Ok(Some(found))
    }
}

/// The order of the series of rows, so that sorting many rows compares numbers.
struct SeriesRanks {
    /// By the address of the series: the rank among the groups of the statement, and among all series.
    ranks: HashMap<*const SeriesKey, (u32, u32)>,
}

impl SeriesRanks {
    fn new(rows: &[Row], request: &ReducedRequest) -> Self {
        let mut series: Vec<&Arc<SeriesKey>> = rows.iter().map(|row| &row.series).collect();
        series.dedup_by_key(|series| Arc::as_ptr(series));
        let compared = |a: &SeriesKey, b: &SeriesKey| a.order_by(b, &request.order);
        series.sort_by(|a, b| compared(a, b).then_with(|| a.order(b)));
        let mut ranks = HashMap::with_capacity(series.len());
        let (mut group, mut rank) = (0, 0);
        for (place, key) in series.iter().enumerate() {
            if let Some(before) = place.checked_sub(1).and_then(|place| series.get(place)) {
                group += u32::from(compared(before, key).is_ne());
                rank += u32::from(before.order(key).is_ne());
            }
            ranks.insert(Arc::as_ptr(key), (group, rank));
        }
        Self { ranks }
    }

    fn ranks_of(&self, series: &Arc<SeriesKey>) -> (u32, u32) {
        let rank = self.ranks.get(&Arc::as_ptr(series));
        rank.copied().unwrap_or_default()
    }
}

/// Reads groups from batches.
struct GroupReader<'a> {
    request: &'a ReducedRequest,
    planned: &'a ReducedPlan,
    last: Option<Arc<SeriesKey>>,
    /// For each key, whether it was missing, and whether it was empty.
    absent: Vec<(bool, bool)>,
}

impl<'a> GroupReader<'a> {
    fn new(request: &'a ReducedRequest, planned: &'a ReducedPlan) -> Self {
        Self {
            request,
            planned,
            last: None,
            absent: vec![(false, false); request.keys.len()],
        }
    }

    /// Whether a missing and an empty tag were groups of their own, which are one in InfluxQL.
    fn is_ambiguous(&self) -> bool {
        self.absent.contains(&(true, true))
    }

    fn rows(&mut self, batch: &RecordBatch) -> SqlResult<Vec<Row>> {
        let windows = &self.request.windows;
        let table = &self.request.measurement.table;
        let starts = windows
            .is_grouped()
            .then(|| times(batch, "w"))
            .transpose()?;
        let mut keys: Vec<Option<Texts>> = Vec::with_capacity(self.request.keys.len());
        for (place, key) in self.request.keys.iter().enumerate() {
            keys.push(match table.tag(key) {
                Some(_) => Some(texts(batch, &format!("k{place}"))?),
                None => None,
            });
        }
        for (keys, absent) in keys.iter().zip(&mut self.absent) {
            if let Some(keys) = keys {
                absent.0 |= keys.has_missing();
                absent.1 |= keys.has_empty();
            }
        }
        let mut partials = Vec::with_capacity(self.planned.partials.len());
        for place in 0..self.planned.partials.len() {
            let name = format!("a{place}");
            partials.push(ColumnReader::new(batch, &name, None, Value::Null)?);
        }
        let mut rows = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let text = |place: usize| keys[place].as_ref().map_or("", |keys| keys.text(row));
            let series = self.series(text);
            if let Some(shown) = &self.request.series
                && !shown.contains(&series)
            {
                continue;
            }
            let time = match &starts {
                Some(starts) => starts.value(row).max(TIME_MIN_NS),
                None => windows.start_ns,
            };
            let mut value = |place: usize| partials[place].value(row);
            let values = self.planned.values.iter().map(|from| match from {
                FromPartials::Nothing => Value::Null,
                FromPartials::One(place) => value(*place),
                FromPartials::Count(place) => match value(*place) {
                    Value::Integer(0) => Value::Null,
                    count => count,
                },
                FromPartials::Difference(max, min) => minus(&value(*max), &value(*min)),
                FromPartials::Mean(sum, count) => {
                    match (value(*sum).as_f64(), value(*count).as_f64()) {
                        (Some(sum), Some(count)) => Value::Float(sum / count),
                        _ => Value::Null,
                    }
                }
            });
            rows.push(Row {
                values: values.collect(),
                series,
                time,
            });
        }
        Ok(rows)
    }

    /// The series with these texts, shared by consecutive rows.
    fn series<'t>(&mut self, text: impl Fn(usize) -> &'t str) -> Arc<SeriesKey> {
        if let Some(last) = &self.last
            && last
                .tags
                .iter()
                .enumerate()
                .all(|(place, (_, value))| **value == *text(place))
        {
            return Arc::clone(last);
        }
        let keys = self.request.keys.iter().enumerate();
        let series = Arc::new(SeriesKey {
            name: Arc::clone(&self.request.measurement.name),
            tags: keys
                .map(|(place, key)| (Arc::clone(key), text(place).into()))
                .collect(),
        });
        self.last = Some(Arc::clone(&series));
        series
    }
}

impl RowSource for ReducedRows {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        async move {
            let (min, max) = self.request.range;
            if min > max {
                return Ok(None);
            }
            if let ReducedReading::NotBegun(fallback) = &mut self.reading {
                let fallback = fallback.take();
                self.begin(fallback).await?;
            }
            match &mut self.reading {
                ReducedReading::NotBegun(_) => Ok(None),
                ReducedReading::Staged(rows) => rows.next().await,
                ReducedReading::Computed(rows) => {
                    let some: Vec<Row> = rows.by_ref().take(ROWS_AT_ONCE).collect();
                    Ok((!some.is_empty()).then_some(some))
                }
            }
        }
        .boxed()
    }
}
