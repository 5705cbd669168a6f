//! Casts to which PostgreSQL and Arrow give different values: decimal numbers to whole numbers,
//! which are rounded and not truncated; text to BYTES, in PostgreSQL's forms `\x00ff` and `\000`;
//! text to intervals and times of day; intervals, times, floats, BYTES and rows to text.

use crate::clock_texts::{ClockTextError, parse_clock};
use crate::float_casts::{is_narrow, is_read_exactly, narrow_floats, read_floats};
use crate::plan_expressions::replace_in_expressions;
use crate::refusal::refused;
use crate::value_texts::{float_texts, hexadecimal_bytes, row_texts, time_texts};
use crate::{format_postgres_interval, parse_postgres_interval};
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Decimal256Array, Int32Array, Int64Array,
    IntervalMonthDayNanoArray, StringArray, Time64NanosecondArray, UInt64Array,
};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Decimal256Type, Float64Type, IntervalMonthDayNanoType, i256};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TryCast, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

pub use crate::value_texts::as_intervals;

/// See the module documentation. The rule runs after DataFusion's type coercion, which adds such
/// casts.
#[derive(Debug)]
pub struct ValueCasts;

impl AnalyzerRule for ValueCasts {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        replace_in_expressions(plan, may_be_cast, replaced)
    }

    fn name(&self) -> &'static str {
        "value_casts"
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ValueCastKind {
    RoundFloat,
    RoundDecimal,
    ReadBytes,
    ReadInterval,
    ReadDifference,
    WriteInterval,
    WriteTime,
    WriteFloat,
    WriteBytes,
    WriteRow,
    CountBytes,
    ReadFloat,
    ReadClock,
    NarrowFloat,
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => value.is_string(),
        other => other.is_string(),
    }
}

/// Which of these casts an expression is, if any.
fn cast_of(expr: &Expr) -> Option<(&Expr, &DataType)> {
    let (value, to) = match expr {
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            (expr.as_ref(), field.data_type())
        }
        _ => return None,
    };
    let is_wanted = to.is_integer()
        || to.is_string()
        || matches!(
            to,
            DataType::Binary
                | DataType::LargeBinary
                | DataType::Interval(_)
                | DataType::Time64(_)
                | DataType::Float32
                | DataType::Float64
        );
    is_wanted.then_some((value, to))
}

fn may_be_cast(expr: &Expr) -> bool {
    cast_of(expr).is_some() || counted_bytes(expr).is_some()
}

/// The bytes whose length is asked for as if they were a text: the planner makes one of them.
fn counted_bytes(expr: &Expr) -> Option<&Expr> {
    let Expr::ScalarFunction(call) = expr else {
        return None;
    };
    if !["character_length", "octet_length"].contains(&call.func.name()) {
        return None;
    }
    let [Expr::ScalarFunction(text)] = call.args.as_slice() else {
        return None;
    };
    let cast = text.func.inner().downcast_ref::<ValueCast>()?;
    let is_text_of_bytes = cast.kind == ValueCastKind::WriteBytes;
    text.args.first().filter(|_| is_text_of_bytes)
}

/// Which of these casts an expression is.
fn kind_of_cast(expr: &Expr, schema: &DFSchema) -> Option<ValueCastKind> {
    let (value, to) = cast_of(expr)?;
    let from = value.get_type(schema).ok()?;
    match (&from, to) {
        (from, to) if to.is_integer() => match from {
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                Some(ValueCastKind::RoundFloat)
            }
            from if from.is_decimal() => Some(ValueCastKind::RoundDecimal),
            _ => None,
        },
        (from, DataType::Binary | DataType::LargeBinary) if is_text(from) => {
            Some(ValueCastKind::ReadBytes)
        }
        (from, DataType::Interval(_)) if is_text(from) => Some(ValueCastKind::ReadInterval),
        (from, DataType::Time64(_)) if is_text(from) => Some(ValueCastKind::ReadClock),
        (DataType::Binary | DataType::LargeBinary | DataType::BinaryView, to) if to.is_string() => {
            Some(ValueCastKind::WriteBytes)
        }
        (DataType::Struct(_), to) if to.is_string() => Some(ValueCastKind::WriteRow),
        (DataType::Duration(_), DataType::Interval(_)) => Some(ValueCastKind::ReadDifference),
        (DataType::Interval(_) | DataType::Duration(_), to) if to.is_string() => {
            Some(ValueCastKind::WriteInterval)
        }
        (from, DataType::Float32 | DataType::Float64) if is_text(from) => {
            Some(ValueCastKind::ReadFloat)
        }
        (from, DataType::Float32) if *from == DataType::Float64 || from.is_decimal() => {
            Some(ValueCastKind::NarrowFloat)
        }
        // The text of a time with a zone depends on the session.
        (DataType::Timestamp(_, None), to) if to.is_string() => Some(ValueCastKind::WriteTime),
        (DataType::Float16 | DataType::Float32 | DataType::Float64, to) if to.is_string() => {
            Some(ValueCastKind::WriteFloat)
        }
        _ => None,
    }
}

