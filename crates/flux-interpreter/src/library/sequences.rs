//! Functions that compute a row from those before it.

use super::record_columns::needed;
use crate::fault::fault;
use crate::value::{
    FluxArguments, FluxBuiltin, FluxCaller, FluxCells, FluxColumn, FluxKind, FluxSpan, FluxStream,
    FluxTable, FluxValue,
};
use marigram_flux::FluxPosition;
use marigram_sql::SqlResult;
use std::collections::VecDeque;
use std::sync::Arc;

/// The functions.
pub(super) const FUNCTIONS: &[FluxBuiltin] = &[
    FluxBuiltin {
        name: "fill",
        call: fill,
    },
    FluxBuiltin {
        name: "difference",
        call: difference,
    },
    FluxBuiltin {
        name: "derivative",
        call: derivative,
    },
    FluxBuiltin {
        name: "increase",
        call: increase,
    },
    FluxBuiltin {
        name: "cumulativeSum",
        call: cumulative_sum,
    },
    FluxBuiltin {
        name: "movingAverage",
        call: moving_average,
    },
    FluxBuiltin {
        name: "elapsed",
        call: elapsed,
    },
];

const SECOND: FluxSpan = FluxSpan {
    months: 0,
    ns: 1_000_000_000,
};

fn fill(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let name = arguments.text_or("column", "_value")?;
    let uses_previous = arguments.bool_or("usePrevious", false)?;
    let value = arguments.take("value");
    if value.is_some() == uses_previous {
        return Err(arguments.fault("give either value or usePrevious"));
    }
    let at = arguments.at;
    let make = move |mut table: FluxTable, _: &mut dyn FluxCaller| {
        let Some(place) = table.place(&name) else {
            return Ok(vec![table]);
        };
        let column = &mut table.columns[place];
        if let Some(kind) = value.as_ref().map(FluxValue::kind)
            && kind != Some(column.kind)
        {
            let kind = column.kind.name();
            return Err(fault(
                at,
                format!("fill: the column is of type {kind}, and value is not"),
            ));
        }
        let mut last = value.clone().unwrap_or(FluxValue::Null);
        column.change(|cell| {
            if cell.is_null() {
                return last.clone();
            }
            if uses_previous {
                last = cell.clone();
            }
            cell.clone()
        });
        Ok(vec![table])
    };
    FluxStream::each(at, input, Box::new(make))
}

/// How a difference is taken.
#[derive(Clone, Copy)]
struct DifferenceRules {
    is_never_negative: bool,
    begins_at_zero: bool,
}

impl DifferenceRules {
    /// A number minus the one before it.
    fn between(self, before: &FluxValue, value: &FluxValue) -> FluxValue {
        let is_reset = self.is_never_negative && value.order(before).is_lt();
        if is_reset {
            return if self.begins_at_zero {
                value.clone()
            } else {
                FluxValue::Null
            };
        }
        match (value, before) {
            (FluxValue::Int(a), FluxValue::Int(b)) => FluxValue::Int(a.wrapping_sub(*b)),
            (FluxValue::UInt(a), FluxValue::UInt(b)) => {
                FluxValue::Int(i64::try_from(i128::from(*a) - i128::from(*b)).unwrap_or(i64::MIN))
            }
            (FluxValue::Float(a), FluxValue::Float(b)) => FluxValue::Float(a - b),
            _ => FluxValue::Null,
        }
    }
}

/// A column that must be there and contain numbers. `place` is the position and the name of the call.
fn needed_number<'a>(
    place: (FluxPosition, &str),
    table: &'a FluxTable,
    name: &str,
) -> SqlResult<&'a FluxColumn> {
    let column = needed(place, table, name)?;
    match column.kind {
        FluxKind::Int | FluxKind::UInt | FluxKind::Float => Ok(column),
        kind => {
            let message = format!("{}: unsupported column type {}", place.1, kind.name());
            Err(fault(place.0, message))
        }
    }
}

