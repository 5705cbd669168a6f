//! DELETE: removes a range of times of the series that a condition on tags selects.
//!
//! Any other condition is refused before anything is deleted, so that no more rows are deleted than
//! requested.

use crate::error::{SqlError, SqlResult};
use crate::tables::table::{SeriesTable, select_by_tags};
use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, ScalarValue};
use datafusion::datasource::DefaultTableSource;
use datafusion::execution::session_state::SessionState;
use datafusion::functions_aggregate::count::count_all;
use datafusion::logical_expr::expr_rewriter::unnormalize_col;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use marigram_engine::{Engine, TagFilter};
use marigram_model::{SeriesId, TableSchema, TagType, TagValue, TimeRange};
use marigram_operators::predicate::{PredicateClass, classify};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The rows to delete.
#[derive(Debug)]
pub(crate) struct SeriesDeletion {
    schema: Arc<TableSchema>,
    filter: TagFilter,
    range: TimeRange,
}

/// Determines what a planned DELETE deletes.
///
/// # Errors
/// If its condition uses anything but tags and a time range.
pub(crate) fn plan(
    engine: &Engine,
    dml: &DmlStatement,
    state: &SessionState,
) -> SqlResult<SeriesDeletion> {
    let table = dml
        .target
        .downcast_ref::<DefaultTableSource>()
        .and_then(|source| source.table_provider.downcast_ref::<SeriesTable>())
        .ok_or_else(|| {
            SqlError::unsupported(format!("rows of '{}' cannot be deleted", dml.table_name))
        })?;
    let schema = Arc::clone(table.table_schema());
    let (mut filters, mut range) = (Vec::new(), TimeRange::ALL);
    let mut per_series = Vec::new();
    for condition in conditions(&dml.input, &schema, state)? {
        match classify(&condition, &schema) {
            PredicateClass::Exact(part) => {
                filters.push(part.tags);
                range = range.intersect(part.range);
            }
            PredicateClass::PerSeries => per_series.push(condition),
            PredicateClass::Inexact(_) | PredicateClass::Unknown => {
                check_constants(&condition, state)?;
                return Err(SqlError::unsupported(format!(
                    "DELETE selects by tags and one range of times; '{}' is neither",
                    condition.human_display()
                )));
            }
        }
    }
    let mut filter = TagFilter::And(filters);
    for condition in per_series {
        let values = values_for(engine, &schema, &condition, state)?;
        filter = TagFilter::And(vec![filter, values]);
    }
    Ok(SeriesDeletion {
        schema,
        filter,
        range,
    })
}

/// Evaluates calls of constants, to report which of them is wrong: for instance, a text that is not
/// a time.
fn check_constants(condition: &Expr, state: &SessionState) -> SqlResult<()> {
    let row = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &row)
        .map_err(DataFusionError::from)?;
    condition.apply(|part| {
        if !matches!(part, Expr::ScalarFunction(_)) || part.any_column_refs() {
            return Ok(TreeNodeRecursion::Continue);
        }
        let call = state.create_physical_expr(part.clone(), &DFSchema::empty())?;
        call.evaluate(&row)?;
        Ok(TreeNodeRecursion::Jump)
    })?;
    Ok(())
}

/// A query for the rows that a planned DELETE would remove.
///
/// # Errors
/// DataFusion's errors.
pub(crate) fn count(dml: &DmlStatement) -> SqlResult<LogicalPlan> {
    let rows = LogicalPlanBuilder::from(Arc::clone(&dml.input));
    let counted = rows.aggregate(Vec::<Expr>::new(), vec![count_all()])?;
    Ok(counted.build()?)
}

/// Deletes the rows; blocks.
///
/// # Errors
/// The engine's errors.
pub(crate) fn run(engine: &Engine, deletion: &SeriesDeletion) -> SqlResult<()> {
    if deletion.range.is_empty() {
        return Ok(());
    }
    let schema = &deletion.schema;
    if engine.table(&schema.database, &schema.name)?.id != schema.id {
        let message = format!(
            "table '{}' was replaced by another one in the meantime",
            schema.name
        );
        return Err(SqlError::named("0A000", &schema.name, message));
    }
    engine.delete(
        &schema.database,
        &schema.name,
        &deletion.filter,
        deletion.range,
    )?;
    Ok(())
}

/// The conditions of a DELETE, simplified: constants are folded, types agree. The DELETE removes
/// the rows that a query with these conditions would find, so they first pass the rules of queries,
/// which read texts as times on the clocks of the session's zone.
fn conditions(
    input: &LogicalPlan,
    schema: &TableSchema,
    state: &SessionState,
) -> SqlResult<Vec<Expr>> {
    let analyzer = state.analyzer();
    let input = analyzer.execute_and_check(input.clone(), state.config_options(), |_, _| {})?;
    let mut found = Vec::new();
    let mut plan = &input;
    loop {
        plan = match plan {
            LogicalPlan::Filter(filter) => {
                found.push(filter.predicate.clone());
                &filter.input
            }
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::TableScan(scan) if scan.filters.is_empty() => break,
            _ => return Err(SqlError::unsupported("DELETE takes one table and a WHERE")),
        };
    }
    let arrow = Arc::new(DFSchema::try_from(crate::dialect::types::arrow_schema(
        schema,
    ))?);
    let context = SimplifyContext::builder()
        .with_schema(Arc::clone(&arrow))
        .with_config_options(Arc::clone(state.config_options()))
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    let simplifier = ExprSimplifier::new(context);
    let mut conditions = Vec::new();
    for condition in found {
        let condition = simplifier.coerce(unnormalize_col(condition), &arrow)?;
        conditions.extend(split_conjunction_owned(simplifier.simplify(condition)?));
    }
    Ok(conditions)
}

/// The values that satisfy a condition on one tag that only evaluation can decide.
fn values_for(
    engine: &Engine,
    schema: &TableSchema,
    condition: &Expr,
    state: &SessionState,
) -> SqlResult<TagFilter> {
    let columns = condition.column_refs();
    let named = columns
        .iter()
        .next()
        .map(|column| column.name.as_str())
        .unwrap_or_default();
    let (ordinal, tag) = match schema.tag(named) {
        Some(tag) if columns.len() == 1 => tag,
        _ => {
            return Err(SqlError::unsupported(format!(
                "DELETE cannot use '{}', which compares tags with one another",
                condition.human_display()
            )));
        }
    };
    let snapshot = engine.snapshot(&schema.database, &schema.name)?;
    let all = snapshot.select(&TagFilter::All);
    let state: &dyn Session = state;
    let selected = select_by_tags(&snapshot, &all, vec![condition.clone()], state)?;
    let (mut values, mut null) = (BTreeSet::new(), false);
    for (shard, series) in selected.shards.iter().enumerate() {
        let series: Vec<SeriesId> = series.iter().map(SeriesId).collect();
        let array = snapshot.tag_values(shard, &series, ordinal);
        for row in 0..array.len() {
            match (ScalarValue::try_from_array(&array, row)?, tag.kind) {
                (ScalarValue::Utf8(Some(text)), TagType::String) => {
                    values.insert(TagValue::String(text));
                }
                (ScalarValue::Int64(Some(number)), TagType::I64) => {
                    values.insert(TagValue::I64(number));
                }
                (ScalarValue::Boolean(Some(truth)), TagType::Bool) => {
                    values.insert(TagValue::Bool(truth));
                }
                _ => null = true,
            }
        }
    }
    let mut either = vec![TagFilter::In(ordinal, values.into_iter().collect())];
    if null {
        either.push(TagFilter::IsNull(ordinal));
    }
    Ok(TagFilter::Or(either))
}
