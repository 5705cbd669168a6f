//! SELECT LAST: the newest points of timeseries.

use crate::answer_rows::answer_values;
use crate::compile::as_ms;
use crate::device_rows::{DeviceRows, TIME, column, value_column};
use crate::expand::{ExpandedColumn, SeriesByPath};
use crate::listing::{answer_schema, typed_field};
use crate::series::{FoundSeries, TreeSeries, device_patterns, find_series};
use crate::statement::{TreeRun, internal, semantic};
use crate::time_bounds::split_times;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int32Type, Int64Type};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::execute_stream;
use futures::{StreamExt, stream};
use marigram_engine::{SeriesSelection, TagFilter};
use marigram_iotdb::{
    IotDbType, PathPattern, SortKey, TIME_ANSWER, TreeExpr, TreeSelect, java_double, java_float,
    ns_to_ms,
};
use marigram_model::TagValue;
use marigram_sql::front_end::StatementRows;
use marigram_sql::{SqlError, SqlResult};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;

/// Devices that are looked up together.
const DEVICES_AT_ONCE: usize = 4096;

/// Bytes of a point beside its texts.
const POINT_BYTES: usize = 128;

/// A newest point.
#[derive(Clone, Debug)]
struct NewestPoint {
    time_ms: i64,
    name: String,
    value: String,
    kind: IotDbType,
}

/// Answers a query for the newest points.
///
/// # Errors
/// What is wrong with it.
pub(crate) async fn answer(run: &TreeRun<'_>, query: &TreeSelect) -> SqlResult<StatementRows> {
    let mut paths = Vec::new();
    for column in &query.columns {
        let TreeExpr::Path(path) = &column.expr else {
            return Err(semantic(
                "Last queries can only be applied on raw time series.",
            ));
        };
        paths.push((path, column.alias.as_ref()));
    }
    if query.windows.is_some() || !query.levels.is_empty() || query.is_aligned_by_device {
        return Err(semantic(
            "Last query doesn't support GROUP BY and align by device.",
        ));
    }
    let (range, rest) = match &query.condition {
        Some(condition) => split_times(condition),
        None => ((i64::MIN, i64::MAX), None),
    };
    if rest.is_some() {
        return Err(semantic("Only time filters are supported in LAST query"));
    }
    let mut patterns = Vec::new();
    for (path, _) in &paths {
        patterns.extend(crate::expand::full_patterns(path, &query.from)?);
    }
    let found = find_series(run, &patterns).await?;
    let by_path = SeriesByPath::new(&found, &query.from);
    let mut wanted: Vec<(&TreeSeries, ExpandedColumn)> = Vec::new();
    for (path, alias) in paths {
        for series in by_path.matched(path)? {
            let expr = TreeExpr::Path(PathPattern::for_path(
                &series.device.path.child(&series.measurement),
            ));
            let name = alias.cloned().unwrap_or_else(|| series.path());
            if !wanted.iter().any(|(_, known)| known.name == name) {
                wanted.push((series, ExpandedColumn { name, expr }));
            }
        }
    }
    let mut points = newest(run, &found, &wanted, range, &patterns).await?;
    sort(&mut points, &query.order);
    let skipped = usize::try_from(query.offset).unwrap_or(usize::MAX);
    let limit = query.limit.and_then(|limit| usize::try_from(limit).ok());
    let points = points.into_iter().skip(skipped);
    let points: Vec<NewestPoint> = points.take(limit.unwrap_or(usize::MAX)).collect();
    Ok(rows(points))
}

fn sort(points: &mut [NewestPoint], order: &[(SortKey, bool)]) {
    points.sort_by(|a, b| a.name.cmp(&b.name));
    for (key, descends) in order.iter().rev() {
        points.sort_by(|a, b| {
            let found = match key {
                SortKey::Time => a.time_ms.cmp(&b.time_ms),
                SortKey::Timeseries => a.name.cmp(&b.name),
                SortKey::Device | SortKey::Value(_) => std::cmp::Ordering::Equal,
            };
            if *descends { found.reverse() } else { found }
        });
    }
}

/// The newest points of timeseries within a range of times.
async fn newest(
    run: &TreeRun<'_>,
    found: &FoundSeries,
    wanted: &[(&TreeSeries, ExpandedColumn)],
    range: (i64, i64),
    patterns: &[PathPattern],
) -> SqlResult<Vec<NewestPoint>> {
    let mut points = Vec::new();
    let mut left: Vec<&(&TreeSeries, ExpandedColumn)> = Vec::new();
    if range.1 == i64::MAX {
        let known = cached(run, found, wanted)?;
        for one in wanted {
            let (series, column) = one;
            match known.get(&(
                Arc::clone(&series.device.text),
                Arc::clone(&series.measurement),
            )) {
                Some((time_ms, value)) => {
                    if *time_ms >= range.0 {
                        run.budget
                            .keep(POINT_BYTES + column.name.len() + value.len())?;
                        points.push(NewestPoint {
                            time_ms: *time_ms,
                            name: column.name.clone(),
                            value: value.clone(),
                            kind: series.kind,
                        });
                    }
                }
                None => left.push(one),
            }
        }
    } else {
        left.extend(wanted);
    }
    left.retain(|(series, _)| series.field.is_some());
    if !left.is_empty() {
        aggregated(run, found, &left, (range, patterns), &mut points).await?;
    }
    Ok(points)
}

