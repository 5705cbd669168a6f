//! Groups of a table that the series-aware aggregate computes: one row for each group of tags and time,
//! with a value for each function.
//!
//! The rows are those that the stage of a function would have made of the table's rows: in the same order,
//! with the start of the group as their time, and null where no row has a value. Where this is not certain
//! (a sum that does not fit into its type, an empty tag beside a missing one, a group before the first
//! time), the plan fails before the first row, and the caller reads rows instead.

use super::measurement::columns::{ColumnReader, Texts, texts, times};
use super::measurement::{
    ReadColumn, ShownSeries, column, pushed_down, requested_column, residual, scan_of,
    time_filters,
};
use super::{RowSource, SourceColumn};
use crate::budget::Budget;
use crate::expression::Expression;
use crate::point::{Point, Row};
use crate::reducer::{Aggregate, minus};
use crate::schema::{StoredMeasurement, refused, stored_type};
use crate::series::SeriesKey;
use crate::stage::{Reduce, Stage};
use crate::value::{InfluxValueType, Value};
use crate::window::Windows;
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use arrow::record_batch::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::execution::session_state::SessionState;
use datafusion::functions::datetime::expr_fn::date_bin;
use datafusion::functions::math::expr_fn::isnan;
use datafusion::logical_expr::{Expr, LogicalPlan, SortExpr, cast, lit, when};
use datafusion::physical_plan::execute_stream;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use marigram_influxql::ast::BinaryOp;
use marigram_influxql::time_range::TIME_MIN_NS;
use marigram_model::{FieldType, TagType};
use marigram_sql::SqlResult;
use std::sync::Arc;

/// The number of rows that are returned at once.
const ROWS_AT_ONCE: usize = 8_192;

/// A function over rows of a table.
#[derive(Clone, Debug)]
pub struct ReducedCall {
    /// The function.
    pub aggregate: Aggregate,
    /// Its input.
    pub input: ReducedInput,
}

/// The input of a function.
#[derive(Clone, Debug)]
pub enum ReducedInput {
    /// A column of the table.
    Column(SourceColumn),
    /// The result of `+`, `-`, `*` or `/`, which is a float.
    Arithmetic(ReducedOperand, BinaryOp, ReducedOperand),
}

/// An operand of arithmetic.
#[derive(Clone, Debug)]
pub enum ReducedOperand {
    /// A column of the table.
    Column(SourceColumn),
    /// A number.
    Constant(f64),
}