/// The differences of columns; the first row goes, unless `keeps_first`.
fn differences(
    arguments: &FluxArguments,
    input: Arc<FluxStream>,
    names: Vec<Arc<str>>,
    (rules, keeps_first): (DifferenceRules, bool),
) -> SqlResult<Arc<FluxStream>> {
    let place = (arguments.at, arguments.function);
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let mut made = table.clone();
        for name in &names {
            let column = needed_number(place, &table, name)?;
            let mut last = FluxValue::Null;
            let values = (0..table.rows).map(|row| {
                let value = column.value(row);
                if value.is_null() {
                    return FluxValue::Null;
                }
                let difference = if last.is_null() {
                    FluxValue::Null
                } else {
                    rules.between(&last, value)
                };
                last = value.clone();
                match difference {
                    // What begins anew is an unsigned number of a signed column.
                    FluxValue::UInt(value) => {
                        FluxValue::Int(i64::try_from(value).unwrap_or(i64::MAX))
                    }
                    difference => difference,
                }
            });
            let values = values.collect();
            let kind = match column.kind {
                FluxKind::UInt => FluxKind::Int,
                kind => kind,
            };
            made.put(FluxColumn::each(name, kind, values));
        }
        if keeps_first {
            return Ok(vec![made]);
        }
        let rows: Vec<usize> = (1..table.rows).collect();
        Ok(vec![made.taken(&rows)])
    };
    match FluxStream::each(arguments.at, input, Box::new(make))? {
        FluxValue::Stream(stream) => Ok(stream),
        _ => Err(arguments.fault("there is no stream")),
    }
}

fn difference(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let names = arguments.texts_or("columns", &["_value"])?;
    let rules = DifferenceRules {
        is_never_negative: arguments.bool_or("nonNegative", false)?,
        begins_at_zero: arguments.bool_or("initialZero", false)?,
    };
    let keeps_first = arguments.bool_or("keepFirst", false)?;
    let stream = differences(arguments, input, names, (rules, keeps_first))?;
    Ok(FluxValue::Stream(stream))
}

/// What a counter has grown by since the first row.
fn increase(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let names = arguments.texts_or("columns", &["_value"])?;
    let rules = DifferenceRules {
        is_never_negative: true,
        begins_at_zero: true,
    };
    let grown = differences(arguments, input, names.clone(), (rules, true))?;
    summed(arguments, grown, names)
}

fn cumulative_sum(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let names = arguments.texts_or("columns", &["_value"])?;
    summed(arguments, input, names)
}

fn summed(
    arguments: &FluxArguments,
    input: Arc<FluxStream>,
    names: Vec<Arc<str>>,
) -> SqlResult<FluxValue> {
    let place = (arguments.at, arguments.function);
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let mut made = table.clone();
        for name in &names {
            let column = needed_number(place, &table, name)?;
            let mut total = FluxValue::Null;
            let values = (0..table.rows).map(|row| {
                let value = column.value(row);
                if value.is_null() {
                    return FluxValue::Null;
                }
                total = match (&total, value) {
                    (FluxValue::Int(a), FluxValue::Int(b)) => FluxValue::Int(a.wrapping_add(*b)),
                    (FluxValue::UInt(a), FluxValue::UInt(b)) => FluxValue::UInt(a.wrapping_add(*b)),
                    (FluxValue::Float(a), FluxValue::Float(b)) => FluxValue::Float(a + b),
                    _ => value.clone(),
                };
                total.clone()
            });
            let values = values.collect();
            made.put(FluxColumn::each(name, column.kind, values));
        }
        Ok(vec![made])
    };
    FluxStream::each(arguments.at, input, Box::new(make))
}