/// A device and a measurement.
type PointKey = (Arc<str>, Arc<str>);

/// The newest points that stand in the newest rows of their devices.
fn cached(
    run: &TreeRun<'_>,
    found: &FoundSeries,
    wanted: &[(&TreeSeries, ExpandedColumn)],
) -> SqlResult<HashMap<PointKey, (i64, String)>> {
    let mut points = HashMap::new();
    let mut by_database: BTreeMap<usize, BTreeMap<Arc<str>, Vec<&TreeSeries>>> = BTreeMap::new();
    for (series, _) in wanted.iter().filter(|(series, _)| series.field.is_some()) {
        let devices = by_database.entry(series.device.database).or_default();
        let all = devices.entry(Arc::clone(&series.device.text)).or_default();
        all.push(series);
    }
    for (place, devices) in by_database {
        let database = found.databases.get(place);
        let Some(table) = database.and_then(|database| database.devices.as_ref()) else {
            continue;
        };
        let Some((tag, _)) = table.tag(marigram_iotdb::DEVICE_TAG) else {
            continue;
        };
        let snapshot = run.engine().snapshot(&table.database, &table.name)?;
        let fields: Vec<_> = table.fields.iter().collect();
        let ids: Vec<_> = fields.iter().map(|field| field.id).collect();
        let devices: Vec<_> = devices.into_iter().collect();
        for some in devices.chunks(DEVICES_AT_ONCE) {
            run.budget.check_interrupt()?;
            let names = some
                .iter()
                .map(|(name, _)| TagValue::String(name.to_string()));
            let selection = snapshot.list(&TagFilter::In(tag, names.collect()));
            let of_device: HashMap<&str, &Vec<&TreeSeries>> = some
                .iter()
                .map(|(name, series)| (&**name, series))
                .collect();
            let texts = device_texts(&snapshot, &selection)?;
            for (shard, rows) in snapshot.last_rows(&selection, &ids)? {
                let mut row = 0;
                for run_of_series in &rows.runs {
                    row += run_of_series.rows as usize;
                    let Some(at) = row.checked_sub(1) else {
                        continue;
                    };
                    let text = texts.get(&(shard, run_of_series.series.0));
                    let all = text.and_then(|text| of_device.get(&**text));
                    for series in all.into_iter().flat_map(|all| all.iter()) {
                        let field = series.field.as_deref();
                        let place = fields.iter().position(|it| Some(it.name.as_str()) == field);
                        let column = place.and_then(|place| rows.columns.get(place));
                        let Some(column) =
                            column.filter(|column| at < column.len() && !column.is_null(at))
                        else {
                            continue;
                        };
                        let time_ms = rows.times.get(at).copied().map_or(0, ns_to_ms);
                        let value = value_text(&column.slice(at, 1), series.kind)?;
                        let key = (
                            Arc::clone(&series.device.text),
                            Arc::clone(&series.measurement),
                        );
                        run.budget.keep(POINT_BYTES + value.len())?;
                        points.insert(key, (time_ms, value));
                    }
                }
            }
        }
    }
    Ok(points)
}

/// The devices of series, by shard and number.
fn device_texts(
    snapshot: &marigram_engine::TableSnapshot,
    selection: &SeriesSelection,
) -> SqlResult<HashMap<(usize, u32), Arc<str>>> {
    let mut texts = HashMap::new();
    for (shard, series) in selection.shards.iter().enumerate() {
        let ids: Vec<u32> = series.iter().collect();
        let names = crate::series::tag_texts(snapshot, shard, &ids, marigram_iotdb::DEVICE_TAG)?;
        for (id, name) in ids.into_iter().zip(names) {
            if let Some(name) = name {
                texts.insert((shard, id), name);
            }
        }
    }
    Ok(texts)
}