/// A request for groups of a table.
#[derive(Clone)]
pub struct ReducedRequest {
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

/// What a result is computed from.
#[derive(Clone, Debug, PartialEq)]
enum PartialInput {
    Field(String),
    /// The operands are fields, or numbers.
    Arithmetic(Result<String, f64>, BinaryOp, Result<String, f64>),
}

impl PartialInput {
    /// The expression over the scan.
    fn expression(&self) -> Expr {
        let number = |operand: &Result<String, f64>| match operand {
            Ok(field) => cast(column(field), DataType::Float64),
            Err(constant) => lit(*constant),
        };
        match self {
            Self::Field(field) => column(field),
            Self::Arithmetic(left, op, right) => {
                let (left, right) = (number(left), number(right));
                let computed = match op {
                    BinaryOp::Add => left.clone() + right.clone(),
                    BinaryOp::Sub => left.clone() - right.clone(),
                    BinaryOp::Mul => left.clone() * right.clone(),
                    _ => left.clone() / right.clone(),
                };
                // x / 0 is 0, and what is not a number is null.
                let is_missing = left.is_null().or(right.clone().is_null());
                let null = Expr::Literal(ScalarValue::Float64(None), None);
                let mut choice = when(is_missing, null.clone());
                if *op == BinaryOp::Div {
                    choice = choice.when(right.eq(lit(0.0)), lit(0.0));
                }
                let computed = choice.otherwise(computed).unwrap_or(null.clone());
                let is_nan = isnan(computed.clone());
                when(is_nan, null).otherwise(computed).unwrap_or(lit(0.0))
            }
        }
    }
}

/// A result of the aggregate.
#[derive(Clone, Debug, PartialEq)]
struct Partial {
    function: &'static str,
    input: PartialInput,
}

/// How a function's value follows from results of the aggregate.
#[derive(Clone, Copy, Debug)]
enum FromPartials {
    /// There is no such field.
    Nothing,
    /// It is one of them.
    One(usize),
    /// It is one of them, and null instead of 0.
    Count(usize),
    /// It is the difference of two.
    Difference(usize, usize),
}

/// A request as a plan.
struct Planned {
    partials: Vec<Partial>,
    values: Vec<FromPartials>,
}

/// The input of a call and its type, if the aggregate computes the call as InfluxQL does; `Err` if not,
/// and `Ok(None)` if the table has no such field.
fn input_of(
    call: &ReducedCall,
    measurement: &StoredMeasurement,
) -> Result<Option<(PartialInput, InfluxValueType)>, ()> {
    let (input, kind, is_time) = match &call.input {
        ReducedInput::Column(asked) => match field_of(asked, measurement)? {
            Some((field, kind, is_time)) => (PartialInput::Field(field), kind, is_time),
            None => return Ok(None),
        },
        ReducedInput::Arithmetic(left, op, right) => {
            let operand = |operand: &ReducedOperand| match operand {
                ReducedOperand::Constant(constant) => Ok(Err(*constant)),
                ReducedOperand::Column(asked) => match field_of(asked, measurement)? {
                    Some((field, kind, false)) if kind.is_number() => Ok(Ok(field)),
                    _ => Err(()),
                },
            };
            let input = PartialInput::Arithmetic(operand(left)?, *op, operand(right)?);
            (input, InfluxValueType::Float, false)
        }
    };
    let is_counted = matches!(call.aggregate, Aggregate::Count);
    let is_edge = matches!(call.aggregate, Aggregate::First | Aggregate::Last);
    if !is_counted && (is_time || !(is_edge || kind.is_number())) {
        return Err(());
    }
    Ok(Some((input, kind)))
}

/// A field, its type, and whether it is stored as a time; `None` if the table has no such field.
fn field_of(
    asked: &SourceColumn,
    measurement: &StoredMeasurement,
) -> Result<Option<(String, InfluxValueType, bool)>, ()> {
    let (name, kind) = match requested_column(measurement, asked) {
        ReadColumn::Absent(Value::Null) => return Ok(None),
        ReadColumn::Field { name, kind } => (name, kind),
        _ => return Err(()),
    };
    let stored = measurement.table.field(&name).map(|field| field.kind);
    let stored_as = stored.and_then(stored_type).ok_or(())?;
    if kind.is_some_and(|kind| kind != stored_as) {
        return Err(());
    }
    Ok(Some((name, stored_as, stored == Some(FieldType::Timestamp))))
}

impl Planned {
    /// `None` if the aggregate does not compute the request as InfluxQL does.
    fn new(request: &ReducedRequest) -> Option<Self> {
        let measurement = &request.measurement;
        if let Some(condition) = &request.condition
            && residual(condition, measurement).is_some()
        {
            return None;
        }
        let table = &measurement.table;
        let is_text = |key: &Arc<str>| {
            let tag = table.tag(key);
            tag.is_none_or(|(_, tag)| tag.kind == TagType::String)
        };
        if !request.keys.iter().all(is_text) {
            return None;
        }
        // Of values with one time, InfluxDB takes the greatest; within a series there is one.
        let is_of_series = table
            .tags
            .iter()
            .all(|tag| request.keys.iter().any(|key| **key == *tag.name));
        let mut planned = Self {
            partials: Vec::new(),
            values: Vec::new(),
        };
        for call in &request.calls {
            let Some((input, kind)) = input_of(call, measurement).ok()? else {
                planned.values.push(FromPartials::Nothing);
                continue;
            };
            let mut add = |function| planned.add(function, &input);
            let value = match call.aggregate {
                Aggregate::Count => FromPartials::Count(add("count")),
                Aggregate::Sum => FromPartials::One(add("sum")),
                Aggregate::Mean => {
                    // A sum of integers that does not fit wraps in InfluxDB; here it fails.
                    if kind != InfluxValueType::Float {
                        add("sum");
                    }
                    FromPartials::One(add("avg"))
                }
                Aggregate::Min => FromPartials::One(add("min")),
                Aggregate::Max => FromPartials::One(add("max")),
                Aggregate::Spread => FromPartials::Difference(add("max"), add("min")),
                Aggregate::First if is_of_series => FromPartials::One(add("first")),
                Aggregate::Last if is_of_series => FromPartials::One(add("last")),
                _ => return None,
            };
            planned.values.push(value);
        }
        Some(planned)
    }

