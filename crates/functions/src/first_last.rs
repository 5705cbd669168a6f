//! `first(value, time)` and `last(value, time)`: the value at the earliest or latest time of a
//! group. Rows whose value or time is null do not count. If two rows have the same time, `first`
//! takes the one that arrives first and `last` the one that arrives last.

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray,
    TimestampNanosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit, TimestampNanosecondType};
use datafusion::common::{Result, ScalarValue, downcast_value, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use std::fmt::Debug;
use std::sync::Arc;

/// One of the two functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct FirstLast {
    signature: Signature,
    side: FirstLastSide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FirstLastSide {
    First,
    Last,
}

impl FirstLastSide {
    /// Whether a row at `time` replaces one at `held`.
    fn replaces(self, time: i64, held: i64) -> bool {
        match self {
            Self::First => time < held,
            Self::Last => time >= held,
        }
    }
}

impl FirstLast {
    /// `first(value, time)`
    pub(crate) fn first() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
            side: FirstLastSide::First,
        }
    }

    /// `last(value, time)`
    pub(crate) fn last() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
            side: FirstLastSide::Last,
        }
    }
}

const TIME: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);

impl AggregateUDFImpl for FirstLast {
    fn name(&self) -> &'static str {
        match self.side {
            FirstLastSide::First => "first",
            FirstLastSide::Last => "last",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [value, time] = types else {
            return plan_err!(
                "{0} takes a value and its time: {0}(value, time)",
                self.name()
            );
        };
        let value = match value {
            DataType::Dictionary(_, inner) => inner.as_ref().clone(),
            other => other.clone(),
        };
        match time {
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 | DataType::Null => {
                Ok(vec![value, TIME])
            }
            other => plan_err!(
                "{}: the time has the type {other}, not a timestamp",
                self.name()
            ),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let value = args.return_field.data_type().clone();
        Ok(vec![
            Arc::new(Field::new(
                format_state_name(args.name, "value"),
                value,
                true,
            )),
            Arc::new(Field::new(format_state_name(args.name, "time"), TIME, true)),
        ])
    }

    fn order_sensitivity(&self) -> datafusion::logical_expr::utils::AggregateOrderSensitivity {
        datafusion::logical_expr::utils::AggregateOrderSensitivity::Insensitive
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let value = ScalarValue::try_from(args.return_field.data_type())?;
        Ok(Box::new(FirstLastAccumulator {
            side: self.side,
            time: None,
            value,
        }))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let (side, kind) = (self.side, args.return_field.data_type().clone());
        macro_rules! primitive {
            ($array_type:ty) => {
                Box::new(FirstLastGroups::<NativeValues<$array_type>>::new(
                    side, kind,
                )) as Box<dyn GroupsAccumulator>
            };
        }
        use arrow::datatypes as types;
        Ok(match kind {
            DataType::Int8 => primitive!(types::Int8Type),
            DataType::Int16 => primitive!(types::Int16Type),
            DataType::Int32 => primitive!(types::Int32Type),
            DataType::Int64 => primitive!(types::Int64Type),
            DataType::UInt8 => primitive!(types::UInt8Type),
            DataType::UInt16 => primitive!(types::UInt16Type),
            DataType::UInt32 => primitive!(types::UInt32Type),
            DataType::UInt64 => primitive!(types::UInt64Type),
            DataType::Float32 => primitive!(types::Float32Type),
            DataType::Float64 => primitive!(types::Float64Type),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => primitive!(TimestampNanosecondType),
            _ => Box::new(FirstLastGroups::<ScalarValues>::new(side, kind)),
        })
    }
}

/// The first or last value of one group.
#[derive(Debug)]
struct FirstLastAccumulator {
    side: FirstLastSide,
    time: Option<i64>,
    value: ScalarValue,
}

impl Accumulator for FirstLastAccumulator {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let (values, times) = (&columns[0], times(&columns[1])?);
        let mut found = None;
        for row in 0..times.len() {
            if times.is_null(row) || values.is_null(row) {
                continue;
            }
            let time = times.value(row);
            if self.time.is_none_or(|held| self.side.replaces(time, held)) {
                self.time = Some(time);
                found = Some(row);
            }
        }
        if let Some(row) = found {
            self.value = ScalarValue::try_from_array(values, row)?.compacted();
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![
            self.value.clone(),
            ScalarValue::TimestampNanosecond(self.time, None),
        ])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size() - size_of::<ScalarValue>()
    }
}

/// The values of many groups, one per group.
trait FirstLastStore: Debug + Send + 'static {
    fn new(kind: &DataType) -> Result<Self>
    where
        Self: Sized;
    fn resize(&mut self, groups: usize);
    /// Copies `rows` (group, row of `values`).
    fn put(&mut self, values: &ArrayRef, rows: &[(usize, usize)]) -> Result<()>;
    fn emit(&mut self, emit_to: EmitTo, valid: &[bool]) -> Result<ArrayRef>;
    fn size(&self) -> usize;
}

/// Numbers and times.
#[derive(Debug)]
struct NativeValues<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    kind: DataType,
}

impl<T: ArrowPrimitiveType + Debug> FirstLastStore for NativeValues<T> {
    fn new(kind: &DataType) -> Result<Self> {
        Ok(Self {
            values: Vec::new(),
            kind: kind.clone(),
        })
    }

    fn resize(&mut self, groups: usize) {
        self.values.resize(groups, T::Native::default());
    }

    fn put(&mut self, values: &ArrayRef, rows: &[(usize, usize)]) -> Result<()> {
        let values = values.as_primitive::<T>();
        for (group, row) in rows {
            self.values[*group] = values.value(*row);
        }
        Ok(())
    }

