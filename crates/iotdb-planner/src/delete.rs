//! DELETE and DROP TIMESERIES.

use crate::series::{
    FoundSeries, TreeSeries, device_filter, device_patterns, find_series_in, tag_texts,
};
use crate::statement::{TreeRun, done, fault, internal};
use crate::trees::{TreeDatabase, touched_databases};
use arrow::array::{Array, AsArray};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, TimeUnit, TimestampNanosecondType};
use arrow::record_batch::RecordBatch;
use datafusion::common::{Column, DataFusionError, ScalarValue};
use datafusion::logical_expr::{Expr, lit};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use marigram_access::DatabasePrivileges;
use marigram_engine::{Engine, TagFilter, WriteOptions};
use marigram_influx::scan_of;
use marigram_iotdb::{
    DEVICE_TAG, DEVICES_TABLE, IotDbFault, MEASUREMENT_TAG, PathNode, PathPattern, StatusCode,
};
use marigram_model::{BatchField, BatchTag, TableSchema, TagValue, TimeRange, WriteBatch};
use marigram_service::{WriteStep, write_blocking};
use marigram_sql::front_end::StatementRows;
use marigram_sql::{SqlError, SqlResult};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Nanoseconds of a millisecond.
const MS_NS: i64 = 1_000_000;

/// The databases that patterns touch, after a look at the rights.
fn touched(run: &TreeRun<'_>, patterns: &[PathPattern]) -> SqlResult<Vec<TreeDatabase>> {
    let all = touched_databases(run.engine(), patterns);
    for database in &all {
        run.check(&database.name, DatabasePrivileges::WRITE)?;
    }
    Ok(all)
}

/// `DELETE FROM`, with the first time and the last one, ms.
///
/// # Errors
/// If the disk refuses.
pub(crate) async fn delete(
    run: &TreeRun<'_>,
    patterns: &[PathPattern],
    (from_ms, to_ms): (i64, i64),
) -> SqlResult<StatementRows> {
    let range = TimeRange {
        min: from_ms.saturating_mul(MS_NS),
        max: to_ms.saturating_mul(MS_NS).saturating_add(MS_NS - 1),
    };
    for database in touched(run, patterns)? {
        delete_values(run, &database, patterns, range).await?;
    }
    Ok(done("DELETE", 0))
}

/// `DROP TIMESERIES`
///
/// # Errors
/// If none matches.
pub(crate) async fn drop_timeseries(
    run: &TreeRun<'_>,
    patterns: &[PathPattern],
) -> SqlResult<StatementRows> {
    let mut is_found = false;
    for database in touched(run, patterns)? {
        let found = find_series_in(run, vec![database.clone()], patterns).await?;
        if found.series.is_empty() {
            continue;
        }
        is_found = true;
        delete_values(run, &database, patterns, TimeRange::ALL).await?;
        forget_declared(run, &database, &found).await?;
    }
    if is_found {
        return Ok(done("DROP TIMESERIES", 0));
    }
    let texts: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    let message = format!(
        "Timeseries [{}] does not exist or is represented by device template",
        texts.join(", ")
    );
    Err(fault(IotDbFault::new(StatusCode::PATH_NOT_EXIST, message)))
}

/// Removes timeseries from those that were created explicitly.
async fn forget_declared(
    run: &TreeRun<'_>,
    database: &TreeDatabase,
    found: &FoundSeries,
) -> SqlResult<()> {
    let Some(table) = &database.declared else {
        return Ok(());
    };
    let (Some((device, _)), Some((measurement, _))) =
        (table.tag(DEVICE_TAG), table.tag(MEASUREMENT_TAG))
    else {
        return Ok(());
    };
    let declared = found.series.iter().filter(|it| it.declared.is_some());
    let filters = declared.map(|series| {
        let value = |text: &str| vec![TagValue::String(text.to_owned())];
        TagFilter::And(vec![
            TagFilter::In(device, value(&series.device.text)),
            TagFilter::In(measurement, value(&series.measurement)),
        ])
    });
    let filter = TagFilter::Or(filters.collect());
    let (engine, name, table) = (
        run.engine().clone(),
        database.name.clone(),
        table.name.clone(),
    );
    let delete = move || Ok(engine.delete(&name, &table, &filter, TimeRange::ALL)?);
    run.context.commit(delete).await
}

