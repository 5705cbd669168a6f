//! Division of NUMERIC with PostgreSQL's scale: DataFusion's planner would give the quotient four
//! decimal places more than the dividend has.
//!
//! If both numbers are constants, the quotient has exactly the decimal places that PostgreSQL gives
//! it. In a column, all values have the same number of places: twenty, or more if an operand has
//! more. PostgreSQL chooses them row by row, sixteen or more.

use crate::refusal::refused;
use arrow::array::{Array, AsArray, Decimal256Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal256Type, i256};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::sync::Arc;

/// The decimal places of quotients in columns.
const COLUMN_PLACES: i8 = 20;
/// The largest number of decimal places.
const PLACES_MAX: i8 = 38;
/// The digits of a quotient.
const DIGITS: u8 = 76;
/// The least number of significant digits that PostgreSQL gives a quotient, and the decimal digits
/// of one of PostgreSQL's base-10,000 digits.
const SIGNIFICANT_DIGITS: i32 = 16;
const DECIMAL_DIGITS: usize = 4;

/// Plans such quotients.
#[derive(Debug)]
pub struct NumericDivision;

impl ExprPlanner for NumericDivision {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if expr.op != BinaryOperator::Divide {
            return Ok(PlannerResult::Original(expr));
        }
        let is_exact = |kind: &DataType| kind.is_decimal() || kind.is_integer();
        match (expr.left.get_type(schema), expr.right.get_type(schema)) {
            (Ok(left), Ok(right))
                if (left.is_decimal() || right.is_decimal())
                    && is_exact(&left)
                    && is_exact(&right) =>
            {
                let places = match (constant(&expr.left), constant(&expr.right)) {
                    (Some(left), Some(right)) => places_of_quotient(&left, &right),
                    _ => None,
                };
                let most = scale_of(&left).max(scale_of(&right));
                let places = places.unwrap_or(most.clamp(COLUMN_PLACES, PLACES_MAX));
                let function = ScalarUDF::from(NumericQuotient {
                    signature: Signature::any(2, Volatility::Immutable),
                    places,
                });
                Ok(PlannerResult::Planned(
                    Arc::new(function).call(vec![expr.left, expr.right]),
                ))
            }
            _ => Ok(PlannerResult::Original(expr)),
        }
    }
}

/// The value of an operand that is a constant, with its casts applied.
fn constant(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, field }) => constant(expr)?.cast_to(field.data_type()).ok(),
        Expr::Negative(operand) => constant(operand)?.arithmetic_negate().ok(),
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct NumericQuotient {
    signature: Signature,
    /// The decimal places of the quotient: the type must not change while a plan is optimized.
    places: i8,
}

/// The decimal places of a type of whole numbers or decimals.
fn scale_of(kind: &DataType) -> i8 {
    match kind {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => (*scale).max(0),
        _ => 0,
    }
}

/// The digits of a number without its sign and its decimal point.
fn digits_of(value: &ScalarValue) -> Option<String> {
    let scale = scale_of(&value.data_type());
    let wide = value.cast_to(&DataType::Decimal256(DIGITS, scale)).ok()?;
    let ScalarValue::Decimal256(Some(number), ..) = wide else {
        return None;
    };
    Some(number.to_string().trim_start_matches('-').to_owned())
}

/// The position of a number's first digit in base 10,000, and that digit, as PostgreSQL stores a
/// NUMERIC.
fn first_digit(digits: &str, scale: usize) -> (i32, u32) {
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, places) = padded.split_at(padded.len() - scale);
    let group = |text: &str| text.parse().unwrap_or(0_u32);
    let whole = whole.trim_start_matches('0');
    if !whole.is_empty() {
        let groups = whole.len().div_ceil(DECIMAL_DIGITS);
        let first = whole.len() - (groups - 1) * DECIMAL_DIGITS;
        return (groups as i32 - 1, group(&whole[..first]));
    }
    let zeros = places.len() - places.trim_start_matches('0').len();
    if zeros == places.len() {
        return (0, 0);
    }
    let at = zeros / DECIMAL_DIGITS;
    let start = at * DECIMAL_DIGITS;
    let end = places.len().min(start + DECIMAL_DIGITS);
    let padded = format!("{:0<4}", &places[start..end]);
    (-1 - at as i32, group(&padded))
}

