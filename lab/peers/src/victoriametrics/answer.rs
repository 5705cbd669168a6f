//! Decodes VictoriaMetrics' answers: combines values and numbers by their labels into rows.

use super::metricsql::{LAST, LAST_TIME, MILLISECOND_NS, Request, rollups};
use anyhow::{Context, Result, bail, ensure};
use marigram_lab::data::Table;
use marigram_lab::question::{Aggregate, Answer, Cell, Select, Selection};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

/// Labels of a series or group; the name of the metric is one of them.
type Labels = HashMap<String, String>;

#[derive(Deserialize)]
struct Exported {
    metric: Labels,
    values: Vec<Option<f64>>,
    timestamps: Vec<i64>,
}

#[derive(Deserialize)]
struct Document {
    status: String,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<MetricValues>,
}

/// Numbers of a series or group: one at one time, or several.
#[derive(Deserialize)]
struct MetricValues {
    metric: Labels,
    value: Option<(f64, String)>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

/// The answer to `select` from these requests and their answers.
pub(super) fn decode(
    table: &Table,
    select: &Select,
    answered: &[(Request, Vec<u8>)],
) -> Result<Answer> {
    match &select.what {
        Selection::Rows(fields) => rows(table, fields, answered),
        Selection::Last(fields) => last(table, fields, answered),
        Selection::Aggregates(aggregates) => folded(table, select, aggregates, answered),
    }
}

/// Tag `tag`; a device that lacks it has no such label.
fn tag(table: &Table, tag: usize, labels: &Labels) -> Option<String> {
    labels.get(&table.tags[tag].name).cloned()
}

fn text(value: Option<String>) -> Cell {
    value.map_or(Cell::Null, Cell::Text)
}

/// The field whose metric has these labels; `None` without a name.
fn field(table: &Table, labels: &Labels) -> Result<Option<usize>> {
    let Some(name) = labels.get("__name__") else {
        return Ok(None);
    };
    let fields = table.fields.iter();
    let metric_values = fields
        .map(|field| format!("{}:{}", table.name, field.name))
        .position(|metric| metric == *name);
    metric_values
        .map(Some)
        .with_context(|| format!("a metric {name} that was not asked for"))
}

fn rows(table: &Table, wanted: &[usize], answered: &[(Request, Vec<u8>)]) -> Result<Answer> {
    let mut rows: BTreeMap<(Option<String>, i64), Vec<Cell>> = BTreeMap::new();
    for (_, body) in answered {
        for line in body.split(|byte| *byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            let series: Exported = serde_json::from_slice(line).context("an exported line")?;
            let field = field(table, &series.metric)?.context("values without a name")?;
            let places = wanted.iter().enumerate();
            let places: Vec<usize> = places
                .filter(|(_, of)| **of == field)
                .map(|(at, _)| at)
                .collect();
            let key = tag(table, table.key, &series.metric);
            ensure!(
                series.values.len() == series.timestamps.len(),
                "values without times"
            );
            for (value, ms) in series.values.iter().zip(&series.timestamps) {
                let row = rows.entry((key.clone(), *ms));
                let row = row.or_insert_with(|| vec![Cell::Null; wanted.len()]);
                for place in &places {
                    row[*place] = value.map_or(Cell::Null, Cell::Number);
                }
            }
        }
    }
    let row = |((key, ms), cells): ((Option<String>, i64), Vec<Cell>)| {
        let start = [text(key), Cell::Time(ms * MILLISECOND_NS)];
        start.into_iter().chain(cells).collect()
    };
    Ok(Answer {
        rows: rows.into_iter().map(row).collect(),
    })
}

fn metric_values(body: &[u8]) -> Result<Vec<MetricValues>> {
    let document: Document = serde_json::from_slice(body).context("the answer's JSON")?;
    ensure!(document.status == "success", "status {}", document.status);
    Ok(document.data.result)
}

fn number(text: &str) -> Result<f64> {
    text.parse()
        .with_context(|| format!("{text} where a number should be"))
}

/// Seconds as milliseconds.
fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1000.0).round() as i64
}

