//! Queries: unions, order and limits.

pub(crate) mod select;
pub(crate) mod source;

use crate::expression::Scope;
use crate::expression::scalar_function::kinds::{common_kind, to_kind};
use crate::query::select::{SelectClauses, plan_select};
use crate::relation::{Relation, RelationColumn, builder, plan_column};
use crate::run::{TaosRun, fault, fault_about};
use datafusion::logical_expr::{LogicalPlanBuilder, SortExpr};
use futures::FutureExt;
use futures::future::BoxFuture;
use marigram_sql::SqlResult;
use marigram_tdengine::TaosCode;
use marigram_tdengine::ast::{
    TaosExpr, TaosLimit, TaosLiteral, TaosOrder, TaosQuery, TaosQueryBody,
};

/// Plans a query.
pub(crate) fn plan_query<'r>(
    run: &'r TaosRun<'_>,
    query: &'r TaosQuery,
) -> BoxFuture<'r, SqlResult<Relation>> {
    async move {
        match &query.body {
            TaosQueryBody::Select(select) => {
                let clauses = SelectClauses {
                    order_by: &query.order_by,
                    partition_limit: query.partition_limit,
                    limit: query.limit,
                };
                plan_select(run, select, &clauses).await
            }
            TaosQueryBody::Union { first, rest } => {
                let relation = union(run, first, rest).await?;
                let relation = ordered(run, relation, &query.order_by)?;
                limited(relation, query.limit)
            }
        }
    }
    .boxed()
}

async fn union(
    run: &TaosRun<'_>,
    first: &TaosQuery,
    rest: &[(bool, TaosQuery)],
) -> SqlResult<Relation> {
    let mut whole = plan_query(run, first).await?;
    for (is_all, query) in rest {
        let next = plan_query(run, query).await?;
        let (a, b) = (shown(&whole), shown(&next));
        if a.len() != b.len() {
            return Err(fault(TaosCode::UnionColumns));
        }
        let kinds: Vec<_> = a
            .iter()
            .zip(&b)
            .map(|(a, b)| common_kind([a.kind, b.kind]))
            .collect();
        let same = |relation: &Relation, columns: &[RelationColumn]| {
            let mut items = Vec::new();
            for (place, (column, kind)) in columns.iter().zip(&kinds).enumerate() {
                let typed = crate::expression::Typed {
                    expr: column.expr.clone(),
                    kind: column.kind,
                };
                items.push(to_kind(typed, *kind).alias(format!("u{place}")));
            }
            SqlResult::Ok(builder(relation.plan.clone()).project(items)?)
        };
        let (left, right) = (same(&whole, &a)?, same(&next, &b)?);
        let mut plan: LogicalPlanBuilder = left.union(right.build()?)?;
        if !is_all {
            plan = plan.distinct()?;
        }
        let columns = a.iter().zip(&kinds).enumerate();
        whole = Relation {
            plan: plan.build()?,
            columns: columns
                .map(|(place, (column, kind))| RelationColumn {
                    table: None,
                    name: column.name.clone(),
                    kind: *kind,
                    expr: plan_column(&format!("u{place}")),
                    role: column.role,
                })
                .collect(),
            precision: whole.precision,
            is_one_table: false,
        };
    }
    Ok(whole)
}

fn shown(relation: &Relation) -> Vec<RelationColumn> {
    relation.shown(None).cloned().collect()
}

/// Orders a relation by its own columns.
fn ordered(run: &TaosRun<'_>, mut relation: Relation, order: &[TaosOrder]) -> SqlResult<Relation> {
    if order.is_empty() {
        return Ok(relation);
    }
    let setting = run.setting(relation.precision);
    let mut sort = Vec::with_capacity(order.len());
    for part in order {
        let expr = match number_of(&part.expr, relation.columns.len())? {
            Some(place) => relation.columns[place].expr.clone(),
            None => {
                let named = relation
                    .columns
                    .iter()
                    .find(|column| column.name == part.text);
                match named {
                    Some(column) => column.expr.clone(),
                    None => {
                        Scope::for_relation(run, &relation, &setting)
                            .typed(&part.expr)?
                            .expr
                    }
                }
            }
        };
        sort.push(sort_expr(expr, part));
    }
    relation.plan = builder(relation.plan).sort(sort)?.build()?;
    Ok(relation)
}

/// How a part of ORDER BY sorts. Null is the smallest value.
pub(crate) fn sort_expr(expr: datafusion::logical_expr::Expr, part: &TaosOrder) -> SortExpr {
    let nulls_first = part.nulls_first.unwrap_or(!part.descending);
    SortExpr::new(expr, !part.descending, nulls_first)
}

/// The place of the column that an integer in ORDER BY or GROUP BY names.
///
/// # Errors
/// If there is none.
pub(crate) fn number_of(expr: &TaosExpr, columns: usize) -> SqlResult<Option<usize>> {
    let TaosExpr::Literal(TaosLiteral::Integer(number)) = expr else {
        return Ok(None);
    };
    let place = usize::try_from(*number)
        .ok()
        .and_then(|place| place.checked_sub(1));
    match place {
        Some(place) if place < columns => Ok(Some(place)),
        _ => Err(fault_about(TaosCode::InvalidOrderBy, &number.to_string())),
    }
}

/// The first rows.
pub(crate) fn limited(mut relation: Relation, limit: Option<TaosLimit>) -> SqlResult<Relation> {
    if let Some(limit) = limit {
        let (skip, fetch) = bounds(limit);
        relation.plan = builder(relation.plan).limit(skip, Some(fetch))?.build()?;
    }
    Ok(relation)
}

/// The rows that are skipped and shown.
pub(crate) fn bounds(limit: TaosLimit) -> (usize, usize) {
    let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    (number(limit.offset), number(limit.count))
}
