//! Functions that make one row of a table.

use super::record_columns::{columns_of_records, needed};
use crate::fault::fault;
use crate::merge::split;
use crate::value::{
    FluxArguments, FluxBuiltin, FluxCaller, FluxColumn, FluxKind, FluxStream, FluxTable, FluxValue,
};
use marigram_sql::SqlResult;
use std::sync::Arc;

/// The functions.
pub(super) const FUNCTIONS: &[FluxBuiltin] = &[
    FluxBuiltin {
        name: "count",
        call: |_, arguments| aggregate(arguments, count),
    },
    FluxBuiltin {
        name: "sum",
        call: |_, arguments| aggregate(arguments, sum),
    },
    FluxBuiltin {
        name: "mean",
        call: |_, arguments| aggregate(arguments, mean),
    },
    FluxBuiltin {
        name: "spread",
        call: |_, arguments| aggregate(arguments, spread),
    },
    FluxBuiltin {
        name: "stddev",
        call: stddev,
    },
    FluxBuiltin {
        name: "median",
        call: |_, arguments| quantile_at(arguments, 0.5),
    },
    FluxBuiltin {
        name: "quantile",
        call: quantile,
    },
    FluxBuiltin {
        name: "mode",
        call: mode,
    },
    FluxBuiltin {
        name: "reduce",
        call: reduce,
    },
];

/// A value and its type, or why there is none.
type AggregateResult = Result<(FluxKind, FluxValue), String>;

fn aggregate(
    arguments: &mut FluxArguments,
    compute: impl Fn(&FluxColumn, usize) -> AggregateResult + Send + Sync + 'static,
) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let name = arguments.text_or("column", "_value")?;
    let (at, function) = (arguments.at, arguments.function);
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let column = needed((at, function), &table, &name)?;
        let (kind, value) = compute(column, table.rows)
            .map_err(|message| fault(at, format!("{function}: {message}")))?;
        let mut columns = table.key_columns();
        columns.retain(|column| column.name != name);
        columns.push(FluxColumn::each(&name, kind, vec![value]));
        let mut made = table.with_columns(columns, 1);
        made.key.retain(|key| *key != name);
        Ok(vec![made])
    };
    FluxStream::each(arguments.at, input, Box::new(make))
}

/// The values of a column, without nulls.
fn values(column: &FluxColumn, rows: usize) -> impl Iterator<Item = &FluxValue> {
    (0..rows)
        .map(|row| column.value(row))
        .filter(|value| !value.is_null())
}

fn unfit(column: &FluxColumn) -> String {
    format!("unsupported column type {}", column.kind.name())
}

/// The numbers of a column.
fn floats(column: &FluxColumn, rows: usize) -> Result<Vec<f64>, String> {
    if !matches!(
        column.kind,
        FluxKind::Int | FluxKind::UInt | FluxKind::Float
    ) {
        return Err(unfit(column));
    }
    Ok(values(column, rows)
        .filter_map(FluxValue::as_float)
        .collect())
}

#[expect(clippy::unnecessary_wraps, reason = "an entry of the library's table")]
fn count(_: &FluxColumn, rows: usize) -> AggregateResult {
    let rows = i64::try_from(rows).unwrap_or(i64::MAX);
    Ok((FluxKind::Int, FluxValue::Int(rows)))
}

fn sum(column: &FluxColumn, rows: usize) -> AggregateResult {
    let mut total = None;
    for value in values(column, rows) {
        total = Some(match (total, value) {
            (None, value) => value.clone(),
            (Some(FluxValue::Int(a)), FluxValue::Int(b)) => FluxValue::Int(a.wrapping_add(*b)),
            (Some(FluxValue::UInt(a)), FluxValue::UInt(b)) => FluxValue::UInt(a.wrapping_add(*b)),
            (Some(FluxValue::Float(a)), FluxValue::Float(b)) => FluxValue::Float(a + b),
            (Some(_), _) => return Err(unfit(column)),
        });
    }
    match column.kind {
        FluxKind::Int | FluxKind::UInt | FluxKind::Float => {
            Ok((column.kind, total.unwrap_or(FluxValue::Null)))
        }
        _ => Err(unfit(column)),
    }
}

fn mean(column: &FluxColumn, rows: usize) -> AggregateResult {
    let numbers = floats(column, rows)?;
    let mean = if numbers.is_empty() {
        FluxValue::Null
    } else {
        FluxValue::Float(numbers.iter().sum::<f64>() / numbers.len() as f64)
    };
    Ok((FluxKind::Float, mean))
}

fn spread(column: &FluxColumn, rows: usize) -> AggregateResult {
    floats(column, 0)?;
    let least = values(column, rows).min_by(|a, b| a.order(b));
    let most = values(column, rows).max_by(|a, b| a.order(b));
    let spread = match (most, least) {
        (Some(FluxValue::Int(a)), Some(FluxValue::Int(b))) => FluxValue::Int(a.wrapping_sub(*b)),
        (Some(FluxValue::UInt(a)), Some(FluxValue::UInt(b))) => FluxValue::UInt(a.wrapping_sub(*b)),
        (Some(FluxValue::Float(a)), Some(FluxValue::Float(b))) => FluxValue::Float(a - b),
        _ => FluxValue::Null,
    };
    Ok((column.kind, spread))
}

