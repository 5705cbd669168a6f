//! Functions of PostgreSQL that are written with others: `format`, `to_timestamp` and `to_date` with
//! a pattern, `make_timestamptz`, `array_fill`, and the aggregates `percentile_disc` and `mode` with WITHIN GROUP.

use crate::dialect::array_fills::filled;
use crate::dialect::rewriting::call;
use crate::error::{SqlError, SqlResult};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArguments, TimezoneInfo, Value,
};
use marigram_functions::TIME_FROM_PATTERN;

/// The names of the functions.
pub(crate) const NAMES: [&str; 7] = [
    "array_fill",
    "format",
    "to_timestamp",
    "to_date",
    "make_timestamptz",
    "percentile_disc",
    "mode",
];
/// The widest column of `format`, characters.
const WIDTH_MAX: u32 = 1000;

/// The expression that stands for a call; `None` if the call stays as it is.
///
/// # Errors
/// If the call has arguments that PostgreSQL refuses, or that are not supported.
pub(crate) fn expanded(name: &str, function: &Function) -> SqlResult<Option<Expr>> {
    let FunctionArguments::List(list) = &function.args else {
        return Ok(None);
    };
    let args: Option<Vec<&Expr>> = list
        .args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        })
        .collect();
    let Some(args) = args else {
        return Ok(None);
    };
    Ok(match (name, &args[..]) {
        ("to_timestamp" | "to_date", [text, pattern]) => read_time(name, text, pattern),
        ("make_timestamptz", [parts @ .., zone]) if parts.len() == 6 => {
            let time = call("make_timestamp", cloned(parts));
            Some(call("timezone", vec![(*zone).clone(), time]))
        }
        ("make_timestamptz", parts) if parts.len() == 6 => {
            Some(cast(call("make_timestamp", cloned(parts)), zoned()))
        }
        ("array_fill", [value, sizes]) => Some(filled(value, sizes, None)?),
        ("array_fill", [value, sizes, bounds]) => Some(filled(value, sizes, Some(bounds))?),
        ("format", [text, values @ ..]) => Some(format(text, values)?),
        ("percentile_disc", [fraction]) => Some(percentile_disc(fraction, function)?),
        ("mode", []) => match &function.within_group[..] {
            [by] => {
                let mut mode = call("mode", vec![by.expr.clone()]);
                if let Expr::Function(mode) = &mut mode {
                    mode.filter.clone_from(&function.filter);
                }
                Some(mode)
            }
            _ => None,
        },
        _ => None,
    })
}

fn cloned(exprs: &[&Expr]) -> Vec<Expr> {
    exprs.iter().map(|expr| (*expr).clone()).collect()
}

fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    }
}

fn zoned() -> DataType {
    DataType::Timestamp(None, TimezoneInfo::Tz)
}