fn replaced(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    if let Some(bytes) = counted_bytes(&expr) {
        let function = ValueCast {
            signature: Signature::any(1, Volatility::Immutable),
            kind: ValueCastKind::CountBytes,
            to: DataType::Int32,
            gives_null: false,
        };
        let call =
            ScalarFunction::new_udf(Arc::new(ScalarUDF::from(function)), vec![bytes.clone()]);
        return Transformed::yes(Expr::ScalarFunction(call));
    }
    let Some(kind) = kind_of_cast(&expr, schema) else {
        return Transformed::no(expr);
    };
    // Rules look for constants, of which few are out of range.
    let reads = matches!(kind, ValueCastKind::ReadFloat | ValueCastKind::NarrowFloat);
    if reads && is_plain_constant(&expr) {
        return Transformed::no(expr);
    }
    let (value, to, gives_null) = match expr {
        Expr::Cast(Cast { expr, field }) => (expr, field, false),
        Expr::TryCast(TryCast { expr, field }) => (expr, field, true),
        other => return Transformed::no(other),
    };
    let function = ValueCast {
        signature: Signature::any(1, Volatility::Immutable),
        kind,
        to: to.data_type().clone(),
        gives_null,
    };
    let call = ScalarFunction::new_udf(Arc::new(ScalarUDF::from(function)), vec![*value]);
    Transformed::yes(Expr::ScalarFunction(call))
}

/// The function that computes one of these casts.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ValueCast {
    signature: Signature,
    kind: ValueCastKind,
    to: DataType,
    /// Whether a value that the type cannot hold becomes NULL.
    gives_null: bool,
}

impl ScalarUDFImpl for ValueCast {
    fn name(&self) -> &'static str {
        match self.kind {
            ValueCastKind::RoundFloat | ValueCastKind::RoundDecimal => "round_to_integer",
            ValueCastKind::ReadBytes => "read_bytes",
            ValueCastKind::ReadInterval => "read_interval",
            ValueCastKind::ReadDifference => "read_difference",
            ValueCastKind::WriteInterval => "write_interval",
            ValueCastKind::WriteTime => "write_time",
            ValueCastKind::WriteFloat => "write_float",
            ValueCastKind::WriteBytes => "write_bytes",
            ValueCastKind::WriteRow => "write_row",
            ValueCastKind::CountBytes => "count_bytes",
            ValueCastKind::ReadClock => "read_clock",
            ValueCastKind::ReadFloat => "read_float",
            ValueCastKind::NarrowFloat => "narrow_float",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.into_iter().next() else {
            return internal_err!("a cast takes one argument");
        };
        let is_one = matches!(value, ColumnarValue::Scalar(_));
        let values = value.into_array(1)?;
        let out = match self.kind {
            ValueCastKind::RoundFloat => self.round_floats(&values)?,
            ValueCastKind::RoundDecimal => self.round_decimals(&values)?,
            ValueCastKind::ReadBytes => {
                let read = self.read(&values, |text| {
                    parse_bytes(text).map_err(|message| refused("22P02", message))
                })?;
                let read = read.iter().map(Option::as_deref);
                cast(&read.collect::<BinaryArray>(), &self.to)?
            }
            ValueCastKind::ReadInterval => {
                let read = self.read(&values, |text| {
                    parse_postgres_interval(text).ok_or_else(|| {
                        let text = text.escape_debug();
                        refused(
                            "22007",
                            format!("invalid input syntax for type interval: \"{text}\""),
                        )
                    })
                })?;
                cast(&IntervalMonthDayNanoArray::from(read), &self.to)?
            }
            ValueCastKind::ReadDifference => cast(&as_intervals(&values)?, &self.to)?,
            ValueCastKind::WriteInterval => {
                let intervals = as_intervals(&values)?;
                let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
                let texts: StringArray = intervals
                    .iter()
                    .map(|interval| interval.map(format_postgres_interval))
                    .collect();
                cast(&texts, &self.to)?
            }
            ValueCastKind::WriteTime => cast(&time_texts(&values)?, &self.to)?,
            ValueCastKind::WriteFloat => cast(&float_texts(&values)?, &self.to)?,
            ValueCastKind::WriteBytes => {
                let bytes = cast(&values, &DataType::Binary)?;
                let texts = bytes.as_binary::<i32>().iter();
                let texts: StringArray = texts.map(|bytes| bytes.map(hexadecimal_bytes)).collect();
                cast(&texts, &self.to)?
            }
            ValueCastKind::WriteRow => cast(&row_texts(values.as_struct())?, &self.to)?,
            ValueCastKind::CountBytes => {
                let bytes = cast(&values, &DataType::Binary)?;
                let lengths = bytes.as_binary::<i32>().iter();
                let lengths = lengths.map(|bytes| bytes.and_then(|b| i32::try_from(b.len()).ok()));
                Arc::new(lengths.collect::<Int32Array>())
            }
            ValueCastKind::ReadClock => {
                let read = self.read(&values, |text| {
                    parse_clock(text).map_err(|error| clock_refusal(text, error))
                })?;
                let nanos = Time64NanosecondArray::from(read);
                cast(&nanos, &self.to)?
            }
            ValueCastKind::ReadFloat => read_floats(&values, &self.to, self.gives_null)?,
            ValueCastKind::NarrowFloat => narrow_floats(&values, self.gives_null)?,
        };
        Ok(if is_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?)
        } else {
            ColumnarValue::Array(out)
        })
    }
}

