//! INSERT: rows of several tables, some of which may have to be created.

use crate::run::catalog::objects::{ChildRecord, StableRecord, field_type};
use crate::run::catalog::{ROW_FIELD, TBNAME, TaosTable, write};
use crate::run::{TaosRun, done, fault, fault_about, taos};
use crate::sub_table::{create_child, super_table, tag_value, tag_values};
use marigram_model::{BatchBuilder, FieldType, FieldValueRef, TagValueRef};
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use marigram_tdengine::ast::{TaosColumn, TaosInsert, TaosInsertClause};
use marigram_tdengine::{
    InsertedRows, StoredValue, TaosCode, TaosType, TaosValue, TimeSetting, stored_value,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of a batch for each byte of the statement, about.
const BATCH_BYTES: usize = 4;

/// The rows of one table of the engine.
struct InsertedTableRows {
    stable: Arc<StableRecord>,
    batch: BatchBuilder,
    slots: HashMap<String, u32>,
}

/// The rows of a statement, by database and table.
#[derive(Default)]
struct StatementBatches(HashMap<(String, String), InsertedTableRows>);

/// INSERT.
pub(crate) async fn insert(run: &TaosRun<'_>, insert: &TaosInsert) -> SqlResult<StatementRows> {
    run.budget.keep(run.sql.len() * BATCH_BYTES)?;
    let mut batches = StatementBatches::default();
    let mut count = 0;
    for clause in &insert.clauses {
        let database = run.database_of(&clause.table)?.to_owned();
        run.check_write(&database)?;
        let precision = run.catalog.precision(run, &database).await?;
        let setting = run.setting(precision);
        let names_tables = clause
            .columns
            .as_ref()
            .is_some_and(|columns| columns.iter().any(|column| column == TBNAME));
        if names_tables {
            insert_by_name(run, (&database, &setting), clause, &mut batches).await?;
        } else {
            insert_clause(run, (&database, &setting), clause, &mut batches).await?;
        }
        count += clause.row_count;
    }
    let engine = run.engine().clone();
    let store = move || {
        for ((database, _), rows) in batches.0 {
            write(&engine, &database, rows.batch)?;
        }
        Ok(())
    };
    run.context.commit(store).await?;
    Ok(done("INSERT", u64::try_from(count).unwrap_or(0)))
}

impl StatementBatches {
    /// The rows of a table, and the slot of a sub-table.
    fn place(
        &mut self,
        database: &str,
        stable: &Arc<StableRecord>,
        (name, child): (&str, Option<&ChildRecord>),
    ) -> (&mut InsertedTableRows, u32) {
        let key = (database.to_owned(), stable.table.name.clone());
        let rows = self.0.entry(key).or_insert_with(|| InsertedTableRows {
            stable: Arc::clone(stable),
            batch: BatchBuilder::new(stable.table.name.clone()),
            slots: HashMap::new(),
        });
        let slot = match rows.slots.get(name) {
            Some(slot) => *slot,
            None => {
                let series = child.map_or(&[][..], |child| &child.series);
                let others = rows.stable.table.tags.iter().skip(1).zip(series);
                let others = others.filter_map(|(tag, value)| {
                    let value = value.as_ref()?.as_ref();
                    let is_empty = matches!(value, TagValueRef::String(""));
                    (!is_empty).then_some((tag.name.as_str(), value))
                });
                let own = std::iter::once((TBNAME, TagValueRef::String(name)));
                let slot = rows.batch.slot(own.chain(others));
                rows.slots.insert(name.to_owned(), slot);
                slot
            }
        };
        (rows, slot)
    }
}

async fn insert_clause(
    run: &TaosRun<'_>,
    (database, setting): (&str, &TimeSetting),
    clause: &TaosInsertClause,
    batches: &mut StatementBatches,
) -> SqlResult<()> {
    let name = &clause.table.name;
    let found = run.catalog.find(run, database, name).await?;
    let (stable, child) = match (found, &clause.using) {
        (Some(TaosTable::Child(stable, child)), _) => (stable, Some(child)),
        (Some(TaosTable::Whole(stable)), None) if stable.is_normal => (stable, None),
        (Some(TaosTable::Whole(_)), _) => {
            return Err(fault_about(TaosCode::NotStable, name));
        }
        (None, None) => return Err(fault_about(TaosCode::NoSuchTable, name)),
        (None, Some(using)) => {
            let stable = super_table(run, database, &using.stable).await?;
            let names = using.tag_names.as_deref();
            let series = tag_values(&stable, names, &using.tags, setting)?;
            let child = create_child(run, database, (name, &stable), series).await?;
            (stable, Some(child))
        }
    };
    let columns = columns_of(&stable, clause.columns.as_deref())?;
    let mut reading = InsertedRows::new(run.sql, clause).map_err(taos)?;
    let (rows, slot) = batches.place(database, &stable, (name, child.as_deref()));
    let mut values = Vec::new();
    while reading.next_row(&mut values).map_err(taos)? {
        if values.len() != columns.len() {
            return Err(fault(TaosCode::InvalidColumnCount));
        }
        let into = (&mut rows.batch, stable.table.time_name.as_str());
        push_row(into, slot, (&columns, &values), setting)?;
    }
    Ok(())
}

/// The columns that a row has values for. The time is one of them.
fn columns_of(stable: &StableRecord, names: Option<&[String]>) -> SqlResult<Vec<TaosColumn>> {
    let Some(names) = names else {
        return Ok(stable.columns.clone());
    };
    let mut columns: Vec<TaosColumn> = Vec::with_capacity(names.len());
    for name in names {
        let found = stable.columns.iter().find(|column| column.name == *name);
        let found = found.ok_or_else(|| fault_about(TaosCode::InvalidColumn, name))?;
        if columns.contains(found) {
            return Err(fault_about(TaosCode::DuplicatedColumn, name));
        }
        columns.push(found.clone());
    }
    let time = stable.columns.first();
    if !time.is_some_and(|time| columns.contains(time)) {
        return Err(fault_about(
            TaosCode::InvalidColumn,
            "Primary timestamp column should not be null",
        ));
    }
    Ok(columns)
}

fn push_row(
    (batch, time_name): (&mut BatchBuilder, &str),
    slot: u32,
    (columns, values): (&[TaosColumn], &[TaosValue<'_>]),
    setting: &TimeSetting,
) -> SqlResult<()> {
    let mut fields = Vec::with_capacity(values.len());
    let mut time = None;
    for (column, value) in columns.iter().zip(values) {
        let stored = stored_value(value, column.kind, (setting, &column.name)).map_err(taos)?;
        match stored {
            StoredValue::Time(ns) if column.name == time_name => time = Some(ns),
            stored => fields.push((column, stored)),
        }
    }
    let Some(ns) = time else {
        return Err(fault(TaosCode::InvalidTimestamp));
    };
    batch.row(slot, ns);
    let mut is_empty = true;
    for (column, stored) in &fields {
        if let Some(value) = field_value(column.kind, stored) {
            batch.field(&column.name, value);
            is_empty = false;
        }
    }
    if is_empty {
        batch.field(ROW_FIELD, FieldValueRef::Bool(true));
    }
    Ok(())
}

fn field_value<'a>(kind: TaosType, stored: &'a StoredValue<'_>) -> Option<FieldValueRef<'a>> {
    Some(match stored {
        StoredValue::Null => return None,
        StoredValue::Bool(value) => FieldValueRef::Bool(*value),
        StoredValue::Integer(value) => match field_type(kind) {
            FieldType::U64 => FieldValueRef::U64(u64::try_from(*value).ok()?),
            _ => FieldValueRef::I64(i64::try_from(*value).ok()?),
        },
        StoredValue::Float(value) if kind == TaosType::Float => FieldValueRef::F32(*value as f32),
        StoredValue::Float(value) => FieldValueRef::F64(*value),
        StoredValue::Text(text) => FieldValueRef::String(text),
        StoredValue::Bytes(bytes) => FieldValueRef::Bytes(bytes),
        StoredValue::Time(time) => FieldValueRef::Timestamp(*time),
    })
}

/// Rows that name their sub-tables: `INSERT INTO super (tbname, ts, v, tag) VALUES …`.
async fn insert_by_name(
    run: &TaosRun<'_>,
    (database, setting): (&str, &TimeSetting),
    clause: &TaosInsertClause,
    batches: &mut StatementBatches,
) -> SqlResult<()> {
    let stable = super_table(run, database, &clause.table).await?;
    let names = clause.columns.as_deref().unwrap_or_default();
    let mut reading = InsertedRows::new(run.sql, clause).map_err(taos)?;
    let mut values = Vec::new();
    while reading.next_row(&mut values).map_err(taos)? {
        if values.len() != names.len() {
            return Err(fault(TaosCode::InvalidColumnCount));
        }
        let mut own = None;
        let (mut row_names, mut row_values) = (Vec::new(), Vec::new());
        let mut tags = vec![None; stable.table.tags.len().saturating_sub(1)];
        for (name, value) in names.iter().zip(&values) {
            if name == TBNAME {
                if let TaosValue::Text(text) = value {
                    own = Some(text.to_string());
                }
                continue;
            }
            let tag = stable.tags.iter().find(|tag| tag.name == *name);
            match tag.zip(stable.ordinal(name)) {
                Some((tag, place)) => {
                    if let Some(slot) = tags.get_mut(place) {
                        *slot = tag_value(value, tag, setting)?;
                    }
                }
                None => {
                    row_names.push(name.clone());
                    row_values.push(value.clone());
                }
            }
        }
        let own = own.ok_or_else(|| fault_about(TaosCode::InvalidTbname, "tbname"))?;
        let child = match run.catalog.find(run, database, &own).await? {
            Some(TaosTable::Child(of, child)) if of.table.id == stable.table.id => child,
            Some(_) => return Err(fault(TaosCode::TableExists)),
            None => create_child(run, database, (&own, &stable), tags).await?,
        };
        let columns = columns_of(&stable, Some(&row_names))?;
        let (rows, slot) = batches.place(database, &stable, (&own, Some(&child)));
        let into = (&mut rows.batch, stable.table.time_name.as_str());
        push_row(into, slot, (&columns, &row_values), setting)?;
    }
    Ok(())
}
