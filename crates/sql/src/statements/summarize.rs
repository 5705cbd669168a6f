//! `SUMMARIZE`: figures for each column of a table or query, with DuckDB's names.
//!
//! One pass over the rows, with aggregates of bounded size: `HyperLogLog` estimates the number of
//! distinct values, and a t-digest the quartiles.

use crate::error::{SqlError, SqlResult};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema, SchemaRef, UInt64Type};
use datafusion::common::{Column, Result};
use datafusion::functions_aggregate::expr_fn::{
    approx_distinct, approx_percentile_cont, count, max, min, stddev,
};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast as cast_expr, lit};
use marigram_functions::avg_udaf;
use marigram_model::FieldType;
use std::sync::Arc;

/// The number of aggregates per column.
const FIGURES: usize = 9;
/// The largest number of columns that can be summarized.
const COLUMNS_MAX: usize = 1000;

/// The schema of a summary.
pub(crate) fn schema() -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    Arc::new(Schema::new(vec![
        Field::new("column_name", DataType::Utf8, false),
        Field::new("column_type", DataType::Utf8, false),
        text("min"),
        text("max"),
        Field::new("approx_unique", DataType::Int64, false),
        text("avg"),
        text("std"),
        text("q25"),
        text("q50"),
        text("q75"),
        Field::new("count", DataType::Int64, false),
        Field::new("null_percentage", DataType::Float64, true),
    ]))
}

/// The plan that computes all figures in one row: [`FIGURES`] for each column, and the number of
/// rows.
///
/// # Errors
/// If there are too many columns, and DataFusion's errors.
pub(crate) fn plan(rows: &LogicalPlan) -> SqlResult<LogicalPlan> {
    let columns = rows.schema().fields().len();
    if columns > COLUMNS_MAX {
        let message = format!("SUMMARIZE takes {COLUMNS_MAX} columns, and there are {columns}");
        return Err(SqlError::invalid("54011", message));
    }
    let mut calls = Vec::with_capacity(columns * FIGURES + 1);
    for at in 0..columns {
        let (qualifier, field) = rows.schema().qualified_field(at);
        let column = Expr::Column(Column::from((qualifier, field)));
        for (nth, figure) in figures(&column, field.data_type()).into_iter().enumerate() {
            calls.push(figure.alias(format!("{at}_{nth}")));
        }
    }
    calls.push(count(lit(1)).alias("rows"));
    let summary = LogicalPlanBuilder::from(rows.clone());
    Ok(summary.aggregate(Vec::<Expr>::new(), calls)?.build()?)
}

/// The figures of a column: min, max, distinct values, mean, deviation, quartiles, values.
fn figures(column: &Expr, kind: &DataType) -> [Expr; FIGURES] {
    let nothing = || max(lit(arrow_null()));
    let text = || cast_expr(column.clone(), DataType::Utf8);
    let is_plain = kind.is_numeric() || matches!(kind, DataType::Timestamp(..));
    let ordered = || if is_plain { column.clone() } else { text() };
    let number = || cast_expr(column.clone(), DataType::Float64);
    let quartile = |part: f64| {
        if kind.is_numeric() {
            approx_percentile_cont(number().sort(true, false), lit(part), None)
        } else if matches!(kind, DataType::Timestamp(..)) {
            let ns = cast_expr(column.clone(), DataType::Int64);
            approx_percentile_cont(ns.sort(true, false), lit(part), None)
        } else {
            nothing()
        }
    };
    let of_number = |call: fn(Expr) -> Expr| {
        if kind.is_numeric() {
            call(number())
        } else {
            nothing()
        }
    };
    let mean = || match kind {
        DataType::UInt64 => avg_udaf().call(vec![column.clone()]),
        kind if kind.is_integer() => {
            avg_udaf().call(vec![cast_expr(column.clone(), DataType::Int64)])
        }
        _ => of_number(|number| avg_udaf().call(vec![number])),
    };
    [
        min(ordered()),
        max(ordered()),
        approx_distinct(text()),
        mean(),
        of_number(stddev),
        quartile(0.25),
        quartile(0.5),
        quartile(0.75),
        count(column.clone()),
    ]
}

fn arrow_null() -> datafusion::common::ScalarValue {
    datafusion::common::ScalarValue::Utf8(None)
}

/// The summary of the columns of `of`, from the row that [`plan`] computed.
///
/// # Errors
/// Arrow's errors.
pub(crate) fn summary(of: &LogicalPlan, row: &RecordBatch) -> SqlResult<RecordBatch> {
    Ok(table(of, row)?)
}

fn table(of: &LogicalPlan, row: &RecordBatch) -> Result<RecordBatch> {
    let fields = of.schema().fields();
    let rows = number(row.column(row.num_columns() - 1))?;
    let mut texts: Vec<Vec<Option<String>>> = vec![Vec::new(); 9];
    let (mut distinct, mut counts, mut nulls) = (Vec::new(), Vec::new(), Vec::new());
    for (at, field) in fields.iter().enumerate() {
        let figure = |nth: usize| row.column(at * FIGURES + nth);
        let count = number(figure(8))?;
        texts[0].push(Some(field.name().clone()));
        texts[1].push(Some(type_name(field.data_type())));
        texts[2].push(text(figure(0))?);
        texts[3].push(text(figure(1))?);
        texts[4].push(text(figure(3))?);
        texts[5].push(text(figure(4))?);
        for nth in 5..8 {
            let value = match field.data_type() {
                kind @ DataType::Timestamp(..) => text(&cast(figure(nth), kind)?)?,
                _ => text(figure(nth))?,
            };
            texts[nth + 1].push(value);
        }
        // An estimate never exceeds the number of values.
        distinct.push(number(figure(2))?.min(count));
        counts.push(rows);
        let missing = (rows - count) as f64 * 100.0;
        nulls.push((rows > 0).then(|| (missing / rows as f64 * 100.0).round() / 100.0));
    }
    let mut texts = texts
        .into_iter()
        .map(|values| Arc::new(StringArray::from(values)) as ArrayRef);
    let mut columns: Vec<ArrayRef> = texts.by_ref().take(4).collect();
    columns.push(Arc::new(Int64Array::from(distinct)));
    columns.extend(texts);
    columns.push(Arc::new(Int64Array::from(counts)));
    columns.push(Arc::new(Float64Array::from(nulls)));
    Ok(RecordBatch::try_new(schema(), columns)?)
}

/// The name of a type as in a table; Arrow's name if no table can have it.
fn type_name(kind: &DataType) -> String {
    let plain = match kind {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    let mut known = FieldType::ALL.into_iter();
    let found = known.find(|known| known.data_type() == *plain);
    found.map_or_else(|| plain.to_string().to_uppercase(), |kind| kind.to_string())
}

/// The single value of a column as text.
fn text(value: &ArrayRef) -> Result<Option<String>> {
    if value.is_empty() || value.is_null(0) {
        return Ok(None);
    }
    if let Some(number) = value.as_primitive_opt::<Float64Type>() {
        return Ok(Some(number.value(0).to_string()));
    }
    let text = cast(value, &DataType::Utf8)?;
    Ok(Some(text.as_string::<i32>().value(0).to_owned()))
}

/// The single number of a count.
fn number(value: &ArrayRef) -> Result<i64> {
    if let Some(count) = value.as_primitive_opt::<UInt64Type>() {
        return Ok(count.value(0) as i64);
    }
    let count = cast(value, &DataType::Int64)?;
    Ok(count.as_primitive::<Int64Type>().value(0))
}
