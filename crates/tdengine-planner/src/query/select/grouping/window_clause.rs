//! The clauses of windows, RANGE and FILL.

use crate::aggregate::{calls_within, constant};
use crate::call_class::{CallClass, class};
use crate::expression::Scope;
use crate::moments::{fixed_ns, moment};
use crate::query::select::grouping::Grouped;
use crate::run::{fault, fault_about};
use crate::stage::{InterpolationSpec, IntervalSpec, StageMode, TaosFillWith};
use crate::taos_value::Val;
use marigram_sql::SqlResult;
use marigram_tdengine::TaosCode;
use marigram_tdengine::ast::{TaosExpr, TaosFill, TaosWindow};

/// How the rows of a SELECT belong together.
pub(crate) fn mode(scope: &Scope<'_>, of: &Grouped<'_>) -> SqlResult<StageMode> {
    let select = of.select;
    let has = |wanted: CallClass| {
        let mut calls = of.calls.iter();
        calls.any(|call| class(&call.name) == Some(wanted))
    };
    let sets = of.calls.iter();
    let sets = sets.filter(|call| class(&call.name) == Some(CallClass::RowSet));
    let is_mixed = of
        .calls
        .iter()
        .any(|call| class(&call.name) != class(&of.calls[0].name));
    if sets.count() > 1 {
        return Err(fault(TaosCode::FunctionNotAllowed));
    }
    if has(CallClass::Interpolation) {
        if is_mixed || select.window.is_some() {
            return Err(fault(TaosCode::InvalidInterp));
        }
        return interpolation(of).map(StageMode::Interpolation);
    }
    if select.range.is_some() || select.every.is_some() {
        return Err(fault(TaosCode::InvalidInterp));
    }
    if has(CallClass::Sequence) {
        if is_mixed || select.window.is_some() {
            return Err(fault(TaosCode::FunctionNotAllowed));
        }
        return Ok(StageMode::Rows);
    }
    Ok(match &select.window {
        None => StageMode::Whole,
        Some(TaosWindow::Interval {
            width,
            offset,
            sliding,
        }) => StageMode::Interval(IntervalSpec::new(*width, *sliding, *offset, of.setting)?),
        Some(TaosWindow::Session { time, gap }) => {
            if !scope.is_time(time) {
                return Err(fault(TaosCode::SessionColumn));
            }
            StageMode::Session(fixed_ns(*gap)?)
        }
        Some(TaosWindow::State(_)) => StageMode::State,
        Some(TaosWindow::Event { .. }) => StageMode::Event,
        Some(TaosWindow::Count { count, sliding }) => {
            StageMode::Count(*count, sliding.unwrap_or(*count))
        }
    })
}

fn interpolation(of: &Grouped<'_>) -> SqlResult<InterpolationSpec> {
    let select = of.select;
    let Some((first, last)) = &select.range else {
        return Err(fault(TaosCode::InvalidInterp));
    };
    let at =
        |expr: &TaosExpr| moment(expr, of.setting)?.ok_or_else(|| fault(TaosCode::InvalidInterp));
    let min = at(first)?;
    let max = match last {
        Some(last) => at(last)?,
        None => min,
    };
    let every_ns = match select.every {
        Some(every) => fixed_ns(every)?,
        None if last.is_none() => 1,
        None => return Err(fault(TaosCode::InvalidInterp)),
    };
    if every_ns < 1 {
        return Err(fault(TaosCode::InvalidInterp));
    }
    let fill = match &select.fill {
        Some(fill) => fill_with(fill, of)?.0,
        None => TaosFillWith::None,
    };
    let spec = InterpolationSpec {
        range: (min, max),
        every_ns,
        fill,
    };
    spec.check()?;
    Ok(spec)
}

/// FILL, and whether it fills where no row is at all.
pub(crate) fn fill_with(fill: &TaosFill, of: &Grouped<'_>) -> SqlResult<(TaosFillWith, bool)> {
    Ok(match fill {
        TaosFill::None => (TaosFillWith::None, false),
        TaosFill::Null { forced } => (TaosFillWith::Null, *forced),
        TaosFill::Previous => (TaosFillWith::Previous, false),
        TaosFill::Next => (TaosFillWith::Next, false),
        TaosFill::Linear => (TaosFillWith::Linear, false),
        TaosFill::Near => (TaosFillWith::Near, false),
        TaosFill::Values { values, forced } => {
            let mut constants = Vec::with_capacity(values.len());
            for value in values {
                constants.push(constant(value)?);
            }
            let mut each = vec![None; of.calls.len()];
            let mut next = 0;
            for item in of.items {
                let mut calls = Vec::new();
                calls_within(&item.expr, &mut calls)?;
                if calls.is_empty() {
                    continue;
                }
                let value = constants.get(next).or(constants.last());
                next += 1;
                for call in calls {
                    if let Some(place) = of.calls.iter().position(|other| *other == call) {
                        each[place] = value.cloned();
                    }
                }
            }
            if constants.len() > 1 && constants.len() < next {
                return Err(fault_about(TaosCode::ParameterCount, "FILL"));
            }
            let each = each.into_iter().map(|value| value.unwrap_or(Val::Null));
            (TaosFillWith::Values(each.collect()), *forced)
        }
    })
}
