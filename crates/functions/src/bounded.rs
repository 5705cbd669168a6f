//! Bounds functions whose values can be larger than their arguments by the memory of queries.
//!
//! `repeat(s, 1000000)` over a batch of rows asks the allocator for gigabytes at once; if the
//! allocator refuses, the process ends. Such a function is called through [`BoundedFunction`],
//! which estimates from the arguments how large the values can become (`growth`), reserves that
//! much memory before the call, and refuses the statement (53200) if queries may not use that much.
//! If the bound of a batch is large, the batch is evaluated in slices, since the bounds of fewer
//! rows are tighter.
//!
//! Invariant: every registered function either has its bound in `growth` or has values that are
//! bounded by its arguments; a test checks the whole registry.

pub(crate) mod concatenation;
mod constant;
mod growth;
mod rule;
mod windows;

pub use constant::BoundConstants;
pub use rule::BoundFunctions;

use crate::refusal::refused;
use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, StructFieldMapping,
};
use growth::ValueGrowth;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Up to this bound, values are computed without a reservation, bytes.
const FREE_BYTES: usize = 1 << 20;
/// Up to this bound, a batch is not divided into slices, bytes.
const SLICE_BYTES: usize = 16 << 20;
/// The longest text, and the largest number of elements, that arrays with 32-bit offsets hold.
const OFFSETS_MAX: usize = i32::MAX as usize;

/// See the module documentation.
pub(crate) struct BoundedFunction {
    inner: Arc<ScalarUDF>,
    growth: ValueGrowth,
    pool: Arc<dyn MemoryPool>,
}

/// The function with its bound, or the function itself if its arguments bound its values.
pub fn bounded(function: &Arc<ScalarUDF>, pool: &Arc<dyn MemoryPool>) -> Arc<ScalarUDF> {
    match growth_to_bound(function) {
        Some(growth) => Arc::new(ScalarUDF::from(BoundedFunction {
            inner: Arc::clone(function),
            growth,
            pool: Arc::clone(pool),
        })),
        None => Arc::clone(function),
    }
}

/// The growth of a function that is not bounded yet.
fn growth_to_bound(function: &ScalarUDF) -> Option<ValueGrowth> {
    if function.inner().downcast_ref::<BoundedFunction>().is_some() {
        return None;
    }
    ValueGrowth::for_function(function.name())
}

/// Bounds the functions that are called in an expression.
fn bound_calls(expr: Expr, pool: &Arc<dyn MemoryPool>) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        Ok(match expr {
            Expr::ScalarFunction(mut call) if growth_to_bound(&call.func).is_some() => {
                call.func = bounded(&call.func, pool);
                Transformed::yes(Expr::ScalarFunction(call))
            }
            Expr::Cast(ref cast) => {
                growth::check_width(cast.field.data_type())?;
                Transformed::no(expr)
            }
            Expr::TryCast(ref cast) => {
                growth::check_width(cast.field.data_type())?;
                Transformed::no(expr)
            }
            Expr::AggregateFunction(ref call) => {
                growth::check_aggregate(call.func.name(), &call.params.args)?;
                Transformed::no(expr)
            }
            Expr::WindowFunction(mut call) => {
                growth::check_aggregate(call.fun.name(), &call.params.args)?;
                match windows::WindowAggregate::around(&call.fun, pool) {
                    Some(counted) => {
                        call.fun = counted;
                        Transformed::yes(Expr::WindowFunction(call))
                    }
                    None => Transformed::no(Expr::WindowFunction(call)),
                }
            }
            other => Transformed::no(other),
        })
    })
}

impl BoundedFunction {
    fn call(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }

    fn refuse(&self, bytes: usize, rows: usize) -> DataFusionError {
        too_large(self.inner.name(), bytes, rows, &self.pool)
    }

    /// Reserves the bound of the values of some rows until the reservation is dropped.
    fn reserve(&self, bytes: usize, rows: usize) -> Result<MemoryReservation> {
        reserve(self.inner.name(), bytes, rows, &self.pool)
    }

    /// Evaluates rows, in slices if their bound is large.
    fn slices(&self, args: ScalarFunctionArgs, made: &mut BatchSlices) -> Result<()> {
        let rows = args.number_rows;
        let bound = self.growth.bound(&args)?;
        if bound > SLICE_BYTES && rows > 1 {
            let half = rows / 2;
            self.slices(sliced(&args, 0, half), made)?;
            return self.slices(sliced(&args, half, rows - half), made);
        }
        let held = self.reserve(bound, rows)?;
        let values = self.call(args)?.into_array(rows)?;
        let bytes = values.get_array_memory_size();
        // The values that follow must fit, too.
        held.try_resize(bytes)
            .map_err(|_| self.refuse(bytes, rows))?;
        made.bytes += bytes;
        made.arrays.push(values);
        made.held.push(held);
        Ok(())
    }
}

#[derive(Default)]
struct BatchSlices {
    arrays: Vec<ArrayRef>,
    held: Vec<MemoryReservation>,
    bytes: usize,
}

