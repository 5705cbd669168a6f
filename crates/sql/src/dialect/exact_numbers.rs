//! Literals that are cast to NUMERIC keep all their digits, and literals that are cast to integers
//! are rounded like a NUMERIC.
//!
//! The planner reads a literal with a point or an exponent as a double, and gives a NUMERIC without
//! a scale ten decimal places. Here the text of the literal is cast instead, to a decimal with
//! exactly its decimal places.

use crate::error::SqlError;
use arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, UnaryOperator, Value, VisitorMut,
};
use std::ops::ControlFlow;

/// The largest number of digits of a decimal.
const DIGITS_MAX: usize = 76;
/// The precision of created decimals, so that their sums have room.
const DIGITS: usize = 38;

/// Whether a statement, in lower case, may contain such casts, or numbers that no type can hold.
pub(crate) fn may_cast_to_numeric(folded: &str) -> bool {
    // An exponent of three digits.
    let exponent = |part: &[u8]| {
        part[0].is_ascii_digit() && part[1] == b'e' && part[2..].iter().all(|digit| *digit != b' ')
    };
    if folded.as_bytes().windows(5).any(exponent) {
        return true;
    }
    let casts = folded.contains("::") || folded.contains("cast");
    folded.contains("numeric") || folded.contains("dec") || casts && folded.contains("int")
}

/// Casts the text of literals instead of the literals.
pub(crate) struct ExactNumbers;

impl VisitorMut for ExactNumbers {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        if let Expr::Value(value) = expr
            && let Value::Number(text, _) = &value.value
            && text.parse::<f64>().is_ok_and(f64::is_infinite)
        {
            let start: String = text.chars().take(24).collect();
            let message = format!("\"{start}\" is out of range for type double precision");
            return ControlFlow::Break(SqlError::invalid("22003", message));
        }
        let Expr::Cast {
            expr: inner,
            data_type,
            ..
        } = expr
        else {
            return ControlFlow::Continue(());
        };
        if is_integer(data_type) {
            // A literal with a point is a NUMERIC, which is rounded half away from zero.
            if let Some(text) = written_number(inner).and_then(|text| without_exponent(&text))
                && text.contains('.')
                && let Some(exact) =
                    ExactDecimal::from_text(&text).and_then(|number| number.data_type())
            {
                **inner = Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(Expr::value(Value::SingleQuotedString(text))),
                    data_type: exact,
                    array: false,
                    format: None,
                };
            }
            return ControlFlow::Continue(());
        }
        let Some(digits) = numeric_digits(data_type) else {
            return ControlFlow::Continue(());
        };
        let Some(text) = literal(inner).and_then(|text| without_exponent(&text)) else {
            return ControlFlow::Continue(());
        };
        let Some(decimal) = ExactDecimal::from_text(&text) else {
            return ControlFlow::Continue(());
        };
        if digits == ExactNumberInfo::None {
            match decimal.data_type() {
                Some(exact) => *data_type = exact,
                None => return ControlFlow::Break(too_long(&text)),
            }
        }
        **inner = Expr::value(Value::SingleQuotedString(text));
        ControlFlow::Continue(())
    }
}

fn too_long(text: &str) -> SqlError {
    let start: String = text.chars().take(24).collect();
    SqlError::invalid(
        "22003",
        format!(
            "the number {start}… has more than {DIGITS_MAX} digits, the limit of NUMERIC; \
             cast it to DOUBLE PRECISION"
        ),
    )
}

/// The precision and scale of a NUMERIC type; `None` for other types.
fn numeric_digits(data_type: &DataType) -> Option<ExactNumberInfo> {
    match data_type {
        DataType::Numeric(digits) | DataType::Decimal(digits) | DataType::Dec(digits) => {
            Some(*digits)
        }
        _ => None,
    }
}

fn is_integer(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::TinyInt(_)
            | DataType::SmallInt(_)
            | DataType::Int2(_)
            | DataType::Int(_)
            | DataType::Integer(_)
            | DataType::Int4(_)
            | DataType::BigInt(_)
            | DataType::Int8(_)
    )
}

/// The text of a numeric literal.
pub(super) fn written_number(expr: &Expr) -> Option<String> {
    let is_number = |expr: &Expr| match expr {
        Expr::Value(value) => matches!(value.value, Value::Number(..)),
        _ => false,
    };
    let mut inner = expr;
    while let Expr::Nested(nested) | Expr::UnaryOp { expr: nested, .. } = inner {
        inner = nested;
    }
    literal(expr).filter(|_| is_number(inner))
}

/// A number as a text that is cast to an exact number with its decimal places; `None` if no type has so many
/// digits.
pub(super) fn exact_literal(text: &str) -> Option<Expr> {
    let text = without_exponent(text)?;
    let data_type = ExactDecimal::from_text(&text)?.data_type()?;
    Some(Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::value(Value::SingleQuotedString(text))),
        data_type,
        array: false,
        format: None,
    })
}

/// The text of a literal that is cast to an exact number, if the cast keeps all of its decimal places.
pub(super) fn literal_places(expr: &Expr) -> Option<String> {
    let Expr::Cast {
        expr, data_type, ..
    } = expr
    else {
        return None;
    };
    let text = literal(expr)?;
    let number = ExactDecimal::from_text(&text)?;
    let places = i64::try_from(number.places).ok()?;
    let scale = match numeric_digits(data_type)? {
        ExactNumberInfo::PrecisionAndScale(_, scale) => scale,
        _ => 0,
    };
    (places <= scale).then_some(text)
}

