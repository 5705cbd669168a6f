//! [`Select`] as requests to VictoriaMetrics.
//!
//! `f(m[w])` at time `t` covers `(t - w, t]`. Times are whole milliseconds, so `[a, b)` is the
//! window `b - a` at the time `b - 1 ms`.

mod passes;
mod pieces;

pub(super) use passes::{LAST, LAST_TIME, rollups};

use crate::text_tags;
use crate::write_history::TableHistory;
use marigram_lab::data::{Field, FieldKind, Table};
use marigram_lab::question::{Aggregate, Select, Selection};
use marigram_lab_drivers::http::percent;
use passes::Pass;
use pieces::pieces;
use std::collections::BTreeSet;

/// Nanoseconds of a millisecond.
pub(super) const MILLISECOND_NS: i64 = 1_000_000;

/// How far back the first search for the newest values looks, milliseconds: as far as `MetricsQL`
/// looks back by default.
const RECENT_MS: i64 = 300_000;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Raw values, from the first to the last of these times (milliseconds).
    Export {
        matching: String,
        first_ms: i64,
        last_ms: i64,
    },
    /// An expression, for windows that follow each other.
    Query {
        expression: String,
        windows: Windows,
        /// The field (an index) of the values, if the answer does not name it.
        field: Option<usize>,
        /// The function that folded the values, if the answer does not name it.
        rollup: Option<&'static str>,
    },
}

/// Windows that follow each other without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    /// Start of the bucket of the first window.
    pub(super) bucket_ms: i64,
    /// First time of the first window.
    pub(super) from_ms: i64,
    /// Length of each.
    pub(super) length_ms: i64,
    /// How many.
    pub(super) count: i64,
}

/// A time for the HTTP interface, seconds. The server multiplies it in double precision and
/// truncates it to milliseconds, so half a millisecond is added.
fn seconds(ms: i64) -> String {
    format!("{}.{:03}5", ms / 1000, ms % 1000)
}

impl Request {
    /// Its path.
    pub(super) fn path(&self) -> &'static str {
        match self {
            Self::Export { .. } => "/api/v1/export",
            Self::Query { windows, .. } if windows.count == 1 => "/api/v1/query",
            Self::Query { .. } => "/api/v1/query_range",
        }
    }

    /// Its parameters, as a form.
    pub(super) fn form(&self) -> String {
        match self {
            Self::Export {
                matching,
                first_ms,
                last_ms,
            } => format!(
                "match[]={}&start={}&end={}",
                percent(matching),
                seconds(*first_ms),
                seconds(*last_ms)
            ),
            Self::Query {
                expression,
                windows,
                ..
            } => {
                let expression = percent(expression);
                let first = windows.from_ms + windows.length_ms - 1;
                if windows.count == 1 {
                    return format!("query={expression}&time={}&nocache=1", seconds(first));
                }
                let last = first + windows.length_ms * (windows.count - 1);
                format!(
                    "query={expression}&start={}&end={}&step={}ms&nocache=1",
                    seconds(first),
                    seconds(last),
                    windows.length_ms
                )
            }
        }
    }
}

/// Whether the database can store `field` unchanged.
pub(super) fn is_number(field: &Field) -> bool {
    field.kind != FieldKind::Text
}

/// Why the language cannot express `select`.
pub(super) fn cannot(table: &Table, select: &Select) -> Option<String> {
    let fields: Vec<usize> = match &select.what {
        Selection::Rows(fields) | Selection::Last(fields) => fields.clone(),
        Selection::Aggregates(aggregates) => aggregates.iter().map(|(_, field)| *field).collect(),
    };
    if !fields.iter().all(|field| is_number(&table.fields[*field])) {
        return Some("it keeps numbers only".to_owned());
    }
    if select.descending {
        return Some("its answers are in ascending order".to_owned());
    }
    if let Some((above, _)) = select.above {
        // The maximum of the values above a limit is the overall maximum, if that is above the
        // limit.
        let can = |(function, field): &(Aggregate, usize)| {
            *field == above && matches!(function, Aggregate::Count | Aggregate::Max)
        };
        let Selection::Aggregates(aggregates) = &select.what else {
            return Some("it has no filter on the values of a row".to_owned());
        };
        if !aggregates.iter().all(can) {
            return Some(
                "of values above a limit it finds their number and maximum only".to_owned(),
            );
        }
    }
    let is_whole = |ns: i64| ns > 0 && ns % MILLISECOND_NS == 0;
    if select.bucket_ns.is_some_and(|ns| !is_whole(ns)) {
        return Some("it keeps whole milliseconds".to_owned());
    }
    None
}

