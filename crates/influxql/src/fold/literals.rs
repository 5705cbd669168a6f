//! Computes operators between two constants.

use crate::ast::{BinaryOp, Literal, TimeValue};
use crate::civil;
use crate::zone::Zone;

/// The value of `lhs op rhs`, if it can be computed.
pub(super) fn fold_literals(
    op: BinaryOp,
    lhs: &Literal,
    rhs: &Literal,
    zone: Option<Zone<'_>>,
) -> Option<Literal> {
    use Literal::{Boolean, Duration, Integer, Nil, Number, String, Time, Unsigned};
    match (lhs, rhs) {
        (String(_), Nil) => compares_equality(op).then_some(Boolean(false)),
        (Boolean(_) | Duration(_) | Integer(_) | Number(_) | Time(_), Nil) => Some(Boolean(false)),
        (Boolean(lhs), Boolean(rhs)) => booleans(op, *lhs, *rhs),

        (Number(lhs), rhs) => numbers(op, *lhs, float(rhs)?),
        (lhs @ (Integer(_) | Unsigned(_)), Number(rhs)) => numbers(op, float(lhs)?, *rhs),
        (Integer(lhs), Integer(rhs)) => integers(op, *lhs, *rhs),
        (Unsigned(lhs), Unsigned(rhs)) => unsigned(op, *lhs, *rhs),
        (Integer(lhs), Unsigned(rhs)) => {
            let below = *lhs < 0;
            below
                .then(|| order(op, true))
                .flatten()
                .or_else(|| unsigned(op, *lhs as u64, *rhs))
        }
        (Unsigned(lhs), Integer(rhs)) => {
            let above = *rhs < 0;
            above
                .then(|| order(op, false))
                .flatten()
                .or_else(|| unsigned(op, *lhs, *rhs as u64))
        }

        (Duration(lhs), Duration(rhs)) => durations(op, *lhs, *rhs),
        (Duration(lhs), Number(rhs)) => scaled(op, *lhs, to_integer(*rhs), *rhs == 0.0),
        (Duration(lhs), Integer(rhs)) => scaled(op, *lhs, *rhs, *rhs == 0),
        // A whole number is a moment next to a duration, and a duration next to a moment.
        (Integer(lhs), Duration(rhs)) => moved(op, utc(*lhs), *rhs),
        (Duration(lhs) | Integer(lhs), Time(rhs)) => later(op, *lhs, *rhs),
        (Duration(lhs) | Integer(lhs), String(rhs)) => later(op, *lhs, to_time(rhs, zone)?),
        (Time(lhs), Duration(rhs) | Integer(rhs)) => moved(op, *lhs, *rhs),
        (Time(lhs), Time(rhs)) => times(op, *lhs, *rhs),
        (Time(lhs), String(rhs)) => times(op, *lhs, to_time(rhs, zone)?),

        (String(lhs), String(rhs)) => strings(op, lhs, rhs, zone),
        (String(lhs), Duration(rhs) | Integer(rhs)) => moved(op, to_time(lhs, zone)?, *rhs),
        (String(lhs), Time(rhs)) => times(op, to_time(lhs, zone)?, *rhs),
        _ => None,
    }
}

/// The moment that a text denotes.
pub(crate) fn to_time(text: &str, zone: Option<Zone<'_>>) -> Option<TimeValue> {
    if !civil::looks_like_time(text) {
        return None;
    }
    let time = civil::parse_time(text)?;
    let (unix_ns, offset_seconds) = zone.unwrap_or(Zone::UTC).resolve(time);
    Some(TimeValue {
        unix_ns,
        offset_seconds,
    })
}

/// Converts a float to an integer as Go does on this kind of machine: a value that does not fit
/// becomes the smallest integer.
fn to_integer(value: f64) -> i64 {
    // 2^63, the first float above every integer.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

fn utc(unix_ns: i64) -> TimeValue {
    TimeValue {
        unix_ns: unix_ns.into(),
        offset_seconds: 0,
    }
}

fn float(literal: &Literal) -> Option<f64> {
    match literal {
        Literal::Number(value) => Some(*value),
        Literal::Integer(value) => Some(*value as f64),
        Literal::Unsigned(value) => Some(*value as f64),
        _ => None,
    }
}

const fn compares_equality(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Eq | BinaryOp::Neq)
}

/// The result of a comparison of two different values; `below` says whether the left one is
/// smaller.
fn order(op: BinaryOp, below: bool) -> Option<Literal> {
    match op {
        BinaryOp::Lt | BinaryOp::Lte => Some(Literal::Boolean(below)),
        BinaryOp::Gt | BinaryOp::Gte => Some(Literal::Boolean(!below)),
        _ => None,
    }
}

fn compare<T: PartialOrd>(op: BinaryOp, lhs: &T, rhs: &T) -> Option<Literal> {
    Some(Literal::Boolean(match op {
        BinaryOp::Eq => lhs == rhs,
        BinaryOp::Neq => lhs != rhs,
        BinaryOp::Gt => lhs > rhs,
        BinaryOp::Gte => lhs >= rhs,
        BinaryOp::Lt => lhs < rhs,
        BinaryOp::Lte => lhs <= rhs,
        _ => return None,
    }))
}