fn last(table: &Table, wanted: &[usize], answered: &[(Request, Vec<u8>)]) -> Result<Answer> {
    // For each device: the newest value of each field, with its time in milliseconds.
    let mut devices: BTreeMap<Option<String>, BTreeMap<usize, (f64, i64)>> = BTreeMap::new();
    for (request, body) in answered {
        let Request::Query { field: only, .. } = request else {
            bail!("an export where a query should be");
        };
        for metric_values in metric_values(body)? {
            let field =
                only.map_or_else(|| field(table, &metric_values.metric), |one| Ok(Some(one)));
            let field = field?.context("a value of no field")?;
            let (_, value) = metric_values.value.context("a value without a time")?;
            let value = number(&value)?;
            let device = devices
                .entry(tag(table, table.key, &metric_values.metric))
                .or_default();
            let newest = device.entry(field).or_insert((f64::NAN, i64::MIN));
            match metric_values.metric.get("rollup").map(String::as_str) {
                Some(LAST) => newest.0 = value,
                Some(LAST_TIME) => newest.1 = milliseconds(value),
                other => bail!("{other:?} was not asked for"),
            }
        }
    }
    let row = |(key, fields): (Option<String>, BTreeMap<usize, (f64, i64)>)| {
        let newest_ms = fields.values().map(|(_, ms)| *ms).max()?;
        let cell = |field: &usize| match fields.get(field) {
            Some((value, ms)) if *ms == newest_ms => Cell::Number(*value),
            _ => Cell::Null,
        };
        let start = [text(key), Cell::Time(newest_ms * MILLISECOND_NS)];
        Some(start.into_iter().chain(wanted.iter().map(cell)).collect())
    };
    Ok(Answer {
        rows: devices.into_iter().filter_map(row).collect(),
    })
}

/// Tags of a group, and its bucket (milliseconds).
type Group = (Vec<Option<String>>, i64);

/// Numbers by field and by the function that folded the values.
type Numbers = HashMap<(usize, String), f64>;

fn folded(
    table: &Table,
    select: &Select,
    aggregates: &[(Aggregate, usize)],
    answered: &[(Request, Vec<u8>)],
) -> Result<Answer> {
    let mut groups: BTreeMap<Group, Numbers> = BTreeMap::new();
    for (request, body) in answered {
        let Request::Query {
            windows,
            field: only_field,
            rollup: only_rollup,
            ..
        } = request
        else {
            bail!("an export where a query should be");
        };
        for metric_values in metric_values(body)? {
            let tags: Vec<_> = select
                .by
                .iter()
                .map(|by| tag(table, *by, &metric_values.metric))
                .collect();
            let field =
                only_field.map_or_else(|| field(table, &metric_values.metric), |one| Ok(Some(one)));
            let field = field?.context("a number of no field")?;
            let rollup =
                only_rollup.or_else(|| metric_values.metric.get("rollup").map(String::as_str));
            let rollup = rollup.context("a number that nothing folded")?;
            for (seconds, value) in metric_values.value.iter().chain(&metric_values.values) {
                let end_ms = milliseconds(*seconds) + 1;
                let bucket_ms = match select.bucket_ns {
                    None => 0,
                    Some(_) if windows.count == 1 => windows.bucket_ms,
                    Some(_) => end_ms - windows.length_ms,
                };
                let numbers = groups.entry((tags.clone(), bucket_ms)).or_default();
                numbers.insert((field, rollup.to_owned()), number(value)?);
            }
        }
    }
    let one_device = select.by.contains(&table.key);
    let row = |((tags, bucket_ms), numbers): (Group, Numbers)| {
        let bucket = select
            .bucket_ns
            .map(|_| Cell::Time(bucket_ms * MILLISECOND_NS));
        let values = aggregates
            .iter()
            .map(|(function, field)| aggregate(*function, *field, one_device, &numbers));
        tags.into_iter()
            .map(text)
            .chain(bucket)
            .chain(values)
            .collect()
    };
    Ok(Answer {
        rows: groups.into_iter().map(row).collect(),
    })
}

/// The result of `function` from the folded numbers. For fields without values, it is null; their
/// count is 0.
fn aggregate(function: Aggregate, field: usize, one_device: bool, numbers: &Numbers) -> Cell {
    let parts = rollups(function, one_device);
    let part = |at: usize| numbers.get(&(field, parts[at].1.to_owned())).copied();
    let value = match (function, parts.len()) {
        (Aggregate::Avg, 2) => part(0).zip(part(1)).map(|(sum, count)| sum / count),
        (Aggregate::Spread, 2) => part(0).zip(part(1)).map(|(max, min)| max - min),
        (Aggregate::Count, _) => Some(part(0).unwrap_or(0.0)),
        _ => part(0),
    };
    value.map_or(Cell::Null, Cell::Number)
}

/// Counts the numbers in the answer to a query at one time.
pub(super) fn numbers(body: &[u8]) -> usize {
    // Quotes within the value of a label are escaped.
    let mark = br#""value":["#;
    body.windows(mark.len()).filter(|part| part == mark).count()
}

/// The number of running merges, from the server's own metrics.
pub(super) fn merges(metrics: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(metrics);
    let of_merges = |line: &&str| {
        line.starts_with("vm_active_merges") || line.starts_with("vm_active_force_merges")
    };
    let number = |line: &str| line.rsplit(' ').next()?.parse::<u64>().ok();
    text.lines().filter(of_merges).filter_map(number).sum()
}

#[cfg(test)]
mod tests;
