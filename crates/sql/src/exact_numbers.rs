//! Numbers that a double cannot hold are decimals, as in PostgreSQL, or refused; never rounded in
//! silence.
//!
//! The planner takes a literal with a point, or one beyond 64 bits, for a double. A literal that no
//! double is written as (`9007199254740993.5`, `18446744073709551616`) becomes a cast of its text to
//! a decimal with just its places. What is written as a double prints, with up to 17 digits, stays one.
//! `'…'::NUMERIC` of a literal gets the places of the literal, where the planner would take ten.

use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, Value, VisitorMut,
};
use std::ops::ControlFlow;

/// Most digits of a decimal.
const DIGITS_MAX: usize = 76;
/// Digits with which a decimal is made, so that sums of it have room.
const DIGITS: usize = 38;
/// Digits that every double tells apart.
const DOUBLE_DIGITS: usize = 15;

/// Whether a statement may have such numbers.
pub fn may_be_long(sql: &str) -> bool {
    let mut run = 0;
    for byte in sql.bytes() {
        match byte {
            b'0'..=b'9' => run += 1,
            b'.' | b'_' => {}
            _ => run = 0,
        }
        if run > DOUBLE_DIGITS {
            return true;
        }
    }
    let lower = sql.to_ascii_lowercase();
    lower.contains("numeric") || lower.contains("decimal")
}

/// Makes decimals of them.
pub struct ExactNumbers;

impl VisitorMut for ExactNumbers {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        match expr {
            Expr::Value(value) => {
                let Value::Number(text, _) = &value.value else {
                    return ControlFlow::Continue(());
                };
                let text = text.clone();
                match (ExactDecimal::from_text(&text), is_exact(&text)) {
                    (Some(decimal), false) => match decimal.data_type() {
                        Some(data_type) => {
                            *expr = cast(text, data_type);
                            ControlFlow::Continue(())
                        }
                        None => ControlFlow::Break(too_long(&text)),
                    },
                    _ => ControlFlow::Continue(()),
                }
            }
            Expr::Cast {
                expr: inner,
                data_type,
                ..
            } if is_open(data_type) => {
                if let Expr::Cast {
                    data_type: exact @ DataType::Decimal(ExactNumberInfo::PrecisionAndScale(..)),
                    ..
                } = inner.as_ref()
                {
                    // A literal that has just become a decimal, or was written as one.
                    *data_type = exact.clone();
                    return ControlFlow::Continue(());
                }
                let Expr::Value(value) = inner.as_ref() else {
                    return ControlFlow::Continue(());
                };
                let (Value::SingleQuotedString(text) | Value::Number(text, _)) = &value.value
                else {
                    return ControlFlow::Continue(());
                };
                let text = text.trim().to_owned();
                let Some(decimal) = ExactDecimal::from_text(&text) else {
                    return ControlFlow::Continue(());
                };
                match decimal.data_type() {
                    Some(exact) => {
                        *data_type = exact;
                        **inner = Expr::value(Value::SingleQuotedString(text));
                        ControlFlow::Continue(())
                    }
                    None => ControlFlow::Break(too_long(&text)),
                }
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn too_long(text: &str) -> SqlError {
    let start: String = text.chars().take(24).collect();
    SqlError::invalid(
        "22003",
        format!(
            "the number {start}… has more than {DIGITS_MAX} digits, which a NUMERIC has at most; \
             write it with an exponent for a DOUBLE PRECISION"
        ),
    )
}

fn cast(text: String, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::value(Value::SingleQuotedString(text))),
        data_type,
        array: false,
        format: None,
    }
}

/// Whether a type is NUMERIC without digits that are named.
fn is_open(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Numeric(ExactNumberInfo::None)
            | DataType::Decimal(ExactNumberInfo::None)
            | DataType::Dec(ExactNumberInfo::None)
    )
}

/// A number without an exponent, by its places.
struct ExactDecimal {
    whole: usize,
    places: usize,
}

impl ExactDecimal {
    fn from_text(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, places) = digits.split_once('.').unwrap_or((digits, ""));
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + places.len() == 0 || !are_digits(whole) || !are_digits(places) {
            return None;
        }
        Some(Self {
            whole: whole.trim_start_matches('0').len(),
            places: places.len(),
        })
    }

    /// The type that holds it; `None` where none does.
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

/// Whether the number that the planner makes of a literal is what is written: an integer of 64 bits,
/// or a double that is written so.
fn is_exact(text: &str) -> bool {
    if !text.contains('.') {
        return text.parse::<u64>().is_ok();
    }
    let written = significant(text);
    if written.len() <= DOUBLE_DIGITS {
        return true;
    }
    let Ok(double) = text.parse::<f64>() else {
        return false;
    };
    let as_printed = |digits: usize| significant(mantissa(&format!("{double:.digits$e}")));
    written == significant(mantissa(&format!("{double:e}")))
        || written == as_printed(15)
        || written == as_printed(16)
}

fn mantissa(text: &str) -> &str {
    text.split('e').next().unwrap_or(text)
}

/// The digits of a number without the zeros around them.
fn significant(text: &str) -> String {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_double_prints_stays_a_double() {
        for double in [
            "0.1",
            "3.141592653589793",
            "0.30000000000000004",
            "0.10000000000000001",
            "9007199254740992.0",
            "18446744073709551615",
            "9007199254740993",
            "1.0000000000000000000000000000",
            "0.000000000000000000000001",
        ] {
            assert!(is_exact(double), "{double}");
        }
        for decimal in [
            "9007199254740993.0",
            "9007199254740993.5",
            "18446744073709551616",
            "0.1234567890123456789",
            "123456789012345678.25",
        ] {
            assert!(!is_exact(decimal), "{decimal}");
        }
    }

    #[test]
    fn decimals_have_just_their_places() {
        let of = |text: &str| ExactDecimal::from_text(text).and_then(|decimal| decimal.data_type());
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
}
