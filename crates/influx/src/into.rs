//! SELECT … INTO: writes the rows of an answer as rows of a measurement.

use crate::output::{Listing, SeriesSchema};
use crate::point::Row;
use crate::prepare::{PreparedSelect, extra_columns};
use crate::schema::refused;
use crate::select::{Running, rows};
use crate::series::SeriesKey;
use crate::statement_run::StatementRun;
use crate::value::{InfluxValueType, Value};
use arrow::array::{StringBuilder, UInt32Array};
use arrow::compute::take;
use datafusion::common::DataFusionError;
use marigram_engine::WriteOptions;
use marigram_influxql::ast::Target;
use marigram_model::{BatchField, BatchTag, WriteBatch};
use marigram_service::{ServiceError, WriteStep, write_blocking};
use marigram_sql::front_end::StatementRows;
use marigram_sql::{SqlError, SqlResult};
use std::collections::HashMap;
use std::sync::Arc;

/// Writes the rows of a SELECT; the answer is their number.
pub(crate) async fn write(
    run: &StatementRun<'_>,
    target: &Target,
    prepared: &PreparedSelect,
    running: &Running,
) -> SqlResult<StatementRows> {
    if run.context.session().read_only {
        let message = "SELECT INTO changes what is stored; only reading is allowed here";
        return Err(ServiceError::ChangesRefused(message.to_owned()).into());
    }
    let engine = run.context.engine();
    let (database, policy) = (&target.database, &target.retention_policy);
    if !run.policies.has_policy(engine, database, policy) {
        return Err(refused(format!("retention policy not found: {policy}")));
    }
    let schema = SeriesSchema::new(prepared);
    let added = added_tags(prepared);
    let mut source = rows(prepared, running)?;
    let (mut written, mut stored): (i64, u64) = (0, 0);
    loop {
        let next = source.next().await;
        let Some(rows) = next.map_err(|error| after_rows(error, stored))? else {
            break;
        };
        let rows = if added.is_empty() {
            rows
        } else {
            rows.into_iter().map(|row| tagged(row, &added)).collect()
        };
        for (name, rows) in by_measurement(rows) {
            let name = target.measurement.as_deref().unwrap_or(&name);
            let table = run
                .policies
                .table_name(engine, database, policy, name)
                .ok_or_else(|| refused(format!("retention policy not found: {policy}")))?;
            let batch = batch(&schema, prepared, table, &rows)?;
            let (engine, database) = (engine.clone(), database.clone());
            let write = move |step: &mut WriteStep| {
                let report = engine.write(&database, &batch, WriteOptions { grow: true })?;
                step.stored(report.stored as u64);
                Ok(report)
            };
            let report = write_blocking(false, write).await;
            let report = report.map_err(|error| after_rows(error, stored))?;
            stored += report.stored as u64;
            if let Some(rejected) = report.rejected.first() {
                let (reason, dropped) = (&rejected.reason, report.rejected.len());
                return Err(refused(format!(
                    "partial write: {reason} dropped={dropped}"
                )));
            }
            written = written.saturating_add(i64::try_from(rows.len()).unwrap_or(i64::MAX));
        }
    }
    let columns = vec![
        ("time", InfluxValueType::Integer),
        ("written", InfluxValueType::Integer),
    ];
    let mut listing = Listing::new(columns);
    let result: Arc<str> = "result".into();
    listing.push(
        Some(&result),
        vec![Value::Integer(0), Value::Integer(written)],
    );
    listing.answer()
}

/// The error of a statement that may have stored rows.
fn after_rows(error: SqlError, stored: u64) -> SqlError {
    if stored == 0 {
        return error;
    }
    let error = Box::new(error);
    SqlError::AfterRows { stored, error }
}

/// The columns that `top` and `bottom` add, which are tags of what is written.
fn added_tags(prepared: &PreparedSelect) -> Vec<(usize, Arc<str>)> {
    let mut added = Vec::new();
    let mut place = 0;
    for field in &prepared.fields {
        place += 1;
        if prepared.has_target {
            continue;
        }
        for var in extra_columns(&field.expression) {
            added.push((place, var.name.as_str().into()));
            place += 1;
        }
    }
    added
}

/// A row with such columns as tags of its series, without them among its values.
fn tagged(mut row: Row, added: &[(usize, Arc<str>)]) -> Row {
    let mut series = (*row.series).clone();
    let mut values = row.values.to_vec();
    for (place, key) in added {
        let value = match values.get_mut(*place).map(std::mem::take) {
            Some(Value::String(text)) => text,
            _ => "".into(),
        };
        series.tags.push((Arc::clone(key), value));
    }
    series.tags.sort();
    series.tags.dedup_by(|a, b| a.0 == b.0);
    row.series = Arc::new(series);
    row.values = values.into();
    row
}

/// Rows that have a value, by the measurement that they come from.
fn by_measurement(rows: Vec<Row>) -> Vec<(Arc<str>, Vec<Row>)> {
    let mut all: Vec<(Arc<str>, Vec<Row>)> = Vec::new();
    for row in rows {
        if row.values.iter().all(Value::is_null) {
            continue;
        }
        match all.last_mut() {
            Some((name, rows)) if *name == row.series.name => rows.push(row),
            _ => all.push((Arc::clone(&row.series.name), vec![row])),
        }
    }
    all
}

fn batch(
    schema: &SeriesSchema,
    prepared: &PreparedSelect,
    table: String,
    rows: &[Row],
) -> SqlResult<WriteBatch> {
    let mut places: HashMap<&SeriesKey, u32> = HashMap::new();
    let mut series: Vec<&SeriesKey> = Vec::new();
    let mut slots = Vec::with_capacity(rows.len());
    for row in rows {
        let next = u32::try_from(series.len()).unwrap_or(u32::MAX);
        let slot = *places.entry(&row.series).or_insert(next);
        if slot == next {
            series.push(&row.series);
        }
        slots.push(slot);
    }
    let keys = rows.first().map(|row| &row.series.tags);
    let tags = keys
        .into_iter()
        .flatten()
        .enumerate()
        .filter_map(|(place, (key, _))| {
            let mut values = StringBuilder::new();
            let mut has_value = false;
            for series in &series {
                let value = series.tags.get(place).map(|(_, value)| &**value);
                let value = value.filter(|value| !value.is_empty());
                has_value |= value.is_some();
                values.append_option(value);
            }
            has_value.then(|| BatchTag {
                name: key.to_string(),
                values: Arc::new(values.finish()),
            })
        });
    let tags = tags.collect();
    let arrow = schema.batch(rows)?;
    let first = arrow.num_columns() - prepared.columns.len();
    let all = UInt32Array::from_iter_values(0..u32::try_from(rows.len()).unwrap_or(u32::MAX));
    let mut fields = Vec::new();
    for (name, values) in prepared.columns.iter().zip(&arrow.columns()[first..]) {
        if values.null_count() < rows.len() && !values.data_type().is_null() {
            let values = take(values, &all, None).map_err(DataFusionError::from)?;
            let name = name.clone();
            fields.push(BatchField { name, values });
        }
    }
    Ok(WriteBatch {
        table,
        tags,
        slot_count: series.len(),
        slots,
        times: rows.iter().map(|row| row.time).collect::<Vec<i64>>().into(),
        fields,
    })
}
