//! Comparisons of floats. The machine's comparisons treat the zeros as equal and are false for a
//! NaN, so each of PostgreSQL's comparisons consists of one or two of them.
#![expect(
    clippy::inline_always,
    reason = "a call that remains in a loop prevents vectorization"
)]

use super::key::is_float;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

/// The operators.
const OPERATORS: [Operator; 8] = [
    Operator::Eq,
    Operator::NotEq,
    Operator::Lt,
    Operator::LtEq,
    Operator::Gt,
    Operator::GtEq,
    Operator::IsDistinctFrom,
    Operator::IsNotDistinctFrom,
];

/// A comparison of two floats of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FloatComparison {
    op: Operator,
    signature: Signature,
}

static COMPARISONS: LazyLock<Vec<Arc<ScalarUDF>>> = LazyLock::new(|| {
    let made = |op| {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::from(FloatComparison { op, signature }))
    };
    OPERATORS.map(made).into()
});

/// Whether an operator compares.
pub(super) fn compares(op: Operator) -> bool {
    OPERATORS.contains(&op)
}

/// `left op right`; `None` if the operator does not compare.
pub(super) fn comparison(left: Expr, op: Operator, right: Expr) -> Option<Expr> {
    let at = OPERATORS.iter().position(|known| *known == op)?;
    let function = Arc::clone(COMPARISONS.get(at)?);
    let call = ScalarFunction::new_udf(function, vec![left, right]);
    Some(Expr::ScalarFunction(call))
}

impl ScalarUDFImpl for FloatComparison {
    fn name(&self) -> &'static str {
        match self.op {
            Operator::Eq => "float_eq",
            Operator::NotEq => "float_ne",
            Operator::Lt => "float_lt",
            Operator::LtEq => "float_le",
            Operator::Gt => "float_gt",
            Operator::GtEq => "float_ge",
            Operator::IsDistinctFrom => "float_is_distinct",
            _ => "float_is_not_distinct",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else {
            return internal_err!("a comparison of {} arguments", args.len());
        };
        let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
        let written = Expr::BinaryExpr(BinaryExpr::new(left, self.op, right));
        Ok(written.schema_name().to_string())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return internal_err!("a comparison of {} arguments", args.args.len());
        };
        let (left, right) = (
            FloatOperand::from_value(left)?,
            FloatOperand::from_value(right)?,
        );
        let one = left.is_scalar && right.is_scalar;
        let rows = if one { 1 } else { args.number_rows };
        let made = match left.array.data_type() {
            DataType::Float32 => compare::<Float32Type>(self.op, &left, &right, rows)?,
            DataType::Float64 => compare::<Float64Type>(self.op, &left, &right, rows)?,
            other => return internal_err!("{other} is compared as floats"),
        };
        Ok(if one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(made))
        })
    }
}

/// One side of a comparison.
struct FloatOperand {
    array: ArrayRef,
    is_scalar: bool,
}

impl FloatOperand {
    fn from_value(value: &ColumnarValue) -> Result<Self> {
        let (array, is_scalar) = match value {
            ColumnarValue::Array(array) => (Arc::clone(array), false),
            ColumnarValue::Scalar(scalar) => (scalar.to_array()?, true),
        };
        if !is_float(array.data_type()) {
            return internal_err!("{} is compared as floats", array.data_type());
        }
        Ok(Self { array, is_scalar })
    }

    /// The rows that are null; `None` if no row is.
    fn nulls(&self, rows: usize) -> Option<NullBuffer> {
        match self.array.nulls() {
            Some(_) if self.is_scalar => {
                (self.array.null_count() > 0).then(|| NullBuffer::new_null(rows))
            }
            nulls => nulls.cloned(),
        }
    }
}

fn compare<T>(
    op: Operator,
    left: &FloatOperand,
    right: &FloatOperand,
    rows: usize,
) -> Result<BooleanArray>
where
    T: ArrowPrimitiveType,
    T::Native: PartialOrd,
{
    let (Some(a), Some(b)) = (
        left.array.as_primitive_opt::<T>(),
        right.array.as_primitive_opt::<T>(),
    ) else {
        return internal_err!("floats of two types are compared");
    };
    let (a, b) = (&a.values()[..], &b.values()[..]);
    let (nulls_a, nulls_b) = (left.nulls(rows), right.nulls(rows));
    let bits = |op| bits(op, (a, left.is_scalar), (b, right.is_scalar), rows);
    let distinct = match op {
        Operator::IsDistinctFrom => true,
        Operator::IsNotDistinctFrom => false,
        _ => {
            let nulls = NullBuffer::union(nulls_a.as_ref(), nulls_b.as_ref());
            return Ok(BooleanArray::new(bits(op), nulls));
        }
    };
    let is_there =
        |nulls: &Option<NullBuffer>, row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let equal = bits(Operator::Eq);
    let made = BooleanBuffer::collect_bool(rows, |row| {
        let same = match (is_there(&nulls_a, row), is_there(&nulls_b, row)) {
            (true, true) => equal.value(row),
            (a, b) => a == b,
        };
        same != distinct
    });
    Ok(BooleanArray::new(made, None))
}

