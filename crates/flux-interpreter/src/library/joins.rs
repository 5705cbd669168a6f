//! `join` of two streams.

use crate::fault::{fault, unsupported};
use crate::value::{
    FluxArguments, FluxBuiltin, FluxCaller, FluxColumn, FluxGroupKey, FluxOperation, FluxStream,
    FluxTable, FluxValue, HeldBudget,
};
use marigram_flux::FluxPosition;
use marigram_sql::SqlResult;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The functions.
pub(super) const FUNCTIONS: &[FluxBuiltin] = &[FluxBuiltin {
    name: "join",
    call: join,
}];

/// What a join compares, and how the two sides are called.
struct JoinColumns {
    at: FluxPosition,
    on: Vec<Arc<str>>,
    names: [Arc<str>; 2],
}

fn join(_: &mut dyn FluxCaller, arguments: &mut FluxArguments) -> SqlResult<FluxValue> {
    let at = arguments.at;
    let FluxValue::Record(sides) = arguments.need("tables")? else {
        return Err(arguments.fault("argument tables is no record of two streams"));
    };
    let [(left, FluxValue::Stream(a)), (right, FluxValue::Stream(b))] = sides.as_slice() else {
        return Err(arguments.fault("argument tables is no record of two streams"));
    };
    let method = arguments.text_or("method", "inner")?;
    if &*method != "inner" {
        return Err(unsupported(at, &format!("join with method {method:?}")));
    }
    let Some(on) = arguments.texts("on")? else {
        return Err(arguments.fault("missing required argument on"));
    };
    if on.is_empty() {
        return Err(arguments.fault("argument on is empty"));
    }
    let columns = JoinColumns {
        at,
        on,
        names: [Arc::clone(left), Arc::clone(right)],
    };
    let gather = move |mut inputs: Vec<Vec<FluxTable>>, caller: &mut dyn FluxCaller| {
        let (right, left) = (inputs.pop(), inputs.pop());
        columns.gather(
            &left.unwrap_or_default(),
            &right.unwrap_or_default(),
            caller,
        )
    };
    let operation = FluxOperation::Gather(Box::new(gather));
    let inputs = vec![Arc::clone(a), Arc::clone(b)];
    Ok(FluxValue::Stream(FluxStream::new(at, operation, inputs)?))
}

/// The values of some columns in a row; `None` where one is null.
fn values(table: &FluxTable, names: &[Arc<str>], row: usize) -> Option<FluxGroupKey> {
    let mut values = Vec::with_capacity(names.len());
    for name in names {
        let value = table.column(name)?.value(row);
        if value.is_null() {
            return None;
        }
        values.push((Arc::clone(name), value.clone()));
    }
    Some(FluxGroupKey(values))
}

impl JoinColumns {
    /// The name of a column of one side in the answer.
    fn named(&self, side: usize, name: &Arc<str>, other: &FluxTable) -> Arc<str> {
        if self.on.contains(name) || other.column(name).is_none() {
            return Arc::clone(name);
        }
        format!("{name}_{}", self.names[side]).into()
    }

    fn gather(
        &self,
        left: &[FluxTable],
        right: &[FluxTable],
        caller: &mut dyn FluxCaller,
    ) -> SqlResult<Vec<FluxTable>> {
        let tables = || left.iter().chain(right);
        for table in tables() {
            if let Some(missing) = self.on.iter().find(|name| table.column(name).is_none()) {
                let message = format!("join: column {missing:?} does not exist in every table");
                return Err(fault(self.at, message));
            }
        }
        // Tables whose keys differ in what is compared have no rows for each other.
        let shared: Vec<Arc<str>> = self
            .on
            .iter()
            .filter(|name| tables().all(|table| table.is_key(name)))
            .cloned()
            .collect();
        let mut by_key: BTreeMap<FluxGroupKey, Vec<(&FluxTable, RowsByValues)>> = BTreeMap::new();
        for table in right {
            if let Some(key) = values(table, &shared, 0) {
                by_key
                    .entry(key)
                    .or_default()
                    .push((table, self.indexed(table)));
            }
        }
        let mut held = HeldBudget::new(caller.budget(), 0)?;
        let mut made = Vec::new();
        for table in left {
            let Some(key) = values(table, &shared, 0) else {
                continue;
            };
            for (other, index) in by_key.get(&key).into_iter().flatten() {
                let mut pairs = Vec::new();
                for row in 0..table.rows {
                    let found = values(table, &self.on, row).and_then(|key| index.get(&key));
                    for matched in found.into_iter().flatten() {
                        held.grow(size_of::<FluxValue>() * 8)?;
                        pairs.push((row, *matched));
                    }
                }
                if !pairs.is_empty() {
                    made.push(self.paired(table, other, &pairs));
                }
            }
        }
        Ok(made)
    }

    fn indexed(&self, table: &FluxTable) -> RowsByValues {
        let mut index = RowsByValues::new();
        for row in 0..table.rows {
            if let Some(key) = values(table, &self.on, row) {
                index.entry(key).or_default().push(row);
            }
        }
        index
    }

    fn paired(&self, left: &FluxTable, right: &FluxTable, pairs: &[(usize, usize)]) -> FluxTable {
        let (lefts, rights): (Vec<usize>, Vec<usize>) = pairs.iter().copied().unzip();
        let (mut columns, mut key): (Vec<FluxColumn>, Vec<Arc<str>>) = (Vec::new(), Vec::new());
        let sides = [(left, right, &lefts), (right, left, &rights)];
        for (side, (table, other, rows)) in sides.into_iter().enumerate() {
            for column in &table.columns {
                let name = self.named(side, &column.name, other);
                if columns.iter().any(|known| known.name == name) {
                    continue;
                }
                if table.is_key(&column.name) {
                    key.push(Arc::clone(&name));
                }
                let mut taken = column.taken(rows);
                taken.name = name;
                columns.push(taken);
            }
        }
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        FluxTable {
            range: left.range,
            ..FluxTable::new(columns, key, pairs.len())
        }
    }
}

/// The rows of a table by the values that a join compares.
type RowsByValues = BTreeMap<FluxGroupKey, Vec<usize>>;