/// The value of a number's text, with exactly its decimal places; `None` if it is no number, or has more
/// digits than a type.
pub(crate) fn exact_value(text: &str) -> Option<ScalarValue> {
    let text = without_exponent(text.trim())?;
    let number = ExactDecimal::from_text(&text)?;
    let places = i8::try_from(number.places).ok()?;
    let kind = match number.whole + number.places {
        0..=DIGITS => ArrowType::Decimal128(DIGITS as u8, places),
        digits if digits <= DIGITS_MAX => ArrowType::Decimal256(DIGITS_MAX as u8, places),
        _ => return None,
    };
    ScalarValue::Utf8(Some(text)).cast_to(&kind).ok()
}

/// The text of a literal, which may have a sign or be in parentheses.
fn literal(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::Number(text, _) => {
                Some(text.trim().to_owned())
            }
            _ => None,
        },
        Expr::Nested(inner) => literal(inner),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match literal(expr)? {
            text if text.starts_with(['-', '+']) => None,
            text => Some(format!("-{text}")),
        },
        _ => None,
    }
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number without its exponent: `1.5e3` is `1500`; `None` if it is not a number, or far too long.
fn without_exponent(text: &str) -> Option<String> {
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else {
        return Some(text.to_owned());
    };
    let exponent: i32 = exponent.parse().ok()?;
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
    if !are_digits(whole) || !are_digits(places) {
        return None;
    }
    let reach = usize::try_from(exponent.unsigned_abs()).ok()?;
    if reach > 2 * DIGITS_MAX || whole.len() + places.len() > 2 * DIGITS_MAX {
        return None;
    }
    let all = format!("{whole}{places}");
    let point = i32::try_from(whole.len()).ok()? + exponent;
    let (whole, places) = match usize::try_from(point) {
        Ok(point) if point >= all.len() => (format!("{all}{}", "0".repeat(point - all.len())), ""),
        Ok(point) => (all[..point].to_owned(), &all[point..]),
        Err(_) => {
            let zeros = "0".repeat(point.unsigned_abs() as usize);
            return Some(format!("{sign}0.{zeros}{all}"));
        }
    };
    Some(if places.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{places}")
    })
}

/// A number without an exponent: the numbers of its digits before and after the point.
struct ExactDecimal {
    whole: usize,
    places: usize,
}

impl ExactDecimal {
    fn from_text(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.len() + places.len() == 0 || !are_digits(whole) || !are_digits(places) {
            return None;
        }
        Some(Self {
            whole: whole.trim_start_matches('0').len(),
            places: places.len(),
        })
    }

    /// The type that holds the number; `None` if no type does.
    fn data_type(&self) -> Option<DataType> {
        let digits = self.whole + self.places;
        let precision = match digits {
            0..=DIGITS => DIGITS,
            _ if digits <= DIGITS_MAX => DIGITS_MAX,
            _ => return None,
        };
        let exact = ExactNumberInfo::PrecisionAndScale(precision as u64, self.places as i64);
        Some(DataType::Decimal(exact))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_just_their_places() {
        let of = |text: &str| ExactDecimal::from_text(text).and_then(|number| number.data_type());
        let exact = |precision, scale| {
            Some(DataType::Decimal(ExactNumberInfo::PrecisionAndScale(
                precision, scale,
            )))
        };
        assert_eq!(of("-1.50"), exact(38, 2));
        assert_eq!(of("00042"), exact(38, 0));
        assert_eq!(of(&"9".repeat(39)), exact(76, 0));
        assert_eq!(of(&format!(".{}", "1".repeat(76))), exact(76, 76));
        assert_eq!(of(&"9".repeat(77)), None);
        assert!(ExactDecimal::from_text("1e5").is_none() && ExactDecimal::from_text("").is_none());
        assert!(ExactDecimal::from_text("NaN").is_none());
    }

    #[test]
    fn values_keep_their_decimal_places() {
        let shown = |text: &str| exact_value(text).map(|value| value.to_string());
        let kind = |text: &str| exact_value(text).map(|value| value.data_type());
        assert_eq!(kind("1.50"), Some(ArrowType::Decimal128(38, 2)));
        assert_eq!(kind(" -1e-11 "), Some(ArrowType::Decimal128(38, 11)));
        assert_eq!(kind(&"9".repeat(40)), Some(ArrowType::Decimal256(76, 0)));
        assert!(shown("1.50").is_some_and(|text| text.contains("1.50")));
        assert_eq!(["NaN", "x", ""].map(exact_value), [None, None, None]);
    }

    #[test]
    fn exponents_move_the_point() {
        for (text, expected) in [
            ("1.5", "1.5"),
            ("1.5e3", "1500"),
            ("-1.25E1", "-12.5"),
            ("12e-1", "1.2"),
            ("12e-2", ".12"),
            ("1e-3", "0.001"),
            ("+1e+2", "100"),
        ] {
            let found = without_exponent(text);
            assert_eq!(found.as_deref(), Some(expected), "{text}");
            assert!(
                found
                    .and_then(|text| ExactDecimal::from_text(&text).map(|_| ()))
                    .is_some()
            );
        }
        for wrong in ["1e", "1e1000", "1e99999999999", "é1e-2", "é.1e1", "xe1"] {
            assert_eq!(without_exponent(wrong), None, "{wrong}");
        }
    }
}
