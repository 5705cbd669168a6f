//! `avg`. Means of whole numbers are exact: the double nearest to the quotient of a sum of 128 bits
//! and a count. Intervals are added up part by part. For all other types the function is DataFusion's, except over windows.
//!
//! DataFusion casts whole numbers to doubles first, so that values beyond 2^53 lose their last
//! digits before they are added up. The state between two stages is a count and a number of 38
//! digits.

use super::interval_sums::{self, DistinctIntervalSum, IntervalSum, is_summed};
use super::mean::exact_mean;
use super::sliding::SlidingSum;
use super::sum::{DistinctSumAccumulator, WholeNumber, numbers, passes, total};
use arrow::array::{Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, UInt64Array};
use arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::types::{
    LogicalTypeRef, NativeType, logical_int8, logical_int16, logical_int32, logical_int64,
    logical_uint8, logical_uint16, logical_uint32, logical_uint64,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::functions_aggregate::average::Avg;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Coercion, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
    TypeSignature, TypeSignatureClass,
};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

/// The `avg` function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ExactAvg {
    other: Avg,
    signature: Signature,
}

impl Default for ExactAvg {
    fn default() -> Self {
        let other = Avg::new();
        // DataFusion's last form casts whole numbers to doubles, so ours precede it.
        let mut forms = match &other.signature().type_signature {
            TypeSignature::OneOf(forms) => forms.clone(),
            form => vec![form.clone()],
        };
        let last = forms.pop();
        let native = TypeSignatureClass::Native;
        let narrower: [LogicalTypeRef; 6] = [
            logical_int8(),
            logical_int16(),
            logical_int32(),
            logical_uint8(),
            logical_uint16(),
            logical_uint32(),
        ];
        forms.extend([
            TypeSignature::Coercible(vec![Coercion::new_implicit(
                native(logical_int64()),
                narrower.map(native).to_vec(),
                NativeType::Int64,
            )]),
            TypeSignature::Coercible(vec![Coercion::new_exact(native(logical_uint64()))]),
        ]);
        forms.extend(last);
        forms.push(interval_sums::signature());
        let signature = Signature::one_of(forms, other.signature().volatility);
        Self { other, signature }
    }
}

/// The type of a call's argument, if it is one of whole numbers.
fn whole_type(args: &AccumulatorArgs<'_>) -> Option<DataType> {
    let kind = args.expr_fields.first()?.data_type();
    matches!(kind, DataType::Int64 | DataType::UInt64).then(|| kind.clone())
}