/// The arguments of a call, reduced to some rows.
fn sliced(args: &ScalarFunctionArgs, from: usize, rows: usize) -> ScalarFunctionArgs {
    let mut some = args.clone();
    some.number_rows = rows;
    for arg in &mut some.args {
        if let ColumnarValue::Array(array) = arg {
            *array = array.slice(from, rows);
        }
    }
    some
}

/// Reserves the memory for the values of a function.
fn reserve(
    name: &str,
    bytes: usize,
    rows: usize,
    pool: &Arc<dyn MemoryPool>,
) -> Result<MemoryReservation> {
    let held = MemoryConsumer::new(name).register(pool);
    held.try_grow(bytes)
        .map_err(|_| too_large(name, bytes, rows, pool))?;
    Ok(held)
}

/// Error 53200, with the requested and the available bytes.
fn too_large(name: &str, bytes: usize, rows: usize, pool: &Arc<dyn MemoryPool>) -> DataFusionError {
    use datafusion::execution::memory_pool::MemoryLimit;
    let limit = match pool.memory_limit() {
        MemoryLimit::Finite(limit) => format!("queries can have {limit} bytes (memory_limit)"),
        _ => "that is more than is available".to_owned(),
    };
    let message = format!(
        "{name} may take {bytes} bytes for {rows} rows, and {limit}: make shorter values, or of \
         fewer rows"
    );
    refused("53200", message)
}

/// Whether arrays of a type have 32-bit offsets.
fn has_short_offsets(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::Binary | DataType::List(_) | DataType::Map(..)
    )
}

impl ScalarUDFImpl for BoundedFunction {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arg_types)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let updated = self.inner.inner().with_updated_config(config)?;
        Some(ScalarUDF::from(Self {
            inner: Arc::new(updated),
            growth: self.growth,
            pool: Arc::clone(&self.pool),
        }))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.growth.check_types(&args)?;
        let field = self.inner.return_field_from_args(args)?;
        growth::check_width(field.data_type())?;
        Ok(field)
    }

    fn is_strict(&self) -> bool {
        self.inner.inner().is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let has_array = args
            .args
            .iter()
            .any(|arg| matches!(arg, ColumnarValue::Array(_)));
        if !has_array {
            // This is one value, which its consumer may write out for each row.
            let mut one = args;
            one.number_rows = 1;
            let bound = self.growth.bound(&one)?;
            if bound.saturating_mul(rows.max(1)) <= FREE_BYTES {
                one.number_rows = rows;
                return self.call(one);
            }
            let _held = self.reserve(bound, 1)?;
            one.number_rows = rows;
            return match self.call(one)? {
                ColumnarValue::Scalar(value) => {
                    let bytes = value.size().saturating_mul(rows.max(1));
                    let fits = bytes <= OFFSETS_MAX || rows <= 1;
                    if !fits {
                        return Err(self.refuse(bytes, rows));
                    }
                    drop(self.reserve(bytes, rows)?);
                    Ok(ColumnarValue::Scalar(value))
                }
                array @ ColumnarValue::Array(_) => Ok(array),
            };
        }
        if self.growth.bound(&args)? <= FREE_BYTES {
            return self.call(args);
        }
        let result_type = args.return_type().clone();
        let mut made = BatchSlices::default();
        self.slices(args, &mut made)?;
        if made.arrays.len() == 1
            && let Some(values) = made.arrays.pop()
        {
            return Ok(ColumnarValue::Array(values));
        }
        if has_short_offsets(&result_type) && made.bytes > OFFSETS_MAX {
            return Err(self.refuse(made.bytes, rows));
        }
        let _whole = self.reserve(made.bytes, rows)?;
        let arrays: Vec<&dyn Array> = made.arrays.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat(&arrays)?))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match self.inner.simplify(args, info)? {
            // The simplified expression may call other functions.
            ExprSimplifyResult::Simplified(expr) => {
                ExprSimplifyResult::Simplified(bound_calls(expr, &self.pool)?.data)
            }
            original @ ExprSimplifyResult::Original(_) => original,
        })
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        let image = self.inner.inner().preimage(args, literal, info)?;
        // If a type of times cannot represent a year, its bounds are NULL, and no comparison with
        // them is true: `extract(year FROM time) > 1`.
        Ok(match image {
            PreimageResult::Range { interval, .. }
                if interval.lower().is_null() || interval.upper().is_null() =>
            {
                PreimageResult::None
            }
            other => other,
        })
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.inner().conditional_arguments(args)
    }

    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        self.inner.evaluate_bounds(input)
    }

    fn propagate_constraints(
        &self,
        interval: &Interval,
        inputs: &[&Interval],
    ) -> Result<Option<Vec<Interval>>> {
        self.inner.propagate_constraints(interval, inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.preserves_lex_ordering(inputs)
    }

    fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.inner().strictly_order_preserving(inputs)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arg_types)
    }

    fn struct_field_mapping(&self, literals: &[Option<ScalarValue>]) -> Option<StructFieldMapping> {
        self.inner.inner().struct_field_mapping(literals)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.inner.inner().placement(args)
    }
}

impl fmt::Debug for BoundedFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PartialEq for BoundedFunction {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for BoundedFunction {}

impl Hash for BoundedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}
