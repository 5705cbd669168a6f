//! The aggregates that make summaries of rows.

use super::candlestick::Candlestick;
use super::counter::{CounterSummary, GaugeSummary};
use super::percentiles::{self, BUCKETS, BUCKETS_MAX, ERROR, PercentileSketch};
use super::rollup::RollupFunction;
use super::statistics::{Moments, OneVariable, TwoVariables};
use super::summary::{GroupSummary, from_array, summary_type, to_array};
use super::time_weight::{TimeWeight, WeightMethod};
use crate::aggregate::{AccumulatorFactory, AggregateDescription, AggregateState, aggregate};
use crate::arguments::{self, ConstantArguments, TIME};
use crate::numbers::NumberKind;
use crate::pairs::{self, AllPairsState, PairsAnswer, TimeValuePairs};
use arrow::array::{Array, ArrayRef, Float64Array, TimestampNanosecondArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, downcast_value, exec_err, plan_err};
use datafusion::logical_expr::AggregateUDF;
use std::marker::PhantomData;

/// The aggregates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum TwoStepFunction {
    Statistics,
    TimeWeight,
    Counter,
    Gauge,
    Candlestick,
    Percentiles,
    Sketch,
    Digest,
}

use TwoStepFunction as F;

/// All aggregates.
pub(crate) fn aggregates() -> Vec<AggregateUDF> {
    let functions = [
        F::Statistics,
        F::TimeWeight,
        F::Counter,
        F::Gauge,
        F::Candlestick,
        F::Percentiles,
        F::Sketch,
        F::Digest,
    ];
    let mut all: Vec<AggregateUDF> = functions.map(aggregate).into();
    all.push(aggregate(RollupFunction));
    all
}

impl AggregateDescription for TwoStepFunction {
    fn name(&self) -> &'static str {
        match self {
            F::Statistics => OneVariable::NAME,
            F::TimeWeight => "time_weight_agg",
            F::Counter => CounterSummary::NAME,
            F::Gauge => GaugeSummary::NAME,
            F::Candlestick => Candlestick::NAME,
            F::Percentiles => "percentile_agg",
            F::Sketch => "uddsketch",
            F::Digest => "tdigest",
        }
    }

    fn coerce(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        let float =
            |data_type: &DataType| arguments::number(name, data_type).map(|_| DataType::Float64);
        Ok(match (self, types) {
            (F::Statistics | F::Percentiles, [value]) => vec![float(value)?],
            (F::Statistics, [y, x]) => vec![float(y)?, float(x)?],
            (F::Counter | F::Gauge, [time, value]) => {
                vec![arguments::time(name, time)?, float(value)?]
            }
            (F::TimeWeight, [method, time, value]) if arguments::plain(method).is_string() => {
                vec![DataType::Utf8, arguments::time(name, time)?, float(value)?]
            }
            (F::Candlestick, [time, price, volume]) => {
                vec![arguments::time(name, time)?, float(price)?, float(volume)?]
            }
            (F::Sketch, [buckets, error, value]) => vec![
                arguments::count(name, "the number of buckets", buckets)?,
                float(error)?,
                float(value)?,
            ],
            (F::Digest, [buckets, value]) => vec![
                arguments::count(name, "the number of buckets", buckets)?,
                float(value)?,
            ],
            _ => {
                return plan_err!("{name} takes {}", self.usage());
            }
        })
    }

    fn answer_type(&self, types: &[DataType]) -> DataType {
        match self {
            F::Statistics if types.len() == 2 => summary_type::<TwoVariables>(),
            F::Statistics => summary_type::<OneVariable>(),
            F::TimeWeight => summary_type::<TimeWeight>(),
            F::Counter => summary_type::<CounterSummary>(),
            F::Gauge => summary_type::<GaugeSummary>(),
            F::Candlestick => summary_type::<Candlestick>(),
            F::Percentiles | F::Sketch | F::Digest => DataType::Struct(percentiles::fields()),
        }
    }

    fn state_types(&self) -> Vec<(&'static str, DataType)> {
        match self {
            F::TimeWeight | F::Counter | F::Gauge => pairs::state_types(),
            // One or two variables: the state of two holds both.
            F::Statistics => vec![
                ("one", summary_type::<OneVariable>()),
                ("two", summary_type::<TwoVariables>()),
            ],
            F::Candlestick => vec![("summary", self.answer_type(&[]))],
            F::Percentiles | F::Sketch | F::Digest => vec![("sketch", self.answer_type(&[]))],
        }
    }

    fn fold(
        &self,
        types: &[DataType],
        constants: &ConstantArguments<'_>,
        sliding: bool,
    ) -> Result<Box<dyn AccumulatorFactory>> {
        let pairs = |answer, time| AllPairsState {
            answer,
            time,
            value: time + 1,
            sliding,
        };
        Ok(match self {
            F::Statistics if types.len() == 2 => Box::new(RowSummaries::<TwoVariables>::default()),
            F::Statistics => Box::new(RowSummaries::<OneVariable>::default()),
            F::Candlestick => Box::new(RowSummaries::<Candlestick>::default()),
            F::Counter => Box::new(pairs(PointSummary::Counter, 0)),
            F::Gauge => Box::new(pairs(PointSummary::Gauge, 0)),
            F::TimeWeight => {
                let name = constants.word(0, "the method")?;
                let Some(method) = WeightMethod::from_name(&name) else {
                    let name = name.escape_debug();
                    return exec_err!(
                        "time_weight: '{name}' is not a method; write 'Linear' or 'LOCF'"
                    );
                };
                Box::new(pairs(PointSummary::TimeWeight(method), 1))
            }
            F::Percentiles => Box::new(SketchState {
                buckets: BUCKETS,
                error: ERROR,
                value: 0,
            }),
            F::Digest => Box::new(SketchState {
                buckets: constants.count(0, "the number of buckets", 2, BUCKETS_MAX)?,
                error: ERROR,
                value: 1,
            }),
            F::Sketch => {
                let error = constants.finite(1, "the error")?;
                if !(1e-12..1.0).contains(&error) {
                    return exec_err!("uddsketch: the error must be between 0 and 1, not {error}");
                }
                Box::new(SketchState {
                    buckets: constants.count(0, "the number of buckets", 2, BUCKETS_MAX)?,
                    error,
                    value: 2,
                })
            }
        })
    }
}