fn clock_refusal(text: &str, error: ClockTextError) -> DataFusionError {
    let text = text.escape_debug();
    match error {
        ClockTextError::Form => refused(
            "22007",
            format!("invalid input syntax for type time: \"{text}\""),
        ),
        ClockTextError::Range => refused(
            "22008",
            format!("date/time field value out of range: \"{text}\""),
        ),
    }
}

/// Whether an expression is a cast of a literal that a float can hold.
fn is_plain_constant(expr: &Expr) -> bool {
    match cast_of(expr) {
        Some((Expr::Literal(ScalarValue::Float64(Some(float)), _), _)) => is_narrow(*float),
        Some((Expr::Literal(text, _), to)) => match text.try_as_str() {
            Some(Some(text)) => is_read_exactly(text, to),
            _ => true,
        },
        _ => false,
    }
}

impl ValueCast {
    /// Converts whole numbers to their type; a number that does not fit is an error, or null.
    fn in_type(&self, numbers: Vec<Option<i128>>) -> Result<ArrayRef> {
        let mut kept = Vec::with_capacity(numbers.len());
        let (least, most) = integer_range(&self.to);
        for number in numbers {
            kept.push(match number {
                Some(number) if number < least || number > most => {
                    if !self.gives_null {
                        return Err(self.out_of_range());
                    }
                    None
                }
                other => other,
            });
        }
        let wide: ArrayRef = if self.to == DataType::UInt64 {
            let numbers = kept.into_iter().map(|number| u64::try_from(number?).ok());
            Arc::new(numbers.collect::<UInt64Array>())
        } else {
            let numbers = kept.into_iter().map(|number| i64::try_from(number?).ok());
            Arc::new(numbers.collect::<Int64Array>())
        };
        Ok(cast(&wide, &self.to)?)
    }

    fn out_of_range(&self) -> DataFusionError {
        let kind = match self.to {
            DataType::Int8 | DataType::UInt8 | DataType::Int16 => "smallint",
            DataType::Int32 | DataType::UInt16 => "integer",
            DataType::UInt32 => "integer unsigned",
            DataType::UInt64 => "bigint unsigned",
            _ => "bigint",
        };
        refused("22003", format!("{kind} out of range"))
    }

    /// Rounds half to even, as PostgreSQL does.
    fn round_floats(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let floats = cast(values, &DataType::Float64)?;
        let floats = floats.as_primitive::<Float64Type>();
        let mut numbers = Vec::with_capacity(floats.len());
        for float in floats {
            numbers.push(match float.map(f64::round_ties_even) {
                Some(float) if !float.is_finite() || float.abs() > 1e20 => {
                    if !self.gives_null {
                        return Err(self.out_of_range());
                    }
                    None
                }
                float => float.map(|float| float as i128),
            });
        }
        self.in_type(numbers)
    }