    fn emit(&mut self, emit_to: EmitTo, valid: &[bool]) -> Result<ArrayRef> {
        let values = emit_to.take_needed(&mut self.values);
        let nulls = arrow::buffer::NullBuffer::from(valid);
        let array = PrimitiveArray::<T>::new(values.into(), Some(nulls));
        Ok(Arc::new(array.with_data_type(self.kind.clone())))
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<T::Native>()
    }
}

/// Values of all other types.
#[derive(Debug)]
struct ScalarValues {
    values: Vec<ScalarValue>,
    null: ScalarValue,
    bytes: usize,
}

impl FirstLastStore for ScalarValues {
    fn new(kind: &DataType) -> Result<Self> {
        Ok(Self {
            values: Vec::new(),
            null: ScalarValue::try_from(kind)?,
            bytes: 0,
        })
    }

    fn resize(&mut self, groups: usize) {
        self.bytes += groups.saturating_sub(self.values.len()) * self.null.size();
        self.values.resize(groups, self.null.clone());
    }

    fn put(&mut self, values: &ArrayRef, rows: &[(usize, usize)]) -> Result<()> {
        for (group, row) in rows {
            let value = ScalarValue::try_from_array(values, *row)?.compacted();
            self.bytes = (self.bytes + value.size()).saturating_sub(self.values[*group].size());
            self.values[*group] = value;
        }
        Ok(())
    }

    fn emit(&mut self, emit_to: EmitTo, _: &[bool]) -> Result<ArrayRef> {
        let values = emit_to.take_needed(&mut self.values);
        let taken: usize = values.iter().map(ScalarValue::size).sum();
        self.bytes = self.bytes.saturating_sub(taken);
        if values.is_empty() {
            return Ok(arrow::array::new_empty_array(&self.null.data_type()));
        }
        ScalarValue::iter_to_array(values)
    }

    fn size(&self) -> usize {
        self.bytes
    }
}

/// The first or last values of many groups.
#[derive(Debug)]
struct FirstLastGroups<S> {
    side: FirstLastSide,
    kind: DataType,
    times: Vec<i64>,
    valid: Vec<bool>,
    store: Option<S>,
    /// The row of the current batch that each group takes, plus one; 0 for none.
    taken: Vec<u32>,
    rows: Vec<(usize, usize)>,
}

impl<S: FirstLastStore> FirstLastGroups<S> {
    fn new(side: FirstLastSide, kind: DataType) -> Self {
        Self {
            side,
            kind,
            times: Vec::new(),
            valid: Vec::new(),
            store: None,
            taken: Vec::new(),
            rows: Vec::new(),
        }
    }

    fn store(&mut self) -> Result<&mut S> {
        if self.store.is_none() {
            self.store = Some(S::new(&self.kind)?);
        }
        Ok(self.store.as_mut().expect("it was set above"))
    }
}

fn times(column: &ArrayRef) -> Result<&TimestampNanosecondArray> {
    Ok(downcast_value!(column, TimestampNanosecondArray))
}

impl<S: FirstLastStore> GroupsAccumulator for FirstLastGroups<S> {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let (values, times) = (&columns[0], times(&columns[1])?);
        self.times.resize(total, 0);
        self.valid.resize(total, false);
        self.taken.resize(total, 0);
        self.store()?.resize(total);
        let every = values.null_count() == 0 && times.null_count() == 0 && filter.is_none();
        self.rows.clear();
        for (row, (group, time)) in groups.iter().zip(times.values()).enumerate() {
            let counts = every
                || (times.is_valid(row)
                    && values.is_valid(row)
                    && filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row)));
            if counts && (!self.valid[*group] || self.side.replaces(*time, self.times[*group])) {
                self.valid[*group] = true;
                self.times[*group] = *time;
                if self.taken[*group] == 0 {
                    self.rows.push((*group, 0));
                }
                self.taken[*group] = row as u32 + 1;
            }
        }
        for (group, row) in &mut self.rows {
            *row = self.taken[*group] as usize - 1;
            self.taken[*group] = 0;
        }
        let rows = std::mem::take(&mut self.rows);
        let put = self.store()?.put(values, &rows);
        self.rows = rows;
        put
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.update_batch(states, groups, None, total)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        emit_to.take_needed(&mut self.times);
        emit_to.take_needed(&mut self.taken);
        let valid = emit_to.take_needed(&mut self.valid);
        self.store()?.emit(emit_to, &valid)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let times = emit_to.take_needed(&mut self.times);
        emit_to.take_needed(&mut self.taken);
        let valid = emit_to.take_needed(&mut self.valid);
        let nulls = arrow::buffer::NullBuffer::from(valid.as_slice());
        let times = TimestampNanosecondArray::new(times.into(), Some(nulls));
        Ok(vec![self.store()?.emit(emit_to, &valid)?, Arc::new(times)])
    }

    fn convert_to_state(
        &self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let times = match filter {
            // A row that the filter excludes gets no time, and so does not count.
            Some(filter) => {
                let keep = arrow::compute::not(&arrow::compute::prep_null_mask_filter(filter))?;
                arrow::compute::nullif(&columns[1], &keep)?
            }
            None => ArrayRef::clone(&columns[1]),
        };
        Ok(vec![cast(&columns[0], &self.kind)?, times])
    }

    fn size(&self) -> usize {
        let store = self.store.as_ref().map_or(0, FirstLastStore::size);
        store + self.times.capacity() * 8 + self.valid.capacity() + self.taken.capacity() * 4
    }
}