fn derivative(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let names = arguments.texts_or("columns", &["_value"])?;
    let time = arguments.text_or("timeColumn", "_time")?;
    let unit = arguments.span_or("unit", SECOND)?;
    if unit.months != 0 || unit.ns <= 0 {
        return Err(arguments.fault("unit is a positive duration without months"));
    }
    let rules = DifferenceRules {
        is_never_negative: arguments.bool_or("nonNegative", false)?,
        begins_at_zero: arguments.bool_or("initialZero", false)?,
    };
    let place = (arguments.at, arguments.function);
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let times = needed(place, &table, &time)?;
        let time = |row: usize| match times.value(row) {
            FluxValue::Time(ns) => Some(*ns),
            _ => None,
        };
        // Of rows of the same time, the first one counts.
        let mut rows: Vec<usize> = (0..table.rows).filter(|row| time(*row).is_some()).collect();
        rows.dedup_by(|later, before| time(*later) == time(*before));
        let table = table.taken(&rows);
        let mut made = table.clone();
        let times = needed(place, &table, &times.name)?;
        for name in &names {
            let column = needed_number(place, &table, name)?;
            let mut last: Option<(f64, i64)> = None;
            let values = (0..table.rows).map(|row| {
                let (Some(value), FluxValue::Time(ns)) =
                    (column.value(row).as_float(), times.value(row))
                else {
                    return FluxValue::Null;
                };
                let before = last.replace((value, *ns));
                let Some((before, before_ns)) = before else {
                    return FluxValue::Null;
                };
                let units = ns.saturating_sub(before_ns) as f64 / unit.ns as f64;
                let before = FluxValue::Float(before);
                match rules.between(&before, &FluxValue::Float(value)) {
                    FluxValue::Float(difference) => FluxValue::Float(difference / units),
                    other => other,
                }
            });
            let values = values.collect();
            made.put(FluxColumn::each(name, FluxKind::Float, values));
        }
        let rows: Vec<usize> = (1..table.rows).collect();
        Ok(vec![made.taken(&rows)])
    };
    FluxStream::each(arguments.at, input, Box::new(make))
}

fn moving_average(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let count = arguments.count("n")?;
    if count == 0 {
        return Err(arguments.fault("n is not positive"));
    }
    let place = (arguments.at, arguments.function);
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let column = needed_number(place, &table, "_value")?;
        let mut window: VecDeque<Option<f64>> = VecDeque::new();
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        for row in 0..table.rows {
            if window.len() == count {
                window.pop_front();
            }
            window.push_back(column.value(row).as_float());
            let is_last = row + 1 == table.rows && values.is_empty();
            if window.len() == count || is_last {
                let numbers: Vec<f64> = window.iter().copied().flatten().collect();
                let average = numbers.iter().sum::<f64>() / numbers.len() as f64;
                rows.push(row);
                values.push(if numbers.is_empty() {
                    FluxValue::Null
                } else {
                    FluxValue::Float(average)
                });
            }
        }
        let mut made = table.taken(&rows);
        made.put(FluxColumn::each("_value", FluxKind::Float, values));
        Ok(vec![made])
    };
    FluxStream::each(arguments.at, input, Box::new(make))
}

fn elapsed(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let unit = arguments.span_or("unit", SECOND)?;
    let time = arguments.text_or("timeColumn", "_time")?;
    let name = arguments.text_or("columnName", "elapsed")?;
    if unit.months != 0 || unit.ns <= 0 {
        return Err(arguments.fault("unit is a positive duration without months"));
    }
    let place = (arguments.at, arguments.function);
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let times = needed(place, &table, &time)?;
        let rows: Vec<usize> = (1..table.rows).collect();
        let values =
            rows.iter().map(
                |row| match (times.value(*row), times.value(row.saturating_sub(1))) {
                    (FluxValue::Time(ns), FluxValue::Time(before)) => {
                        FluxValue::Int(ns.saturating_sub(*before) / unit.ns)
                    }
                    _ => FluxValue::Null,
                },
            );
        let values = FluxCells::Each(values.collect());
        let mut made = table.taken(&rows);
        made.put(FluxColumn {
            name: Arc::clone(&name),
            kind: FluxKind::Int,
            cells: values,
        });
        Ok(vec![made])
    };
    FluxStream::each(arguments.at, input, Box::new(make))
}
