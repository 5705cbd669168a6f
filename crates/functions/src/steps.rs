//! Window functions that process the rows of a partition one by one, in the window's order, and
//! know only the preceding rows: `difference`, `non_negative_derivative`, `moving_avg`, and those
//! that number windows (`session_id`, `state_id`, …) for an enclosing GROUP BY.
//!
//! They ignore window frames, and stream: they keep only what they need of a partition.

mod changes;
mod numbering;

use super::arguments::{self, ConstantArguments};
use arrow::array::{Array, ArrayRef, BooleanArray, TimestampNanosecondArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, downcast_value, not_impl_err, plan_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    LimitEffect, PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_plan::PhysicalExpr;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// An aggregate serves a window of more rows better.
const ROWS_MAX: usize = 100_000;

/// Processes the rows of one partition.
trait WindowStep: Debug + Send {
    /// The result for the next row.
    fn step(&mut self, columns: &[ArrayRef], row: usize) -> Result<ScalarValue>;
}

/// The functions of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum StepFunction {
    StateCount,
    StateDuration,
    Difference,
    NonNegativeDerivative,
    MovingAvg,
    SessionId,
    StateId,
    EventId,
    CountId,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct StepWindowFunction {
    kind: StepFunction,
    aliases: Vec<String>,
    signature: Signature,
}

/// All functions of this module.
pub(crate) fn functions() -> impl Iterator<Item = WindowUDF> {
    let all = [
        StepFunction::StateCount,
        StepFunction::StateDuration,
        StepFunction::Difference,
        StepFunction::NonNegativeDerivative,
        StepFunction::MovingAvg,
        StepFunction::SessionId,
        StepFunction::StateId,
        StepFunction::EventId,
        StepFunction::CountId,
    ];
    all.into_iter().map(|kind| {
        let aliases: &[&str] = match kind {
            StepFunction::StateCount => &["statecount"],
            StepFunction::StateDuration => &["stateduration"],
            StepFunction::Difference => &["diff"],
            StepFunction::MovingAvg => &["moving_average", "mavg"],
            _ => &[],
        };
        WindowUDF::from(StepWindowFunction {
            kind,
            aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
            signature: Signature::user_defined(Volatility::Immutable),
        })
    })
}

impl StepFunction {
    fn name(self) -> &'static str {
        match self {
            Self::StateCount => "state_count",
            Self::StateDuration => "state_duration",
            Self::Difference => "difference",
            Self::NonNegativeDerivative => "non_negative_derivative",
            Self::MovingAvg => "moving_avg",
            Self::SessionId => "session_id",
            Self::StateId => "state_id",
            Self::EventId => "event_id",
            Self::CountId => "count_id",
        }
    }

    fn usage(self) -> &'static str {
        match self {
            Self::StateCount => "a condition: state_count(condition)",
            Self::StateDuration => {
                "a condition and a time: state_duration(condition, time [, unit])"
            }
            Self::Difference => "a value: difference(value)",
            Self::NonNegativeDerivative => {
                "a value and its time: non_negative_derivative(value, time [, unit])"
            }
            Self::MovingAvg => "a value and a number: moving_avg(value, n)",
            Self::SessionId => "a time and an interval: session_id(time, gap)",
            Self::StateId => "a value: state_id(value)",
            Self::EventId => "two conditions: event_id(start, end)",
            Self::CountId => "a number: count_id(n)",
        }
    }

    fn coerce(self, types: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        match (self, types) {
            (Self::StateCount, [condition]) => Ok(vec![arguments::condition(name, condition)?]),
            (Self::StateDuration, [condition, time]) => Ok(vec![
                arguments::condition(name, condition)?,
                arguments::time(name, time)?,
            ]),
            (Self::StateDuration, [condition, time, unit]) => Ok(vec![
                arguments::condition(name, condition)?,
                arguments::time(name, time)?,
                arguments::interval(name, unit)?,
            ]),
            (Self::Difference, [value]) => Ok(vec![arguments::number(name, value)?]),
            (Self::NonNegativeDerivative, [value, time]) => Ok(vec![
                arguments::number(name, value)?,
                arguments::time(name, time)?,
            ]),
            (Self::NonNegativeDerivative, [value, time, unit]) => Ok(vec![
                arguments::number(name, value)?,
                arguments::time(name, time)?,
                arguments::interval(name, unit)?,
            ]),
            (Self::MovingAvg, [value, n]) => Ok(vec![
                arguments::number(name, value)?,
                arguments::count(name, "n", n)?,
            ]),
            (Self::SessionId, [time, gap]) => Ok(vec![
                arguments::time(name, time)?,
                arguments::interval(name, gap)?,
            ]),
            (Self::StateId, [value]) => Ok(vec![arguments::comparable(name, value)?]),
            (Self::EventId, [start, end]) => Ok(vec![
                arguments::condition(name, start)?,
                arguments::condition(name, end)?,
            ]),
            (Self::CountId, [n]) => Ok(vec![arguments::count(name, "n", n)?]),
            _ => plan_err!("{name} takes {}", self.usage()),
        }
    }

    fn answer_type(self, types: &[&DataType]) -> DataType {
        match self {
            Self::StateDuration | Self::NonNegativeDerivative | Self::MovingAvg => {
                DataType::Float64
            }
            Self::Difference if types.first().is_some_and(|value| value.is_floating()) => {
                DataType::Float64
            }
            _ => DataType::Int64,
        }
    }

    fn start(
        self,
        types: &[&DataType],
        constants: &ConstantArguments<'_>,
    ) -> Result<Box<dyn WindowStep>> {
        Ok(match self {
            Self::StateCount => Box::new(numbering::StateCount::default()),
            Self::StateDuration => {
                Box::new(numbering::StateDuration::new(constants.interval_ns(2)?))
            }
            Self::Difference => Box::new(changes::DifferenceStep::new(types[0])?),
            Self::NonNegativeDerivative => Box::new(changes::DerivativeStep::new(
                types[0],
                constants.interval_ns(2)?,
            )?),
            Self::MovingAvg => {
                changes::moving_avg(types[0], constants.count(1, "n", 1, ROWS_MAX)?)?
            }
            Self::SessionId => Box::new(numbering::SessionId::new(constants.interval_ns(1)?)),
            Self::StateId => Box::new(numbering::StateId::default()),
            Self::EventId => Box::new(numbering::EventId::default()),
            Self::CountId => Box::new(numbering::CountId::new(constants.count(
                0,
                "n",
                1,
                usize::MAX >> 1,
            )?)),
        })
    }
}

