//! `rollup(summary)`: joins summaries of several groups into the summary of all their rows.

use super::candlestick::Candlestick;
use super::counter::{CounterSummary, GaugeSummary};
use super::percentiles::{self, PercentileSketch};
use super::statistics::{OneVariable, TwoVariables};
use super::summary::{GroupSummary, from_array, joined, summary_type, to_array};
use super::time_weight::TimeWeight;
use crate::aggregate::{AccumulatorFactory, AggregateDescription, AggregateState};
use crate::arguments::ConstantArguments;
use arrow::array::{Array, ArrayRef, AsArray, LargeListArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, exec_err, plan_err};
use std::marker::PhantomData;
use std::sync::Arc;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct RollupFunction;

/// The state of any kind: a list of the summaries as bytes would lose their types, so each has a column.
const STATES: [&str; 7] = [
    "one", "two", "weights", "counters", "gauges", "candles", "sketches",
];

fn kinds() -> [DataType; 7] {
    [
        summary_type::<OneVariable>(),
        summary_type::<TwoVariables>(),
        summary_type::<TimeWeight>(),
        summary_type::<CounterSummary>(),
        summary_type::<GaugeSummary>(),
        summary_type::<Candlestick>(),
        DataType::Struct(percentiles::fields()),
    ]
}

fn list_of(kind: &DataType) -> DataType {
    DataType::LargeList(Arc::new(Field::new_list_field(kind.clone(), true)))
}

impl AggregateDescription for RollupFunction {
    fn name(&self) -> &'static str {
        "rollup"
    }

    fn coerce(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [kind] if kinds().contains(kind) => Ok(vec![kind.clone()]),
            _ => plan_err!(
                "rollup takes a summary, as stats_agg, time_weight, counter_agg, gauge_agg, \
                 candlestick_agg and percentile_agg make it"
            ),
        }
    }

    fn answer_type(&self, types: &[DataType]) -> DataType {
        types.first().cloned().unwrap_or(DataType::Null)
    }

    fn state_types(&self) -> Vec<(&'static str, DataType)> {
        let kinds = kinds();
        STATES
            .into_iter()
            .zip(&kinds)
            .map(|(name, kind)| (name, list_of(kind)))
            .collect()
    }

    fn fold(
        &self,
        types: &[DataType],
        _: &ConstantArguments<'_>,
        _: bool,
    ) -> Result<Box<dyn AccumulatorFactory>> {
        let place = types.first().and_then(|kind| {
            let kinds = kinds();
            kinds.iter().position(|known| known == kind)
        });
        Ok(match place {
            Some(0) => Box::new(JoinedSummaries::<OneVariable>::for_place(0)),
            Some(1) => Box::new(JoinedSummaries::<TwoVariables>::for_place(1)),
            Some(2) => Box::new(JoinedSummaries::<TimeWeight>::for_place(2)),
            Some(3) => Box::new(JoinedSummaries::<CounterSummary>::for_place(3)),
            Some(4) => Box::new(JoinedSummaries::<GaugeSummary>::for_place(4)),
            Some(5) => Box::new(JoinedSummaries::<Candlestick>::for_place(5)),
            Some(6) => Box::new(JoinedSketches),
            _ => return exec_err!("rollup takes a summary"),
        })
    }
}

/// States as columns: those of the kind at a place, and nulls for the others.
fn state_columns(place: usize, own: ArrayRef) -> Vec<ArrayRef> {
    let rows = own.len();
    let kinds = kinds();
    let column = |(at, kind): (usize, &DataType)| {
        if at == place {
            Arc::clone(&own)
        } else {
            arrow::array::new_null_array(&list_of(kind), rows)
        }
    };
    kinds.iter().enumerate().map(column).collect()
}

fn list(lengths: impl Iterator<Item = usize>, items: ArrayRef) -> Result<ArrayRef> {
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
    Ok(Arc::new(LargeListArray::try_new(
        field, offsets, items, None,
    )?))
}

/// Keeps the summaries of a group until all are there: some kinds are joined in order of time.
#[derive(Debug)]
struct JoinedSummaries<S> {
    place: usize,
    kind: PhantomData<S>,
}

