//! Stores a batch in a super table, which is created or gets columns where it lacks some.

use crate::http::tdengine::asked::{TaosAnswer, run};
use crate::http::tdengine::describe::TableColumns;
use crate::http::tdengine::error::TaosFailure;
use crate::http::tdengine::insert_texts::InsertTexts;
use crate::listener::ServerState;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Float64Type, Int64Type, UInt64Type};
use marigram_model::{FieldType, TagValueRef, WriteBatch};
use marigram_service::{Session, run_inline_if};
use marigram_tdengine::{
    BoundValue, PreparedInsert, PreparedItem, PreparedUsing, TaosCode, TaosPrecision, TaosType,
    push_quoted_name,
};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The time of tables that are created.
const TIME_COLUMN: &str = "_ts";

/// The tag of tables whose lines have none: a super table has at least one.
const NO_TAG: &str = "_tag_null";

/// The least length of texts that are created, and the greatest of tags and of columns.
const LENGTH_MIN: usize = 16;
const TAG_LENGTH_MAX: usize = 4093;
const TEXT_LENGTH_MAX: usize = 16_374;

/// Rows that become text on the thread that serves the connection.
const ROWS_INLINE: usize = 256;

/// Times that a table is looked at again after another request changed it.
const ATTEMPTS: usize = 3;

/// A column that a batch needs.
struct NeededColumn {
    name: String,
    kind: TaosType,
    is_tag: bool,
}

/// Stores a batch; returns the number of rows.
pub(super) async fn store(
    server: &ServerState,
    session: &Session,
    name_key: &str,
    batch: WriteBatch,
) -> Result<u64, TaosFailure> {
    let mut table = String::new();
    push_quoted_name(&batch.table, &mut table);
    let needed = needed_columns(&batch);
    let columns = ready_table(server, session, &table, &needed).await?;
    let time = columns.only(false).next().map(|column| column.name.clone());
    let time = time.unwrap_or_else(|| TIME_COLUMN.to_owned());
    let insert = insert_into(table, time, &batch);
    let precision = columns.precision;
    let mut texts = InsertTexts::new(server.gate.lease());
    let key = name_key.to_owned();
    let is_short = batch.len() <= ROWS_INLINE;
    let work = move || {
        write_rows(&insert, (&batch, &key), precision, &mut texts)?;
        Ok::<_, TaosFailure>(texts)
    };
    let (texts, _held) = run_inline_if(is_short, work).await??.into_parts();
    let mut stored = 0;
    for text in texts {
        if let TaosAnswer::Done(rows) = run(server, session, &text).await? {
            stored += rows;
        }
    }
    Ok(stored)
}

/// The columns of the table, once it has all that are needed.
async fn ready_table(
    server: &ServerState,
    session: &Session,
    table: &str,
    needed: &[NeededColumn],
) -> Result<TableColumns, TaosFailure> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let found = TableColumns::read(server, session, table).await;
        let changes = match &found {
            Ok(columns) => changes_of(table, columns, needed),
            Err(failure) if is_missing(failure) => vec![creation_of(table, needed)],
            Err(failure) => return Err(failure.clone()),
        };
        if changes.is_empty() || attempt > ATTEMPTS {
            return found;
        }
        for change in changes {
            match run(server, session, &change).await {
                // Another request may have done it.
                Err(failure) if !is_done(&failure) => return Err(failure),
                _ => {}
            }
        }
    }
}

fn is_missing(failure: &TaosFailure) -> bool {
    [TaosCode::NoSuchTable, TaosCode::NoSuchStable]
        .iter()
        .any(|code| code.number() == failure.code)
}

fn is_done(failure: &TaosFailure) -> bool {
    let codes = [
        TaosCode::StableExists,
        TaosCode::TableExists,
        TaosCode::ColumnExists,
        TaosCode::TagExists,
        TaosCode::DuplicatedColumn,
        TaosCode::InvalidModify,
    ];
    codes.iter().any(|code| code.number() == failure.code)
}