impl WindowUDFImpl for StepWindowFunction {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.kind.coerce(types)
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let types: Vec<&DataType> = args.input_fields().iter().map(|f| f.data_type()).collect();
        let answer = self.kind.answer_type(&types);
        Ok(Arc::new(Field::new(args.name(), answer, true)))
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        let function = self.kind.name();
        if args.ignore_nulls() {
            return not_impl_err!("{function} does not take IGNORE NULLS: it always ignores nulls");
        }
        let types: Vec<&DataType> = args.input_fields().iter().map(|f| f.data_type()).collect();
        let constants = ConstantArguments {
            function,
            expressions: args.input_exprs(),
        };
        Ok(Box::new(StepEvaluator(
            self.kind.start(&types, &constants)?,
        )))
    }

    fn limit_effect(&self, _: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        // Later rows do not change the results of earlier ones.
        LimitEffect::None
    }
}

/// Adapts a step to DataFusion.
#[derive(Debug)]
struct StepEvaluator(Box<dyn WindowStep>);

impl PartitionEvaluator for StepEvaluator {
    fn is_causal(&self) -> bool {
        true
    }

    fn supports_bounded_execution(&self) -> bool {
        true
    }

    fn evaluate(&mut self, columns: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        self.0.step(columns, range.start)
    }
}

/// The condition in a row; `None` if it is null.
fn condition_at(column: &ArrayRef, row: usize) -> Result<Option<bool>> {
    let conditions = downcast_value!(column, BooleanArray);
    Ok(conditions.is_valid(row).then(|| conditions.value(row)))
}

/// The time in a row; `None` if it is null.
fn time_at(column: &ArrayRef, row: usize) -> Result<Option<i64>> {
    let times = downcast_value!(column, TimestampNanosecondArray);
    Ok(times.is_valid(row).then(|| times.value(row)))
}
