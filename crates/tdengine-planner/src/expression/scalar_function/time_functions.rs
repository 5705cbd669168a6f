//! Functions of times.

use crate::expression::scalar_function::{RowFunction, other_form, row_function};
use crate::expression::{Scope, Typed, constant};
use crate::moments::{duration, fixed_ns, moment};
use crate::run::fault_about;
use crate::taos_value::Val;
use marigram_sql::SqlResult;
use marigram_tdengine::ast::{TaosCall, TaosExpr, TaosLiteral};
use marigram_tdengine::{TaosCode, TaosType, TaosUnit, TimeSetting, push_time};
use std::sync::Arc;

/// Whether there is such a function.
pub(crate) fn is_known(name: &str) -> bool {
    matches!(
        name,
        "to_iso8601"
            | "to_unixtimestamp"
            | "timediff"
            | "timetruncate"
            | "dayofweek"
            | "weekday"
            | "week"
            | "weekofyear"
            | "now"
    )
}

/// The zone of the session, as TDengine tells it.
pub(crate) fn zone_text(scope: &Scope<'_>) -> String {
    let setting = scope.setting;
    let minutes = setting.zone_offset_ns(setting.now_ns) / 60_000_000_000;
    let sign = if minutes < 0 { '-' } else { '+' };
    let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
    let name = &scope.run.context.session().time_zone;
    format!("{name} ({name}, {sign}{hours:02}{rest:02})")
}

/// A call.
pub(crate) fn called(scope: &Scope<'_>, call: &TaosCall) -> SqlResult<Typed> {
    let setting = scope.setting.clone();
    let arguments = &call.arguments;
    let Some(first) = arguments.first() else {
        return Err(fault_about(TaosCode::ParameterCount, &call.name));
    };
    let key = format!("{:?}", setting.precision);
    let name = format!("taos_{}", call.name);
    match call.name.as_str() {
        "to_iso8601" => {
            if arguments.len() > 1 {
                return Err(other_form(&call.name));
            }
            let value = time(scope, first)?;
            let zone = scope.run.context.session().time_zone.clone();
            let written: RowFunction = Arc::new(move |values: &[Val]| {
                let Some(ns) = values[0].integer() else {
                    return Val::Null;
                };
                let mut out = String::new();
                push_time(ns, setting.precision, &setting.zone, &mut out);
                Val::of_text(out)
            });
            let key = format!("{key}{zone}");
            Ok(row_function(
                &name,
                vec![value],
                TaosType::VarChar(64),
                key,
                written,
            ))
        }
        "to_unixtimestamp" => {
            let value = scope.typed(first)?;
            let parsed: RowFunction = Arc::new(move |values: &[Val]| {
                let ns = values[0].text().and_then(|text| setting.text_ns(text).ok());
                ns.map_or(Val::Null, |ns| Val::Int(setting.precision.ticks(ns)))
            });
            Ok(row_function(
                &name,
                vec![value],
                TaosType::BigInt,
                key,
                parsed,
            ))
        }
        "timediff" => difference(scope, call, &setting),
        "timetruncate" => truncated(scope, call, &setting),
        "dayofweek" | "weekday" | "week" | "weekofyear" => {
            let which = call.name.clone();
            let value = time(scope, first)?;
            let day: RowFunction = Arc::new(move |values: &[Val]| {
                let Some(ns) = values[0].integer() else {
                    return Val::Null;
                };
                let (_, monday_one, day_of_year) = setting.day_of(ns);
                Val::Int(match which.as_str() {
                    "dayofweek" => monday_one % 7 + 1,
                    "weekday" => monday_one - 1,
                    "weekofyear" => setting.week_of(ns),
                    // Mode 0: weeks begin on Sunday, and the first one has a Sunday.
                    _ => (day_of_year + 6 - monday_one % 7) / 7,
                })
            });
            Ok(row_function(&name, vec![value], TaosType::BigInt, key, day))
        }
        _ => Err(other_form(&call.name)),
    }
}

/// An argument that is a time: a column, a constant, ticks or a text.
fn time(scope: &Scope<'_>, expr: &TaosExpr) -> SqlResult<Typed> {
    if matches!(
        expr,
        TaosExpr::Literal(TaosLiteral::Text(_) | TaosLiteral::Integer(_))
    ) && let Some(at) = moment(expr, scope.setting)?
    {
        return Ok(constant(&Val::Time(at), TaosType::Timestamp));
    }
    let typed = scope.typed(expr)?;
    if typed.kind == TaosType::Timestamp {
        return Ok(typed);
    }
    let setting = scope.setting.clone();
    let key = format!("{:?}", setting.precision);
    let kind = TaosType::Timestamp;
    let convert: RowFunction =
        Arc::new(move |values: &[Val]| crate::conversion::cast_value(&values[0], kind, &setting));
    Ok(row_function("taos_time", vec![typed], kind, key, convert))
}

/// The unit of an argument, ns.
fn unit_ns(call: &TaosCall, place: usize, setting: &TimeSetting) -> SqlResult<i64> {
    match call.arguments.get(place) {
        None => Ok(setting.precision.tick_ns()),
        Some(argument) => {
            let unit = duration(argument)
                .ok_or_else(|| fault_about(TaosCode::ParameterValue, &call.name))?;
            fixed_ns(unit)
        }
    }
}

fn difference(scope: &Scope<'_>, call: &TaosCall, setting: &TimeSetting) -> SqlResult<Typed> {
    let (Some(first), Some(second)) = (call.arguments.first(), call.arguments.get(1)) else {
        return Err(fault_about(TaosCode::ParameterCount, &call.name));
    };
    let unit = unit_ns(call, 2, setting)?.max(1);
    let (a, b) = (time(scope, first)?, time(scope, second)?);
    let between: RowFunction = Arc::new(move |values: &[Val]| {
        let times = values[0].integer().zip(values[1].integer());
        let ns = times.and_then(|(a, b)| a.checked_sub(b));
        ns.map_or(Val::Null, |ns| Val::Int(ns / unit))
    });
    let key = unit.to_string();
    Ok(row_function(
        "taos_timediff",
        vec![a, b],
        TaosType::BigInt,
        key,
        between,
    ))
}

fn truncated(scope: &Scope<'_>, call: &TaosCall, setting: &TimeSetting) -> SqlResult<Typed> {
    let first = call.arguments.first();
    let unit = call.arguments.get(1).and_then(duration);
    let (Some(first), Some(unit)) = (first, unit) else {
        return Err(fault_about(TaosCode::ParameterValue, &call.name));
    };
    let unit_ns = fixed_ns(unit)?.max(1);
    let is_local = matches!(unit.unit, TaosUnit::Day | TaosUnit::Week)
        && !matches!(
            call.arguments.get(2),
            Some(TaosExpr::Literal(TaosLiteral::Integer(0)))
        );
    let setting = setting.clone();
    let value = time(scope, first)?;
    let key = format!("{unit}{is_local}{}", scope.run.context.session().time_zone);
    let start: RowFunction = Arc::new(move |values: &[Val]| {
        let Some(ns) = values[0].integer() else {
            return Val::Null;
        };
        let offset = if is_local {
            setting.zone_offset_ns(ns)
        } else {
            0
        };
        let local = ns.saturating_add(offset);
        Val::Time(
            local
                .saturating_sub(local.rem_euclid(unit_ns))
                .saturating_sub(offset),
        )
    });
    Ok(row_function(
        "taos_timetruncate",
        vec![value],
        TaosType::Timestamp,
        key,
        start,
    ))
}
