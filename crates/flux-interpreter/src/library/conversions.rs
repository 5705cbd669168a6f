//! Conversions of values and of columns, and small functions of every script.

use crate::fault::fault;
use crate::value::{
    FluxArguments, FluxBuiltin, FluxCaller, FluxColumn, FluxKind, FluxStream, FluxTable, FluxValue,
};
use marigram_flux::{FluxDuration, parse_time};
use marigram_sql::SqlResult;
use std::sync::Arc;

/// The functions.
pub(super) const FUNCTIONS: &[FluxBuiltin] = &[
    FluxBuiltin {
        name: "now",
        call: now,
    },
    FluxBuiltin {
        name: "today",
        call: today,
    },
    FluxBuiltin {
        name: "bool",
        call: |_, arguments| scalar(arguments, FluxKind::Bool),
    },
    FluxBuiltin {
        name: "int",
        call: |_, arguments| scalar(arguments, FluxKind::Int),
    },
    FluxBuiltin {
        name: "uint",
        call: |_, arguments| scalar(arguments, FluxKind::UInt),
    },
    FluxBuiltin {
        name: "float",
        call: |_, arguments| scalar(arguments, FluxKind::Float),
    },
    FluxBuiltin {
        name: "string",
        call: |_, arguments| scalar(arguments, FluxKind::Text),
    },
    FluxBuiltin {
        name: "time",
        call: |_, arguments| scalar(arguments, FluxKind::Time),
    },
    FluxBuiltin {
        name: "duration",
        call: duration,
    },
    FluxBuiltin {
        name: "toBool",
        call: |_, arguments| column(arguments, FluxKind::Bool),
    },
    FluxBuiltin {
        name: "toInt",
        call: |_, arguments| column(arguments, FluxKind::Int),
    },
    FluxBuiltin {
        name: "toUInt",
        call: |_, arguments| column(arguments, FluxKind::UInt),
    },
    FluxBuiltin {
        name: "toFloat",
        call: |_, arguments| column(arguments, FluxKind::Float),
    },
    FluxBuiltin {
        name: "toString",
        call: |_, arguments| column(arguments, FluxKind::Text),
    },
    FluxBuiltin {
        name: "toTime",
        call: |_, arguments| column(arguments, FluxKind::Time),
    },
    FluxBuiltin {
        name: "contains",
        call: contains,
    },
    FluxBuiltin {
        name: "length",
        call: length,
    },
    FluxBuiltin {
        name: "die",
        call: die,
    },
];

/// A value in another type; an error says why there is none.
fn converted(value: &FluxValue, kind: FluxKind) -> Result<FluxValue, String> {
    let unfit = || {
        let shown = value.shown().unwrap_or_default();
        let shown: String = shown.chars().take(40).collect();
        let (from, to) = (value.type_name(), kind.name());
        Err(format!("cannot convert {from} {shown:?} to {to}"))
    };
    Ok(match (kind, value) {
        (_, FluxValue::Null) => FluxValue::Null,
        (kind, value) if value.kind() == Some(kind) => value.clone(),
        (FluxKind::Text, value) => match value.shown() {
            Some(text) => FluxValue::text(&text),
            None => return unfit(),
        },
        (kind, FluxValue::Text(text)) => {
            let read = match kind {
                FluxKind::Bool => text.parse().ok().map(FluxValue::Bool),
                FluxKind::Int => text.parse().ok().map(FluxValue::Int),
                FluxKind::UInt => text.parse().ok().map(FluxValue::UInt),
                FluxKind::Float => text.parse().ok().map(FluxValue::Float),
                FluxKind::Time => parse_time(text).map(FluxValue::Time),
                FluxKind::Text => None,
            };
            return read.map_or_else(unfit, Ok);
        }
        (FluxKind::Bool, value) => match value.as_float() {
            Some(number) if number == 0.0 || number == 1.0 => FluxValue::Bool(number == 1.0),
            _ => return unfit(),
        },
        (FluxKind::Int | FluxKind::UInt | FluxKind::Float, FluxValue::Bool(value)) => match kind {
            FluxKind::Int => FluxValue::Int(i64::from(*value)),
            FluxKind::UInt => FluxValue::UInt(u64::from(*value)),
            _ => FluxValue::Float(f64::from(u8::from(*value))),
        },
        (FluxKind::Int, FluxValue::UInt(value)) => FluxValue::Int(value.cast_signed()),
        (FluxKind::Int, FluxValue::Float(value)) => FluxValue::Int(*value as i64),
        (FluxKind::Int, FluxValue::Time(ns)) => FluxValue::Int(*ns),
        (FluxKind::Int, FluxValue::Duration(span)) if span.months == 0 => FluxValue::Int(span.ns),
        (FluxKind::UInt, FluxValue::Int(value)) => FluxValue::UInt(value.cast_unsigned()),
        (FluxKind::UInt, FluxValue::Float(value)) => FluxValue::UInt(*value as u64),
        (FluxKind::UInt, FluxValue::Time(ns)) => FluxValue::UInt(ns.cast_unsigned()),
        (FluxKind::Float, FluxValue::Int(_) | FluxValue::UInt(_)) => {
            FluxValue::Float(value.as_float().unwrap_or_default())
        }
        (FluxKind::Time, FluxValue::Int(ns)) => FluxValue::Time(*ns),
        (FluxKind::Time, FluxValue::UInt(ns)) => FluxValue::Time(ns.cast_signed()),
        _ => return unfit(),
    })
}

