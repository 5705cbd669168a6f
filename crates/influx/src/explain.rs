//! EXPLAIN: describes what a SELECT reads, in the form of InfluxDB's answer. EXPLAIN ANALYZE: how long
//! it took, and what it read, as a tree.

use crate::expression::Expression;
use crate::listing::series_keys;
use crate::output::Listing;
use crate::prepare::{PreparedSelect, PreparedSource};
use crate::schema::StoredMeasurement;
use crate::statement_run::StatementRun;
use crate::value::{InfluxValueType, Value};
use marigram_influxql::GoDuration;
use marigram_influxql::validate::is_math;
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use std::sync::Arc;
use std::time::Duration;

/// The plan of a SELECT.
pub(crate) fn answer(
    run: &StatementRun<'_>,
    prepared: &PreparedSelect,
) -> SqlResult<StatementRows> {
    let mut listing = Listing::new(vec![("QUERY PLAN", InfluxValueType::String)]);
    let mut lines = Vec::new();
    let (calls, names) = read_parts(prepared);
    let series = series_count(run, prepared)?;
    let read = |lines: &mut Vec<String>| {
        if !names.is_empty() {
            lines.push(format!("AUXILIARY FIELDS: {}", names.join(", ")));
        }
        lines.push("NUMBER OF SHARDS: 1".to_owned());
        lines.push(format!("NUMBER OF SERIES: {series}"));
    };
    if calls.is_empty() {
        lines.push("EXPRESSION: <nil>".to_owned());
        read(&mut lines);
    }
    for (place, call) in calls.iter().enumerate() {
        if place > 0 {
            lines.push(String::new());
        }
        lines.push(format!("EXPRESSION: {call}"));
        read(&mut lines);
    }
    for line in lines {
        listing.push(None, vec![Value::String(line.into())]);
    }
    listing.answer()
}

/// What a SELECT did that took the first time to plan and the second in all, and returned some rows.
pub(crate) fn analysis(
    run: &StatementRun<'_>,
    prepared: &PreparedSelect,
    (planned, total): (Duration, Duration),
    rows: usize,
) -> SqlResult<StatementRows> {
    let (calls, names) = read_parts(prepared);
    let executed = total.saturating_sub(planned);
    let go_duration =
        |time: Duration| GoDuration(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
    let mut lines = vec![
        ".".to_owned(),
        "└── select".to_owned(),
        format!("    ├── execution_time: {}", go_duration(executed)),
        format!("    ├── planning_time: {}", go_duration(planned)),
        format!("    ├── total_time: {}", go_duration(total)),
        "    └── build_cursor".to_owned(),
        "        └── iterator_scanner".to_owned(),
        "            ├── labels".to_owned(),
    ];
    let label = if calls.is_empty() {
        format!("auxiliary_fields: {}", names.join(", "))
    } else {
        format!("expr: {}", calls.join(", "))
    };
    lines.push(format!("            │   └── {label}"));
    let series = series_count(run, prepared)?;
    lines.push(format!("            ├── series: {series}"));
    lines.push(format!("            └── rows: {rows}"));
    let mut listing = Listing::new(vec![("EXPLAIN ANALYZE", InfluxValueType::String)]);
    for line in lines {
        listing.push(None, vec![Value::String(line.into())]);
    }
    listing.answer()
}

/// The functions of all columns, and the names outside them, sorted.
fn read_parts(prepared: &PreparedSelect) -> (Vec<String>, Vec<String>) {
    let (mut calls, mut names) = (Vec::new(), Vec::new());
    for field in &prepared.fields {
        parts(&field.expression, &mut calls, &mut names);
    }
    names.sort();
    names.dedup();
    (calls, names)
}

/// The functions of a column, and the names outside them.
fn parts(expression: &Expression, calls: &mut Vec<String>, names: &mut Vec<String>) {
    match expression {
        Expression::Call(name, args) if is_math(name) => {
            for arg in args {
                parts(arg, calls, names);
            }
        }
        Expression::Call(..) => {
            let text = expression.to_string();
            if !calls.contains(&text) {
                calls.push(text);
            }
        }
        Expression::Name(var) => names.push(var.to_string()),
        Expression::Paren(inner) => parts(inner, calls, names),
        Expression::Chain(first, links) => {
            parts(first, calls, names);
            for (_, rhs) in links {
                parts(rhs, calls, names);
            }
        }
        _ => {}
    }
}

fn series_count(run: &StatementRun<'_>, prepared: &PreparedSelect) -> SqlResult<usize> {
    let mut count = 0;
    for source in &prepared.sources {
        count += match source {
            PreparedSource::Measurement(measurement) => {
                let keys = tag_names(measurement);
                let condition = prepared.condition.as_ref();
                series_keys(
                    (run.context.engine(), &run.budget),
                    measurement,
                    &keys,
                    condition,
                )?
                .len()
            }
            PreparedSource::Subquery(inner) => series_count(run, inner)?,
        };
    }
    Ok(count)
}

fn tag_names(measurement: &StoredMeasurement) -> Vec<Arc<str>> {
    let tags = measurement.table.tags.iter();
    tags.map(|tag| tag.name.as_str().into()).collect()
}
