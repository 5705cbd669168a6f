//! DataFusion's functions with PostgreSQL's types and errors.
//!
//! Counts and positions are unsigned in DataFusion. PostgreSQL has no unsigned type: these would be
//! NUMERIC, and divide with decimals. Floats that overflow are infinite in DataFusion, and an error
//! in PostgreSQL.

use crate::arithmetic::overflow;
use crate::refusal::refused;
use arrow::array::{Array, ArrayRef, AsArray, Int32Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int32Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawWindowExpr,
};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, cast as cast_expr,
};
use std::sync::Arc;

/// Functions of arrays that return an INTEGER.
const INTEGERS: [&str; 3] = ["array_position", "array_positions", "cardinality"];
/// Functions of arrays that return an INTEGER, and NULL for an array without elements.
const DIMENSIONS: [&str; 2] = ["array_length", "array_ndims"];
/// Functions of floats that can overflow.
const OVERFLOWING: [&str; 3] = ["degrees", "exp", "power"];
/// Functions that are not defined for all numbers.
const DOMAINS: [&str; 8] = ["acos", "acosh", "asin", "atanh", "cos", "cot", "sin", "tan"];
/// Functions of positive numbers.
const LOGARITHMS: [&str; 4] = ["ln", "log", "log10", "log2"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Adaptation {
    Integer,
    Dimension,
    Finite,
    Logarithm,
    Domain,
    Root,
}

/// Replaces the functions of a session.
///
/// # Errors
/// If the registry refuses a function.
pub(crate) fn adapt_functions(state: &mut SessionState) -> Result<()> {
    let kinds = [
        (&INTEGERS[..], Adaptation::Integer),
        (&DIMENSIONS[..], Adaptation::Dimension),
        (&OVERFLOWING[..], Adaptation::Finite),
        (&LOGARITHMS[..], Adaptation::Logarithm),
        (&DOMAINS[..], Adaptation::Domain),
        (&["sqrt"][..], Adaptation::Root),
    ];
    for (names, adaptation) in kinds {
        for name in names {
            // A session may lack functions.
            let Ok(inner) = state.udf(name) else {
                continue;
            };
            let adapted = AdaptedFunction { inner, adaptation };
            state.register_udf(Arc::new(ScalarUDF::from(adapted)))?;
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct AdaptedFunction {
    inner: Arc<ScalarUDF>,
    adaptation: Adaptation,
}

/// The type without unsigned numbers.
fn integer_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::UInt64 | DataType::UInt32 => DataType::Int32,
        DataType::List(item) => {
            let item = item.as_ref().clone();
            let inner = integer_type(item.data_type());
            DataType::List(Arc::new(item.with_data_type(inner)))
        }
        other => other.clone(),
    }
}

fn cast_value(value: ColumnarValue, to: &DataType) -> Result<ColumnarValue> {
    Ok(match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(cast(&array, to)?),
        ColumnarValue::Scalar(value) => ColumnarValue::Scalar(value.cast_to(to)?),
    })
}

/// An argument or a result as doubles; `None` if it is no float.
fn floats(value: &ColumnarValue) -> Result<Option<ArrayRef>> {
    let is_float = matches!(value.data_type(), DataType::Float32 | DataType::Float64);
    if !is_float {
        return Ok(None);
    }
    let array = value.to_array(1)?;
    Ok(Some(cast(&array, &DataType::Float64)?))
}

/// The value of a row; a constant has one row.
fn value_of_row(values: &ArrayRef, row: usize) -> Option<f64> {
    let values = values.as_primitive::<Float64Type>();
    let row = if values.len() == 1 { 0 } else { row };
    values.is_valid(row).then(|| values.value(row))
}

/// The sizes of arrays, without those of arrays that have no elements: an empty array has no dimensions.
fn null_of_empty(sizes: ColumnarValue, array: &ColumnarValue) -> Result<ColumnarValue> {
    let is_one = matches!(sizes, ColumnarValue::Scalar(_));
    let sizes = sizes.into_array(1)?;
    let rows = sizes.len();
    let lists = array.to_array(rows)?;
    let Some(sizes) = sizes.as_primitive_opt::<Int32Type>() else {
        return Ok(ColumnarValue::Array(sizes));
    };
    let is_empty = |row: usize| match lists.as_list_opt::<i32>() {
        Some(lists) => lists.value_length(row) == 0,
        None => false,
    };
    let sizes: Int32Array = sizes
        .iter()
        .enumerate()
        .map(|(row, size)| size.filter(|size| *size > 0 && !is_empty(row)))
        .collect();
    Ok(if is_one {
        ColumnarValue::Scalar(ScalarValue::try_from_array(&sizes, 0)?)
    } else {
        ColumnarValue::Array(Arc::new(sizes))
    })
}

impl AdaptedFunction {
    /// Whether the results of the function are integers that DataFusion has without a sign.
    fn is_integer(&self) -> bool {
        matches!(self.adaptation, Adaptation::Integer | Adaptation::Dimension)
    }

    /// Checks results whose arguments do not explain them.
    fn check(&self, args: &[ColumnarValue], made: &ColumnarValue) -> Result<()> {
        let Some(results) = floats(made)? else {
            return Ok(());
        };
        let values = results.as_primitive::<Float64Type>().values();
        if !values
            .iter()
            .fold(false, |any, value| any | !value.is_finite())
        {
            return Ok(());
        }
        let args = args.iter().map(floats).collect::<Result<Vec<_>>>()?;
        let args: Vec<ArrayRef> = args.into_iter().flatten().collect();
        for row in 0..results.len() {
            let Some(result) = value_of_row(&results, row).filter(|result| !result.is_finite())
            else {
                continue;
            };
            let mut operands = args.iter().filter_map(|arg| value_of_row(arg, row));
            match self.adaptation {
                Adaptation::Logarithm => {
                    let is_zero = operands.clone().any(|operand| operand == 0.0);
                    let is_negative = operands.any(|operand| operand < 0.0);
                    if is_zero || is_negative {
                        let what = if is_zero { "zero" } else { "a negative number" };
                        let message = format!("cannot take logarithm of {what}");
                        return Err(refused("2201E", message));
                    }
                }
                Adaptation::Root if operands.any(|operand| operand < 0.0) => {
                    let message = "cannot take square root of a negative number";
                    return Err(refused("2201F", message));
                }
                Adaptation::Domain if result.is_nan() && !operands.any(f64::is_nan) => {
                    return Err(refused("22003", "input is out of range"));
                }
                Adaptation::Finite if result.is_nan() && !operands.clone().any(f64::is_nan) => {
                    let message =
                        "a negative number raised to a non-integer power yields a complex result";
                    return Err(refused("2201F", message));
                }
                Adaptation::Finite
                    if result.is_infinite() && operands.clone().all(f64::is_finite) =>
                {
                    // Only a power of zero is infinite without being too large.
                    if self.inner.name() == "power" && operands.next() == Some(0.0) {
                        let message = "zero raised to a negative power is undefined";
                        return Err(refused("2201F", message));
                    }
                    return Err(overflow());
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl ScalarUDFImpl for AdaptedFunction {
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

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let data_type = self.inner.return_type(types)?;
        Ok(match self.adaptation {
            Adaptation::Integer | Adaptation::Dimension => integer_type(&data_type),
            _ => data_type,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = self.inner.return_field_from_args(args)?;
        if !self.is_integer() {
            return Ok(field);
        }
        let data_type = integer_type(field.data_type());
        Ok(Arc::new(Field::clone(&field).with_data_type(data_type)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.is_integer() {
            let to = args.return_field.data_type().clone();
            let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
            let own = self.inner.return_type(&types)?;
            let field = Field::clone(&args.return_field).with_data_type(own);
            args.return_field = Arc::new(field);
            let array = args.args.first().cloned();
            let made = cast_value(self.inner.invoke_with_args(args)?, &to)?;
            return match array.filter(|_| self.adaptation == Adaptation::Dimension) {
                Some(array) => null_of_empty(made, &array),
                None => Ok(made),
            };
        }
        let given = args.args.clone();
        let made = self.inner.invoke_with_args(args)?;
        self.check(&given, &made)?;
        Ok(made)
    }

    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        match self.adaptation {
            Adaptation::Integer | Adaptation::Dimension => {
                Interval::make_unbounded(&DataType::Int32)
            }
            Adaptation::Domain | Adaptation::Root | Adaptation::Logarithm => {
                let float = DataType::Float64;
                let kind = input.first().map_or(float, |argument| argument.data_type());
                Interval::make_unbounded(&kind)
            }
            Adaptation::Finite => self.inner.evaluate_bounds(input),
        }
    }

    /// What DataFusion says of these functions does not hold for nulls and arguments that are refused.
    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        match self.adaptation {
            Adaptation::Logarithm | Adaptation::Domain | Adaptation::Root => {
                Ok(SortProperties::Unordered)
            }
            _ => self.inner.output_ordering(inputs),
        }
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// Gives window functions and aggregates that count a signed type.
#[derive(Debug)]
pub struct SignedCounts;

/// The type of PostgreSQL for a window function whose results are unsigned.
fn window_type(name: &str) -> Option<DataType> {
    match name {
        "row_number" | "rank" | "dense_rank" => Some(DataType::Int64),
        "ntile" => Some(DataType::Int32),
        _ => aggregate_type(name),
    }
}

/// The same for an aggregate.
fn aggregate_type(name: &str) -> Option<DataType> {
    matches!(name, "approx_distinct" | "regr_count").then_some(DataType::Int64)
}

impl ExprPlanner for SignedCounts {
    fn plan_aggregate(&self, call: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        let Some(data_type) = aggregate_type(call.func.name()) else {
            return Ok(PlannerResult::Original(call));
        };
        let call = AggregateFunction::new_udf(
            call.func,
            call.args,
            call.distinct,
            call.filter,
            call.order_by,
            call.null_treatment,
        );
        let signed = cast_expr(Expr::AggregateFunction(call), data_type);
        Ok(PlannerResult::Planned(signed))
    }

    fn plan_window(&self, call: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        let Some(data_type) = window_type(call.func_def.name()) else {
            return Ok(PlannerResult::Original(call));
        };
        let params = WindowFunctionParams {
            args: call.args,
            partition_by: call.partition_by,
            order_by: call.order_by,
            window_frame: call.window_frame,
            filter: call.filter,
            null_treatment: call.null_treatment,
            distinct: call.distinct,
        };
        let fun = call.func_def;
        let window = Expr::WindowFunction(Box::new(WindowFunction { fun, params }));
        Ok(PlannerResult::Planned(cast_expr(window, data_type)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::ListArray;

    #[test]
    fn lists_of_positions_are_signed() {
        let list = |item| DataType::List(Arc::new(Field::new_list_field(item, true)));
        assert_eq!(integer_type(&list(DataType::UInt64)), list(DataType::Int32));
        assert_eq!(integer_type(&DataType::Int64), DataType::Int64);
    }

    #[test]
    fn an_empty_array_has_no_length() {
        let lists = [Some(vec![Some(1)]), Some(Vec::new()), None];
        let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
        let lists = ColumnarValue::Array(Arc::new(lists));
        let sizes = Int32Array::from(vec![Some(1), Some(1), None]);
        let made = null_of_empty(ColumnarValue::Array(Arc::new(sizes)), &lists).unwrap();
        let made = made.into_array(3).unwrap();
        let made: Vec<_> = made.as_primitive::<Int32Type>().iter().collect();
        assert_eq!(made, [Some(1), None, None]);
    }

    #[test]
    fn a_scalar_keeps_its_kind() {
        let value = ColumnarValue::Scalar(ScalarValue::UInt64(Some(3)));
        let made = cast_value(value, &DataType::Int32).unwrap();
        assert!(matches!(
            made,
            ColumnarValue::Scalar(ScalarValue::Int32(Some(3)))
        ));
    }
}
