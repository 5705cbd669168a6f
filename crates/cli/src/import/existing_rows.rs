//! Compares the rows of an import with those that the table has already, before any is written.
//!
//! A row with the time and the tags of a stored one replaces its values. If an import is run again, the
//! values are the same. Other values mean that the file is newer, or that it comes from another device
//! for which the table has no tag: nobody would notice the loss.
//!
//! Invariant: memory holds [`ROWS_AT_ONCE`] rows of the import. Rows that are sorted by time or by device
//! read each stored row about once.

use super::ParsedBatch;
use super::duplicate_check::{place_of, series_key};
use crate::client::DataClient;
use crate::table_columns::known_table;
use crate::terminal;
use anyhow::{Result, bail};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use arrow::record_batch::RecordBatch;
use marigram_model::{FieldType, FieldValue, TagValueRef, WriteBatch, always_quoted as quoted};
use marigram_tabular::layout::ColumnLayout;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

/// Rows of the import that are compared together.
const ROWS_AT_ONCE: usize = 200_000;

/// Changed rows to name.
const NAMED_MAX: usize = 3;

/// Values of a tag up to which only their rows are read.
const TAG_VALUES_MAX: usize = 100;

/// What the import would do to the rows that are there.
#[derive(Debug, Default)]
pub(crate) struct ExistingRows {
    /// Rows whose values are there already.
    pub identical: u64,
    /// Rows that would change values.
    pub changed: u64,
    /// Rows that only add values where there are none.
    pub completed: u64,
    named: Vec<(u64, String)>,
    known: HashMap<String, Option<ColumnLayout>>,
    pending: BTreeMap<String, Vec<PendingBatch>>,
    pending_rows: usize,
}

/// Rows of the import, with the place of each.
#[derive(Debug)]
struct PendingBatch {
    batch: WriteBatch,
    places: Vec<u64>,
}

impl ExistingRows {
    /// Adds rows of file number `file`.
    pub(crate) fn add(
        &mut self,
        client: &mut DataClient,
        file: u64,
        parsed: ParsedBatch,
    ) -> Result<()> {
        for (batch, lines) in parsed.batches.into_iter().zip(parsed.lines) {
            let table = batch.table.clone();
            if self.known(client, &table)?.is_none() {
                continue;
            }
            self.pending_rows += batch.len();
            let places = lines.iter().map(|line| place_of(file, *line)).collect();
            let pending = PendingBatch { batch, places };
            self.pending.entry(table).or_default().push(pending);
        }
        if self.pending_rows >= ROWS_AT_ONCE {
            self.compare(client)?;
        }
        Ok(())
    }

    /// The columns of a table; `None` if it does not exist.
    pub(crate) fn known(
        &mut self,
        client: &mut DataClient,
        table: &str,
    ) -> Result<Option<&ColumnLayout>> {
        if !self.known.contains_key(table) {
            let known = known_table(client, table)?;
            self.known.insert(table.to_owned(), known);
        }
        Ok(self.known.get(table).and_then(Option::as_ref))
    }

    /// Compares the rows that were added, and forgets them.
    pub(crate) fn compare(&mut self, client: &mut DataClient) -> Result<()> {
        self.pending_rows = 0;
        for (table, pending) in std::mem::take(&mut self.pending) {
            if let Some(Some(known)) = self.known.get(&table).cloned() {
                self.compare_table(client, &known, &pending)?;
            }
        }
        Ok(())
    }

    /// Says how many rows are there already; `None` if none is.
    pub(crate) fn summary(&self) -> Option<String> {
        let there = self.identical + self.changed + self.completed;
        let completed = match self.completed {
            0 => String::new(),
            rows => format!(
                ", {} with values in other columns only",
                terminal::count(rows)
            ),
        };
        (there > 0).then(|| {
            format!(
                "{} in the table already: {} with the same values, {} with others{completed}",
                if there == 1 {
                    "1 row is".to_owned()
                } else {
                    format!("{} rows are", terminal::count(there))
                },
                terminal::count(self.identical),
                terminal::count(self.changed)
            )
        })
    }

