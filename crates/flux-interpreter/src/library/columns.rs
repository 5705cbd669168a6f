//! Functions that change columns.

use super::record_columns::columns_of_records;
use crate::fault::fault;
use crate::merge::split;
use crate::value::{
    FluxArguments, FluxBuiltin, FluxCaller, FluxCells, FluxColumn, FluxKind, FluxRecord,
    FluxStream, FluxTable, FluxValue,
};
use marigram_flux::FluxPosition;
use marigram_sql::SqlResult;
use std::sync::Arc;

/// The functions.
pub(super) const FUNCTIONS: &[FluxBuiltin] = &[
    FluxBuiltin {
        name: "keep",
        call: |_, arguments| retain(arguments, true),
    },
    FluxBuiltin {
        name: "drop",
        call: |_, arguments| retain(arguments, false),
    },
    FluxBuiltin {
        name: "rename",
        call: rename,
    },
    FluxBuiltin {
        name: "duplicate",
        call: duplicate,
    },
    FluxBuiltin {
        name: "set",
        call: set,
    },
    FluxBuiltin {
        name: "map",
        call: map,
    },
    FluxBuiltin {
        name: "keys",
        call: |_, arguments| names(arguments, true),
    },
    FluxBuiltin {
        name: "columns",
        call: |_, arguments| names(arguments, false),
    },
    FluxBuiltin {
        name: "keyValues",
        call: key_values,
    },
];

/// The answer of a function about a column, given its name.
fn asked(
    caller: &mut dyn FluxCaller,
    (at, function): (FluxPosition, &FluxValue),
    name: &Arc<str>,
) -> SqlResult<FluxValue> {
    let given = vec![("column".to_owned(), FluxValue::Text(Arc::clone(name)))];
    caller.next_row();
    caller.call(at, function, given, None)
}

fn retain(arguments: &mut FluxArguments, keeps: bool) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let names = arguments.texts("columns")?;
    let function = match &names {
        Some(_) => None,
        None => Some(arguments.function("fn")?),
    };
    let at = arguments.at;
    let make = move |mut table: FluxTable, caller: &mut dyn FluxCaller| {
        let mut columns = Vec::with_capacity(table.columns.len());
        for column in std::mem::take(&mut table.columns) {
            let is_meant = match (&names, &function) {
                (Some(names), _) => names.contains(&column.name),
                (None, Some(function)) => {
                    let answer = asked(caller, (at, function), &column.name)?;
                    matches!(answer, FluxValue::Bool(true))
                }
                (None, None) => false,
            };
            if is_meant == keeps {
                columns.push(column);
            }
        }
        let is_there = |key: &Arc<str>| columns.iter().any(|column| column.name == *key);
        table.key.retain(is_there);
        table.columns = columns;
        Ok(vec![table])
    };
    FluxStream::regroup(at, input, Box::new(make))
}

fn rename(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let names: Option<Arc<FluxRecord>> = match arguments.take("columns") {
        None => None,
        Some(FluxValue::Record(names)) => Some(names),
        Some(_) => return Err(arguments.fault("argument columns is no record")),
    };
    let function = match &names {
        Some(_) => None,
        None => Some(arguments.function("fn")?),
    };
    let at = arguments.at;
    let make = move |mut table: FluxTable, caller: &mut dyn FluxCaller| {
        for place in 0..table.columns.len() {
            let old = Arc::clone(&table.columns[place].name);
            let new = match (&names, &function) {
                (Some(names), _) => match names.iter().find(|(name, _)| *name == old) {
                    Some((_, new)) => new.clone(),
                    None => continue,
                },
                (None, Some(function)) => asked(caller, (at, function), &old)?,
                (None, None) => continue,
            };
            let FluxValue::Text(new) = new else {
                return Err(fault(at, "rename: the name of a column is no string"));
            };
            if new != old && table.column(&new).is_some() {
                return Err(fault(at, format!("rename: there are two columns {new:?}")));
            }
            for key in &mut table.key {
                if *key == old {
                    *key = Arc::clone(&new);
                }
            }
            table.columns[place].name = new;
        }
        Ok(vec![table])
    };
    FluxStream::regroup(at, input, Box::new(make))
}

fn duplicate(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let (name, new) = (arguments.text("column")?, arguments.text("as")?);
    let place = (arguments.at, arguments.function);
    let make = move |mut table: FluxTable, _: &mut dyn FluxCaller| {
        let mut copy = super::record_columns::needed(place, &table, &name)?.clone();
        copy.name = Arc::clone(&new);
        let key = table.key.clone();
        table.put(copy);
        Ok(split(table, &key))
    };
    FluxStream::regroup(arguments.at, input, Box::new(make))
}

