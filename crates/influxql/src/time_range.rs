//! Separates the times in WHERE from the rest of the condition.
//!
//! Every comparison with `time` narrows a single range, wherever it occurs and whether AND or OR
//! surrounds it: InfluxDB does not support OR between times. The rest is the condition on tags and
//! fields.

use crate::ast::{BinaryOp, Expr, Literal, TimeValue};
use crate::civil;
use crate::fold::{Folding, fold, fold_inner, in_parentheses, join, to_time};
use crate::select_error::SelectError;
use crate::zone::{TimeZones, Zone};

/// The oldest time that a row can have, in nanoseconds since the epoch.
pub const TIME_MIN_NS: i64 = i64::MIN + 2;

/// The newest time that a row can have, in nanoseconds since the epoch.
pub const TIME_MAX_NS: i64 = i64::MAX - 1;

/// Times from one to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConditionTimeRange {
    /// The oldest time in nanoseconds since the epoch, if there is one.
    pub min_ns: Option<i64>,
    /// The newest time in nanoseconds since the epoch, if there is one.
    pub max_ns: Option<i64>,
}

/// A condition, split into its times and the rest.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SplitCondition {
    /// The condition without its times; `None` if every row satisfies it.
    pub condition: Option<Expr>,
    /// The range of times.
    pub time_range: ConditionTimeRange,
}

/// The context in which a condition is read.
#[derive(Clone, Copy)]
pub struct TimeContext<'a> {
    /// The value of `now()`, in nanoseconds since the epoch.
    pub now_ns: i64,
    /// The statement's time zone; UTC if there is none.
    pub time_zone: Option<&'a str>,
    /// Offsets of time zones.
    pub zones: &'a dyn TimeZones,
}

impl<'a> TimeContext<'a> {
    /// The same for a statement with another zone.
    #[must_use]
    pub fn with_zone<'b>(self, time_zone: Option<&'b str>) -> TimeContext<'b>
    where
        'a: 'b,
    {
        TimeContext { time_zone, ..self }
    }

    pub(crate) fn folding(&self) -> Folding<'a> {
        Folding {
            now_ns: Some(self.now_ns),
            math: false,
            zone: Some(Zone {
                zones: self.zones,
                name: self.time_zone,
            }),
        }
    }
}

impl ConditionTimeRange {
    /// The times in both ranges.
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        let later = |a: i64, b: i64| a.max(b);
        let earlier = |a: i64, b: i64| a.min(b);
        Self {
            min_ns: both(self.min_ns, other.min_ns, later),
            max_ns: both(self.max_ns, other.max_ns, earlier),
        }
    }
}

fn both(a: Option<i64>, b: Option<i64>, choose: impl Fn(i64, i64) -> i64) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(choose(a, b)),
        (a, b) => a.or(b),
    }
}

/// Removes the times from a condition.
///
/// # Errors
/// If `time` is compared with something that is not a time, or the expression is not a condition.
pub fn split_condition(
    condition: Option<&Expr>,
    context: &TimeContext<'_>,
) -> Result<SplitCondition, SelectError> {
    let Some(condition) = condition else {
        return Ok(SplitCondition::default());
    };
    let (condition, time_range) = split(condition, context.folding())?;
    let condition = match condition {
        Some(Expr::Paren(inner)) => Some(*inner),
        other => other,
    };
    let always = Expr::Literal(Literal::Boolean(true));
    Ok(SplitCondition {
        condition: condition.filter(|condition| *condition != always),
        time_range,
    })
}

fn split(
    condition: &Expr,
    folding: Folding<'_>,
) -> Result<(Option<Expr>, ConditionTimeRange), SelectError> {
    let joins = |op| matches!(op, BinaryOp::And | BinaryOp::Or);
    match condition {
        Expr::Binary(binary) if joins(binary.op) => {
            let (first, links) = binary.chain(joins);
            let (mut rest, mut range) = split(first, folding)?;
            for (op, rhs) in links {
                let (rhs, rhs_range) = split(rhs, folding)?;
                range = range.intersect(rhs_range);
                rest = match (rest, rhs) {
                    (Some(lhs), Some(rhs)) => Some(join(lhs, op, rhs, Folding::default())),
                    (lhs, rhs) => lhs.or(rhs),
                };
            }
            Ok((rest, range))
        }
        Expr::Binary(binary) if binary.lhs.is_time() => {
            Ok((None, compared_time(binary.op, &binary.rhs, folding)?))
        }
        Expr::Binary(binary) if binary.rhs.is_time() => {
            let range = compared_time(binary.op.mirrored(), &binary.lhs, folding)?;
            Ok((None, range))
        }
        Expr::Binary(_) => Ok((
            Some(fold_inner(condition, folding)),
            ConditionTimeRange::default(),
        )),
        Expr::Paren(inner) => {
            let (rest, range) = split(inner, folding)?;
            Ok((rest.map(in_parentheses), range))
        }
        Expr::Literal(Literal::Boolean(_)) => {
            Ok((Some(condition.clone()), ConditionTimeRange::default()))
        }
        other => Err(SelectError::InvalidCondition(other.to_string())),
    }
}

/// The range of times for which `time op value` is true.
fn compared_time(
    op: BinaryOp,
    value: &Expr,
    folding: Folding<'_>,
) -> Result<ConditionTimeRange, SelectError> {
    let time = match value {
        Expr::Literal(Literal::String(text)) if civil::looks_like_time(text) => {
            let time = to_time(text, folding.zone).ok_or(SelectError::InvalidTime)?;
            Expr::Literal(Literal::Time(time))
        }
        other => fold(other, folding),
    };
    let ns = match time {
        Expr::Literal(Literal::Time(time)) => within_limits(time)?,
        Expr::Literal(Literal::Duration(ns) | Literal::Integer(ns)) => ns,
        Expr::Literal(Literal::Number(value)) => value as i64,
        other => return Err(SelectError::TimeNotCompatible(other.kind_name())),
    };
    let (min_ns, max_ns) = match op {
        BinaryOp::Gt => (Some(ns.saturating_add(1)), None),
        BinaryOp::Gte => (Some(ns), None),
        BinaryOp::Lt => (None, Some(ns.saturating_sub(1))),
        BinaryOp::Lte => (None, Some(ns)),
        BinaryOp::Eq => (Some(ns), Some(ns)),
        other => return Err(SelectError::TimeOperator(other.sign())),
    };
    Ok(ConditionTimeRange { min_ns, max_ns })
}

/// The nanoseconds of a moment that a row could have.
fn within_limits(time: TimeValue) -> Result<i64, SelectError> {
    let shown = || civil::rfc3339(time.unix_ns, time.offset_seconds);
    if time.unix_ns > i128::from(TIME_MAX_NS) {
        return Err(SelectError::TimeOverflows(shown()));
    }
    match i64::try_from(time.unix_ns) {
        // In InfluxDB, the oldest time means no time.
        Ok(ns) if ns > TIME_MIN_NS => Ok(ns),
        _ => Err(SelectError::TimeUnderflows(shown())),
    }
}

#[cfg(test)]
mod tests;