/// The result of each row, including the rows that are null.
fn bits<F: Copy + PartialOrd>(
    op: Operator,
    (a, one_a): (&[F], bool),
    (b, one_b): (&[F], bool),
    rows: usize,
) -> BooleanBuffer {
    match op {
        Operator::Lt => each(a, one_a, b, one_b, rows, less),
        Operator::GtEq => each(a, one_a, b, one_b, rows, |a, b| !less(a, b)),
        Operator::Gt => each(a, one_a, b, one_b, rows, |a, b| less(b, a)),
        Operator::LtEq => each(a, one_a, b, one_b, rows, |a, b| !less(b, a)),
        Operator::NotEq => each(a, one_a, b, one_b, rows, |a, b| !equal(a, b)),
        _ => each(a, one_a, b, one_b, rows, equal),
    }
}

#[inline(always)]
fn each<F: Copy>(
    a: &[F],
    one_a: bool,
    b: &[F],
    one_b: bool,
    rows: usize,
    is: impl Fn(F, F) -> bool,
) -> BooleanBuffer {
    match (one_a, one_b) {
        (false, false) => {
            // Tell the compiler the length, so that it does not check bounds for each row.
            let (a, b) = (&a[..rows], &b[..rows]);
            BooleanBuffer::collect_bool(rows, |row| is(a[row], b[row]))
        }
        (false, true) => {
            let (a, b) = (&a[..rows], b[0]);
            BooleanBuffer::collect_bool(rows, |row| is(a[row], b))
        }
        (true, false) => {
            let (a, b) = (a[0], &b[..rows]);
            BooleanBuffer::collect_bool(rows, |row| is(a, b[row]))
        }
        (true, true) => BooleanBuffer::collect_bool(rows, |_| is(a[0], b[0])),
    }
}

/// Only a NaN differs from itself.
#[expect(
    clippy::eq_op,
    clippy::neg_cmp_op_on_partial_ord,
    clippy::needless_bitwise_bool,
    reason = "only a NaN differs from itself, and this needs no branch"
)]
#[inline(always)]
fn less<F: Copy + PartialOrd>(a: F, b: F) -> bool {
    !(a >= b) & (a == a)
}

#[expect(
    clippy::eq_op,
    clippy::needless_bitwise_bool,
    reason = "only a NaN differs from itself, and this needs no branch"
)]
#[inline(always)]
fn equal<F: Copy + PartialOrd>(a: F, b: F) -> bool {
    (a == b) | ((a != a) & (b != b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Float64Array;
    use std::cmp::Ordering;

    /// PostgreSQL's order, implemented differently.
    fn order(a: f64, b: f64) -> Ordering {
        match (a.is_nan(), b.is_nan()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => a.partial_cmp(&b).unwrap(),
        }
    }

    #[test]
    fn comparisons_are_postgresqls() {
        let values = [
            -f64::NAN,
            f64::NEG_INFINITY,
            -1.5,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            1.5,
            f64::INFINITY,
            f64::NAN,
        ];
        let side = |value: Option<f64>, is_scalar: bool| FloatOperand {
            array: Arc::new(Float64Array::from(if is_scalar {
                vec![value]
            } else {
                vec![Some(7.0), value]
            })),
            is_scalar,
        };
        let values = || values.iter().copied().map(Some).chain([None]);
        for (a, b) in values().flat_map(|a| values().map(move |b| (a, b))) {
            let order = a.and_then(|a| b.map(|b| order(a, b)));
            for op in OPERATORS {
                let expected = match op {
                    Operator::IsDistinctFrom => {
                        Some(order.map_or(a.is_some() != b.is_some(), Ordering::is_ne))
                    }
                    Operator::IsNotDistinctFrom => {
                        Some(order.map_or(a.is_some() == b.is_some(), Ordering::is_eq))
                    }
                    Operator::Eq => order.map(Ordering::is_eq),
                    Operator::NotEq => order.map(Ordering::is_ne),
                    Operator::Lt => order.map(Ordering::is_lt),
                    Operator::LtEq => order.map(Ordering::is_le),
                    Operator::Gt => order.map(Ordering::is_gt),
                    _ => order.map(Ordering::is_ge),
                };
                for (one_a, one_b) in [(false, false), (true, false), (false, true), (true, true)] {
                    let (a, b) = (side(a, one_a), side(b, one_b));
                    let rows = if one_a && one_b { 1 } else { 2 };
                    let made = compare::<Float64Type>(op, &a, &b, rows).unwrap();
                    let row = rows - 1;
                    let made = made.is_valid(row).then(|| made.value(row));
                    assert_eq!(made, expected, "{:?} {op} {:?}", a.array, b.array);
                }
            }
        }
    }
}
