//! Times that are constants of a statement, and the range of times that a condition leaves.

use crate::run::{fault, fault_about, taos};
use marigram_sql::SqlResult;
use marigram_tdengine::ast::{TaosExpr, TaosLiteral, TaosOperator};
use marigram_tdengine::{TaosCode, TaosDuration, TaosUnit, TimeSetting, TimeShift};

/// The time of a constant expression, ns; `None` if it is no constant time.
///
/// # Errors
/// If it is a text that is no time, or the time is beyond its range.
pub(crate) fn moment(expr: &TaosExpr, setting: &TimeSetting) -> SqlResult<Option<i64>> {
    Ok(Some(match expr {
        TaosExpr::Literal(TaosLiteral::Now) => setting.precision.truncate_ns(setting.now_ns),
        TaosExpr::Literal(TaosLiteral::Today) => {
            marigram_tdengine::start_of_day(setting.now_ns, &setting.zone)
        }
        TaosExpr::Literal(TaosLiteral::Time(text) | TaosLiteral::Text(text)) => {
            match text.trim().parse() {
                Ok(ticks) => setting.ticks_ns(ticks).map_err(taos)?,
                Err(_) => setting.text_ns(text).map_err(taos)?,
            }
        }
        TaosExpr::Literal(TaosLiteral::Integer(number)) => {
            let ticks = i64::try_from(*number).map_err(|_| fault(TaosCode::ValueOutOfRange))?;
            setting.ticks_ns(ticks).map_err(taos)?
        }
        TaosExpr::Call(call) if call.name == "to_timestamp" || call.name == "cast" => {
            return Ok(None);
        }
        TaosExpr::Cast { value, kind } if *kind == marigram_tdengine::TaosType::Timestamp => {
            return moment(value, setting);
        }
        TaosExpr::Binary {
            operator: operator @ (TaosOperator::Add | TaosOperator::Subtract),
            left,
            right,
        } => {
            let (base, added) = match (duration(left), duration(right)) {
                (_, Some(added)) => (left, added),
                (Some(added), None) if *operator == TaosOperator::Add => (right, added),
                _ => return Ok(None),
            };
            let Some(base) = moment(base, setting)? else {
                return Ok(None);
            };
            let mut shift = added.shift().map_err(taos)?;
            if *operator == TaosOperator::Subtract {
                shift = negated(shift);
            }
            setting.shifted_ns(base, shift).map_err(taos)?
        }
        _ => return Ok(None),
    }))
}

/// The opposite shift.
pub(crate) fn negated(shift: TimeShift) -> TimeShift {
    TimeShift {
        months: shift.months.saturating_neg(),
        ns: shift.ns.saturating_neg(),
    }
}

/// A duration that stands by itself.
pub(crate) fn duration(expr: &TaosExpr) -> Option<TaosDuration> {
    match expr {
        TaosExpr::Literal(TaosLiteral::Duration(duration)) => Some(*duration),
        _ => None,
    }
}

/// Nanoseconds of a duration of a fixed length.
///
/// # Errors
/// If it is one of months.
pub(crate) fn fixed_ns(duration: TaosDuration) -> SqlResult<i64> {
    let shift = duration.shift().map_err(taos)?;
    if shift.months != 0 || matches!(duration.unit, TaosUnit::Month | TaosUnit::Year) {
        return Err(fault_about(TaosCode::ParameterValue, &duration.to_string()));
    }
    Ok(shift.ns)
}

/// A range of times, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// The first time.
    pub(crate) min: i64,
    /// The last time.
    pub(crate) max: i64,
}

impl Times {
    /// All times.
    pub(crate) const ALL: Self = Self {
        min: i64::MIN,
        max: i64::MAX,
    };

    /// Whether it has both ends.
    pub(crate) fn is_bounded(self) -> bool {
        self.min != i64::MIN && self.max != i64::MAX
    }
}

/// The range of times that a condition leaves, and its other parts.
///
/// # Errors
/// If a constant is no time.
pub(crate) fn time_range<'e>(
    condition: Option<&'e TaosExpr>,
    is_time: &dyn Fn(&TaosExpr) -> bool,
    setting: &TimeSetting,
) -> SqlResult<(Times, Vec<&'e TaosExpr>)> {
    let mut times = Times::ALL;
    let mut rest = Vec::new();
    let mut open: Vec<&TaosExpr> = condition.into_iter().collect();
    while let Some(part) = open.pop() {
        match part {
            TaosExpr::All(parts) => open.extend(parts),
            TaosExpr::Between {
                value,
                bounds,
                negated: false,
            } if is_time(value) => {
                let (low, high) = (moment(&bounds.0, setting)?, moment(&bounds.1, setting)?);
                match (low, high) {
                    (Some(low), Some(high)) => {
                        times.min = times.min.max(low);
                        times.max = times.max.min(high);
                    }
                    _ => rest.push(part),
                }
            }
            TaosExpr::Binary {
                operator,
                left,
                right,
            } => {
                let (operator, constant) = if is_time(left) {
                    (*operator, right)
                } else if is_time(right) {
                    (mirrored(*operator), left)
                } else {
                    rest.push(part);
                    continue;
                };
                let is_order = matches!(
                    operator,
                    TaosOperator::Equal
                        | TaosOperator::Less
                        | TaosOperator::LessEqual
                        | TaosOperator::Greater
                        | TaosOperator::GreaterEqual
                );
                let at = if is_order {
                    moment(constant, setting)?
                } else {
                    None
                };
                let Some(at) = at else {
                    rest.push(part);
                    continue;
                };
                narrow(&mut times, operator, at);
            }
            _ => rest.push(part),
        }
    }
    Ok((times, rest))
}

fn narrow(times: &mut Times, operator: TaosOperator, at: i64) {
    match operator {
        TaosOperator::Less => times.max = times.max.min(at.saturating_sub(1)),
        TaosOperator::LessEqual => times.max = times.max.min(at),
        TaosOperator::Greater => times.min = times.min.max(at.saturating_add(1)),
        TaosOperator::GreaterEqual => times.min = times.min.max(at),
        _ => {
            times.min = times.min.max(at);
            times.max = times.max.min(at);
        }
    }
}

/// The operator with its operands exchanged.
pub(crate) fn mirrored(operator: TaosOperator) -> TaosOperator {
    match operator {
        TaosOperator::Less => TaosOperator::Greater,
        TaosOperator::LessEqual => TaosOperator::GreaterEqual,
        TaosOperator::Greater => TaosOperator::Less,
        TaosOperator::GreaterEqual => TaosOperator::LessEqual,
        other => other,
    }
}
