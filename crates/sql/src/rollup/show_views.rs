//! The results of `SHOW` for materialized views.

use super::refresh::RollupStatus;
use crate::error::SqlResult;
use crate::tables::batches::{batch, text, texts};
use crate::tables::written_settings::settings;
use arrow::array::{ArrayRef, StringArray, TimestampNanosecondArray, UInt64Array};
use arrow::datatypes::{DataType, Schema};
use arrow::record_batch::RecordBatch;
use marigram_functions::duration::format_ns;
use marigram_model::quoted;
use marigram_model::{FieldType, Rollup, TableSchema};
use std::sync::Arc;

/// The views of a database, by name.
///
/// # Errors
/// None that can occur.
pub(crate) fn views(all: &[RollupStatus], database: &str) -> SqlResult<RecordBatch> {
    let mut views: Vec<&RollupStatus> = all
        .iter()
        .filter(|view| view.table.database == database)
        .collect();
    views.sort_by_key(|view| &view.table.name);
    let rollup = |view: &RollupStatus| view.table.rollup.as_deref().cloned();
    let of_rollup = |shown: fn(Rollup) -> String| {
        text(
            views
                .iter()
                .map(|view| rollup(view).map_or_else(String::new, shown)),
        )
    };
    let times = |time: fn(&RollupStatus) -> Option<i64>| -> ArrayRef {
        let times = views.iter().map(|view| time(view));
        Arc::new(times.collect::<TimestampNanosecondArray>())
    };
    let counts = |count: fn(&RollupStatus) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(
            views.iter().map(|view| count(view)),
        ))
    };
    let errors: StringArray = views.iter().map(|view| view.error.clone()).collect();
    batch(vec![
        (
            "view_name",
            text(views.iter().map(|view| view.table.name.clone())),
        ),
        ("source", text(views.iter().map(|view| view.source.clone()))),
        (
            "through",
            times(|view| {
                let through_ns = view.progress.through_ns;
                (through_ns != i64::MIN).then_some(through_ns)
            }),
        ),
        (
            "behind",
            text(views.iter().map(|view| format_ns(view.behind_ns))),
        ),
        (
            "touched",
            text(views.iter().map(|view| format_ns(touched_ns(view)))),
        ),
        ("refreshed", times(|view| view.refreshed_ns)),
        ("refresh", of_rollup(|rollup| format_ns(rollup.refresh_ns))),
        ("lag", of_rollup(|rollup| format_ns(rollup.lag_ns))),
        (
            "retention",
            text(views.iter().map(|view| retention(&view.table))),
        ),
        ("rows_written", counts(|view| view.rows)),
        ("failures", counts(|view| view.failures)),
        ("error", Arc::new(errors)),
        ("query", of_rollup(|rollup| rollup.query)),
    ])
}

/// The touched time that is still to be recomputed, ns.
pub fn touched_ns(view: &RollupStatus) -> i64 {
    let ranges = view.progress.touched.ranges().iter();
    ranges.fold(0_i64, |sum, range| {
        let width = range.max.saturating_sub(range.min).saturating_add(1);
        sum.saturating_add(width)
    })
}

fn retention(table: &TableSchema) -> String {
    let ttl_ns = table.options.ttl_ns;
    ttl_ns.map_or_else(|| "none".to_owned(), format_ns)
}

/// The columns of a view.
///
/// # Errors
/// None that can occur.
pub(crate) fn columns(view: &Schema) -> SqlResult<RecordBatch> {
    let kind = |data_type: &DataType| {
        let plain = match data_type {
            DataType::Dictionary(_, values) => values,
            other => other,
        };
        let known = FieldType::ALL.into_iter();
        known
            .filter(|kind| kind.data_type() == *plain)
            .map(|kind| kind.to_string())
            .next()
            .unwrap_or_else(|| plain.to_string())
    };
    let fields = view.fields().iter();
    texts(vec![
        (
            "column_name",
            fields.clone().map(|field| field.name().clone()).collect(),
        ),
        (
            "data_type",
            fields.map(|field| kind(field.data_type())).collect(),
        ),
    ])
}

/// The statement that would create a view.
///
/// # Errors
/// None that can occur.
pub(crate) fn statement(table: &TableSchema) -> SqlResult<RecordBatch> {
    let Some(rollup) = &table.rollup else {
        return texts(Vec::new());
    };
    let own = [
        "continuous".to_owned(),
        format!("refresh = '{}'", format_ns(rollup.refresh_ns)),
        format!("lag = '{}'", format_ns(rollup.lag_ns)),
    ];
    let settings: Vec<String> = own.into_iter().chain(settings(table)).collect();
    let statement = format!(
        "CREATE MATERIALIZED VIEW {} WITH ({}) AS\n{}",
        quoted(&table.name),
        settings.join(", "),
        rollup.query
    );
    texts(vec![
        ("view_name", vec![table.name.clone()]),
        ("statement", vec![statement]),
    ])
}