/// The columns and tags of a batch.
fn needed_columns(batch: &WriteBatch) -> Vec<NeededColumn> {
    let mut needed = Vec::new();
    for field in &batch.fields {
        let kind = match field.kind() {
            FieldType::Bool => TaosType::Bool,
            FieldType::I32 | FieldType::I64 | FieldType::Timestamp => TaosType::BigInt,
            FieldType::U64 => TaosType::UBigInt,
            FieldType::F32 | FieldType::F64 => TaosType::Double,
            FieldType::String | FieldType::Bytes => {
                let texts = field.values.as_string_opt::<i32>();
                let lengths = texts.into_iter().flatten().flatten().map(str::len);
                TaosType::VarChar(rounded(lengths.max(), TEXT_LENGTH_MAX))
            }
        };
        needed.push(NeededColumn {
            name: field.name.clone(),
            kind,
            is_tag: false,
        });
    }
    for tag in &batch.tags {
        let slots = 0..batch.slot_count;
        let lengths = slots.filter_map(|slot| match tag.value(slot) {
            Some(TagValueRef::String(text)) => Some(text.chars().count()),
            _ => None,
        });
        needed.push(NeededColumn {
            name: tag.name.clone(),
            kind: TaosType::NChar(rounded(lengths.max(), TAG_LENGTH_MAX)),
            is_tag: true,
        });
    }
    if batch.tags.is_empty() {
        needed.push(NeededColumn {
            name: NO_TAG.to_owned(),
            kind: TaosType::NChar(1),
            is_tag: true,
        });
    }
    needed
}

/// A length with room for longer texts.
fn rounded(length: Option<usize>, most: usize) -> u32 {
    let length = length.unwrap_or(0).max(LENGTH_MIN);
    let length = length.checked_next_power_of_two().unwrap_or(most);
    u32::try_from(length.min(most)).unwrap_or(u32::MAX)
}

fn push_column(column: &NeededColumn, out: &mut String) {
    push_quoted_name(&column.name, out);
    let _ = write!(out, " {}", column.kind);
}

/// The statement that creates a table.
fn creation_of(table: &str, needed: &[NeededColumn]) -> String {
    let mut sql = format!("CREATE STABLE IF NOT EXISTS {table} (`{TIME_COLUMN}` TIMESTAMP");
    for column in needed.iter().filter(|column| !column.is_tag) {
        sql.push_str(", ");
        push_column(column, &mut sql);
    }
    sql.push_str(") TAGS (");
    let tags = needed.iter().filter(|column| column.is_tag);
    for (place, tag) in tags.enumerate() {
        if place > 0 {
            sql.push_str(", ");
        }
        push_column(tag, &mut sql);
    }
    sql.push(')');
    sql
}

/// The statements that give a table what it lacks.
fn changes_of(table: &str, columns: &TableColumns, needed: &[NeededColumn]) -> Vec<String> {
    let mut changes = Vec::new();
    for column in needed {
        let what = if column.is_tag { "TAG" } else { "COLUMN" };
        let change = match columns.named(&column.name) {
            None => "ADD",
            Some(known) if known.is_tag == column.is_tag && is_longer(column.kind, known.kind) => {
                "MODIFY"
            }
            Some(_) => continue,
        };
        let mut sql = format!("ALTER STABLE {table} {change} {what} ");
        push_column(column, &mut sql);
        changes.push(sql);
    }
    changes
}

/// Whether a text is longer than another one of the same type.
fn is_longer(kind: TaosType, known: TaosType) -> bool {
    match (kind, known) {
        (TaosType::VarChar(length), TaosType::VarChar(known))
        | (TaosType::NChar(length), TaosType::NChar(known)) => length > known,
        _ => false,
    }
}

/// INSERT of rows of a batch into the tables of a super table.
fn insert_into(table: String, time: String, batch: &WriteBatch) -> PreparedInsert {
    let tags: Vec<String> = if batch.tags.is_empty() {
        vec![NO_TAG.to_owned()]
    } else {
        batch.tags.iter().map(|tag| tag.name.clone()).collect()
    };
    let fields = batch.fields.iter().map(|field| field.name.clone());
    let columns: Vec<String> = [time].into_iter().chain(fields).collect();
    PreparedInsert {
        table: None,
        using: Some(PreparedUsing {
            stable: table,
            tags: vec![PreparedItem::Bound; tags.len()],
            tag_names: Some(tags),
        }),
        values: vec![PreparedItem::Bound; columns.len()],
        columns: Some(columns),
    }
}

