//! Checks GROUP BY: the interval of time, and the other expressions.

use super::Interval;
use crate::ast::{Call, Expr, Literal, Select};
use crate::civil::{looks_like_time, since_go_multiple};
use crate::fold::{Folding, fold, to_time};
use crate::select_error::SelectError;
use crate::time_range::TimeContext;

/// The interval, and the other expressions of GROUP BY.
pub(super) fn split(
    select: &Select,
    context: &TimeContext<'_>,
) -> Result<(Option<Interval>, Vec<Expr>), SelectError> {
    let mut interval: Option<Interval> = None;
    let mut others = Vec::new();
    for dimension in &select.dimensions {
        match fold(&dimension.0, Folding::default()) {
            expr if expr.is_time() => return Err(SelectError::TimeIsFunction),
            Expr::Call(call) => {
                let every_ns = length(&call)?;
                if interval.is_some() {
                    return Err(SelectError::MultipleTimes);
                }
                let offset_ns = match call.args.get(1) {
                    Some(offset) => offset_of(offset, every_ns, context)?,
                    None => 0,
                };
                // A length of 0 means no interval.
                interval = (every_ns != 0).then_some(Interval {
                    every_ns,
                    offset_ns,
                });
            }
            expr @ (Expr::VarRef(_) | Expr::Wildcard(_) | Expr::Literal(Literal::Regex(_))) => {
                others.push(expr);
            }
            _ => return Err(SelectError::OnlyTimeAndTags),
        }
    }
    Ok((interval, others))
}

/// The first argument of `time(…)`.
fn length(call: &Call) -> Result<i64, SelectError> {
    if call.name != "time" {
        return Err(SelectError::OnlyTimeCalls);
    }
    if !(1..=2).contains(&call.args.len()) {
        return Err(SelectError::TimeArguments);
    }
    match call.args[0].as_literal() {
        Some(Literal::Duration(ns)) => Ok(*ns),
        _ => Err(SelectError::TimeDuration),
    }
}

/// The second argument of `time(…)`.
fn offset_of(offset: &Expr, every_ns: i64, context: &TimeContext<'_>) -> Result<i64, SelectError> {
    match offset {
        Expr::Literal(Literal::Duration(ns)) => Ok(ns.checked_rem(every_ns).unwrap_or(0)),
        Expr::Literal(Literal::Time(time)) => Ok(since_go_multiple(time.unix_ns, every_ns)),
        Expr::Literal(Literal::String(text)) if looks_like_time(text) => {
            let time = to_time(text, context.folding().zone).ok_or(SelectError::InvalidTime)?;
            Ok(since_go_multiple(time.unix_ns, every_ns))
        }
        Expr::Call(call) if call.name != "now" => Err(SelectError::OffsetFunction),
        Expr::Call(call) if !call.args.is_empty() => Err(SelectError::OffsetArguments),
        Expr::Call(_) => Ok(since_go_multiple(context.now_ns.into(), every_ns)),
        _ => Err(SelectError::Offset),
    }
}
