//! `sum` and `avg` of intervals: months, days and times are added up one by one, as in PostgreSQL.

use crate::interval_arithmetic::{divided, length_ns};
use crate::refusal::refused;
use crate::value_casts::as_intervals;
use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Field, FieldRef, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::StateFieldsArgs;
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, Coercion, TypeSignature, TypeSignatureClass};
use std::collections::HashMap;
use std::sync::Arc;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Whether a type is one that [`IntervalSum`] adds up.
pub(crate) fn is_summed(kind: &DataType) -> bool {
    *kind == INTERVAL
}

/// The argument of `sum` and `avg` of intervals; a text is none.
pub(crate) fn signature() -> TypeSignature {
    let interval = Coercion::new_exact(TypeSignatureClass::Interval);
    TypeSignature::Coercible(vec![interval])
}

/// The state between two stages: the sum and the number of values; with DISTINCT, the values.
pub(crate) fn state_fields(args: &StateFieldsArgs) -> Vec<FieldRef> {
    let name = |part| format_state_name(args.name, part);
    if args.is_distinct {
        let item = Field::new_list_field(INTERVAL, true);
        return vec![Arc::new(Field::new_list(name("distinct"), item, true))];
    }
    vec![
        Arc::new(Field::new(name("sum"), INTERVAL, true)),
        Arc::new(Field::new(name("count"), DataType::Int64, true)),
    ]
}

/// The parts of a sum, wide enough for every number of rows.
#[derive(Clone, Copy, Debug, Default)]
struct WideInterval {
    months: i128,
    days: i128,
    nanoseconds: i128,
}

impl WideInterval {
    fn add(&mut self, value: IntervalMonthDayNano, times: i128) {
        self.months += i128::from(value.months) * times;
        self.days += i128::from(value.days) * times;
        self.nanoseconds += i128::from(value.nanoseconds) * times;
    }

    fn narrow(self) -> Result<IntervalMonthDayNano> {
        let parts = (
            i32::try_from(self.months),
            i32::try_from(self.days),
            i64::try_from(self.nanoseconds),
        );
        match parts {
            (Ok(months), Ok(days), Ok(nanoseconds)) => {
                Ok(IntervalMonthDayNano::new(months, days, nanoseconds))
            }
            _ => Err(refused("22008", "interval out of range")),
        }
    }
}

/// The sum or the mean of a group, or of a window whose frame moves.
#[derive(Debug, Default)]
pub(crate) struct IntervalSum {
    is_mean: bool,
    sum: WideInterval,
    count: i64,
}

impl IntervalSum {
    /// A sum, or else a mean.
    pub(crate) fn new(is_mean: bool) -> Self {
        Self {
            is_mean,
            ..Self::default()
        }
    }

    fn change(&mut self, columns: &[ArrayRef], times: i64) -> Result<()> {
        let Some(values) = columns.first() else {
            return Ok(());
        };
        let values = as_intervals(values)?;
        for value in values
            .as_primitive::<IntervalMonthDayNanoType>()
            .iter()
            .flatten()
        {
            self.sum.add(value, i128::from(times));
            self.count += times;
        }
        Ok(())
    }
}

impl Accumulator for IntervalSum {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.change(columns, 1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.change(columns, -1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [sums, counts] = states else {
            return internal_err!("the state of a sum of intervals has two columns");
        };
        let sums = sums.as_primitive::<IntervalMonthDayNanoType>().iter();
        let counts = counts.as_primitive::<Int64Type>().iter();
        for (sum, count) in sums.zip(counts) {
            if let (Some(sum), Some(count)) = (sum, count) {
                self.sum.add(sum, 1);
                self.count += count;
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let sum = (self.count > 0).then(|| self.sum.narrow()).transpose()?;
        Ok(vec![
            ScalarValue::IntervalMonthDayNano(sum),
            ScalarValue::Int64(Some(self.count)),
        ])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.count == 0 {
            return Ok(ScalarValue::IntervalMonthDayNano(None));
        }
        let sum = self.sum.narrow()?;
        let answer = if self.is_mean {
            divided(sum, self.count as f64)?
        } else {
            sum
        };
        Ok(ScalarValue::IntervalMonthDayNano(Some(answer)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum or the mean of intervals of different lengths; one of each length counts.
#[derive(Debug, Default)]
pub(crate) struct DistinctIntervalSum {
    is_mean: bool,
    /// By length, the interval and how often it is in the window.
    values: HashMap<i128, (IntervalMonthDayNano, u64)>,
}

impl DistinctIntervalSum {
    /// A sum, or else a mean.
    pub(crate) fn new(is_mean: bool) -> Self {
        Self {
            is_mean,
            ..Self::default()
        }
    }

    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        let values = as_intervals(values)?;
        for value in values
            .as_primitive::<IntervalMonthDayNanoType>()
            .iter()
            .flatten()
        {
            self.values.entry(length_ns(value)).or_insert((value, 0)).1 += 1;
        }
        Ok(())
    }
}

impl Accumulator for DistinctIntervalSum {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        columns.first().map_or(Ok(()), |values| self.add(values))
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let Some(values) = columns.first() else {
            return Ok(());
        };
        let values = as_intervals(values)?;
        for value in values
            .as_primitive::<IntervalMonthDayNanoType>()
            .iter()
            .flatten()
        {
            let length = length_ns(value);
            if let Some((_, count)) = self.values.get_mut(&length) {
                *count -= 1;
                if *count == 0 {
                    self.values.remove(&length);
                }
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first().and_then(|state| state.as_list_opt::<i32>()) else {
            return internal_err!("the state of a sum of distinct intervals is a list");
        };
        for values in lists.iter().flatten() {
            self.add(&values)?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = self.values.values();
        let values: Vec<ScalarValue> = values
            .map(|(value, _)| ScalarValue::IntervalMonthDayNano(Some(*value)))
            .collect();
        let list = ScalarValue::new_list_nullable(&values, &INTERVAL);
        Ok(vec![ScalarValue::List(list)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut sum = IntervalSum::new(self.is_mean);
        for (value, _) in self.values.values() {
            sum.sum.add(*value, 1);
            sum.count += 1;
        }
        sum.evaluate()
    }

    fn size(&self) -> usize {
        let entry = size_of::<(i128, (IntervalMonthDayNano, u64))>() + 1;
        size_of_val(self) + self.values.capacity() * entry
    }
}
