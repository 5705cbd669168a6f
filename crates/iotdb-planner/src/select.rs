//! SELECT.

mod bind;
mod by_device;
mod by_time;
mod grouped;

use crate::answer_rows::{AnswerField, TreeAnswerShape};
use crate::combine::combined_column;
use crate::compile::ExprScope;
use crate::expand::{aggregates_of, each_path, full_patterns, has_aggregate, has_raw_path};
use crate::fill::{self, Filler};
use crate::last;
use crate::statement::{TreeRun, semantic, unsupported};
use datafusion::logical_expr::Expr;
use marigram_iotdb::{IotDbType, PathPattern, SortKey, TreeExpr, TreeSelect, WindowSequence};
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use std::collections::HashMap;

/// Answers a query.
///
/// # Errors
/// What is wrong with it.
pub(crate) async fn answer(run: &TreeRun<'_>, query: &TreeSelect) -> SqlResult<StatementRows> {
    fill::check(query.fill.as_ref(), query.is_last)?;
    if query.is_last {
        return last::answer(run, query).await;
    }
    check(query)?;
    if query.is_aligned_by_device {
        return by_device::answer(run, query).await;
    }
    by_time::answer(run, query).await
}

/// Whether a query has aggregate functions.
fn is_aggregated(query: &TreeSelect) -> bool {
    query
        .columns
        .iter()
        .any(|column| has_aggregate(&column.expr))
}

fn check(query: &TreeSelect) -> SqlResult<()> {
    let is_aggregated = is_aggregated(query);
    if is_aggregated
        && query
            .columns
            .iter()
            .any(|column| has_raw_path(&column.expr))
    {
        return Err(semantic(
            "Raw data and aggregation result hybrid calculation is not supported.",
        ));
    }
    let nested = query.columns.iter().any(|column| {
        let calls = aggregates_of(&column.expr);
        calls
            .iter()
            .any(|call| call.arguments.iter().any(has_aggregate))
    });
    if nested {
        return Err(semantic(
            "Aggregation results cannot be as input of the aggregation function.",
        ));
    }
    if !is_aggregated && (query.windows.is_some() || !query.levels.is_empty()) {
        return Err(semantic(
            "Common queries and aggregated queries are not allowed to appear at the same time",
        ));
    }
    if query.condition.as_ref().is_some_and(has_aggregate) {
        return Err(semantic(
            "aggregate functions are not supported in WHERE clause",
        ));
    }
    if let Some(having) = &query.having
        && (!has_aggregate(having) || has_raw_path(having))
    {
        return Err(semantic(
            "Expression of HAVING clause must to be an Aggregation",
        ));
    }
    Ok(())
}

/// The patterns of all timeseries that a query names.
fn patterns(query: &TreeSelect) -> SqlResult<Vec<PathPattern>> {
    let mut paths = Vec::new();
    let columns = query.columns.iter().map(|column| &column.expr);
    let others = query.condition.iter().chain(&query.having);
    let orders = query.order.iter().filter_map(|(key, _)| match key {
        SortKey::Value(expr) => Some(expr),
        _ => None,
    });
    for expr in columns.chain(others).chain(orders) {
        each_path(expr, &mut |path| paths.push(path.clone()));
    }
    let mut patterns = Vec::new();
    for path in paths {
        for pattern in full_patterns(&path, &query.from)? {
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
    }
    Ok(patterns)
}

/// Whether the newest time comes first.
fn time_descends(query: &TreeSelect) -> bool {
    let mut keys = query.order.iter();
    keys.any(|(key, descends)| *key == SortKey::Time && *descends)
}

/// The windows of a query.
fn windows(run: &TreeRun<'_>, query: &TreeSelect) -> Option<WindowSequence> {
    let windows = query.windows?;
    Some(WindowSequence::new(windows, &run.times.zone))
}

/// The times that are read: those of the windows, and those of WHERE.
fn times_within(windows: Option<&WindowSequence>, range: (i64, i64)) -> (i64, i64) {
    let Some(windows) = windows.map(WindowSequence::windows) else {
        return range;
    };
    let shift = i64::from(windows.has_ends);
    let first = windows.start_ms.saturating_add(shift);
    let last = windows.end_ms.saturating_add(shift).saturating_sub(1);
    (range.0.max(first), range.1.min(last))
}

/// The columns of an answer that are on the page of columns.
fn column_page<T>(query: &TreeSelect, columns: Vec<T>) -> Vec<T> {
    let skipped = usize::try_from(query.series_offset).unwrap_or(usize::MAX);
    let limit = query.series_limit.map(usize::try_from);
    let limit = limit.map_or(usize::MAX, |limit| limit.unwrap_or(usize::MAX));
    columns.into_iter().skip(skipped).take(limit).collect()
}

/// The form of the answer to a query.
fn form(
    query: &TreeSelect,
    (has_time, has_device): (bool, bool),
    fields: Vec<AnswerField>,
) -> TreeAnswerShape {
    let kinds: Vec<IotDbType> = fields.iter().map(|field| field.kind).collect();
    let filler = query.fill.clone().map(|fill| Filler::new(fill, kinds));
    TreeAnswerShape {
        has_time,
        has_device,
        fields,
        filler,
        offset: query.offset,
        limit: query.limit,
    }
}

/// The name of a column of the answer in plans.
fn output_column(place: usize) -> String {
    format!("o{place}")
}

/// Expressions as columns of plans, and the fields of the answer.
fn compiled_columns(
    scope: &ExprScope<'_>,
    columns: &[crate::expand::ExpandedColumn],
) -> SqlResult<(Vec<Expr>, Vec<AnswerField>)> {
    let (mut shown, mut fields) = (Vec::new(), Vec::new());
    for (place, column) in columns.iter().enumerate() {
        let compiled = scope.compile(&column.expr)?;
        shown.push(compiled.expr.alias(output_column(place)));
        fields.push(AnswerField {
            name: column.name.clone(),
            kind: compiled.kind.unwrap_or(IotDbType::Text),
        });
    }
    Ok((shown, fields))
}

/// What is known of expressions: their texts, and where their values are.
type KnownNames = HashMap<String, (Expr, IotDbType)>;

/// Refuses columns that only differ where an answer needs one each.
fn refuse_unknown_clause(query: &TreeSelect) -> SqlResult<()> {
    let is_of_series = |(key, _): &(SortKey, bool)| *key == SortKey::Timeseries;
    if query.order.iter().any(is_of_series) {
        return Err(semantic(
            "Sorting by timeseries is only supported in last queries.",
        ));
    }
    Ok(())
}

/// The texts of functions that cannot be computed here.
fn level_with_condition() -> marigram_sql::SqlError {
    unsupported("GROUP BY LEVEL with a condition on values of several devices is not supported")
}

/// The column of a joined row, as an expression.
fn joined_column(place: usize) -> Expr {
    crate::device_rows::column(&combined_column(place))
}

/// A column that stands for something without a name of its own.
fn expr_text(expr: &TreeExpr, alias: Option<&String>) -> String {
    alias.cloned().unwrap_or_else(|| expr.to_string())
}