impl TwoStepFunction {
    /// Its arguments.
    fn usage(self) -> &'static str {
        match self {
            F::Statistics => "a value, or two: stats_agg(value), stats_agg(y, x)",
            F::TimeWeight => "a method, a time and a value: time_weight('Linear', time, value)",
            F::Counter => "a time and a value: counter_agg(time, value)",
            F::Gauge => "a time and a value: gauge_agg(time, value)",
            F::Candlestick => "a time, a price and a volume: candlestick_agg(time, price, volume)",
            F::Percentiles => "a value: percentile_agg(value)",
            F::Sketch => {
                "the number of buckets, an error and a value: uddsketch(200, 0.001, value)"
            }
            F::Digest => "the number of buckets and a value: tdigest(200, value)",
        }
    }
}

/// A summary that can be made of a single row.
pub(crate) trait RowSummary: GroupSummary {
    /// The place of its state among the columns of states, and how many there are.
    const STATE: (usize, usize);

    /// The summary of a row; `None` if a value is null.
    fn from_row(rows: &ArgumentColumns<'_>, row: usize) -> Option<Self>;
}

/// The arguments of a batch: the time, if the first one is, and the floats.
pub(crate) struct ArgumentColumns<'a> {
    times: Option<&'a TimestampNanosecondArray>,
    floats: Vec<&'a Float64Array>,
}

impl ArgumentColumns<'_> {
    fn float(&self, at: usize, row: usize) -> Option<f64> {
        let floats = self.floats.get(at)?;
        floats.is_valid(row).then(|| floats.value(row))
    }

    fn time(&self, row: usize) -> Option<i64> {
        let times = self.times?;
        times.is_valid(row).then(|| times.value(row))
    }
}

impl RowSummary for OneVariable {
    const STATE: (usize, usize) = (0, 2);

    fn from_row(rows: &ArgumentColumns<'_>, row: usize) -> Option<Self> {
        Some(Self(Moments::of_value(rows.float(0, row)?)))
    }
}

impl RowSummary for TwoVariables {
    const STATE: (usize, usize) = (1, 2);

    fn from_row(rows: &ArgumentColumns<'_>, row: usize) -> Option<Self> {
        Some(Self::of_pair(rows.float(0, row)?, rows.float(1, row)?))
    }
}

impl RowSummary for Candlestick {
    const STATE: (usize, usize) = (0, 1);

    fn from_row(rows: &ArgumentColumns<'_>, row: usize) -> Option<Self> {
        let volume = rows.float(1, row).unwrap_or(0.0);
        Some(Self::of_trade(rows.time(row)?, rows.float(0, row)?, volume))
    }
}

/// Keeps the summary of the rows so far.
#[derive(Debug)]
struct RowSummaries<S>(PhantomData<S>);

impl<S> Default for RowSummaries<S> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

/// The columns of states: the summaries, and nulls for the other kinds.
fn state_columns<S: RowSummary>(summaries: &[Option<S>]) -> Result<Vec<ArrayRef>> {
    let (place, count) = S::STATE;
    (0..count)
        .map(|at| {
            if at == place {
                return to_array(summaries);
            }
            let nulls = summaries.len();
            Ok(arrow::array::new_null_array(&other_state::<S>(), nulls))
        })
        .collect()
}