/// The newest points that a plan finds.
async fn aggregated(
    run: &TreeRun<'_>,
    found: &FoundSeries,
    wanted: &[&(&TreeSeries, ExpandedColumn)],
    (range, patterns): ((i64, i64), &[PathPattern]),
    points: &mut Vec<NewestPoint>,
) -> SqlResult<()> {
    let patterns = device_patterns(patterns);
    let rows = DeviceRows::new(wanted.iter().map(|(series, _)| *series), range, patterns);
    let state = rows.state(run, found)?;
    let mut places: Vec<usize> = Vec::new();
    let mut by_device: HashMap<Arc<str>, Vec<(usize, &TreeSeries, &str)>> = HashMap::new();
    for (series, column) in wanted.iter().copied() {
        let place = rows
            .place(series)
            .ok_or_else(|| internal("a column is missing"))?;
        if !places.contains(&place) {
            places.push(place);
        }
        let all = by_device
            .entry(Arc::clone(&series.device.text))
            .or_default();
        all.push((place, series, &column.name));
    }
    let last = state.aggregate_functions().get("last");
    let last = last.ok_or_else(|| internal("the function last is missing"))?;
    for plan in rows.plans(&state, found).await? {
        let mut calls: Vec<Expr> = Vec::new();
        let mut shown = vec![column(crate::device_rows::DEVICE)];
        for place in &places {
            let value = value_column(*place);
            let mut newest = datafusion::functions_aggregate::expr_fn::max(column(TIME));
            if let Expr::AggregateFunction(call) = &mut newest {
                call.params.filter = Some(Box::new(column(&value).is_not_null()));
            }
            let (time, newest_value) = (format!("t{place}"), format!("v{place}"));
            calls.push(newest.alias(&time));
            let value = last.call(vec![column(&value), column(TIME)]);
            calls.push(value.alias(&newest_value));
            shown.push(as_ms(column(&time)).alias(format!("n{place}")));
            shown.push(column(&newest_value));
        }
        let keys = vec![column(crate::device_rows::DEVICE)];
        let plan = plan.aggregate(keys, calls)?.project(shown)?.build()?;
        let plan = state.create_physical_plan(&plan).await?;
        let mut batches = execute_stream(plan, state.task_ctx())?;
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            run.budget.check_interrupt()?;
            let devices = cast(batch.column(0), &DataType::Utf8).map_err(DataFusionError::from)?;
            let devices = devices.as_string::<i32>();
            for row in 0..batch.num_rows() {
                let all = by_device.get(devices.value(row));
                for (place, series, name) in all.into_iter().flatten() {
                    let at = places.iter().position(|known| known == place).unwrap_or(0);
                    let times = batch.column(1 + 2 * at).as_primitive::<Int64Type>();
                    if times.is_null(row) {
                        continue;
                    }
                    let value = batch.column(2 + 2 * at).slice(row, 1);
                    let value = value_text(&value, series.kind)?;
                    run.budget.keep(POINT_BYTES + name.len() + value.len())?;
                    points.push(NewestPoint {
                        time_ms: times.value(row),
                        name: (*name).to_owned(),
                        value,
                        kind: series.kind,
                    });
                }
            }
        }
    }
    Ok(())
}

/// The only value of an array as a text.
fn value_text(value: &ArrayRef, kind: IotDbType) -> SqlResult<String> {
    let value = answer_values(value, kind)?;
    if value.is_empty() || value.is_null(0) {
        return Ok(String::new());
    }
    Ok(match value.data_type() {
        DataType::Boolean => value.as_boolean().value(0).to_string(),
        DataType::Int32 if kind == IotDbType::Date => {
            let day = value.as_primitive::<Int32Type>().value(0);
            format!(
                "{:04}-{:02}-{:02}",
                day / 10_000,
                day / 100 % 100,
                day % 100
            )
        }
        DataType::Int32 => value.as_primitive::<Int32Type>().value(0).to_string(),
        DataType::Int64 => value.as_primitive::<Int64Type>().value(0).to_string(),
        DataType::Float32 => java_float(value.as_primitive::<Float32Type>().value(0)),
        DataType::Float64 => java_double(value.as_primitive::<Float64Type>().value(0)),
        DataType::Utf8 => value.as_string::<i32>().value(0).to_owned(),
        _ => {
            let bytes = value.as_binary::<i32>().value(0).iter();
            bytes.fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
        }
    })
}

/// Newest points as an answer.
fn rows(points: Vec<NewestPoint>) -> StatementRows {
    let mut fields = vec![typed_field(TIME_ANSWER, IotDbType::Timestamp).with_nullable(false)];
    let names = ["Timeseries", "Value", "DataType"].into_iter();
    fields.extend(names.map(|name| typed_field(name, IotDbType::Text)));
    let schema = answer_schema(fields, false);
    let shown = Arc::clone(&schema);
    let starts: Vec<usize> = (0..points.len()).step_by(BATCH_ROWS).collect();
    let batches = starts.into_iter().map(move |begin| {
        let end = (begin + BATCH_ROWS).min(points.len());
        let some = &points[begin..end];
        let text = |of: &dyn Fn(&NewestPoint) -> String| -> ArrayRef {
            Arc::new(
                some.iter()
                    .map(|point| Some(of(point)))
                    .collect::<StringArray>(),
            )
        };
        let times = some.iter().map(|point| point.time_ms);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(times)),
            text(&|point| point.name.clone()),
            text(&|point| point.value.clone()),
            text(&|point| point.kind.name().to_owned()),
        ];
        let batch = RecordBatch::try_new(Arc::clone(&shown), columns);
        batch.map_err(|error| SqlError::from(DataFusionError::from(error)))
    });
    StatementRows::Rows {
        schema,
        batches: stream::iter(batches).boxed(),
    }
}