fn booleans(op: BinaryOp, lhs: bool, rhs: bool) -> Option<Literal> {
    Some(Literal::Boolean(match op {
        BinaryOp::Eq => lhs == rhs,
        BinaryOp::Neq | BinaryOp::BitwiseXor => lhs != rhs,
        BinaryOp::And | BinaryOp::BitwiseAnd => lhs && rhs,
        BinaryOp::Or | BinaryOp::BitwiseOr => lhs || rhs,
        _ => return None,
    }))
}

fn numbers(op: BinaryOp, lhs: f64, rhs: f64) -> Option<Literal> {
    Some(Literal::Number(match op {
        BinaryOp::Add => lhs + rhs,
        BinaryOp::Sub => lhs - rhs,
        BinaryOp::Mul => lhs * rhs,
        BinaryOp::Div if rhs == 0.0 => 0.0,
        BinaryOp::Div => lhs / rhs,
        BinaryOp::Mod => lhs % rhs,
        _ => return compare(op, &lhs, &rhs),
    }))
}

fn integers(op: BinaryOp, lhs: i64, rhs: i64) -> Option<Literal> {
    Some(Literal::Integer(match op {
        BinaryOp::Add => lhs.wrapping_add(rhs),
        BinaryOp::Sub => lhs.wrapping_sub(rhs),
        BinaryOp::Mul => lhs.wrapping_mul(rhs),
        BinaryOp::Div if rhs == 0 => return Some(Literal::Number(0.0)),
        BinaryOp::Div => return Some(Literal::Number(lhs as f64 / rhs as f64)),
        BinaryOp::Mod if rhs == 0 => 0,
        BinaryOp::Mod => lhs.wrapping_rem(rhs),
        BinaryOp::BitwiseAnd => lhs & rhs,
        BinaryOp::BitwiseOr => lhs | rhs,
        BinaryOp::BitwiseXor => lhs ^ rhs,
        _ => return compare(op, &lhs, &rhs),
    }))
}

fn unsigned(op: BinaryOp, lhs: u64, rhs: u64) -> Option<Literal> {
    Some(Literal::Unsigned(match op {
        BinaryOp::Add => lhs.wrapping_add(rhs),
        BinaryOp::Sub => lhs.wrapping_sub(rhs),
        BinaryOp::Mul => lhs.wrapping_mul(rhs),
        BinaryOp::Div => lhs.checked_div(rhs).unwrap_or(0),
        BinaryOp::Mod => lhs.checked_rem(rhs).unwrap_or(0),
        _ => return compare(op, &lhs, &rhs),
    }))
}

fn durations(op: BinaryOp, lhs: i64, rhs: i64) -> Option<Literal> {
    Some(Literal::Duration(match op {
        BinaryOp::Add => lhs.wrapping_add(rhs),
        BinaryOp::Sub => lhs.wrapping_sub(rhs),
        _ => return compare(op, &lhs, &rhs),
    }))
}

/// A duration multiplied or divided by a number; only the whole part of the number counts. InfluxDB
/// fails on a division by less than one; here the result is 0, as for a division by 0.
fn scaled(op: BinaryOp, lhs: i64, rhs: i64, by_zero: bool) -> Option<Literal> {
    match op {
        BinaryOp::Mul => Some(Literal::Duration(lhs.wrapping_mul(rhs))),
        BinaryOp::Div if by_zero || rhs == 0 => Some(Literal::Duration(0)),
        BinaryOp::Div => Some(Literal::Duration(lhs.wrapping_div(rhs))),
        _ => None,
    }
}

/// A moment plus or minus a duration.
fn moved(op: BinaryOp, time: TimeValue, by_ns: i64) -> Option<Literal> {
    let unix_ns = match op {
        BinaryOp::Add => time.unix_ns + i128::from(by_ns),
        BinaryOp::Sub => time.unix_ns + i128::from(by_ns.wrapping_neg()),
        _ => return None,
    };
    Some(Literal::Time(TimeValue { unix_ns, ..time }))
}

/// A duration plus a moment.
fn later(op: BinaryOp, by_ns: i64, time: TimeValue) -> Option<Literal> {
    (op == BinaryOp::Add)
        .then(|| moved(op, time, by_ns))
        .flatten()
}

fn times(op: BinaryOp, lhs: TimeValue, rhs: TimeValue) -> Option<Literal> {
    if op == BinaryOp::Sub {
        let between = lhs.unix_ns - rhs.unix_ns;
        let between = between.clamp(i64::MIN.into(), i64::MAX.into());
        return Some(Literal::Duration(between as i64));
    }
    compare(op, &lhs.unix_ns, &rhs.unix_ns)
}

fn strings(op: BinaryOp, lhs: &str, rhs: &str, zone: Option<Zone<'_>>) -> Option<Literal> {
    let as_times = || times(op, to_time(lhs, zone)?, to_time(rhs, zone)?);
    match op {
        BinaryOp::Add => Some(Literal::String(format!("{lhs}{rhs}"))),
        // The same moment may be written in two ways.
        BinaryOp::Eq | BinaryOp::Neq => as_times().or_else(|| compare(op, &lhs, &rhs)),
        _ => as_times(),
    }
}