/// Deletes values of the timeseries that patterns match.
async fn delete_values(
    run: &TreeRun<'_>,
    database: &TreeDatabase,
    patterns: &[PathPattern],
    range: TimeRange,
) -> SqlResult<()> {
    let Some(table) = &database.devices else {
        return Ok(());
    };
    let is_of_devices =
        |pattern: &&PathPattern| pattern.nodes().last().is_some_and(PathNode::is_any);
    let whole: Vec<PathPattern> = patterns.iter().filter(is_of_devices).cloned().collect();
    if !whole.is_empty() {
        let filter = exact_filter(run, table, &device_patterns(&whole))?;
        delete_devices(run, table, filter, range).await?;
    }
    let single: Vec<PathPattern> = patterns
        .iter()
        .filter(|pattern| !is_of_devices(pattern))
        .cloned()
        .collect();
    if single.is_empty() {
        return Ok(());
    }
    let found = find_series_in(run, vec![database.clone()], &single).await?;
    let mut by_device: BTreeMap<Arc<str>, Vec<&TreeSeries>> = BTreeMap::new();
    for series in found.series.iter().filter(|it| it.field.is_some()) {
        let device = Arc::clone(&series.device.text);
        by_device.entry(device).or_default().push(series);
    }
    for (device, series) in by_device {
        let deleted: HashSet<&str> = series.iter().filter_map(|it| it.field.as_deref()).collect();
        delete_fields(run, table, &device, &deleted, range).await?;
    }
    Ok(())
}

/// The filter that selects just the devices that patterns match.
fn exact_filter(
    run: &TreeRun<'_>,
    table: &TableSchema,
    patterns: &[PathPattern],
) -> SqlResult<TagFilter> {
    let filter = device_filter(table, patterns)?;
    let has_glob = patterns.iter().any(|pattern| {
        let mut nodes = pattern.nodes().iter();
        nodes.any(|node| matches!(node, PathNode::Glob(_)) && !node.is_any())
    });
    let Some((tag, _)) = table.tag(DEVICE_TAG).filter(|_| has_glob) else {
        return Ok(filter);
    };
    // The expression of a partial wildcard also finds quoted nodes that it does not match.
    let snapshot = run.engine().snapshot(&table.database, &table.name)?;
    let selection = snapshot.list(&filter);
    let mut devices = Vec::new();
    for (shard, series) in selection.shards.iter().enumerate() {
        let ids: Vec<u32> = series.iter().collect();
        for text in tag_texts(&snapshot, shard, &ids, DEVICE_TAG)?
            .into_iter()
            .flatten()
        {
            let path = marigram_iotdb::TreePath::parse(&text).map_err(fault)?;
            if patterns.iter().any(|pattern| pattern.matches(path.nodes())) {
                run.budget.keep(2 * text.len() + 64)?;
                devices.push(TagValue::String(text.to_string()));
            }
        }
    }
    Ok(TagFilter::In(tag, devices))
}

/// Deletes the rows of devices.
async fn delete_devices(
    run: &TreeRun<'_>,
    table: &TableSchema,
    filter: TagFilter,
    range: TimeRange,
) -> SqlResult<()> {
    let (engine, database) = (run.engine().clone(), table.database.clone());
    let delete = move |_: &mut WriteStep| {
        Ok::<_, SqlError>(engine.delete(&database, DEVICES_TABLE, &filter, range)?)
    };
    write_blocking(false, delete).await
}