    /// Rounds half away from zero, as PostgreSQL does.
    fn round_decimals(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let scale = match values.data_type() {
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale)
            | DataType::Decimal256(_, scale) => *scale,
            other => return internal_err!("decimals of the type {other}"),
        };
        let wide = cast(values, &DataType::Decimal256(76, scale))?;
        let wide: &Decimal256Array = wide.as_primitive::<Decimal256Type>();
        let one = i256::from_i128(10).checked_pow(u32::from(scale.unsigned_abs()));
        let Some(one) = one else {
            return Err(self.out_of_range());
        };
        let mut numbers = Vec::with_capacity(wide.len());
        for value in wide {
            let number = value.map(|value| {
                if scale < 0 {
                    return value.checked_mul(one)?.to_i128();
                }
                let (whole, rest) = (value.checked_div(one)?, value.checked_rem(one)?);
                let twice = rest.checked_abs()?.checked_mul(i256::from_i128(2))?;
                let up = i128::from(twice >= one);
                let sign = if value < i256::ZERO { -1 } else { 1 };
                whole.to_i128()?.checked_add(sign * up)
            });
            numbers.push(match number {
                None => None,
                Some(Some(number)) => Some(number),
                Some(None) if self.gives_null => None,
                Some(None) => return Err(self.out_of_range()),
            });
        }
        self.in_type(numbers)
    }

    /// Parses texts as values.
    fn read<T>(
        &self,
        values: &ArrayRef,
        read: impl Fn(&str) -> Result<T>,
    ) -> Result<Vec<Option<T>>> {
        let options = CastOptions::default();
        let texts = cast_with_options(values, &DataType::Utf8, &options)?;
        let mut out = Vec::with_capacity(texts.len());
        for text in texts.as_string::<i32>() {
            out.push(match text.map(&read) {
                None => None,
                Some(Ok(value)) => Some(value),
                Some(Err(_)) if self.gives_null => None,
                Some(Err(error)) => return Err(error),
            });
        }
        Ok(out)
    }
}

fn integer_range(kind: &DataType) -> (i128, i128) {
    match kind {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        _ => (i64::MIN.into(), i64::MAX.into()),
    }
}

/// Parses a text like PostgreSQL's `byteain`: `\x` and hexadecimal digits, or characters in which a
/// backslash precedes three octal digits or another backslash.
pub(crate) fn parse_bytes(text: &str) -> Result<Vec<u8>, String> {
    if let Some(digits) = text.strip_prefix("\\x") {
        let digits: Vec<u8> = digits
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        if !digits.len().is_multiple_of(2) {
            return Err("invalid hexadecimal data: odd number of digits".to_owned());
        }
        let value = |digit: u8| (digit as char).to_digit(16);
        return digits
            .chunks(2)
            .map(|pair| match (value(pair[0]), value(pair[1])) {
                (Some(high), Some(low)) => Ok((high * 16 + low) as u8),
                _ => Err("invalid hexadecimal digit".to_owned()),
            })
            .collect();
    }
    let wrong = || "invalid input syntax for type bytea".to_owned();
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        if byte != b'\\' {
            out.push(byte);
            at += 1;
            continue;
        }
        if bytes.get(at + 1) == Some(&b'\\') {
            out.push(b'\\');
            at += 2;
            continue;
        }
        let octal = bytes.get(at + 1..at + 4).ok_or_else(wrong)?;
        let [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7'] = *octal else {
            return Err(wrong());
        };
        out.push((high - b'0') * 64 + (middle - b'0') * 8 + (low - b'0'));
        at += 4;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn bytes_are_read_as_postgresql_reads_them() {
        for (text, expected) in [
            ("\\x00ff", Some(&[0_u8, 255][..])),
            ("\\x DE ad", Some(&[0xde, 0xad][..])),
            ("abc", Some(&b"abc"[..])),
            ("\\000\\377", Some(&[0, 255][..])),
            ("a\\\\b", Some(&b"a\\b"[..])),
            ("", Some(&b""[..])),
            ("\\x", Some(&b""[..])),
            ("\\x0", None),
            ("\\x0g", None),
            ("\\400", None),
            ("\\1", None),
            ("a\\", None),
        ] {
            assert_eq!(parse_bytes(text).ok().as_deref(), expected, "{text}");
        }
    }
}
