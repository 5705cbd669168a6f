//! Aggregates over windows that can be interrupted and whose values are accounted for.
//!
//! A window function evaluates an aggregate for each row of a batch, or of a partition, in one
//! call. Nothing outside can stop that call, and the values of `array_agg` over all preceding rows
//! together are as large as the square of its input. Here each evaluation checks whether the
//! statement was cancelled, and values of no fixed width are reserved from the memory of queries
//! until the partition is done.

use crate::interrupt;
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::logical_expr::expr::{AggregateFunctionParams, WindowFunctionParams};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, ReversedUDAF, SetMonotonicity,
    Signature, WindowFunctionDefinition,
};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// See the module documentation.
pub(super) struct WindowAggregate {
    inner: Arc<AggregateUDF>,
    pool: Arc<dyn MemoryPool>,
}

impl WindowAggregate {
    /// The wrapped function, if `function` is an aggregate that is not wrapped yet.
    pub(super) fn around(
        function: &WindowFunctionDefinition,
        pool: &Arc<dyn MemoryPool>,
    ) -> Option<WindowFunctionDefinition> {
        let WindowFunctionDefinition::AggregateUDF(inner) = function else {
            return None;
        };
        if inner.inner().downcast_ref::<Self>().is_some() {
            return None;
        }
        let own = Self {
            inner: Arc::clone(inner),
            pool: Arc::clone(pool),
        };
        Some(WindowFunctionDefinition::AggregateUDF(Arc::new(
            AggregateUDF::from(own),
        )))
    }

    fn counted(&self, inner: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
        let values = MemoryConsumer::new(self.inner.name()).register(&self.pool);
        Box::new(CountedValues { inner, values })
    }
}

/// The accumulator of a window.
#[derive(Debug)]
struct CountedValues {
    inner: Box<dyn Accumulator>,
    /// The memory of the values evaluated so far.
    values: MemoryReservation,
}

/// The bytes of a value whose type has no fixed width; 0 for other types.
fn bytes_of(value: &ScalarValue) -> usize {
    match value {
        ScalarValue::Utf8(_)
        | ScalarValue::LargeUtf8(_)
        | ScalarValue::Utf8View(_)
        | ScalarValue::Binary(_)
        | ScalarValue::LargeBinary(_)
        | ScalarValue::BinaryView(_)
        | ScalarValue::List(_)
        | ScalarValue::LargeList(_)
        | ScalarValue::FixedSizeList(_)
        | ScalarValue::Struct(_)
        | ScalarValue::Map(_) => value.size(),
        _ => 0,
    }
}

impl Accumulator for CountedValues {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        interrupt::check()?;
        let value = self.inner.evaluate()?;
        match bytes_of(&value) {
            0 => {}
            bytes => self.values.try_grow(bytes)?,
        }
        Ok(value)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

impl AggregateUDFImpl for WindowAggregate {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.schema_name(params)
    }

    fn human_display(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.human_display(params)
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_schema_name(params)
    }

    fn display_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.display_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_display_name(params)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        self.inner.return_field(fields)
    }

    fn is_nullable(&self) -> bool {
        self.inner.is_nullable()
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(self.counted(self.inner.accumulator(args)?))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(self.counted(self.inner.create_sliding_accumulator(args)?))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.inner.inner().state_fields(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.inner.reverse_udf() {
            ReversedUDAF::Identical => ReversedUDAF::Identical,
            ReversedUDAF::NotSupported => ReversedUDAF::NotSupported,
            ReversedUDAF::Reversed(reversed) => {
                ReversedUDAF::Reversed(Arc::new(AggregateUDF::from(Self {
                    inner: reversed,
                    pool: Arc::clone(&self.pool),
                })))
            }
        }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.inner.default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner.supports_within_group_clause()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}

impl fmt::Debug for WindowAggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PartialEq for WindowAggregate {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for WindowAggregate {}

impl Hash for WindowAggregate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}