fn scalar(arguments: &mut FluxArguments, kind: FluxKind) -> SqlResult<FluxValue> {
    let value = arguments.need("v")?;
    converted(&value, kind).map_err(|message| arguments.fault(message))
}

fn column(arguments: &mut FluxArguments, kind: FluxKind) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let (at, function) = (arguments.at, arguments.function);
    let make = move |mut table: FluxTable, _: &mut dyn FluxCaller| {
        let column = super::record_columns::needed((at, function), &table, "_value")?;
        let values = (0..table.rows).map(|row| converted(column.value(row), kind));
        let values: Vec<_> = values
            .collect::<Result<_, _>>()
            .map_err(|message| fault(at, format!("{function}: {message}")))?;
        table.put(FluxColumn::each("_value", kind, values));
        Ok(vec![table])
    };
    FluxStream::each(at, input, Box::new(make))
}

#[expect(clippy::unnecessary_wraps, reason = "an entry of the library's table")]
fn now(caller: &mut dyn FluxCaller, _: &mut FluxArguments) -> SqlResult<FluxValue> {
    Ok(FluxValue::Time(caller.now_ns()))
}

#[expect(clippy::unnecessary_wraps, reason = "an entry of the library's table")]
fn today(caller: &mut dyn FluxCaller, _: &mut FluxArguments) -> SqlResult<FluxValue> {
    const DAY_NS: i64 = 86_400_000_000_000;
    let now_ns = caller.now_ns();
    Ok(FluxValue::Time(
        now_ns.saturating_sub(now_ns.rem_euclid(DAY_NS)),
    ))
}

fn duration(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let value = arguments.need("v")?;
    let span = match &value {
        FluxValue::Duration(span) => Some(*span),
        FluxValue::Int(ns) => Some(crate::value::FluxSpan { months: 0, ns: *ns }),
        FluxValue::Text(text) => {
            let (digits, is_negative) = match text.strip_prefix('-') {
                Some(digits) => (digits, true),
                None => (&**text, false),
            };
            FluxDuration::parse(digits).map(|duration| {
                let span = crate::value::FluxSpan::from(duration);
                if is_negative { span.negated() } else { span }
            })
        }
        _ => None,
    };
    let unfit = || arguments.fault("the value is no duration");
    span.map(FluxValue::Duration).ok_or_else(unfit)
}

fn contains(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let value = arguments.need("value")?;
    let FluxValue::Array(set) = arguments.need("set")? else {
        return Err(arguments.fault("argument set is no array"));
    };
    let is_equal = |element: &FluxValue| {
        element.kind() == value.kind() && value.kind().is_some() && element.order(&value).is_eq()
    };
    Ok(FluxValue::Bool(set.iter().any(is_equal)))
}

fn length(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let FluxValue::Array(elements) = arguments.need("arr")? else {
        return Err(arguments.fault("argument arr is no array"));
    };
    Ok(FluxValue::Int(
        i64::try_from(elements.len()).unwrap_or(i64::MAX),
    ))
}

fn die(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let message: Arc<str> = arguments.text("msg")?;
    Err(arguments.fault(&message))
}
