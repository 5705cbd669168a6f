//! A framework for aggregate functions with states of our own: the description of a function, and
//! the two accumulators (for one group and for many groups) that DataFusion requires.
//!
//! Invariant: the rows of a group may arrive in any order, and in several parts that are merged. A
//! state keeps enough information to give the same result in every case.

use super::arguments::ConstantArguments;
use arrow::array::{Array, ArrayRef, BooleanArray, ListArray, new_empty_array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, not_impl_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

/// Defines the state of a group, and how the result is computed from it.
pub(crate) trait AggregateState: Debug + Send + Sync + 'static {
    /// The state of one group.
    type State: Default + Debug + Send + Sync;
    /// The arguments of a batch, prepared for access by row.
    type Rows<'a>;

    /// Prepares the arguments of a batch.
    fn rows<'a>(&self, columns: &'a [ArrayRef]) -> Result<Self::Rows<'a>>;
    /// Adds a row.
    fn add(&self, state: &mut Self::State, rows: &Self::Rows<'_>, row: usize);
    /// Whether the oldest rows can be removed again, as sliding window frames require.
    fn retracts(&self) -> bool {
        false
    }
    /// Removes the oldest row, which is the given one.
    fn retract(&self, _: &mut Self::State, _: &Self::Rows<'_>, _: usize) {}
    /// The states as columns, in the order of [`AggregateDescription::state_types`].
    fn states(&self, states: &[Self::State]) -> Result<Vec<ArrayRef>>;
    /// Merges the state in one row of such columns.
    fn merge(&self, state: &mut Self::State, columns: &[ArrayRef], row: usize) -> Result<()>;
    /// The results, one per state. The states remain, since a window frame may continue to grow.
    fn answers(&self, states: &mut [Self::State]) -> Result<ArrayRef>;
    /// The bytes that a state occupies on the heap; called for every row.
    fn heap_bytes(&self, state: &Self::State) -> usize;
}

/// A fold whose concrete type is erased.
pub(crate) trait AccumulatorFactory {
    /// Whether rows can be removed again.
    fn slides(&self) -> bool;
    /// Creates the accumulator of one group.
    fn one(self: Box<Self>) -> Box<dyn Accumulator>;
    /// Creates the accumulator of many groups.
    fn many(self: Box<Self>) -> Box<dyn GroupsAccumulator>;
}

impl<F: AggregateState> AccumulatorFactory for F {
    fn slides(&self) -> bool {
        self.retracts()
    }

    fn one(self: Box<Self>) -> Box<dyn Accumulator> {
        Box::new(StateAccumulator {
            fold: *self,
            states: [F::State::default()],
        })
    }

    fn many(self: Box<Self>) -> Box<dyn GroupsAccumulator> {
        Box::new(StateGroupsAccumulator {
            fold: *self,
            states: Vec::new(),
            heap_bytes: 0,
        })
    }
}

/// The description of an aggregate function.
pub(crate) trait AggregateDescription:
    Debug + PartialEq + Eq + Hash + Send + Sync + 'static
{
    /// Its name.
    fn name(&self) -> &'static str;
    /// Its other names.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }
    /// The types to which its arguments are cast.
    fn coerce(&self, types: &[DataType]) -> Result<Vec<DataType>>;
    /// The type of the result.
    fn answer_type(&self, types: &[DataType]) -> DataType;
    /// The columns of the states.
    fn state_types(&self) -> Vec<(&'static str, DataType)>;
    /// The fold for arguments of these types; `sliding` if rows will be removed again.
    fn fold(
        &self,
        types: &[DataType],
        constants: &ConstantArguments<'_>,
        sliding: bool,
    ) -> Result<Box<dyn AccumulatorFactory>>;
}

/// An aggregate function in the form that DataFusion expects.
#[derive(Debug, PartialEq, Eq, Hash)]
struct StateAggregate<F> {
    function: F,
    aliases: Vec<String>,
    signature: Signature,
}

/// Wraps a function in the form that DataFusion expects.
pub(crate) fn aggregate(function: impl AggregateDescription) -> AggregateUDF {
    let aliases = function.aliases().iter().map(|&alias| alias.to_owned());
    AggregateUDF::from(StateAggregate {
        aliases: aliases.collect(),
        function,
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

impl<F: AggregateDescription> StateAggregate<F> {
    fn fold(
        &self,
        args: &AccumulatorArgs<'_>,
        sliding: bool,
    ) -> Result<Box<dyn AccumulatorFactory>> {
        let function = self.function.name();
        if args.is_distinct {
            return not_impl_err!("{function} does not take DISTINCT");
        }
        let types = args
            .expr_fields
            .iter()
            .map(|field| field.data_type().clone());
        let constants = ConstantArguments {
            function,
            expressions: args.exprs,
        };
        let types: Vec<DataType> = types.collect();
        self.function.fold(&types, &constants, sliding)
    }
}

impl<F: AggregateDescription> AggregateUDFImpl for StateAggregate<F> {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(self.function.answer_type(types))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let types = self.function.state_types().into_iter();
        let fields = types.map(|(name, data_type)| {
            Arc::new(Field::new(
                format_state_name(args.name, name),
                data_type,
                true,
            ))
        });
        Ok(fields.collect())
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(self.fold(&args, false)?.one())
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let fold = self.fold(&args, true)?;
        if !fold.slides() {
            return not_impl_err!(
                "{} does not take a window frame whose start moves",
                self.function.name()
            );
        }
        Ok(fold.one())
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(self.fold(&args, false)?.many())
    }
}

/// The accumulator of one group.
#[derive(Debug)]
struct StateAccumulator<F: AggregateState> {
    fold: F,
    states: [F::State; 1],
}

impl<F: AggregateState> Accumulator for StateAccumulator<F> {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let rows = self.fold.rows(columns)?;
        for row in 0..columns[0].len() {
            self.fold.add(&mut self.states[0], &rows, row);
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        self.fold.retracts()
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let rows = self.fold.rows(columns)?;
        for row in 0..columns[0].len() {
            self.fold.retract(&mut self.states[0], &rows, row);
        }
        Ok(())
    }

    fn merge_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for row in 0..columns[0].len() {
            self.fold.merge(&mut self.states[0], columns, row)?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let columns = self.fold.states(&self.states)?;
        columns
            .iter()
            .map(|column| ScalarValue::try_from_array(column, 0))
            .collect()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.fold.answers(&mut self.states)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.fold.heap_bytes(&self.states[0])
    }
}

/// The accumulator of many groups.
#[derive(Debug)]
struct StateGroupsAccumulator<F: AggregateState> {
    fold: F,
    states: Vec<F::State>,
    heap_bytes: usize,
}

impl<F: AggregateState> StateGroupsAccumulator<F> {
    fn take(&mut self, emit_to: EmitTo) -> Vec<F::State> {
        let states = emit_to.take_needed(&mut self.states);
        let taken: usize = states.iter().map(|state| self.fold.heap_bytes(state)).sum();
        self.heap_bytes = self.heap_bytes.saturating_sub(taken);
        states
    }
}

impl<F: AggregateState> GroupsAccumulator for StateGroupsAccumulator<F> {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.states.resize_with(total, F::State::default);
        let rows = self.fold.rows(columns)?;
        for (row, group) in groups.iter().enumerate() {
            if !passes(filter, row) {
                continue;
            }
            let state = &mut self.states[*group];
            let before = self.fold.heap_bytes(state);
            self.fold.add(state, &rows, row);
            self.heap_bytes =
                (self.heap_bytes + self.fold.heap_bytes(state)).saturating_sub(before);
        }
        Ok(())
    }

    fn merge_batch(&mut self, columns: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.states.resize_with(total, F::State::default);
        for (row, group) in groups.iter().enumerate() {
            let state = &mut self.states[*group];
            let before = self.fold.heap_bytes(state);
            self.fold.merge(state, columns, row)?;
            self.heap_bytes =
                (self.heap_bytes + self.fold.heap_bytes(state)).saturating_sub(before);
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let mut states = self.take(emit_to);
        self.fold.answers(&mut states)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let states = self.take(emit_to);
        self.fold.states(&states)
    }

    fn convert_to_state(
        &self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let rows = self.fold.rows(columns)?;
        let mut states = Vec::new();
        states.resize_with(columns[0].len(), F::State::default);
        for (row, state) in states.iter_mut().enumerate() {
            if passes(filter, row) {
                self.fold.add(state, &rows, row);
            }
        }
        self.fold.states(&states)
    }

    fn size(&self) -> usize {
        self.states.capacity() * size_of::<F::State>() + self.heap_bytes
    }
}

fn passes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

/// Values as a column, even if there are none.
pub(crate) fn column(
    values: impl Iterator<Item = Result<ScalarValue>>,
    data_type: &DataType,
) -> Result<ArrayRef> {
    let values = values.collect::<Result<Vec<_>>>()?;
    if values.is_empty() {
        return Ok(new_empty_array(data_type));
    }
    ScalarValue::iter_to_array(values)
}

/// The type of a result that is an array.
pub(crate) fn list_type(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item, true)))
}

/// Arrays as a column: `lengths` says how many of `items` each array has; `None` is a null.
pub(crate) fn lists(
    function: &str,
    lengths: &[Option<usize>],
    items: ArrayRef,
) -> Result<ArrayRef> {
    if i32::try_from(items.len()).is_err() {
        return exec_err!("{function}: the arrays of all groups have more than 2^31 elements");
    }
    let valid: NullBuffer = lengths.iter().map(Option::is_some).collect();
    let offsets = OffsetBuffer::from_lengths(lengths.iter().map(|length| length.unwrap_or(0)));
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(
        field,
        offsets,
        items,
        Some(valid),
    )?))
}