impl<S> JoinedSummaries<S> {
    fn for_place(place: usize) -> Self {
        Self {
            place,
            kind: PhantomData,
        }
    }
}

impl<S: GroupSummary> AggregateState for JoinedSummaries<S> {
    type State = Vec<S>;
    type Rows<'a> = &'a ArrayRef;

    fn rows<'a>(&self, columns: &'a [ArrayRef]) -> Result<&'a ArrayRef> {
        Ok(&columns[0])
    }

    fn add(&self, state: &mut Vec<S>, rows: &&ArrayRef, row: usize) {
        if let Ok(Some(summary)) = from_array(rows, row) {
            state.push(summary);
        }
    }

    fn states(&self, states: &[Vec<S>]) -> Result<Vec<ArrayRef>> {
        let all: Vec<Option<S>> = states.iter().flatten().cloned().map(Some).collect();
        let own = list(states.iter().map(Vec::len), to_array(&all)?)?;
        Ok(state_columns(self.place, own))
    }

    fn merge(&self, state: &mut Vec<S>, columns: &[ArrayRef], row: usize) -> Result<()> {
        let lists = columns[self.place].as_list::<i64>();
        if lists.is_valid(row) {
            let items = lists.value(row);
            for at in 0..items.len() {
                state.extend(from_array::<S>(&items, at)?);
            }
        }
        Ok(())
    }

    fn answers(&self, states: &mut [Vec<S>]) -> Result<ArrayRef> {
        let all = states.iter().map(|state| joined(state.clone()));
        to_array(&all.collect::<Result<Vec<_>>>()?)
    }

    fn heap_bytes(&self, state: &Vec<S>) -> usize {
        state.capacity() * size_of::<S>()
    }
}

/// Joins sketches as they arrive.
#[derive(Debug)]
struct JoinedSketches;

/// The place of sketches among the states.
const SKETCHES: usize = 6;

impl AggregateState for JoinedSketches {
    type State = SketchTotal;
    type Rows<'a> = &'a ArrayRef;

    fn rows<'a>(&self, columns: &'a [ArrayRef]) -> Result<&'a ArrayRef> {
        Ok(&columns[0])
    }

    fn add(&self, state: &mut SketchTotal, rows: &&ArrayRef, row: usize) {
        let merged = percentiles::from_array(rows, row)
            .and_then(|next| percentiles::merge(&mut state.sketch, next));
        state.failure = state
            .failure
            .take()
            .or(merged.err().map(|error| error.to_string()));
    }

    fn states(&self, states: &[SketchTotal]) -> Result<Vec<ArrayRef>> {
        check(states)?;
        let all: Vec<Option<PercentileSketch>> =
            states.iter().map(|state| state.sketch.clone()).collect();
        let own = list(states.iter().map(|_| 1), percentiles::to_array(&all)?)?;
        Ok(state_columns(SKETCHES, own))
    }

    fn merge(&self, state: &mut SketchTotal, columns: &[ArrayRef], row: usize) -> Result<()> {
        let lists = columns[SKETCHES].as_list::<i64>();
        if lists.is_valid(row) {
            let items = lists.value(row);
            for at in 0..items.len() {
                percentiles::merge(&mut state.sketch, percentiles::from_array(&items, at)?)?;
            }
        }
        Ok(())
    }

    fn answers(&self, states: &mut [SketchTotal]) -> Result<ArrayRef> {
        check(states)?;
        let all: Vec<Option<PercentileSketch>> =
            states.iter().map(|state| state.sketch.clone()).collect();
        percentiles::to_array(&all)
    }

    fn heap_bytes(&self, state: &SketchTotal) -> usize {
        let sketch = state.sketch.as_ref();
        sketch.map_or(0, PercentileSketch::heap_bytes)
    }
}

/// The sketch of a group, and why one could not be joined.
#[derive(Debug, Default)]
struct SketchTotal {
    sketch: Option<PercentileSketch>,
    failure: Option<String>,
}

fn check(states: &[SketchTotal]) -> Result<()> {
    match states.iter().find_map(|state| state.failure.as_ref()) {
        Some(failure) => exec_err!("{failure}"),
        None => Ok(()),
    }
}
