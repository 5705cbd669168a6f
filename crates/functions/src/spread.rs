//! `spread(value)`, the greatest value minus the smallest, and `elapsed(time [, unit])`, the time
//! from the first row to the last. Nulls do not count. The state of a group consists of two
//! numbers.

use super::aggregate::{AccumulatorFactory, AggregateDescription, AggregateState, column};
use super::arguments::{self, ConstantArguments};
use super::numbers::{NumberColumn, NumberKind};
use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, downcast_value, plan_err};

/// `spread` or `elapsed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SpreadFunction {
    /// The spread of values.
    Spread,
    /// The spread of times.
    Elapsed,
}

impl AggregateDescription for SpreadFunction {
    fn name(&self) -> &'static str {
        match self {
            Self::Spread => "spread",
            Self::Elapsed => "elapsed",
        }
    }

    fn coerce(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match (self, types) {
            (Self::Spread, [value]) => Ok(vec![arguments::number("spread", value)?]),
            (Self::Spread, _) => plan_err!("spread takes a value: spread(value)"),
            (Self::Elapsed, [time]) => Ok(vec![arguments::time("elapsed", time)?]),
            (Self::Elapsed, [time, unit]) => Ok(vec![
                arguments::time("elapsed", time)?,
                arguments::interval("elapsed", unit)?,
            ]),
            (Self::Elapsed, _) => plan_err!("elapsed takes a time: elapsed(time [, unit])"),
        }
    }

    fn answer_type(&self, types: &[DataType]) -> DataType {
        match self {
            Self::Spread => types[0].clone(),
            Self::Elapsed => DataType::Float64,
        }
    }

    fn state_types(&self) -> Vec<(&'static str, DataType)> {
        vec![("least", DataType::UInt64), ("greatest", DataType::UInt64)]
    }

    fn fold(
        &self,
        types: &[DataType],
        constants: &ConstantArguments<'_>,
        _: bool,
    ) -> Result<Box<dyn AccumulatorFactory>> {
        Ok(Box::new(SpreadGroups {
            function: self.name(),
            kind: NumberKind::from_type(&types[0])?,
            answer: self.answer_type(types),
            unit_ns: match self {
                Self::Spread => None,
                Self::Elapsed => Some(constants.interval_ns(1)? as f64),
            },
        }))
    }
}

#[derive(Debug)]
struct SpreadGroups {
    function: &'static str,
    kind: NumberKind,
    answer: DataType,
    /// The unit of the result; `None` for values, which have no unit.
    unit_ns: Option<f64>,
}

/// The bits of the smallest and the greatest number of a group.
type SpreadBounds = Option<(u64, u64)>;

impl SpreadGroups {
    fn widen(&self, state: &mut SpreadBounds, number: u64) {
        let (least, greatest) = state.get_or_insert((number, number));
        if self.kind.compare(number, *least).is_lt() {
            *least = number;
        }
        if self.kind.compare(number, *greatest).is_gt() {
            *greatest = number;
        }
    }
}

impl AggregateState for SpreadGroups {
    type State = SpreadBounds;
    type Rows<'a> = NumberColumn<'a>;

    fn rows<'a>(&self, columns: &'a [ArrayRef]) -> Result<NumberColumn<'a>> {
        NumberColumn::from_array(&columns[0])
    }

    fn add(&self, state: &mut SpreadBounds, rows: &NumberColumn<'_>, row: usize) {
        if let Some(number) = rows.get(row) {
            self.widen(state, number);
        }
    }

    fn states(&self, states: &[SpreadBounds]) -> Result<Vec<ArrayRef>> {
        let least: UInt64Array = states
            .iter()
            .map(|state| state.map(|state| state.0))
            .collect();
        let greatest: UInt64Array = states
            .iter()
            .map(|state| state.map(|state| state.1))
            .collect();
        Ok(vec![
            std::sync::Arc::new(least),
            std::sync::Arc::new(greatest),
        ])
    }

    fn merge(&self, state: &mut SpreadBounds, columns: &[ArrayRef], row: usize) -> Result<()> {
        for column in columns {
            let bounds = downcast_value!(column, UInt64Array);
            if bounds.is_valid(row) {
                self.widen(state, bounds.value(row));
            }
        }
        Ok(())
    }

    fn answers(&self, states: &mut [SpreadBounds]) -> Result<ArrayRef> {
        let answers = states.iter().map(|state| {
            let Some((least, greatest)) = state else {
                return ScalarValue::try_from(&self.answer);
            };
            let difference = self.kind.minus(*greatest, *least);
            match self.unit_ns {
                None => difference.scalar(self.function, &self.answer),
                Some(unit_ns) => Ok(ScalarValue::Float64(Some(difference.float() / unit_ns))),
            }
        });
        column(answers, &self.answer)
    }

    fn heap_bytes(&self, _: &SpreadBounds) -> usize {
        0
    }
}