    /// Why the import stops, and how it can go on; `names` are those of the files.
    pub(crate) fn reason(&self, names: &[String], replace: &str) -> String {
        let mut text = format!(
            "{}; nothing was written",
            self.summary().unwrap_or_default()
        );
        for (place, change) in &self.named {
            let (file, line) = super::duplicate_check::place(*place);
            let of = match names {
                [_] => String::new(),
                _ => format!(" of {}", names.get(file).map_or("", String::as_str)),
            };
            let _ = write!(text, "\n  line {line}{of}: {change}");
        }
        text.push_str(
            "\n  if the rows are those of another device, a tag keeps them apart: --tag NAME=VALUE, or \
             --file-tag NAME=REGEX to take it from the file's name",
        );
        let _ = write!(
            text,
            "\n  {replace} stores the new values in place of the old ones"
        );
        text
    }

    fn compare_table(
        &mut self,
        client: &mut DataClient,
        known: &ColumnLayout,
        pending: &[PendingBatch],
    ) -> Result<()> {
        let mut rows: HashMap<(u128, i64), Vec<(usize, usize)>> = HashMap::new();
        for (at, PendingBatch { batch, .. }) in pending.iter().enumerate() {
            let keys = super::duplicate_check::series(batch);
            for (row, (slot, time)) in batch.slots.iter().zip(batch.times.iter()).enumerate() {
                let key = (keys[*slot as usize], *time);
                rows.entry(key).or_default().push((at, row));
            }
        }
        let Some(sql) = selection(known, pending) else {
            return Ok(());
        };
        let reply = match client.execute(&sql) {
            Ok(reply) => reply,
            Err(failure) => bail!("{failure}"),
        };
        let crate::reply::StatementReply::Rows(found) = reply else {
            return Ok(());
        };
        for batch in found.batches {
            let stored = match batch {
                Ok(batch) => StoredRows::new(known, &batch)?,
                Err(failure) => bail!("{failure}"),
            };
            for row in 0..stored.times.len() {
                let key = (stored.series(&known.table, row), stored.times.value(row));
                for (at, own) in rows.get(&key).into_iter().flatten() {
                    let PendingBatch { batch, places } = &pending[*at];
                    match stored.change(row, batch, *own) {
                        RowChange::None => self.identical += 1,
                        RowChange::Adds => self.completed += 1,
                        RowChange::Replaces(change) => {
                            self.changed += 1;
                            if self.named.len() < NAMED_MAX {
                                self.named
                                    .push((places.get(*own).copied().unwrap_or(0), change));
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// The query for the stored rows that the rows of the import could replace.
fn selection(known: &ColumnLayout, pending: &[PendingBatch]) -> Option<String> {
    let times = || {
        pending
            .iter()
            .flat_map(|part| part.batch.times.iter().copied())
    };
    let literal = |ns: i64| jiff::Timestamp::from_nanosecond(i128::from(ns)).ok();
    let (first, last) = (literal(times().min()?)?, literal(times().max()?)?);
    let (table, time) = (quoted(&known.table), quoted(&known.time));
    let mut sql = format!("SELECT * FROM {table} WHERE {time} >= '{first}' AND {time} <= '{last}'");
    for (tag, kind) in &known.tags {
        if kind != "STRING" {
            continue;
        }
        let mut values = BTreeSet::new();
        let all_have_it = pending.iter().all(|part| {
            let column = part.batch.tags.iter().find(|column| column.name == *tag);
            column.is_some_and(|column| {
                (0..part.batch.slot_count).all(|slot| match column.value(slot) {
                    Some(TagValueRef::String(text)) => {
                        values.insert(text.to_owned());
                        values.len() <= TAG_VALUES_MAX
                    }
                    _ => false,
                })
            })
        });
        if all_have_it && !values.is_empty() {
            let values: Vec<String> = values
                .iter()
                .map(|value| format!("'{}'", value.replace('\'', "''")))
                .collect();
            let _ = write!(sql, " AND {} IN ({})", quoted(tag), values.join(", "));
        }
    }
    Some(sql)
}

/// Rows of the table.
struct StoredRows {
    times: arrow::array::Int64Array,
    tags: Vec<(String, ArrayRef)>,
    fields: HashMap<String, ArrayRef>,
}

impl StoredRows {
    fn new(known: &ColumnLayout, rows: &RecordBatch) -> Result<Self> {
        let naive = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let (mut times, mut tags, mut fields) = (None, Vec::new(), HashMap::new());
        for (field, column) in rows.schema_ref().fields().iter().zip(rows.columns()) {
            let name = field.name();
            if *name == known.time {
                let ns = cast(&cast(column, &naive)?, &DataType::Int64)?;
                times = Some(ns.as_primitive::<Int64Type>().clone());
            } else if known.tags.iter().any(|(tag, _)| tag == name) {
                tags.push((name.clone(), cast(column, &DataType::Utf8)?));
            } else {
                let plain = match column.data_type() {
                    DataType::Timestamp(..) => cast(column, &naive)?,
                    kind if FieldType::from_arrow(kind).is_none() => cast(column, &DataType::Utf8)?,
                    _ => column.clone(),
                };
                fields.insert(name.clone(), plain);
            }
        }
        tags.sort_by(|a, b| a.0.cmp(&b.0));
        let Some(times) = times else {
            bail!(
                "the rows of table '{}' come without their time",
                known.table
            );
        };
        Ok(Self {
            times,
            tags,
            fields,
        })
    }

    /// The key of a row's series, as the import's rows have it.
    fn series(&self, table: &str, row: usize) -> u128 {
        let tags = self.tags.iter().filter(|(_, values)| values.is_valid(row));
        let tags = tags.map(|(name, values)| (name.as_str(), values.as_string::<i32>().value(row)));
        series_key(table, tags)
    }

    /// What row `own` of `batch` would do to a row of the table.
    fn change(&self, row: usize, batch: &WriteBatch, own: usize) -> RowChange {
        let mut change = RowChange::None;
        for field in &batch.fields {
            let Some(new) = FieldValue::from_array(&field.values, own) else {
                continue;
            };
            let old = self.fields.get(&field.name);
            match old.and_then(|values| FieldValue::from_array(values, row)) {
                None => change = RowChange::Adds,
                Some(old) if is_same(&old, &new) => {}
                Some(old) => {
                    return RowChange::Replaces(format!(
                        "{} is {}, and would be {}",
                        field.name,
                        shown(&old),
                        shown(&new)
                    ));
                }
            }
        }
        change
    }
}

/// What a row does to a stored one of the same time and tags.
enum RowChange {
    /// Nothing: its values are there.
    None,
    /// It adds values in columns where the stored row has none.
    Adds,
    /// It replaces values; the text names the first one.
    Replaces(String),
}

/// Whether a stored value is `new`, stored with the column's type.
fn is_same(old: &FieldValue, new: &FieldValue) -> bool {
    let number = |value: &FieldValue| match *value {
        FieldValue::I32(v) => Some(f64::from(v)),
        FieldValue::I64(v) => Some(v as f64),
        FieldValue::U64(v) => Some(v as f64),
        FieldValue::F32(v) => Some(f64::from(v)),
        FieldValue::F64(v) => Some(v),
        _ => None,
    };
    match (old, new) {
        (FieldValue::F32(old), new) => number(new).is_some_and(|new| {
            let new = new as f32;
            old.to_bits() == new.to_bits() || (old.is_nan() && new.is_nan())
        }),
        (FieldValue::F64(old), new) => number(new)
            .is_some_and(|new| old.to_bits() == new.to_bits() || (old.is_nan() && new.is_nan())),
        (old, FieldValue::F32(_) | FieldValue::F64(_)) => number(old) == number(new),
        (old, new) if number(old).is_some() => shown(old) == shown(new),
        (old, new) => old == new,
    }
}

/// A value as a message shows it.
fn shown(value: &FieldValue) -> String {
    const CHARS_MAX: usize = 40;
    match value {
        FieldValue::String(v) => format!("'{}'", v.chars().take(CHARS_MAX).collect::<String>()),
        value => terminal::field_value(value),
    }
}
