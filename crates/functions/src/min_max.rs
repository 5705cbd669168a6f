//! `min` and `max`. Floats have PostgreSQL's order: NaN is greater than every number, and the zeros
//! are equal (the result is 0.0). Intervals are ordered by length. For all other types the functions are
//! DataFusion's.
//!
//! Floats are converted to whole numbers of the same order, and DataFusion's accumulators find
//! their minimum or maximum. So the result does not depend on the order of rows.

use crate::floats::canonical;
use crate::interval_extremes::SlidingExtreme;
use crate::interval_order::{ExtremeInterval, has_extremes};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, Int32Array, Int64Array,
};
use arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type, Int32Type, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature, StatisticsArgs,
};
use std::sync::Arc;

/// `min` or `max`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct MinMax<F> {
    other: F,
}

/// `min`
pub(crate) fn min() -> MinMax<Min> {
    MinMax { other: Min::new() }
}

/// `max`
pub(crate) fn max() -> MinMax<Max> {
    MinMax { other: Max::new() }
}

/// The type of the whole numbers that represent floats.
fn key_type(kind: &DataType) -> Option<DataType> {
    match kind {
        DataType::Float32 => Some(DataType::Int32),
        DataType::Float64 => Some(DataType::Int64),
        _ => None,
    }
}

/// Calls `make` to create an accumulator of whole numbers instead of floats; `None` for other
/// types.
fn by_keys<A>(
    args: &AccumulatorArgs<'_>,
    make: impl Fn(AccumulatorArgs<'_>) -> Result<A>,
) -> Option<Result<A>> {
    let kind = key_type(args.return_type())?;
    let field: FieldRef = Arc::new(Field::new(args.name, kind, true));
    let fields = [Arc::clone(&field)];
    Some(make(AccumulatorArgs {
        return_field: field,
        expr_fields: &fields,
        ..args.clone()
    }))
}

impl<F: AggregateUDFImpl + PartialEq + Eq + std::hash::Hash> AggregateUDFImpl for MinMax<F> {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn signature(&self) -> &Signature {
        self.other.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.other.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.other.return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if has_extremes(args.return_type()) {
            return Ok(Box::new(ExtremeInterval::new(self.name() == "min")));
        }
        match by_keys(&args, |args| self.other.accumulator(args)) {
            Some(keys) => Ok(Box::new(MinMaxAccumulator(keys?))),
            None => self.other.accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if has_extremes(args.return_type()) {
            return Ok(Box::new(SlidingExtreme::new(self.name() == "min")));
        }
        match by_keys(&args, |args| self.other.create_sliding_accumulator(args)) {
            Some(keys) => Ok(Box::new(MinMaxAccumulator(keys?))),
            None => self.other.create_sliding_accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !has_extremes(args.return_type()) && self.other.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match by_keys(&args, |args| self.other.create_groups_accumulator(args)) {
            Some(keys) => Ok(Box::new(MinMaxGroupsAccumulator(keys?))),
            None => self.other.create_groups_accumulator(args),
        }
    }

    fn is_descending(&self) -> Option<bool> {
        self.other.is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.other.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.other.reverse_expr()
    }

    fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue> {
        // Statistics may use a different order.
        if key_type(args.return_type).is_some() || has_extremes(args.return_type) {
            return None;
        }
        self.other.value_from_stats(args)
    }

    fn set_monotonicity(&self, kind: &DataType) -> SetMonotonicity {
        self.other.set_monotonicity(kind)
    }
}

/// Converts the bits of a float into a whole number of the same order, and back.
fn turned_f64(bits: i64) -> i64 {
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn turned_f32(bits: i32) -> i32 {
    bits ^ (((bits >> 31) as u32) >> 1) as i32
}

fn key_f64(value: f64) -> i64 {
    turned_f64(canonical(value).to_bits() as i64)
}

fn key_f32(value: f32) -> i32 {
    turned_f32(canonical(value).to_bits() as i32)
}

fn float_f64(key: i64) -> f64 {
    f64::from_bits(turned_f64(key) as u64)
}

fn float_f32(key: i32) -> f32 {
    f32::from_bits(turned_f32(key) as u32)
}

/// Converts columns of floats to keys; other columns, such as states, stay unchanged.
fn keys(columns: &[ArrayRef]) -> Vec<ArrayRef> {
    let key = |column: &ArrayRef| -> ArrayRef {
        match column.data_type() {
            DataType::Float64 => {
                let keys: Int64Array = column.as_primitive::<Float64Type>().unary(key_f64);
                Arc::new(keys)
            }
            DataType::Float32 => {
                let keys: Int32Array = column.as_primitive::<Float32Type>().unary(key_f32);
                Arc::new(keys)
            }
            _ => Arc::clone(column),
        }
    };
    columns.iter().map(key).collect()
}

/// Converts a column of keys back to floats.
fn floats(keys: &ArrayRef) -> ArrayRef {
    match keys.data_type() {
        DataType::Int64 => {
            let floats: Float64Array = keys.as_primitive::<Int64Type>().unary(float_f64);
            Arc::new(floats)
        }
        DataType::Int32 => {
            let floats: Float32Array = keys.as_primitive::<Int32Type>().unary(float_f32);
            Arc::new(floats)
        }
        _ => Arc::clone(keys),
    }
}

fn float(key: ScalarValue) -> ScalarValue {
    match key {
        ScalarValue::Int64(key) => ScalarValue::Float64(key.map(float_f64)),
        ScalarValue::Int32(key) => ScalarValue::Float32(key.map(float_f32)),
        other => other,
    }
}

/// The accumulator of one group, or of a window.
#[derive(Debug)]
struct MinMaxAccumulator(Box<dyn Accumulator>);

impl Accumulator for MinMaxAccumulator {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(&keys(columns))
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.supports_retract_batch()
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.0.retract_batch(&keys(columns))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(&keys(states))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.0.state()?.into_iter().map(float).collect())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(float(self.0.evaluate()?))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.size()
    }
}

/// The accumulator of many groups.
struct MinMaxGroupsAccumulator(Box<dyn GroupsAccumulator>);

impl GroupsAccumulator for MinMaxGroupsAccumulator {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.0.update_batch(&keys(columns), groups, filter, total)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.0.merge_batch(&keys(states), groups, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        Ok(floats(&self.0.evaluate(emit_to)?))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(self.0.state(emit_to)?.iter().map(floats).collect())
    }

    fn convert_to_state(
        &self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let states = self.0.convert_to_state(&keys(columns), filter)?;
        Ok(states.iter().map(floats).collect())
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_order_of_floats() {
        let ascending = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -f64::from_bits(1),
            0.0,
            f64::from_bits(1),
            1.5,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(ascending.map(key_f64).is_sorted());
        assert!(ascending.map(|x| key_f32(x as f32)).is_sorted());
        for value in ascending {
            assert_eq!(float_f64(key_f64(value)).to_bits(), value.to_bits());
        }
        assert_eq!(key_f64(-0.0), key_f64(0.0));
        assert_eq!(key_f64(-f64::NAN), key_f64(f64::NAN));
        assert_eq!(key_f32(-f32::NAN), key_f32(f32::NAN));
    }
}