    /// The place of a result, which is added if it is new.
    fn add(&mut self, function: &'static str, input: &PartialInput) -> usize {
        let wanted = Partial {
            function,
            input: input.clone(),
        };
        let known = self.partials.iter().position(|known| *known == wanted);
        known.unwrap_or_else(|| {
            self.partials.push(wanted);
            self.partials.len() - 1
        })
    }
}

/// Whether the aggregate computes a request as InfluxQL does.
pub fn can_reduce(request: &ReducedRequest) -> bool {
    let zone = &request.windows.zone;
    let is_utc = zone
        .as_ref()
        .is_none_or(|zone| zone.iana_name() == Some("UTC"));
    (is_utc || !request.windows.is_grouped()) && Planned::new(request).is_some()
}

/// The groups of a table.
pub struct ReducedRows {
    state: Arc<SessionState>,
    request: ReducedRequest,
    budget: Budget,
    reading: ReducedReading,
}

/// The rows of a table, and the index of each function's input in them.
pub struct ReducedFallback {
    /// The rows.
    pub rows: Box<dyn RowSource>,
    /// The indexes.
    pub places: Vec<usize>,
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
    pub fn new(
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
    async fn plan(&mut self, planned: &Planned) -> SqlResult<LogicalPlan> {
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
    pub async fn compute(&mut self) -> SqlResult<Option<Vec<Row>>> {
        let Some(planned) = Planned::new(&self.request) else {
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
            found.sort_by(|a, b| {
                let order = a.series.order_by(&b.series, &request.order);
                let order = order.then(a.time.cmp(&b.time));
                let order = if request.ascending {
                    order
                } else {
                    order.reverse()
                };
                order.then_with(|| a.series.order(&b.series))
            });
        }
        Ok(Some(found))
    }
}

/// Reads groups from batches.
struct GroupReader<'a> {
    request: &'a ReducedRequest,
    planned: &'a Planned,
    last: Option<Arc<SeriesKey>>,
    /// For each key, whether it was missing, and whether it was empty.
    absent: Vec<(bool, bool)>,
}

impl<'a> GroupReader<'a> {
    fn new(request: &'a ReducedRequest, planned: &'a Planned) -> Self {
        Self {
            request,
            planned,
            last: None,
            absent: vec![(false, false); request.keys.len()],
        }
    }

    /// Whether a missing and an empty tag were groups of their own, which are one in InfluxQL.
    fn is_ambiguous(&self) -> bool {
        self.absent.iter().any(|absent| *absent == (true, true))
    }

    fn rows(&mut self, batch: &RecordBatch) -> SqlResult<Vec<Row>> {
        let windows = &self.request.windows;
        let table = &self.request.measurement.table;
        let starts = windows.is_grouped().then(|| times(batch, "w")).transpose()?;
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

/// Groups made of rows, by the stages of the functions. Each row has the value of one function.
struct StagedRows {
    fallback: ReducedFallback,
    stages: Vec<Reduce>,
    ended: bool,
}

impl StagedRows {
    fn new(fallback: ReducedFallback, request: &ReducedRequest, budget: &Budget) -> Self {
        let stage = |call: &ReducedCall| {
            Reduce::new(
                call.aggregate.clone(),
                request.windows.clone(),
                Arc::clone(&request.order),
                Arc::clone(&request.keys),
                budget.clone(),
            )
        };
        Self {
            fallback,
            stages: request.calls.iter().map(stage).collect(),
            ended: false,
        }
    }

    /// The row that has the value of a point, which is that of a function.
    fn row(&self, place: usize, point: Point) -> Row {
        let mut values = vec![Value::Null; self.stages.len()];
        values[place] = point.value;
        Row {
            series: point.series,
            time: point.time,
            values: values.into(),
        }
    }
}

impl RowSource for StagedRows {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        async move {
            while !self.ended {
                let (mut found, mut given) = (Vec::new(), Vec::new());
                let rows = self.fallback.rows.next().await?;
                self.ended = rows.is_none();
                for place in 0..self.stages.len() {
                    match &rows {
                        Some(rows) => rows.iter().for_each(|row| {
                            let value = row.values.get(self.fallback.places[place]);
                            let point = Point {
                                series: Arc::clone(&row.series),
                                time: row.time,
                                value: value.cloned().unwrap_or_default(),
                                row: None,
                            };
                            self.stages[place].push(point, &mut given);
                        }),
                        None => self.stages[place].finish(&mut given),
                    }
                    found.extend(given.drain(..).map(|point| self.row(place, point)));
                }
                if !found.is_empty() {
                    return Ok(Some(found));
                }
            }
            Ok(None)
        }
        .boxed()
    }
}
