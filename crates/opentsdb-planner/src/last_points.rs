//! `/api/query/last`: the newest point of each series.

use crate::json_rows::json_rows;
use crate::metric::{
    MetricColumns, PlanNames, column, filtered, metric_table, tag_conditions, time_conditions,
};
use crate::statement::{OpenTsdbRun, invalid};
use datafusion::functions_aggregate::expr_fn::max;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use marigram_influx::scan_of;
use marigram_model::TableSchema;
use marigram_opentsdb::{LastQuery, STORED_FIELD, push_double, series_uid};
use marigram_service::ServiceError;
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use serde_json::json;
use std::collections::BTreeMap;

/// The last time of a point, ms.
const TIME_MAX_MS: i64 = 9_223_372_036_854;

/// Bytes of a point in the answer beside its tags.
const POINT_BYTES: usize = 256;

/// Answers the request.
///
/// # Errors
/// If there is no such metric, a filter is wrong, or there is no memory for the answer.
pub(crate) async fn last_points(
    run: &OpenTsdbRun<'_>,
    query: &LastQuery,
) -> SqlResult<StatementRows> {
    let mut points = Vec::new();
    for series in &query.series {
        let table = metric_table(run, &series.metric)?;
        let filters = series.filters().map_err(invalid)?;
        let Some(conditions) = tag_conditions(&table, &filters, false)? else {
            continue;
        };
        let times = time_conditions(&table, (query.since_ms, TIME_MAX_MS));
        let conditions = times.into_iter().chain(conditions).collect();
        read(run, &table, conditions, &mut points).await?;
    }
    json_rows(points)
}

async fn read(
    run: &OpenTsdbRun<'_>,
    table: &TableSchema,
    conditions: Vec<Expr>,
    points: &mut Vec<String>,
) -> SqlResult<()> {
    let state = run.context.state(run.database())?;
    let rows = filtered(scan_of(&state, table).await?, conditions)?;
    let last = state
        .aggregate_functions()
        .get("last")
        .ok_or_else(|| ServiceError::Internal("the function last is missing".to_owned()))?;
    let time = || column(&table.time_name);
    let keys: Vec<Expr> = table.tags.iter().map(|tag| column(&tag.name)).collect();
    let names = PlanNames::new(table);
    let (newest_time, newest_value) = (names.time(), names.value());
    let newest = [
        max(time()).alias(&newest_time),
        last.call(vec![column(STORED_FIELD), time()])
            .alias(&newest_value),
    ];
    let tags = table.tags.iter().enumerate();
    let tags = tags.map(|(place, tag)| column(&tag.name).alias(names.tag(place)));
    let shown = [column(&newest_time), column(&newest_value)].into_iter();
    let shown: Vec<Expr> = shown.chain(tags).collect();
    let plan = rows.aggregate(keys, newest)?.project(shown)?.build()?;
    let plan = state.create_physical_plan(&plan).await?;
    let mut batches = execute_stream(plan, state.task_ctx())?;
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        let columns = MetricColumns::new(&batch, &names, table.tags.len())?;
        for row in 0..batch.num_rows() {
            let tags = table.tags.iter().enumerate();
            let tags: BTreeMap<&str, &str> = tags
                .filter_map(|(place, tag)| Some((tag.name.as_str(), columns.tag(place, row)?)))
                .collect();
            let bytes: usize = tags
                .iter()
                .map(|(key, value)| key.len() + value.len())
                .sum();
            run.budget.keep(POINT_BYTES + 2 * bytes)?;
            points.push(point_text(table, &columns, row, &tags));
        }
    }
    Ok(())
}

fn point_text(
    table: &TableSchema,
    columns: &MetricColumns,
    row: usize,
    tags: &BTreeMap<&str, &str>,
) -> String {
    let number = columns.value(row);
    let mut value = String::new();
    if number.fract() == 0.0 && number.abs() < 1e15 {
        value = format!("{}", number as i64);
    } else {
        push_double(number, &mut value);
    }
    let pairs = tags.iter().map(|(key, value)| (*key, *value));
    json!({
        "metric": table.name,
        "timestamp": columns.time_ms(row),
        "value": value,
        "tags": tags,
        "tsuid": series_uid(&table.name, pairs),
    })
    .to_string()
}
