//! `group`, `union` and `pivot`.

use crate::fault::fault;
use crate::merge::{merged, split};
use crate::value::{
    FluxArguments, FluxBuiltin, FluxCaller, FluxColumn, FluxGroupKey, FluxKind, FluxOperation,
    FluxStream, FluxTable, FluxValue, HeldBudget,
};
use marigram_flux::FluxPosition;
use marigram_sql::SqlResult;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The functions.
pub(super) const FUNCTIONS: &[FluxBuiltin] = &[
    FluxBuiltin {
        name: "group",
        call: group,
    },
    FluxBuiltin {
        name: "union",
        call: union,
    },
    FluxBuiltin {
        name: "pivot",
        call: pivot,
    },
];

fn group(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let input = arguments.stream()?;
    let names = arguments.texts_or("columns", &[])?;
    let by = match &*arguments.text_or("mode", "by")? {
        "by" => true,
        "except" => false,
        _ => return Err(arguments.fault("mode is by or except")),
    };
    let make = move |table: FluxTable, _: &mut dyn FluxCaller| {
        let key: Vec<Arc<str>> = if by {
            names.clone()
        } else {
            let columns = table.columns.iter().map(|column| &column.name);
            columns
                .filter(|name| !names.contains(name))
                .cloned()
                .collect()
        };
        Ok(split(table, &key))
    };
    FluxStream::regroup(arguments.at, input, Box::new(make))
}

fn union(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let FluxValue::Array(streams) = arguments.need("tables")? else {
        return Err(arguments.fault("argument tables is no array of streams"));
    };
    let streams = streams.iter().map(|stream| match stream {
        FluxValue::Stream(stream) => Ok(Arc::clone(stream)),
        _ => Err(arguments.fault("argument tables is no array of streams")),
    });
    let streams: Vec<_> = streams.collect::<SqlResult<_>>()?;
    if streams.len() < 2 {
        return Err(arguments.fault("union must have at least two streams as input"));
    }
    let at = arguments.at;
    let gather = move |inputs: Vec<Vec<FluxTable>>, _: &mut dyn FluxCaller| {
        merged(at, inputs.into_iter().flatten().collect())
    };
    let operation = FluxOperation::Gather(Box::new(gather));
    Ok(FluxValue::Stream(FluxStream::new(at, operation, streams)?))
}

/// The rows of a pivot with one group key.
struct PivotGroup {
    /// The columns that stay: those of the group key and of the row key.
    kept: Vec<(Arc<str>, FluxKind)>,
    key: Vec<Arc<str>>,
    range: (i64, i64),
    /// The values of the columns that stay, row by row.
    rows: Vec<Vec<FluxValue>>,
    places: BTreeMap<FluxGroupKey, usize>,
    made: Vec<FluxColumn>,
}

impl PivotGroup {
    /// The values of a column that the pivot makes, one for each row so far.
    fn made_column(
        &mut self,
        at: FluxPosition,
        name: &str,
        kind: FluxKind,
    ) -> SqlResult<&mut Vec<FluxValue>> {
        let place = self.made.iter().position(|column| *column.name == *name);
        let place = place.unwrap_or_else(|| {
            self.made.push(FluxColumn::each(name, kind, Vec::new()));
            self.made.len() - 1
        });
        let rows = self.rows.len();
        match self.made.get_mut(place) {
            Some(FluxColumn {
                kind: known,
                cells: crate::value::FluxCells::Each(values),
                ..
            }) if *known == kind => {
                values.resize(rows, FluxValue::Null);
                Ok(values)
            }
            _ => Err(fault(
                at,
                format!("pivot: column {name:?} has values of several types"),
            )),
        }
    }

    fn table(mut self) -> FluxTable {
        let rows = self.rows.len();
        let mut columns = Vec::with_capacity(self.kept.len() + self.made.len());
        for (place, (name, kind)) in self.kept.iter().enumerate() {
            if self.key.contains(name) {
                let value = self.rows.first().map(|row| row[place].clone());
                columns.push(FluxColumn::same(
                    name,
                    *kind,
                    value.unwrap_or(FluxValue::Null),
                ));
            } else {
                let values = self.rows.iter_mut();
                let values = values.map(|row| std::mem::replace(&mut row[place], FluxValue::Null));
                columns.push(FluxColumn::each(name, *kind, values.collect()));
            }
        }
        for mut column in self.made {
            if let crate::value::FluxCells::Each(values) = &mut column.cells {
                values.resize(rows, FluxValue::Null);
            }
            columns.push(column);
        }
        FluxTable {
            range: self.range,
            ..FluxTable::new(columns, self.key, rows)
        }
    }
}

/// What a pivot makes rows and columns of.
struct PivotColumns {
    at: FluxPosition,
    row_key: Vec<Arc<str>>,
    column_key: Vec<Arc<str>>,
    value: Arc<str>,
}

