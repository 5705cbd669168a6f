//! Arithmetic of floats whose results are finite if the operands are.
//!
//! Arrow computes the results; a loop without branches looks for infinite ones. Only if there are
//! any does a second pass look at their operands. A division by zero stays infinite.

use super::kernel::{ArithmeticOp, KernelOperand};
use crate::refusal::refused;
use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Datum, PrimitiveArray, Scalar};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::{DataFusionError, Result, internal_err};

/// The error for a float that would be too large (22003).
pub(crate) fn overflow() -> DataFusionError {
    refused("22003", "value out of range: overflow")
}

/// Computes each row; both sides have the same type of floats.
///
/// # Errors
/// 22003 if a result is infinite and its operands are not.
pub(super) fn compute_floats(
    op: ArithmeticOp,
    left: KernelOperand<'_>,
    right: KernelOperand<'_>,
) -> Result<ArrayRef> {
    match left.array.data_type() {
        DataType::Float32 => typed::<Float32Type>(op, left, right, f32::is_infinite),
        DataType::Float64 => typed::<Float64Type>(op, left, right, f64::is_infinite),
        other => internal_err!("checked arithmetic of {other}"),
    }
}

fn typed<T>(
    op: ArithmeticOp,
    left: KernelOperand<'_>,
    right: KernelOperand<'_>,
    is_infinite: impl Fn(T::Native) -> bool,
) -> Result<ArrayRef>
where
    T: ArrowPrimitiveType,
    T::Native: Default + PartialEq,
{
    let (Some(a), Some(b)) = (
        left.array.as_primitive_opt::<T>(),
        right.array.as_primitive_opt::<T>(),
    ) else {
        return internal_err!("checked arithmetic of two types");
    };
    let one = |side: &PrimitiveArray<T>, operand: KernelOperand<'_>| {
        operand.is_scalar.then(|| Scalar::new(side.clone()))
    };
    let (one_a, one_b) = (one(a, left), one(b, right));
    let a_side: &dyn Datum = one_a.as_ref().map_or(a, |one| one);
    let b_side: &dyn Datum = one_b.as_ref().map_or(b, |one| one);
    let made = match op {
        ArithmeticOp::Add => numeric::add(a_side, b_side)?,
        ArithmeticOp::Subtract => numeric::sub(a_side, b_side)?,
        ArithmeticOp::Multiply => numeric::mul(a_side, b_side)?,
        ArithmeticOp::Divide => numeric::div(a_side, b_side)?,
        ArithmeticOp::BitwiseXor => return internal_err!("floats have no bits"),
    };
    let results = made.as_primitive::<T>();
    let suspect = results.values().iter();
    if !suspect.fold(false, |any, result| any | is_infinite(*result)) {
        return Ok(made);
    }
    let at = |side: &PrimitiveArray<T>, operand: KernelOperand<'_>, row: usize| {
        side.value(if operand.is_scalar { 0 } else { row })
    };
    for row in 0..results.len() {
        if results.is_null(row) || !is_infinite(results.value(row)) {
            continue;
        }
        let (a, b) = (at(a, left, row), at(b, right, row));
        let by_zero = op == ArithmeticOp::Divide && b == T::Native::default();
        if !is_infinite(a) && !is_infinite(b) && !by_zero {
            return Err(overflow());
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Float64Array;
    use std::sync::Arc;

    #[test]
    fn only_finite_operands_overflow() {
        let big = 1e308;
        for (op, a, b, fits) in [
            (ArithmeticOp::Multiply, big, 10.0, false),
            (ArithmeticOp::Multiply, f64::INFINITY, 10.0, true),
            (ArithmeticOp::Add, big, big, false),
            (ArithmeticOp::Subtract, -big, big, false),
            (ArithmeticOp::Divide, big, 0.1, false),
            (ArithmeticOp::Divide, big, 0.0, true),
            (ArithmeticOp::Divide, big, f64::NAN, true),
        ] {
            let column = |value| Arc::new(Float64Array::from(vec![1.0, value])) as ArrayRef;
            let one = |value| Arc::new(Float64Array::from(vec![value])) as ArrayRef;
            for is_scalar in [false, true] {
                let right = if is_scalar { one(b) } else { column(b) };
                let left = KernelOperand {
                    array: &column(a),
                    is_scalar: false,
                };
                let right = KernelOperand {
                    array: &right,
                    is_scalar,
                };
                let made = compute_floats(op, left, right);
                assert_eq!(made.is_ok(), fits, "{a} {op} {b}");
            }
        }
    }
}