fn literal(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn text(text: impl Into<String>) -> Expr {
    Expr::value(Value::SingleQuotedString(text.into()))
}

/// `to_timestamp(text, pattern)` and `to_date(text, pattern)`. A pattern with a `%` before a letter is one of
/// strftime, which the planner's functions know.
fn read_time(name: &str, source: &Expr, pattern: &Expr) -> Option<Expr> {
    let known = literal(pattern)?;
    let is_strftime = |pair: &[u8]| pair[0] == b'%' && pair[1].is_ascii_alphabetic();
    if known.as_bytes().windows(2).any(is_strftime) {
        return None;
    }
    let time = call(TIME_FROM_PATTERN, vec![source.clone(), pattern.clone()]);
    if name == "to_date" {
        return Some(cast(time, DataType::Date));
    }
    // The text names the zone itself: the time is in UTC.
    if known.to_ascii_lowercase().contains("tzh") {
        return Some(call("timezone", vec![text("UTC"), time]));
    }
    Some(cast(time, zoned()))
}

/// A piece of the format of `format`.
enum FormatPiece {
    Text(String),
    Value {
        place: Option<usize>,
        width: u32,
        is_left: bool,
        kind: char,
    },
}

/// `format(format, value, …)`: the pieces of the format, concatenated.
fn format(written: &Expr, values: &[&Expr]) -> SqlResult<Expr> {
    let Some(written) = literal(written) else {
        return Err(SqlError::unsupported(
            "format takes its format as a literal text; elsewhere, use || or concat",
        ));
    };
    let mut next = 0;
    let mut parts = vec![text("")];
    for piece in pieces(written)? {
        let (place, width, is_left, kind) = match piece {
            FormatPiece::Text(piece) => {
                parts.push(text(piece));
                continue;
            }
            FormatPiece::Value {
                place,
                width,
                is_left,
                kind,
            } => (place, width, is_left, kind),
        };
        let at = place.unwrap_or(next);
        next = at + 1;
        let Some(value) = values.get(at) else {
            return Err(SqlError::invalid("22023", "too few arguments for format()"));
        };
        let value = cast((*value).clone(), DataType::Text);
        let value = match kind {
            'I' => call("quote_ident", vec![value]),
            'L' => call("quote_nullable", vec![value]),
            _ => value,
        };
        parts.push(if width == 0 {
            value
        } else {
            padded(value, width, is_left)
        });
    }
    Ok(call("concat", parts))
}

/// A text with blanks up to a width; a longer one stays as it is.
fn padded(value: Expr, width: u32, is_left: bool) -> Expr {
    let value = call("coalesce", vec![value, text("")]);
    let number = |number: String| Expr::value(Value::Number(number, false));
    let length = call("char_length", vec![value.clone()]);
    let width = call("greatest", vec![length, number(width.to_string())]);
    let name = if is_left { "rpad" } else { "lpad" };
    call(
        name,
        vec![value, cast(width, DataType::BigInt(None)), text(" ")],
    )
}

/// The pieces of a format: `%[position$][-][width]type`.
fn pieces(written: &str) -> SqlResult<Vec<FormatPiece>> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut chars = written.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            plain.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            plain.push('%');
            continue;
        }
        let mut place = None;
        let mut digits = String::new();
        while let Some(digit) = chars.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        if !digits.is_empty() && chars.next_if_eq(&'$').is_some() {
            let position = digits.parse::<usize>().ok();
            let position = position.and_then(|position| position.checked_sub(1));
            place = Some(position.ok_or_else(|| {
                let message = "format specifies argument 0, but arguments are numbered from 1";
                SqlError::invalid("22023", message)
            })?);
            digits.clear();
        }
        let is_left = digits.is_empty() && chars.next_if_eq(&'-').is_some();
        while let Some(digit) = chars.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        let width = if digits.is_empty() {
            0
        } else {
            let width = digits.parse().ok().filter(|width| *width <= WIDTH_MAX);
            width.ok_or_else(|| {
                let message = format!("format pads to at most {WIDTH_MAX} characters");
                SqlError::invalid("22023", message)
            })?
        };
        let kind = match chars.next() {
            Some(kind @ ('s' | 'I' | 'L')) => kind,
            Some('*') => {
                return Err(SqlError::unsupported(
                    "format takes widths as numbers, not as arguments (*)",
                ));
            }
            Some(other) => {
                let message = format!("unrecognized format() type specifier \"{other}\"");
                return Err(SqlError::invalid("22023", message));
            }
            None => {
                let message = "unterminated format() type specifier";
                return Err(SqlError::invalid("22023", message));
            }
        };
        if !plain.is_empty() {
            pieces.push(FormatPiece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(FormatPiece::Value {
            place,
            width,
            is_left,
            kind,
        });
    }
    if !plain.is_empty() {
        pieces.push(FormatPiece::Text(plain));
    }
    Ok(pieces)
}

/// `percentile_disc(fraction) WITHIN GROUP (ORDER BY value)`: the first value in order at or above that
/// part of the values.
fn percentile_disc(fraction: &Expr, function: &Function) -> SqlResult<Expr> {
    let [by] = &function.within_group[..] else {
        return Err(SqlError::syntax(
            "write percentile_disc(0.5) WITHIN GROUP (ORDER BY value)",
        ));
    };
    if let Expr::Value(value) = fraction
        && let Value::Number(number, _) = &value.value
        && !number
            .parse::<f64>()
            .is_ok_and(|fraction| (0.0..=1.0).contains(&fraction))
    {
        let message = format!("percentile value {number} is not between 0 and 1");
        return Err(SqlError::invalid("22003", message));
    }
    if function.over.is_some() {
        return Err(SqlError::unsupported(
            "percentile_disc is no window function; GROUP BY in a subquery, or use percentile_cont",
        ));
    }
    let value = &by.expr;
    let is_there = Expr::IsNotNull(Box::new(value.clone()));
    let condition = match &function.filter {
        None => is_there,
        Some(filter) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(filter.clone())),
            op: BinaryOperator::And,
            right: Box::new(is_there),
        },
    };
    let aggregate = |name: &str, is_ordered: bool| {
        let mut aggregate = call(name, vec![value.clone()]);
        if let Expr::Function(aggregate) = &mut aggregate {
            aggregate.filter = Some(Box::new(condition.clone()));
            if is_ordered && let FunctionArguments::List(list) = &mut aggregate.args {
                let order = FunctionArgumentClause::OrderBy(vec![by.clone()]);
                list.clauses.push(order);
            }
        }
        aggregate
    };
    let double = DataType::Double(ExactNumberInfo::None);
    let part = Expr::BinaryOp {
        left: Box::new(cast(fraction.clone(), double.clone())),
        op: BinaryOperator::Multiply,
        right: Box::new(cast(aggregate("count", false), double)),
    };
    let one = Expr::value(Value::Number("1".to_owned(), false));
    let place = call("greatest", vec![call("ceil", vec![part]), one]);
    let values = aggregate("array_agg", true);
    Ok(call(
        "array_element",
        vec![values, cast(place, DataType::BigInt(None))],
    ))
}
