//! DELETE: rows of a range of times, of one table or of the sub-tables that conditions on tags select.

use crate::definition::child_filter;
use crate::expression::Scope;
use crate::moments::{Times, time_range};
use crate::query::source::relation_of;
use crate::relation::{RelationColumnRole, builder};
use crate::run::catalog::TaosTable;
use crate::run::{TaosRun, done, fault};
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{cast, lit};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use marigram_engine::TagFilter;
use marigram_model::TimeRange;
use marigram_sql::SqlResult;
use marigram_sql::front_end::StatementRows;
use marigram_tdengine::TaosCode;
use marigram_tdengine::ast::{TaosExpr, TaosFrom, TaosName};

/// DELETE.
pub(crate) async fn delete(
    run: &TaosRun<'_>,
    name: &TaosName,
    condition: Option<&TaosExpr>,
) -> SqlResult<StatementRows> {
    let database = run.database_of(name)?.to_owned();
    run.check_write(&database)?;
    let found = run.catalog.table(run, &database, &name.name).await?;
    let from = TaosFrom::Table {
        name: name.clone(),
        alias: None,
    };
    let mut relation = relation_of(run, &from).await?;
    let setting = run.setting(relation.precision);
    let (times, own) = {
        let scope = Scope::for_relation(run, &relation, &setting);
        let (times, rest) = time_range(condition, &|expr| scope.is_time(expr), &setting)?;
        for part in rest {
            check_tags(&relation, part)?;
        }
        if let Some(condition) = condition {
            let filter = scope.condition(condition)?;
            let plan = builder(relation.plan.clone()).filter(filter)?.build()?;
            (times, Some(plan))
        } else {
            (times, None)
        }
    };
    if let Some(plan) = own {
        relation.plan = plan;
    }
    let tbname = relation.column(None, "tbname")?.expr.clone();
    let rows = count(lit(1_i64)).alias("rows");
    let groups = vec![cast(tbname, DataType::Utf8).alias("name")];
    let plan = builder(relation.plan)
        .aggregate(groups, vec![rows])?
        .build()?;
    let state = run.state(&database)?;
    let plan = state.create_physical_plan(&plan).await?;
    let mut batches = execute_stream(plan, state.task_ctx())?;
    let (mut total, mut names) = (0_i64, Vec::new());
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        let own = batch.column(0).as_string::<i32>();
        let counts = batch.column(1).as_primitive::<Int64Type>();
        for (name, count) in own.iter().zip(counts.values()) {
            total += count;
            if let Some(name) = name {
                run.budget.keep(name.len() + 64)?;
                names.push(name.to_owned());
            }
        }
    }
    let range = range(times);
    let table = std::sync::Arc::clone(&found.stable().table);
    let is_whole =
        matches!(found, TaosTable::Whole(_)) && has_only_times(condition, &relation_time(&found));
    let engine = run.engine().clone();
    let work = move || {
        if is_whole {
            engine.delete(&database, &table.name, &TagFilter::All, range)?;
            return Ok(());
        }
        for name in &names {
            let filter = child_filter(&table, name);
            engine.delete(&database, &table.name, &filter, range)?;
        }
        Ok(())
    };
    run.context.commit(work).await?;
    Ok(done("DELETE", u64::try_from(total).unwrap_or(0)))
}

fn range(times: Times) -> TimeRange {
    TimeRange {
        min: times.min,
        max: times.max,
    }
}

fn relation_time(found: &TaosTable) -> String {
    found.stable().table.time_name.clone()
}

/// Whether a condition names nothing but the time.
fn has_only_times(condition: Option<&TaosExpr>, time: &str) -> bool {
    fn only(expr: &TaosExpr, time: &str) -> bool {
        match expr {
            TaosExpr::Column { name, .. } => name == time || name == "_c0" || name == "_rowts",
            _ => expr.children().into_iter().all(|child| only(child, time)),
        }
    }
    condition.is_none_or(|condition| only(condition, time))
}

/// Conditions beside the range of times may be on tags alone.
fn check_tags(relation: &crate::relation::Relation, expr: &TaosExpr) -> SqlResult<()> {
    if let TaosExpr::Column { table, name } = expr {
        let column = relation.column(table.as_deref(), name)?;
        if !matches!(
            column.role,
            RelationColumnRole::Tag | RelationColumnRole::Hidden
        ) {
            return Err(fault(TaosCode::InvalidDelete));
        }
    }
    for child in expr.children() {
        check_tags(relation, child)?;
    }
    Ok(())
}