impl PivotColumns {
    fn is_spent(&self, name: &Arc<str>) -> bool {
        self.column_key.contains(name) || self.value == *name
    }

    fn gather(
        &self,
        tables: &[FluxTable],
        caller: &mut dyn FluxCaller,
    ) -> SqlResult<Vec<FluxTable>> {
        let mut held = HeldBudget::new(caller.budget(), 0)?;
        let mut groups: BTreeMap<FluxGroupKey, PivotGroup> = BTreeMap::new();
        for table in tables {
            self.add(table, &mut groups, &mut held)?;
        }
        Ok(groups.into_values().map(PivotGroup::table).collect())
    }

    fn add(
        &self,
        table: &FluxTable,
        groups: &mut BTreeMap<FluxGroupKey, PivotGroup>,
        held: &mut HeldBudget,
    ) -> SqlResult<()> {
        let needed = |name: &Arc<str>| {
            let missing = || fault(self.at, format!("pivot: column {name:?} does not exist"));
            table.column(name).ok_or_else(missing)
        };
        let value = needed(&self.value)?;
        let row_key: Vec<_> = self.row_key.iter().map(needed).collect::<SqlResult<_>>()?;
        let column_key: Vec<_> = self
            .column_key
            .iter()
            .map(needed)
            .collect::<SqlResult<_>>()?;
        let mut group_key = table.group_key();
        group_key.0.retain(|(name, _)| !self.is_spent(name));
        let stays = |column: &&FluxColumn| {
            !self.is_spent(&column.name)
                && (table.is_key(&column.name) || self.row_key.contains(&column.name))
        };
        let kept: Vec<&FluxColumn> = table.columns.iter().filter(stays).collect();
        let group = groups.entry(group_key).or_insert_with(|| PivotGroup {
            kept: kept
                .iter()
                .map(|column| (Arc::clone(&column.name), column.kind))
                .collect(),
            key: table
                .key
                .iter()
                .filter(|name| !self.is_spent(name))
                .cloned()
                .collect(),
            range: table.range,
            rows: Vec::new(),
            places: BTreeMap::new(),
            made: Vec::new(),
        });
        for row in 0..table.rows {
            let values = row_key.iter();
            let values = values.map(|column| (Arc::clone(&column.name), column.value(row).clone()));
            let values = FluxGroupKey(values.collect());
            let next = group.rows.len();
            let place = *group.places.entry(values).or_insert(next);
            if place == next {
                let values = group.kept.iter().map(|(name, _)| {
                    let column = kept.iter().find(|column| column.name == *name);
                    column.map_or(FluxValue::Null, |column| column.value(row).clone())
                });
                group.rows.push(values.collect());
                held.grow(size_of::<FluxValue>() * (group.kept.len() + 8))?;
            }
            let name = column_key.iter().map(|column| {
                let value = column.value(row);
                value.shown().unwrap_or_default()
            });
            let name = name.collect::<Vec<_>>().join("_");
            if group.kept.iter().any(|(known, _)| **known == name) {
                let message = format!("pivot: there are two columns {name:?}");
                return Err(fault(self.at, message));
            }
            let values = group.made_column(self.at, &name, value.kind)?;
            if let Some(cell) = values.get_mut(place) {
                *cell = value.value(row).clone();
            }
            held.grow(size_of::<FluxValue>())?;
        }
        Ok(())
    }
}

fn pivot_by(input: Arc<FluxStream>, columns: PivotColumns) -> SqlResult<FluxValue> {
    let at = columns.at;
    let gather = move |inputs: Vec<Vec<FluxTable>>, caller: &mut dyn FluxCaller| {
        let tables: Vec<FluxTable> = inputs.into_iter().flatten().collect();
        columns.gather(&tables, caller)
    };
    let operation = FluxOperation::Gather(Box::new(gather));
    Ok(FluxValue::Stream(FluxStream::new(
        at,
        operation,
        vec![input],
    )?))
}

fn pivot(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let missing = "missing required arguments rowKey and columnKey";
    let columns = PivotColumns {
        at: arguments.at,
        row_key: arguments
            .texts("rowKey")?
            .ok_or_else(|| arguments.fault(missing))?,
        column_key: arguments
            .texts("columnKey")?
            .ok_or_else(|| arguments.fault(missing))?,
        value: arguments.text("valueColumn")?,
    };
    pivot_by(arguments.stream()?, columns)
}

/// `schema.fieldsAsCols`: a column for each field, a row for each time.
pub(super) fn fields_as_columns(
    _: &mut dyn FluxCaller,
    arguments: &mut FluxArguments,
) -> SqlResult<FluxValue> {
    let columns = PivotColumns {
        at: arguments.at,
        row_key: vec!["_time".into()],
        column_key: vec!["_field".into()],
        value: "_value".into(),
    };
    pivot_by(arguments.stream()?, columns)
}