impl AggregateUDFImpl for ExactAvg {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn aliases(&self) -> &[String] {
        self.other.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [kind] if is_summed(kind) => Ok(kind.clone()),
            _ => self.other.return_type(types),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if is_summed(args.return_type()) {
            return Ok(if args.is_distinct {
                Box::new(DistinctIntervalSum::new(true))
            } else {
                Box::new(IntervalSum::new(true))
            });
        }
        Ok(match (whole_type(&args), args.is_distinct) {
            (None, _) => return self.other.accumulator(args),
            (Some(DataType::UInt64), true) => {
                Box::new(DistinctSumAccumulator::<UInt64Type>::mean())
            }
            (Some(_), true) => Box::new(DistinctSumAccumulator::<Int64Type>::mean()),
            (Some(DataType::UInt64), false) => Box::new(MeanAccumulator::<UInt64Type>::new()),
            (Some(_), false) => Box::new(MeanAccumulator::<Int64Type>::new()),
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if whole_type(&args).is_some() || is_summed(args.return_type()) {
            return self.accumulator(args);
        }
        let of_floats = args
            .expr_fields
            .first()
            .is_some_and(|field| *field.data_type() == DataType::Float64);
        if of_floats && !args.is_distinct {
            return Ok(Box::new(SlidingSum::mean()));
        }
        self.other.create_sliding_accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if is_summed(args.return_type()) {
            return Ok(interval_sums::state_fields(&args));
        }
        let kind = args.input_fields.first().map(|field| field.data_type());
        let Some(kind @ (DataType::Int64 | DataType::UInt64)) = kind else {
            return self.other.state_fields(args);
        };
        if args.is_distinct {
            let name = format_state_name(args.name, "avg distinct");
            let item = Field::new_list_field(kind.clone(), true);
            return Ok(vec![Arc::new(Field::new_list(name, item, false))]);
        }
        let field =
            |name, kind| Arc::new(Field::new(format_state_name(args.name, name), kind, true));
        Ok(vec![
            field("count", DataType::UInt64),
            field("sum", DataType::Decimal128(38, 0)),
        ])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !is_summed(args.return_type()) && self.other.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match whole_type(&args) {
            None => self.other.create_groups_accumulator(args),
            Some(DataType::UInt64) => Ok(Box::new(MeanGroupsAccumulator::<UInt64Type>::new())),
            Some(_) => Ok(Box::new(MeanGroupsAccumulator::<Int64Type>::new())),
        }
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.other.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.other.reverse_expr()
    }
}

/// The sum and the number of a group's values.
#[derive(Clone, Copy, Debug, Default)]
struct MeanState {
    count: u64,
    sum: i128,
}

impl MeanState {
    fn add(&mut self, count: u64, sum: i128) {
        self.count += count;
        self.sum += sum;
    }
}

/// The columns of states.
fn state_columns(columns: &[ArrayRef]) -> Result<(&UInt64Array, &Decimal128Array)> {
    let [counts, sums] = columns else {
        return internal_err!("the state of a mean has two columns");
    };
    Ok((
        numbers::<UInt64Type>(std::slice::from_ref(counts))?,
        numbers::<Decimal128Type>(std::slice::from_ref(sums))?,
    ))
}

/// The accumulator of one group, or of a window.
#[derive(Debug)]
struct MeanAccumulator<T> {
    state: MeanState,
    kind: PhantomData<T>,
}

impl<T: WholeNumber> MeanAccumulator<T> {
    fn new() -> Self {
        Self {
            state: MeanState::default(),
            kind: PhantomData,
        }
    }
}

impl<T: WholeNumber> Accumulator for MeanAccumulator<T> {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let (sum, count) = total(numbers::<T>(columns)?);
        self.state.add(count as u64, sum);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let (sum, count) = total(numbers::<T>(columns)?);
        self.state.sum -= sum;
        self.state.count = self.state.count.saturating_sub(count as u64);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (counts, sums) = state_columns(states)?;
        for (count, sum) in counts.iter().zip(sums) {
            self.state.add(count.unwrap_or(0), sum.unwrap_or(0));
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![
            ScalarValue::UInt64(Some(self.state.count)),
            ScalarValue::Decimal128(Some(self.state.sum), 38, 0),
        ])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mean = exact_mean(self.state.sum, self.state.count);
        Ok(ScalarValue::Float64(mean))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The accumulator of many groups.
#[derive(Debug)]
struct MeanGroupsAccumulator<T> {
    states: Vec<MeanState>,
    kind: PhantomData<T>,
}

impl<T: WholeNumber> MeanGroupsAccumulator<T> {
    fn new() -> Self {
        Self {
            states: Vec::new(),
            kind: PhantomData,
        }
    }
}

fn written(states: impl Iterator<Item = MeanState>) -> Result<Vec<ArrayRef>> {
    let (counts, sums): (Vec<u64>, Vec<i128>) =
        states.map(|state| (state.count, state.sum)).unzip();
    let sums = Decimal128Array::from(sums).with_precision_and_scale(38, 0)?;
    Ok(vec![Arc::new(UInt64Array::from(counts)), Arc::new(sums)])
}

impl<T: WholeNumber> GroupsAccumulator for MeanGroupsAccumulator<T> {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.states.resize(total, MeanState::default());
        let column = numbers::<T>(columns)?;
        if filter.is_none() && column.null_count() == 0 {
            for (value, group) in column.values().iter().zip(groups) {
                self.states[*group].add(1, T::widen(*value));
            }
            return Ok(());
        }
        for (row, group) in groups.iter().enumerate() {
            if column.is_valid(row) && passes(filter, row) {
                self.states[*group].add(1, T::widen(column.value(row)));
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, columns: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.states.resize(total, MeanState::default());
        let (counts, sums) = state_columns(columns)?;
        for ((count, sum), group) in counts.iter().zip(sums).zip(groups) {
            self.states[*group].add(count.unwrap_or(0), sum.unwrap_or(0));
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let states = emit_to.take_needed(&mut self.states);
        let means = states
            .iter()
            .map(|state| exact_mean(state.sum, state.count));
        Ok(Arc::new(means.collect::<Float64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        written(emit_to.take_needed(&mut self.states).into_iter())
    }

    fn convert_to_state(
        &self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let column = numbers::<T>(columns)?;
        written((0..column.len()).map(|row| {
            if column.is_valid(row) && passes(filter, row) {
                MeanState {
                    count: 1,
                    sum: T::widen(column.value(row)),
                }
            } else {
                MeanState::default()
            }
        }))
    }

    fn size(&self) -> usize {
        self.states.capacity() * size_of::<MeanState>()
    }
}
