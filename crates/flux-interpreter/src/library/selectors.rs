//! Functions that select and order rows.

use super::record_columns::needed;
use crate::value::{
    FluxArguments, FluxBuiltin, FluxCaller, FluxCells, FluxColumn, FluxStream, FluxTable, FluxValue,
};
use marigram_sql::SqlResult;
use std::cmp::Ordering;
use std::sync::Arc;

/// The functions.
pub(super) const FUNCTIONS: &[FluxBuiltin] = &[
    FluxBuiltin {
        name: "first",
        call: |_, arguments| select(arguments, first_row),
    },
    FluxBuiltin {
        name: "last",
        call: |_, arguments| select(arguments, last_row),
    },
    FluxBuiltin {
        name: "min",
        call: |_, arguments| select(arguments, least_row),
    },
    FluxBuiltin {
        name: "max",
        call: |_, arguments| select(arguments, greatest_row),
    },
    FluxBuiltin {
        name: "distinct",
        call: distinct,
    },
    FluxBuiltin {
        name: "unique",
        call: unique,
    },
    FluxBuiltin {
        name: "sort",
        call: sort,
    },
    FluxBuiltin {
        name: "top",
        call: |_, arguments| ranked(arguments, true),
    },
    FluxBuiltin {
        name: "bottom",
        call: |_, arguments| ranked(arguments, false),
    },
    FluxBuiltin {
        name: "limit",
        call: limit,
    },
    FluxBuiltin {
        name: "tail",
        call: tail,
    },
];

fn present(column: &FluxColumn, rows: usize) -> impl DoubleEndedIterator<Item = usize> {
    (0..rows).filter(|row| !column.value(*row).is_null())
}

fn first_row(column: &FluxColumn, rows: usize) -> Option<usize> {
    present(column, rows).next()
}

fn last_row(column: &FluxColumn, rows: usize) -> Option<usize> {
    present(column, rows).next_back()
}

fn least_row(column: &FluxColumn, rows: usize) -> Option<usize> {
    present(column, rows).min_by(|a, b| column.value(*a).order(column.value(*b)))
}

/// Of equal ones the first, which `max_by` would not give.
fn greatest_row(column: &FluxColumn, rows: usize) -> Option<usize> {
    present(column, rows).min_by(|a, b| column.value(*b).order(column.value(*a)))
}

fn select(
    arguments: &mut FluxArguments,
    choose: fn(&FluxColumn, usize) -> Option<usize>,
) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let name = arguments.text_or("column", "_value")?;
    let place = (arguments.at, arguments.function);
    let select = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let row = choose(needed(place, &table, &name)?, table.rows);
        Ok(vec![table.taken(&row.into_iter().collect::<Vec<_>>())])
    };
    FluxStream::each(arguments.at, input, Box::new(select))
}

/// The first row of each value.
fn unique_rows(column: &FluxColumn, rows: usize) -> Vec<usize> {
    if matches!(column.cells, FluxCells::Same(_)) {
        return (0..rows.min(1)).collect();
    }
    let mut all: Vec<usize> = (0..rows).collect();
    let order = |a: &usize, b: &usize| column.value(*a).order(column.value(*b));
    all.sort_by(order);
    all.dedup_by(|later, before| order(later, before).is_eq());
    all.sort_unstable();
    all
}

fn distinct(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let name = arguments.text_or("column", "_value")?;
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let Some(column) = table.column(&name) else {
            return Ok(Vec::new());
        };
        let rows = unique_rows(column, table.rows);
        let values = rows.iter().map(|row| column.value(*row).clone()).collect();
        let mut columns = table.key_columns();
        columns.retain(|column| &*column.name != "_value");
        columns.push(FluxColumn::each("_value", column.kind, values));
        let mut made = table.with_columns(columns, rows.len());
        made.key.retain(|key| &**key != "_value");
        Ok(vec![made])
    };
    FluxStream::each(arguments.at, input, Box::new(make))
}

fn unique(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let name = arguments.text_or("column", "_value")?;
    let place = (arguments.at, arguments.function);
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let rows = unique_rows(needed(place, &table, &name)?, table.rows);
        Ok(vec![table.taken(&rows)])
    };
    FluxStream::each(arguments.at, input, Box::new(make))
}

/// The rows of a table in order; null comes behind everything, or before it where the order is
/// reversed.
fn sorted_rows(table: &FluxTable, names: &[Arc<str>], is_reversed: bool) -> Vec<usize> {
    let columns: Vec<&FluxColumn> = names.iter().filter_map(|name| table.column(name)).collect();
    let order = |a: &FluxValue, b: &FluxValue| match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.order(b),
    };
    let mut rows: Vec<usize> = (0..table.rows).collect();
    rows.sort_by(|a, b| {
        let mut orders = columns
            .iter()
            .map(|column| order(column.value(*a), column.value(*b)));
        let order = orders.find(|order| order.is_ne());
        let order = order.unwrap_or(Ordering::Equal);
        if is_reversed { order.reverse() } else { order }
    });
    rows
}

fn sort(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let names = arguments.texts_or("columns", &["_value"])?;
    let is_reversed = arguments.bool_or("desc", false)?;
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let rows = sorted_rows(&table, &names, is_reversed);
        Ok(vec![table.taken(&rows)])
    };
    FluxStream::each(arguments.at, input, Box::new(make))
}

fn ranked(arguments: &mut FluxArguments, is_reversed: bool) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let count = arguments.count("n")?;
    let names = arguments.texts_or("columns", &["_value"])?;
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let mut rows = sorted_rows(&table, &names, is_reversed);
        rows.truncate(count);
        Ok(vec![table.taken(&rows)])
    };
    FluxStream::each(arguments.at, input, Box::new(make))
}

fn limit(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let (count, offset) = (arguments.count("n")?, arguments.count_or("offset", 0)?);
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let rows: Vec<usize> = (0..table.rows).skip(offset).take(count).collect();
        Ok(vec![table.taken(&rows)])
    };
    FluxStream::each(arguments.at, input, Box::new(make))
}

fn tail(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let (count, offset) = (arguments.count("n")?, arguments.count_or("offset", 0)?);
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let end = table.rows.saturating_sub(offset);
        let rows: Vec<usize> = (end.saturating_sub(count)..end).collect();
        Ok(vec![table.taken(&rows)])
    };
    FluxStream::each(arguments.at, input, Box::new(make))
}