fn write_rows(
    insert: &PreparedInsert,
    (batch, name_key): (&WriteBatch, &str),
    precision: TaosPrecision,
    texts: &mut InsertTexts,
) -> Result<(), TaosFailure> {
    let mut rows: Vec<usize> = (0..batch.len()).collect();
    let slot_of = |row: &usize| batch.slots.get(*row).copied().unwrap_or(0);
    rows.sort_by_key(slot_of);
    for rows in rows.chunk_by(|one, other| slot_of(one) == slot_of(other)) {
        let slot = rows.first().map_or(0, slot_of);
        let slot = usize::try_from(slot).unwrap_or(0);
        let (name, tags) = table_of(batch, slot, name_key);
        let mut rows = rows.iter();
        let count = rows.len();
        texts.table(insert, (Some(&name), &tags), count, &mut |out| {
            let row = rows.next().copied().unwrap_or(0);
            let mut column = 0;
            let mut next = || {
                column += 1;
                Ok(if column == 1 {
                    let time = batch.times.get(row).copied().unwrap_or(0);
                    BoundValue::Integer(precision.ticks(time).into())
                } else {
                    let field = batch.fields.get(column - 2);
                    field.map_or(BoundValue::Null, |field| field_value(&field.values, row))
                })
            };
            insert.row(&mut next, out)
        })?;
    }
    Ok(())
}

/// The name and the tags of the table of a slot.
fn table_of<'a>(
    batch: &'a WriteBatch,
    slot: usize,
    name_key: &str,
) -> (String, Vec<BoundValue<'a>>) {
    let mut named: Vec<(&str, String)> = Vec::new();
    let mut values = Vec::new();
    for tag in &batch.tags {
        let value = tag.value(slot);
        values.push(match value {
            Some(TagValueRef::String(text)) => BoundValue::Text(text.into()),
            Some(TagValueRef::I64(number)) => BoundValue::Integer(number.into()),
            Some(TagValueRef::Bool(truth)) => BoundValue::Bool(truth),
            None => BoundValue::Null,
        });
        let text = match value {
            Some(TagValueRef::String(text)) => text.to_owned(),
            Some(TagValueRef::I64(number)) => number.to_string(),
            Some(TagValueRef::Bool(truth)) => truth.to_string(),
            None => continue,
        };
        named.push((&tag.name, text));
    }
    if batch.tags.is_empty() {
        values.push(BoundValue::Null);
    }
    let given = named
        .iter()
        .find(|(name, _)| !name_key.is_empty() && *name == name_key);
    if let Some((_, name)) = given {
        return (quoted(name), values);
    }
    named.sort_unstable();
    let mut hash = Sha256::new();
    hash.update(batch.table.as_bytes());
    for (name, value) in named {
        // Neither may contain a zero.
        hash.update(b"\0");
        hash.update(name.as_bytes());
        hash.update(b"\0");
        hash.update(value.as_bytes());
    }
    let mut name = "t_".to_owned();
    for byte in hash.finalize().iter().take(16) {
        let _ = write!(name, "{byte:02x}");
    }
    (name, values)
}

/// A name in backquotes, for a point in it is no border.
fn quoted(name: &str) -> String {
    let mut out = String::new();
    push_quoted_name(name, &mut out);
    out
}

fn field_value(values: &ArrayRef, row: usize) -> BoundValue<'_> {
    if row >= values.len() || values.is_null(row) {
        return BoundValue::Null;
    }
    if let Some(values) = values.as_primitive_opt::<Float64Type>() {
        return BoundValue::Float(values.value(row));
    }
    if let Some(values) = values.as_primitive_opt::<Int64Type>() {
        return BoundValue::Integer(values.value(row).into());
    }
    if let Some(values) = values.as_primitive_opt::<UInt64Type>() {
        return BoundValue::Integer(values.value(row).into());
    }
    if let Some(values) = values.as_boolean_opt() {
        return BoundValue::Bool(values.value(row));
    }
    let texts = values.as_string_opt::<i32>();
    texts.map_or(BoundValue::Null, |texts| {
        BoundValue::Text(texts.value(row).into())
    })
}