/// The type of the state of the other number of variables.
fn other_state<S: RowSummary>() -> DataType {
    if S::STATE.0 == 0 {
        summary_type::<TwoVariables>()
    } else {
        summary_type::<OneVariable>()
    }
}

impl<S: RowSummary> AggregateState for RowSummaries<S> {
    type State = Option<S>;
    type Rows<'a> = ArgumentColumns<'a>;

    fn rows<'a>(&self, columns: &'a [ArrayRef]) -> Result<ArgumentColumns<'a>> {
        let mut rows = ArgumentColumns {
            times: None,
            floats: Vec::new(),
        };
        for column in columns {
            if *column.data_type() == TIME {
                rows.times = Some(downcast_value!(column, TimestampNanosecondArray));
            } else {
                rows.floats.push(downcast_value!(column, Float64Array));
            }
        }
        Ok(rows)
    }

    fn add(&self, state: &mut Option<S>, rows: &ArgumentColumns<'_>, row: usize) {
        let Some(next) = S::from_row(rows, row) else {
            return;
        };
        *state = match state.take() {
            // Summaries of this kind join in any order.
            Some(before) => before.join(&next).ok(),
            None => Some(next),
        };
    }

    fn states(&self, states: &[Option<S>]) -> Result<Vec<ArrayRef>> {
        state_columns(states)
    }

    fn merge(&self, state: &mut Option<S>, columns: &[ArrayRef], row: usize) -> Result<()> {
        let Some(next) = from_array::<S>(&columns[S::STATE.0], row)? else {
            return Ok(());
        };
        *state = Some(match state.take() {
            Some(before) => before.join(&next)?,
            None => next,
        });
        Ok(())
    }

    fn answers(&self, states: &mut [Option<S>]) -> Result<ArrayRef> {
        to_array(states)
    }

    fn heap_bytes(&self, _: &Option<S>) -> usize {
        0
    }
}

/// What is made of the points of a group in order of time.
#[derive(Clone, Copy, Debug)]
enum PointSummary {
    Counter,
    Gauge,
    TimeWeight(WeightMethod),
}

impl PairsAnswer for PointSummary {
    fn answers(&self, groups: &mut [TimeValuePairs], keep: bool) -> Result<ArrayRef> {
        fn summaries<S: GroupSummary>(
            groups: &mut [TimeValuePairs],
            keep: bool,
            summary: impl Fn(&[(i64, f64)]) -> Option<S>,
        ) -> Result<ArrayRef> {
            let made = groups.iter_mut().map(|group| {
                group.ordered(NumberKind::Float, keep, |pairs| {
                    let points = pairs.iter();
                    let points: Vec<(i64, f64)> = points
                        .map(|(time, bits)| (*time, f64::from_bits(*bits)))
                        .collect();
                    summary(&points)
                })
            });
            to_array(&made.collect::<Vec<_>>())
        }
        match self {
            Self::Counter => summaries(groups, keep, CounterSummary::from_points),
            Self::Gauge => summaries(groups, keep, GaugeSummary::from_points),
            Self::TimeWeight(method) => {
                let weight = |points: &[(i64, f64)]| TimeWeight::from_points(points, *method);
                summaries(groups, keep, weight)
            }
        }
    }
}

/// Keeps a sketch.
#[derive(Debug)]
struct SketchState {
    buckets: usize,
    error: f64,
    /// The place of the value among the arguments.
    value: usize,
}

impl AggregateState for SketchState {
    type State = Option<PercentileSketch>;
    type Rows<'a> = &'a Float64Array;

    fn rows<'a>(&self, columns: &'a [ArrayRef]) -> Result<&'a Float64Array> {
        Ok(downcast_value!(columns[self.value], Float64Array))
    }

    fn add(&self, state: &mut Self::State, rows: &&Float64Array, row: usize) {
        if rows.is_valid(row) {
            let empty = || PercentileSketch::new(self.buckets, self.error);
            state.get_or_insert_with(empty).add(rows.value(row));
        }
    }

    fn states(&self, states: &[Self::State]) -> Result<Vec<ArrayRef>> {
        Ok(vec![percentiles::to_array(states)?])
    }

    fn merge(&self, state: &mut Self::State, columns: &[ArrayRef], row: usize) -> Result<()> {
        percentiles::merge(state, percentiles::from_array(&columns[0], row)?)
    }

    fn answers(&self, states: &mut [Self::State]) -> Result<ArrayRef> {
        percentiles::to_array(states)
    }

    fn heap_bytes(&self, state: &Self::State) -> usize {
        state.as_ref().map_or(0, PercentileSketch::heap_bytes)
    }
}