fn stddev(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let is_sample = match &*arguments.text_or("mode", "sample")? {
        "sample" => true,
        "population" => false,
        _ => return Err(arguments.fault("mode is sample or population")),
    };
    aggregate(arguments, move |column, rows| {
        let numbers = floats(column, rows)?;
        let count = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / count;
        let squares: f64 = numbers.iter().map(|value| (value - mean).powi(2)).sum();
        let value = match numbers.len() {
            0 | 1 if is_sample => FluxValue::Null,
            0 => FluxValue::Null,
            _ if is_sample => FluxValue::Float((squares / (count - 1.0)).sqrt()),
            _ => FluxValue::Float((squares / count).sqrt()),
        };
        Ok((FluxKind::Float, value))
    })
}

fn quantile(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let q = arguments.float("q")?;
    quantile_at(arguments, q)
}

fn quantile_at(arguments: &mut FluxArguments, q: f64) -> SqlResult<FluxValue> {
    if !(0.0..=1.0).contains(&q) {
        return Err(arguments.fault("q is not between 0 and 1"));
    }
    arguments.take("compression");
    match &*arguments.text_or("method", "estimate_tdigest")? {
        "estimate_tdigest" => aggregate(arguments, move |column, rows| {
            // Where a digest has a centroid for each value, its estimate is this one.
            numeric_quantile(column, rows, |count| q * count - 0.5)
        }),
        "exact_mean" => aggregate(arguments, move |column, rows| {
            numeric_quantile(column, rows, |count| q * (count - 1.0))
        }),
        "exact_selector" => exact_selector(arguments, q),
        _ => Err(arguments.fault("method is estimate_tdigest, exact_mean or exact_selector")),
    }
}

fn numeric_quantile(
    column: &FluxColumn,
    rows: usize,
    position: impl Fn(f64) -> f64,
) -> AggregateResult {
    let mut numbers = floats(column, rows)?;
    if numbers.is_empty() {
        return Ok((FluxKind::Float, FluxValue::Null));
    }
    numbers.sort_by(f64::total_cmp);
    let last = numbers.len() - 1;
    let position = position(numbers.len() as f64).clamp(0.0, last as f64);
    let below = position.floor() as usize;
    let (low, high) = (numbers[below], numbers[(below + 1).min(last)]);
    let share = position - below as f64;
    let value = if share == 0.0 {
        low
    } else {
        low * (1.0 - share) + high * share
    };
    Ok((FluxKind::Float, FluxValue::Float(value)))
}

fn exact_selector(arguments: &mut FluxArguments, q: f64) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let name = arguments.text_or("column", "_value")?;
    let place = (arguments.at, arguments.function);
    let select = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let column = needed(place, &table, &name)?;
        let mut rows: Vec<usize> = (0..table.rows)
            .filter(|row| !column.value(*row).is_null())
            .collect();
        rows.sort_by(|a, b| column.value(*a).order(column.value(*b)));
        let wanted = (q * rows.len() as f64).ceil() as usize;
        let row = rows.get(wanted.saturating_sub(1)).copied();
        Ok(vec![table.taken(&row.into_iter().collect::<Vec<_>>())])
    };
    FluxStream::each(arguments.at, input, Box::new(select))
}

/// The most frequent values; null, where all are equally frequent.
fn mode(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let name = arguments.text_or("column", "_value")?;
    let place = (arguments.at, arguments.function);
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let column = needed(place, &table, &name)?;
        let mut sorted: Vec<&FluxValue> = values(column, table.rows).collect();
        sorted.sort_by(|a, b| a.order(b));
        let runs: Vec<&[&FluxValue]> = sorted.chunk_by(|a, b| a.order(b).is_eq()).collect();
        let longest = runs.iter().map(|run| run.len()).max().unwrap_or(0);
        let is_mode = |run: &&&[&FluxValue]| run.len() == longest;
        let mut modes: Vec<FluxValue> = runs
            .iter()
            .filter(is_mode)
            .filter_map(|run| run.first().map(|value| (*value).clone()))
            .collect();
        if modes.is_empty() || (modes.len() > 1 && modes.len() == runs.len()) {
            modes = vec![FluxValue::Null];
        }
        let mut columns = table.key_columns();
        columns.retain(|column| column.name != name);
        let rows = modes.len();
        columns.push(FluxColumn::each(&name, column.kind, modes));
        Ok(vec![table.with_columns(columns, rows)])
    };
    FluxStream::each(arguments.at, input, Box::new(make))
}

fn reduce(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let function = arguments.function("fn")?;
    let identity = arguments.need("identity")?;
    let at = arguments.at;
    let make = move |table: FluxTable, caller: &mut dyn FluxCaller| {
        let table = Arc::new(table);
        let mut accumulator = identity.clone();
        for row in 0..table.rows {
            caller.next_row();
            let row = FluxValue::Row(Arc::clone(&table), row);
            let given = vec![
                ("r".to_owned(), row),
                ("accumulator".to_owned(), accumulator),
            ];
            accumulator = caller.call(at, &function, given, None)?;
        }
        let FluxValue::Record(record) = &accumulator else {
            return Err(fault(at, "reduce: identity and fn give no record"));
        };
        let made = columns_of_records(&[record])
            .map_err(|message| fault(at, format!("reduce: {message}")))?;
        let mut columns = table.key_columns();
        columns.retain(|column| made.iter().all(|made| made.name != column.name));
        columns.extend(made);
        let reduced = table.with_columns(columns, 1);
        Ok(split(reduced, &table.key))
    };
    FluxStream::regroup(at, input, Box::new(make))
}