/// Deletes the values of some fields of a device. Storage deletes rows: those that have other values are
/// written again without the deleted ones.
async fn delete_fields(
    run: &TreeRun<'_>,
    table: &TableSchema,
    device: &str,
    deleted: &HashSet<&str>,
    range: TimeRange,
) -> SqlResult<()> {
    let column = |name: &str| Expr::Column(Column::from_name(name));
    let at = |ns: i64| Expr::Literal(ScalarValue::TimestampNanosecond(Some(ns), None), None);
    let state = run.context.state(&table.database)?;
    let has_value = deleted.iter().map(|name| column(name).is_not_null());
    let Some(has_value) = has_value.reduce(Expr::or) else {
        return Ok(());
    };
    let time = || column(&table.time_name);
    let rows = scan_of(&state, table).await?.filter(
        column(DEVICE_TAG)
            .eq(lit(device))
            .and(time().gt_eq(at(range.min)))
            .and(time().lt_eq(at(range.max)))
            .and(has_value),
    )?;
    let kept = table.fields.iter();
    let kept = kept.filter(|field| !deleted.contains(field.name.as_str()));
    let kept: Vec<(String, DataType)> = kept
        .map(|field| (field.name.clone(), field.kind.data_type()))
        .collect();
    let mut shown = vec![time().alias("t")];
    let fields = kept.iter().enumerate();
    shown.extend(fields.map(|(place, (name, _))| column(name).alias(format!("f{place}"))));
    let plan = rows.project(shown)?.build()?;
    let plan = state.create_physical_plan(&plan).await?;
    let mut batches = execute_stream(plan, state.task_ctx())?;
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        run.budget.check_interrupt()?;
        let (engine, database) = (run.engine().clone(), table.database.clone());
        let (device, kept) = (device.to_owned(), kept.clone());
        let rewrite =
            move |_: &mut WriteStep| rewrite(&engine, &database, (&device, &kept), &batch);
        write_blocking(false, rewrite).await?;
    }
    Ok(())
}

/// Deletes the rows of a batch, and writes those again that have other values.
fn rewrite(
    engine: &Engine,
    database: &str,
    (device, kept): (&str, &[(String, DataType)]),
    batch: &RecordBatch,
) -> SqlResult<()> {
    let plain = DataType::Timestamp(TimeUnit::Nanosecond, None);
    let times = cast(batch.column(0), &plain).map_err(DataFusionError::from)?;
    let times = times.as_primitive::<TimestampNanosecondType>().values();
    let rows = |keep: &dyn Fn(usize) -> bool| -> Vec<u32> {
        (0..batch.num_rows())
            .filter(|row| keep(*row))
            .filter_map(|row| u32::try_from(row).ok())
            .collect()
    };
    let written = |rows: &[u32], fields: Vec<BatchField>| WriteBatch {
        table: DEVICES_TABLE.to_owned(),
        tags: vec![BatchTag {
            name: DEVICE_TAG.to_owned(),
            values: Arc::new(arrow::array::StringArray::from(vec![device])),
        }],
        slot_count: 1,
        slots: vec![0; rows.len()],
        times: rows
            .iter()
            .filter_map(|row| times.get(*row as usize).copied())
            .collect::<Vec<i64>>()
            .into(),
        fields,
    };
    let all = rows(&|_| true);
    engine.delete_rows(database, &written(&all, Vec::new()))?;
    let columns = batch.columns().get(1..).unwrap_or_default();
    let others = rows(&|row| columns.iter().any(|column| !column.is_null(row)));
    if others.is_empty() {
        return Ok(());
    }
    let indices = arrow::array::UInt32Array::from(others.clone());
    let mut fields = Vec::new();
    for ((name, kind), column) in kept.iter().zip(columns) {
        let values = take(column, &indices, None).map_err(DataFusionError::from)?;
        let values = cast(&values, kind).map_err(DataFusionError::from)?;
        if values.null_count() < values.len() {
            let name = name.clone();
            fields.push(BatchField { name, values });
        }
    }
    let report = engine.write(
        database,
        &written(&others, fields),
        WriteOptions { grow: false },
    )?;
    if report.rejected.is_empty() {
        return Ok(());
    }
    Err(internal("rows could not be written again"))
}