/// The decimal places of the quotient of two numbers, chosen as in PostgreSQL's `select_div_scale`.
fn places_of_quotient(left: &ScalarValue, right: &ScalarValue) -> Option<i8> {
    let (left_places, right_places) = (scale_of(&left.data_type()), scale_of(&right.data_type()));
    let (left_at, left_first) = first_digit(&digits_of(left)?, usize::try_from(left_places).ok()?);
    let (right_at, right_first) =
        first_digit(&digits_of(right)?, usize::try_from(right_places).ok()?);
    let mut at = left_at - right_at;
    if left_first <= right_first {
        at -= 1;
    }
    let wanted = SIGNIFICANT_DIGITS - at * DECIMAL_DIGITS as i32;
    let wanted = wanted
        .max(left_places.into())
        .max(right_places.into())
        .clamp(0, PLACES_MAX.into());
    i8::try_from(wanted).ok()
}

impl ScalarUDFImpl for NumericQuotient {
    fn name(&self) -> &'static str {
        "numeric_quotient"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Decimal256(DIGITS, self.places))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scale = self.places;
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = args.args.iter().all(is_one);
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = &arrays[..] else {
            return internal_err!("a quotient has two operands");
        };
        let (left_places, right_places) = (scale_of(left.data_type()), scale_of(right.data_type()));
        let wide = |array, places| cast(array, &DataType::Decimal256(DIGITS, places));
        let (left, right) = (wide(left, left_places)?, wide(right, right_places)?);
        let (left, right) = (
            left.as_primitive::<Decimal256Type>(),
            right.as_primitive::<Decimal256Type>(),
        );
        let shift = i32::from(scale) + i32::from(right_places) - i32::from(left_places);
        let mut out = Vec::with_capacity(left.len());
        for (left, right) in left.iter().zip(right) {
            out.push(match (left, right) {
                (Some(_), Some(i256::ZERO)) => return Err(refused("22012", "division by zero")),
                (Some(left), Some(right)) => {
                    let quotient = quotient(left, right, shift);
                    Some(quotient.ok_or_else(|| {
                        refused("22003", "the quotient has more digits than a NUMERIC holds")
                    })?)
                }
                _ => None,
            });
        }
        let out = Decimal256Array::from(out).with_precision_and_scale(DIGITS, scale)?;
        Ok(if all_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(out))
        })
    }
}

/// `left * 10^shift / right`, rounded half away from zero.
fn quotient(left: i256, right: i256, shift: i32) -> Option<i256> {
    let power = i256::from_i128(10).checked_pow(shift.unsigned_abs())?;
    let (left, right) = if shift >= 0 {
        (left.checked_mul(power)?, right)
    } else {
        (left, right.checked_mul(power)?)
    };
    let (whole, rest) = (left.checked_div(right)?, left.checked_rem(right)?);
    let twice = rest.checked_abs()?.checked_mul(i256::from_i128(2))?;
    if twice < right.checked_abs()? {
        return Some(whole);
    }
    let is_negative = (left < i256::ZERO) != (right < i256::ZERO);
    whole.checked_add(if is_negative {
        i256::MINUS_ONE
    } else {
        i256::ONE
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(digits: i128, scale: i8) -> ScalarValue {
        ScalarValue::Decimal128(Some(digits), 38, scale)
    }

    #[test]
    fn places_are_postgresqls() {
        for (left, right, expected) in [
            (decimal(1, 0), decimal(3, 0), 20),
            (decimal(10, 0), decimal(3, 0), 16),
            (decimal(100_000, 0), decimal(3, 0), 12),
            (decimal(1, 3), decimal(3, 0), 20),
            (decimal(123_456_789, 1), decimal(3, 4), 8),
            (decimal(0, 0), decimal(3, 0), 20),
            (decimal(70, 1), decimal(2, 0), 16),
        ] {
            assert_eq!(
                places_of_quotient(&left, &right),
                Some(expected),
                "{left} / {right}"
            );
        }
    }

    #[test]
    fn halves_go_away_from_zero() {
        let of = |left: i128, right: i128, shift| {
            let found = quotient(i256::from_i128(left), i256::from_i128(right), shift);
            found.and_then(i256::to_i128)
        };
        assert_eq!(of(1, 3, 4), Some(3333));
        assert_eq!(of(-1, 2, 0), Some(-1));
        assert_eq!(of(5, 2, 0), Some(3));
        assert_eq!(of(2, 3, 2), Some(67));
        assert_eq!(of(1500, 1, -3), Some(2));
        assert_eq!(of(1, 3, 200), None);
    }
}
