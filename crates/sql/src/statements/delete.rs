//! DELETE: removes a range of times of the series that a condition on tags selects, or, by any other
//! condition, the rows that a query with this condition finds.

use crate::catalog::plan_rights::is_subquery;
use crate::error::{SqlError, SqlResult};
use crate::planning::list_conditions::with_list_conditions;
use crate::tables::changed_rows::{ChangeTarget, ListedRowChange, check_unreplaced};
use crate::tables::table::{SeriesTable, select_by_tags};
use arrow::array::Array;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::datasource::DefaultTableSource;
use datafusion::execution::session_state::SessionState;
use datafusion::functions_aggregate::count::count_all;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::expr_rewriter::unnormalize_col;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, WriteOp};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use marigram_engine::{Engine, TagFilter};
use marigram_model::{SeriesId, TableSchema, TagType, TagValue, TimeRange};
use marigram_operators::predicate::{PredicateClass, classify};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How a DELETE finds its rows.
#[derive(Debug)]
pub(crate) enum DeletionPlan {
    /// They are a range of times of some series.
    Series(SeriesDeletion),
    /// A query finds them, and deletes them.
    Rows(LogicalPlan),
}

/// A range of times of some series.
#[derive(Debug)]
pub(crate) struct SeriesDeletion {
    schema: Arc<TableSchema>,
    filter: TagFilter,
    range: TimeRange,
}

/// Determines what a planned DELETE deletes.
///
/// # Errors
/// If its target is not a table of series.
pub(crate) fn plan(
    engine: &Engine,
    dml: &DmlStatement,
    state: &SessionState,
) -> SqlResult<DeletionPlan> {
    let schema = target(dml).ok_or_else(|| {
        SqlError::unsupported(format!("rows of '{}' cannot be deleted", dml.table_name))
    })?;
    if matches!(*dml.input, LogicalPlan::Limit(_)) {
        let message = "DELETE … LIMIT is not supported; name the rows by a condition";
        return Err(SqlError::unsupported(message));
    }
    Ok(match series_deletion(engine, dml, &schema, state)? {
        Some(deletion) => DeletionPlan::Series(deletion),
        None => DeletionPlan::Rows(listed(engine, dml, schema)?),
    })
}

/// The table of series that a statement changes.
pub(super) fn target(dml: &DmlStatement) -> Option<Arc<TableSchema>> {
    let source = dml.target.downcast_ref::<DefaultTableSource>()?;
    let table = source.table_provider.downcast_ref::<SeriesTable>()?;
    Some(Arc::clone(table.table_schema()))
}

/// The range of times and the series that a DELETE names; `None` if its condition is a different
/// one.
fn series_deletion(
    engine: &Engine,
    dml: &DmlStatement,
    schema: &Arc<TableSchema>,
    state: &SessionState,
) -> SqlResult<Option<SeriesDeletion>> {
    let (mut filters, mut range) = (Vec::new(), TimeRange::ALL);
    let Some(conditions) = conditions(&dml.input, schema, state)? else {
        return Ok(None);
    };
    let mut per_series = Vec::new();
    for condition in conditions {
        match classify(&condition, schema) {
            PredicateClass::Exact(part) => {
                filters.push(part.tags);
                range = range.intersect(part.range);
            }
            PredicateClass::PerSeries => per_series.push(condition),
            PredicateClass::Inexact(_) | PredicateClass::Unknown => return Ok(None),
        }
    }
    let mut filter = TagFilter::And(filters);
    for condition in per_series {
        let Some(values) = values_for(engine, schema, &condition, state)? else {
            return Ok(None);
        };
        filter = TagFilter::And(vec![filter, values]);
    }
    Ok(Some(SeriesDeletion {
        schema: Arc::clone(schema),
        filter,
        range,
    }))
}

/// The statement that finds the rows of a DELETE and deletes them.
fn listed(engine: &Engine, dml: &DmlStatement, schema: Arc<TableSchema>) -> SqlResult<LogicalPlan> {
    let qualifier = Some(dml.table_name.clone());
    let keys = key_names(&schema).map(|name| Expr::Column(Column::new(qualifier.clone(), name)));
    let keys: Vec<Expr> = keys.collect();
    let rows = LogicalPlanBuilder::from(Arc::clone(&dml.input));
    Ok(change(
        engine,
        dml,
        schema,
        ListedRowChange::Delete,
        rows.project(keys)?.build()?,
    ))
}

/// The names of the columns that identify a row: the time, then the tags.
pub(super) fn key_names(schema: &TableSchema) -> impl Iterator<Item = &str> {
    let tags = schema.tags.iter().map(|tag| tag.name.as_str());
    std::iter::once(schema.time_name.as_str()).chain(tags)
}

/// The statement that makes `change` of the rows of a query.
pub(super) fn change(
    engine: &Engine,
    dml: &DmlStatement,
    schema: Arc<TableSchema>,
    change: ListedRowChange,
    query: LogicalPlan,
) -> LogicalPlan {
    let arrow = Arc::clone(query.schema().inner());
    let target = ChangeTarget::new(engine.clone(), schema, change, arrow);
    let target = Arc::new(DefaultTableSource::new(Arc::new(target)));
    let op = WriteOp::Insert(InsertOp::Append);
    let name = dml.table_name.clone();
    LogicalPlan::Dml(DmlStatement::new(name, target, op, Arc::new(query)))
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
    check_unreplaced(engine, schema)?;
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
/// which read texts as times on the clocks of the session's zone. `None` if one of them
/// holds a subquery.
fn conditions(
    input: &LogicalPlan,
    schema: &TableSchema,
    state: &SessionState,
) -> SqlResult<Option<Vec<Expr>>> {
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
            _ => return Ok(None),
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
        if condition.exists(|part| Ok(is_subquery(part)))? {
            return Ok(None);
        }
        let condition = simplifier.coerce(unnormalize_col(condition), &arrow)?;
        let condition = with_list_conditions(condition)?.data;
        conditions.extend(split_conjunction_owned(simplifier.simplify(condition)?));
    }
    Ok(Some(conditions))
}

/// The values that satisfy a condition on one tag that only evaluation can decide; `None` for a
/// condition on several tags.
fn values_for(
    engine: &Engine,
    schema: &TableSchema,
    condition: &Expr,
    state: &SessionState,
) -> SqlResult<Option<TagFilter>> {
    let columns = condition.column_refs();
    let named = columns
        .iter()
        .next()
        .map(|column| column.name.as_str())
        .unwrap_or_default();
    let (ordinal, tag) = match schema.tag(named) {
        Some(tag) if columns.len() == 1 => tag,
        _ => return Ok(None),
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
    Ok(Some(TagFilter::Or(either)))
}
