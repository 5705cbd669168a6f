//! The package `date`, in UTC.

use crate::value::{FluxArguments, FluxBuiltin, FluxCaller, FluxSpan, FluxValue};
use crate::windows::FluxWindows;
use jiff::civil::DateTime;
use jiff::{Timestamp, tz::TimeZone};
use marigram_sql::SqlResult;

/// The functions.
pub(super) const FUNCTIONS: &[FluxBuiltin] = &[
    FluxBuiltin {
        name: "second",
        call: |caller, args| part(caller, args, |t| t.second().into()),
    },
    FluxBuiltin {
        name: "minute",
        call: |caller, args| part(caller, args, |t| t.minute().into()),
    },
    FluxBuiltin {
        name: "hour",
        call: |caller, args| part(caller, args, |t| t.hour().into()),
    },
    FluxBuiltin {
        name: "weekDay",
        call: |caller, args| part(caller, args, |t| t.weekday().to_sunday_zero_offset().into()),
    },
    FluxBuiltin {
        name: "monthDay",
        call: |caller, args| part(caller, args, |t| t.day().into()),
    },
    FluxBuiltin {
        name: "yearDay",
        call: |caller, args| part(caller, args, |t| t.day_of_year().into()),
    },
    FluxBuiltin {
        name: "month",
        call: |caller, args| part(caller, args, |t| t.month().into()),
    },
    FluxBuiltin {
        name: "quarter",
        call: |caller, args| part(caller, args, |t| i64::from((t.month() - 1) / 3 + 1)),
    },
    FluxBuiltin {
        name: "year",
        call: |caller, args| part(caller, args, |t| t.year().into()),
    },
    FluxBuiltin {
        name: "week",
        call: |caller, args| part(caller, args, |t| t.date().iso_week_date().week().into()),
    },
    FluxBuiltin {
        name: "truncate",
        call: truncate,
    },
    FluxBuiltin {
        name: "add",
        call: |caller, args| shifted(caller, args, "to", false),
    },
    FluxBuiltin {
        name: "sub",
        call: |caller, args| shifted(caller, args, "from", true),
    },
];

fn part(
    caller: &mut dyn FluxCaller,
    arguments: &mut FluxArguments,
    part: fn(DateTime) -> i64,
) -> SqlResult<FluxValue> {
    let ns = arguments.time_or("t", caller.now_ns(), caller.now_ns())?;
    let time = Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default();
    Ok(FluxValue::Int(part(TimeZone::UTC.to_datetime(time))))
}

fn truncate(caller: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let ns = arguments.time_or("t", caller.now_ns(), caller.now_ns())?;
    let unit = arguments.span_or("unit", FluxSpan::default())?;
    let windows = FluxWindows {
        every: unit,
        period: unit,
        offset: FluxSpan::default(),
    };
    match windows.problem() {
        Some(_) => Err(arguments.fault("argument unit is no positive duration")),
        None => Ok(FluxValue::Time(windows.start(ns))),
    }
}

fn shifted(
    caller: &mut dyn FluxCaller,
    arguments: &mut FluxArguments,
    name: &str,
    goes_back: bool,
) -> SqlResult<FluxValue> {
    let span = arguments.span_or("d", FluxSpan::default())?;
    let ns = arguments.time_or(name, caller.now_ns(), caller.now_ns())?;
    let span = if goes_back { span.negated() } else { span };
    Ok(FluxValue::Time(span.after(ns)))
}