fn set(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let (name, value) = (arguments.text("key")?, arguments.text("value")?);
    let make = move |mut table: FluxTable, _: &mut dyn FluxCaller| {
        let value = FluxValue::Text(Arc::clone(&value));
        table.put(FluxColumn::same(&name, FluxKind::Text, value));
        Ok(vec![table])
    };
    FluxStream::regroup(arguments.at, input, Box::new(make))
}

fn map(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let function = arguments.function("fn")?;
    arguments.bool_or("mergeKey", false)?;
    let at = arguments.at;
    let make = move |table: FluxTable, caller: &mut dyn FluxCaller| {
        if table.rows == 0 {
            return Ok(Vec::new());
        }
        let table = Arc::new(table);
        let mut records = Vec::with_capacity(table.rows);
        for row in 0..table.rows {
            caller.next_row();
            let given = vec![("r".to_owned(), FluxValue::Row(Arc::clone(&table), row))];
            match caller.call(at, &function, given, None)? {
                FluxValue::Record(record) => records.push(record),
                FluxValue::Row(table, row) => {
                    let columns = table.columns.iter();
                    let record =
                        columns.map(|column| (Arc::clone(&column.name), column.value(row).clone()));
                    records.push(Arc::new(record.collect()));
                }
                other => {
                    let kind = other.type_name();
                    return Err(fault(
                        at,
                        format!("map: fn returns {kind}, and not a record"),
                    ));
                }
            }
        }
        let records: Vec<&FluxRecord> = records.iter().map(|record| &**record).collect();
        let mut columns =
            columns_of_records(&records).map_err(|why| fault(at, format!("map: {why}")))?;
        // A column without values keeps the type that it had.
        for column in &mut columns {
            if let FluxCells::Each(values) = &column.cells
                && values.iter().all(FluxValue::is_null)
                && let Some(known) = table.column(&column.name)
            {
                column.kind = known.kind;
            }
        }
        let rows = records.len();
        let key = table.key.clone();
        Ok(split(table.with_columns(columns, rows), &key))
    };
    FluxStream::regroup(at, input, Box::new(make))
}

/// The names of a table's columns, or of those of its key.
fn names(arguments: &mut FluxArguments, only_key: bool) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let name = arguments.text_or("column", "_value")?;
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let columns = table.columns.iter();
        let columns = columns.filter(|column| !only_key || table.is_key(&column.name));
        let names: Vec<FluxValue> = columns
            .map(|column| FluxValue::Text(Arc::clone(&column.name)))
            .collect();
        let rows = names.len();
        let mut columns = table.key_columns();
        columns.retain(|column| column.name != name);
        columns.push(FluxColumn::each(&name, FluxKind::Text, names));
        let mut made = table.with_columns(columns, rows);
        made.key.retain(|key| *key != name);
        Ok(vec![made])
    };
    FluxStream::each(arguments.at, input, Box::new(make))
}

fn key_values(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let names = arguments.texts_or("keyColumns", &[])?;
    let at = arguments.at;
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let (mut keys, mut values, mut kind) = (Vec::new(), Vec::new(), None);
        for column in names.iter().filter_map(|name| table.column(name)) {
            if kind.is_some_and(|kind| kind != column.kind) {
                return Err(fault(at, "keyValues: the columns have several types"));
            }
            kind = Some(column.kind);
            let mut of_column: Vec<FluxValue> = (0..table.rows)
                .map(|row| column.value(row).clone())
                .collect();
            of_column.sort_by(FluxValue::order);
            of_column.dedup_by(|a, b| a.order(b).is_eq());
            let key = FluxValue::Text(Arc::clone(&column.name));
            keys.extend(std::iter::repeat_n(key, of_column.len()));
            values.extend(of_column);
        }
        let rows = keys.len();
        let mut columns = table.key_columns();
        columns.push(FluxColumn::each("_key", FluxKind::Text, keys));
        let kind = kind.unwrap_or(FluxKind::Text);
        columns.retain(|column| &*column.name != "_value");
        columns.push(FluxColumn::each("_value", kind, values));
        let mut made = table.with_columns(columns, rows);
        made.key.retain(|key| &**key != "_value");
        Ok(vec![made])
    };
    FluxStream::each(at, input, Box::new(make))
}
