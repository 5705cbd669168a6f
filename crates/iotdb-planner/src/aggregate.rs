//! Aggregates of timeseries: partial results by device and window, and what functions make of them.

mod functions;

use crate::combine::KEY;
use crate::compile::{as_ms, is_number};
use crate::device_rows::{DEVICE, TIME, column};
use crate::statement::{internal, semantic};
use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::ScalarValue;
use datafusion::execution::session_state::SessionState;
use datafusion::functions::datetime::expr_fn::date_bin;
use datafusion::functions::math::expr_fn::abs;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, ScalarUDF, SortExpr, cast, lit, when};
use functions::{DeviceAggregates, WindowsOfTime};
use marigram_iotdb::{IotDbType, TreeAggregate, WindowSequence};
use marigram_sql::SqlResult;
use std::collections::HashMap;
use std::sync::Arc;

/// A result from which functions are computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartialAggregate {
    kind: PartialKind,
    /// The column of the input.
    input: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartialKind {
    /// A function of SQL with this name.
    Of(&'static str),
    /// The same, with the time as its second argument.
    AtTime(&'static str),
    /// A function of the times at which there is a value.
    OfTime(&'static str),
}

/// The partial results of a query, each once.
#[derive(Debug, Default)]
pub(crate) struct PartialAggregates {
    all: Vec<PartialAggregate>,
}

/// The column of a partial result.
pub(crate) fn partial_column(place: usize) -> String {
    format!("p{place}")
}

/// What a function needs.
fn partials_of(function: TreeAggregate) -> &'static [PartialKind] {
    use PartialKind::{AtTime, Of, OfTime};
    match function {
        TreeAggregate::Count => &[Of("count")],
        TreeAggregate::Sum => &[Of("sum")],
        TreeAggregate::Avg => &[Of("avg")],
        TreeAggregate::MinValue => &[Of("min")],
        TreeAggregate::MaxValue => &[Of("max")],
        TreeAggregate::FirstValue => &[AtTime("first")],
        TreeAggregate::LastValue => &[AtTime("last")],
        TreeAggregate::MinTime => &[OfTime("min")],
        TreeAggregate::MaxTime => &[OfTime("max")],
        TreeAggregate::Extreme => &[Of("min"), Of("max")],
        TreeAggregate::TimeDuration => &[OfTime("min"), OfTime("max")],
        TreeAggregate::Mode => &[Of("mode")],
        TreeAggregate::StdDevSample => &[Of("stddev_samp")],
        TreeAggregate::StdDevPopulation => &[Of("stddev_pop")],
        TreeAggregate::VarianceSample => &[Of("var_samp")],
        TreeAggregate::VariancePopulation => &[Of("var_pop")],
    }
}

/// The type of a function's result.
///
/// # Errors
/// If the function does not take values of that type.
pub(crate) fn result_type(function: TreeAggregate, kind: IotDbType) -> SqlResult<IotDbType> {
    match function {
        TreeAggregate::Count
        | TreeAggregate::MinTime
        | TreeAggregate::MaxTime
        | TreeAggregate::TimeDuration => Ok(IotDbType::Int64),
        TreeAggregate::FirstValue | TreeAggregate::LastValue | TreeAggregate::Mode => Ok(kind),
        TreeAggregate::MinValue | TreeAggregate::MaxValue => match kind {
            IotDbType::Boolean | IotDbType::Text | IotDbType::Blob => Err(semantic(
                "Aggregate functions [MIN_VALUE, MAX_VALUE] only support data types [INT32, INT64, FLOAT, \
                 DOUBLE, STRING, DATE, TIMESTAMP]",
            )),
            kind => Ok(kind),
        },
        _ if !is_number(kind) => Err(semantic(
            "Aggregate functions [AVG, SUM, EXTREME, STDDEV, STDDEV_POP, STDDEV_SAMP, VARIANCE, VAR_POP, \
             VAR_SAMP] only support numeric data types [INT32, INT64, FLOAT, DOUBLE]",
        )),
        TreeAggregate::Extreme => Ok(kind),
        _ => Ok(IotDbType::Double),
    }
}

impl PartialAggregates {
    /// The places of the partial results of a function of a column.
    pub(crate) fn add(&mut self, function: TreeAggregate, input: &str) -> Vec<usize> {
        let mut places = Vec::new();
        for kind in partials_of(function) {
            let wanted = PartialAggregate {
                kind: *kind,
                input: input.to_owned(),
            };
            let known = self.all.iter().position(|known| *known == wanted);
            places.push(known.unwrap_or_else(|| {
                self.all.push(wanted);
                self.all.len() - 1
            }));
        }
        places
    }

    /// The number of partial results.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The calls that compute the partial results.
    ///
    /// # Errors
    /// If a function is missing.
    pub(crate) fn calls(&self, state: &SessionState) -> SqlResult<Vec<Expr>> {
        let mut calls = Vec::with_capacity(self.all.len());
        for (place, partial) in self.all.iter().enumerate() {
            let (name, arguments, filter) = match partial.kind {
                PartialKind::Of(name) => (name, vec![column(&partial.input)], None),
                PartialKind::AtTime(name) => {
                    let arguments = vec![column(&partial.input), column(TIME)];
                    (name, arguments, None)
                }
                PartialKind::OfTime(name) => {
                    let filter = column(&partial.input).is_not_null();
                    (name, vec![column(TIME)], Some(filter))
                }
            };
            let function = state.aggregate_functions().get(name);
            let function =
                function.ok_or_else(|| internal(&format!("the function {name} is missing")))?;
            let mut call = function.call(arguments);
            if let (Expr::AggregateFunction(call), Some(filter)) = (&mut call, filter) {
                call.params.filter = Some(Box::new(filter));
            }
            calls.push(call.alias(partial_column(place)));
        }
        Ok(calls)
    }
}

/// The result of a function from its partial results.
///
/// # Errors
/// If one is missing.
pub(crate) fn result_of(function: TreeAggregate, partials: &[Expr]) -> SqlResult<Expr> {
    let partial = |place: usize| {
        let found = partials.get(place).cloned();
        found.ok_or_else(|| internal("a partial result is missing"))
    };
    let first = partial(0)?;
    Ok(match function {
        TreeAggregate::Count => {
            let is_missing = first.clone().is_null();
            when(is_missing, lit(0_i64)).otherwise(first)?
        }
        TreeAggregate::Sum
        | TreeAggregate::Avg
        | TreeAggregate::StdDevSample
        | TreeAggregate::StdDevPopulation
        | TreeAggregate::VarianceSample
        | TreeAggregate::VariancePopulation => cast(first, DataType::Float64),
        TreeAggregate::MinTime | TreeAggregate::MaxTime => as_ms(first),
        TreeAggregate::TimeDuration => as_ms(partial(1)?) - as_ms(first),
        TreeAggregate::Extreme => {
            let last = partial(1)?;
            let size = |value: &Expr| abs(cast(value.clone(), DataType::Float64));
            when(size(&last).gt_eq(size(&first)), last).otherwise(first)?
        }
        TreeAggregate::MinValue
        | TreeAggregate::MaxValue
        | TreeAggregate::FirstValue
        | TreeAggregate::LastValue
        | TreeAggregate::Mode => first,
    })
}

/// The groups of an aggregate.
pub(crate) struct AggregateGroups<'a> {
    /// The windows of time, if there are any.
    pub(crate) windows: Option<&'a WindowSequence>,
    /// Whether the last window comes first.
    pub(crate) descends: bool,
    /// Whether devices come before windows.
    pub(crate) device_first: bool,
    /// What stands for each device, if not itself.
    pub(crate) device_groups: Option<&'a HashMap<Arc<str>, Arc<str>>>,
}

/// Partial results of rows by device and window: the columns [`DEVICE`], [`KEY`] with the number of the
/// window, and those of the results, sorted. Each plan is aggregated by itself if its devices are not in
/// another one.
///
/// # Errors
/// DataFusion's errors.
pub(crate) fn aggregated(
    state: &SessionState,
    rows: Vec<LogicalPlanBuilder>,
    inputs: &[(String, Expr)],
    partials: &PartialAggregates,
    groups: &AggregateGroups<'_>,
) -> SqlResult<LogicalPlanBuilder> {
    let rows = if groups.device_groups.is_some() {
        vec![crate::device_rows::united(rows)?]
    } else {
        rows
    };
    let mut plans = Vec::with_capacity(rows.len());
    for rows in rows {
        plans.push(one_aggregated(state, rows, inputs, partials, groups)?);
    }
    let key = SortExpr::new(column(KEY), !groups.descends, true);
    let device = SortExpr::new(column(DEVICE), true, true);
    let order = if groups.device_first {
        vec![device, key]
    } else {
        vec![key, device]
    };
    Ok(crate::device_rows::united(plans)?.sort(order)?)
}

fn one_aggregated(
    state: &SessionState,
    rows: LogicalPlanBuilder,
    inputs: &[(String, Expr)],
    partials: &PartialAggregates,
    groups: &AggregateGroups<'_>,
) -> SqlResult<LogicalPlanBuilder> {
    let device = match groups.device_groups {
        None => column(DEVICE),
        Some(names) => {
            let function = ScalarUDF::new_from_impl(DeviceAggregates::new(names.clone()));
            function.call(vec![cast(column(DEVICE), DataType::Utf8)])
        }
    };
    let mut shown = vec![column(TIME), device.alias(DEVICE)];
    shown.extend(inputs.iter().map(|(name, expr)| expr.clone().alias(name)));
    let calls = partials.calls(state)?;
    let mut keys = vec![column(DEVICE)];
    let (plan, number) = match groups.windows {
        None => (rows.project(shown)?, lit(0_i64)),
        Some(windows) if windows.is_regular() => {
            let (rows, key, number) = regular_windows(rows, windows)?;
            keys.push(key.alias("w"));
            (rows.project(shown)?, number)
        }
        Some(windows) => {
            let function = ScalarUDF::new_from_impl(WindowsOfTime::new(windows.clone()));
            shown.push(function.call(vec![column(TIME)]).alias("w"));
            keys.push(column("w"));
            (rows.project(shown)?.unnest_column("w")?, column("w"))
        }
    };
    let plan = plan.aggregate(keys, calls)?;
    let mut results = vec![column(DEVICE), number.alias(KEY)];
    results.extend((0..partials.len()).map(|place| column(&partial_column(place))));
    let mut plan = plan.project(results)?;
    if groups.windows.is_some() {
        plan = plan.filter(column(KEY).is_not_null())?;
    }
    Ok(plan)
}

/// The rows within windows of one width, the key of their window, and the number that follows from it.
fn regular_windows(
    rows: LogicalPlanBuilder,
    windows: &WindowSequence,
) -> SqlResult<(LogicalPlanBuilder, Expr, Expr)> {
    let own = windows.windows();
    // Windows that have their ends begin behind their begins.
    let shift = i64::from(own.has_ends);
    let origin = own.start_ms.saturating_mul(1_000_000).saturating_add(shift);
    let step = own.step.ms.saturating_mul(1_000_000).max(1);
    let length = own.length.ms.saturating_mul(1_000_000);
    let at = |ns: i64| Expr::Literal(ScalarValue::TimestampNanosecond(Some(ns), None), None);
    let width = ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(0, 0, step)));
    let time = cast(column(TIME), crate::device_rows::time_type());
    let key = date_bin(Expr::Literal(width, None), time, at(origin));
    let number = (cast(column("w"), DataType::Int64) - lit(origin)) / lit(step);
    let mut rows = rows;
    if length < step {
        let into = (cast(column(TIME), DataType::Int64) - lit(origin)) % lit(step);
        rows = rows.filter(into.lt(lit(length)))?;
    }
    Ok((rows, key, number))
}