/// Requests that answer `select` together. `history` is what was written into the table; its times
/// replace bounds that the question does not have.
pub(super) fn requests(
    table: &Table,
    select: &Select,
    history: Option<TableHistory>,
) -> Vec<Request> {
    let pieces = pieces(select, history);
    let passes: Vec<Pass> = match &select.what {
        Selection::Rows(wanted) => {
            let fields = fields_of_rows(table, wanted, history);
            let matching = selector(table, select, &fields);
            let export = |windows: &Windows| Request::Export {
                matching: matching.clone(),
                first_ms: windows.from_ms,
                last_ms: windows.from_ms + windows.length_ms * windows.count - 1,
            };
            return pieces.iter().map(export).collect();
        }
        Selection::Last(wanted) => vec![Pass::last(fields_of_rows(table, wanted, history))],
        Selection::Aggregates(aggregates) => passes::passes(table, select, aggregates),
    };
    let query = |pass: &Pass, windows: &Windows| pass.query(table, select, windows);
    let all = passes
        .iter()
        .flat_map(|pass| pieces.iter().map(move |windows| query(pass, windows)));
    all.collect()
}

/// For the newest rows: a request for the last [`RECENT_MS`] only, and the number of numbers in a
/// complete answer. If the answer lacks a device or field, all times must be searched
/// ([`requests`]), which takes far longer.
pub(super) fn recent(
    table: &Table,
    select: &Select,
    history: Option<TableHistory>,
) -> Option<(Request, usize)> {
    let Selection::Last(wanted) = &select.what else {
        return None;
    };
    let [mut windows] = pieces(select, history)[..] else {
        return None;
    };
    if windows.length_ms <= RECENT_MS {
        return None;
    }
    windows.from_ms += windows.length_ms - RECENT_MS;
    windows.length_ms = RECENT_MS;
    let devices = match text_tags::chosen(table, &select.devices) {
        None => table.series.len(),
        Some((tag, values)) => {
            let values: BTreeSet<String> = values.into_iter().collect();
            let series = table.series.iter();
            let chosen = |tags: &&Vec<Option<String>>| {
                tags[tag]
                    .as_ref()
                    .is_some_and(|value| values.contains(value))
            };
            series.filter(chosen).count()
        }
    };
    let pass = Pass::last(fields_of_rows(table, wanted, history));
    let numbers = devices * pass.numbers();
    Some((pass.query(table, select, &windows), numbers))
}

/// A query for a value of the first device at the newest time: its answer depends on the data and
/// is cheap.
pub(super) fn newest(table: &Table, history: TableHistory) -> Request {
    let last_ms = history.last_ns / MILLISECOND_NS;
    let first = table
        .series
        .first()
        .and_then(|tags| tags[table.key].clone());
    let label = &table.tags[table.key].name;
    let device = first.map_or(String::new(), |name| format!(",{label}={}", quoted(&name)));
    let name = quoted(&format!("{}:.+", table.name));
    Request::Query {
        expression: format!("last_over_time({{__name__=~{name}{device}}}[1d])"),
        windows: Windows {
            bucket_ms: last_ms,
            from_ms: last_ms,
            length_ms: 1,
            count: 1,
        },
        field: None,
        rollup: None,
    }
}

/// The fields to request for rows with the fields `wanted`. If there are nulls, all fields: a row
/// exists, and may be the newest, even if its wanted fields are null.
fn fields_of_rows(
    table: &Table,
    wanted: &[usize],
    history: Option<TableHistory>,
) -> BTreeSet<usize> {
    if history.is_some_and(|history| history.nulls) {
        (0..table.fields.len()).collect()
    } else {
        wanted.iter().copied().collect()
    }
}

/// The metrics of `fields`, of the devices that `select` chooses.
fn selector(table: &Table, select: &Select, fields: &BTreeSet<usize>) -> String {
    let names: Vec<String> = fields
        .iter()
        .map(|field| table.fields[*field].name.clone())
        .collect();
    let mut labels: Vec<String> = Vec::new();
    let metric = match names.as_slice() {
        [one] => format!("{}:{one}", table.name),
        _ => {
            let names = format!("{}:({})", table.name, names.join("|"));
            labels.push(format!("__name__=~{}", quoted(&names)));
            String::new()
        }
    };
    if let Some((tag, values)) = text_tags::chosen(table, &select.devices) {
        let tag = &table.tags[tag].name;
        labels.push(match values.as_slice() {
            [one] => format!("{tag}={}", quoted(one)),
            _ => format!("{tag}=~{}", quoted(&text_tags::any_of(&values))),
        });
    }
    if labels.is_empty() {
        metric
    } else {
        format!("{metric}{{{}}}", labels.join(","))
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests;
