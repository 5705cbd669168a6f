//! SELECT: from its clauses to a relation.
//!
//! The source is filtered. If nothing in the SELECT is a function of many rows, its items are computed
//! from the rows. Otherwise `grouping` makes the rows of windows, partitions or sequences, and the items
//! are computed from these.

pub(crate) mod grouping;

use crate::aggregate::calls_within;
use crate::child_list::child_list;
use crate::expression::{ComputedExpr, Scope, Typed};
use crate::moments::{Times, time_range};
use crate::query::select::grouping::{Grouped, grouped};
use crate::query::source::{one_row, relation_of};
use crate::query::{bounds, limited, number_of, sort_expr};
use crate::relation::{Relation, RelationColumn, RelationColumnRole, builder, plan_column};
use crate::run::{TaosRun, fault, fault_about};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, SortExpr, lit};
use marigram_sql::SqlResult;
use marigram_tdengine::ast::{
    TaosCall, TaosExpr, TaosLimit, TaosOrder, TaosSelect, TaosSelectItem,
};
use marigram_tdengine::{TaosCode, TaosType, TimeSetting};

/// The clauses that stand behind a SELECT.
pub(crate) struct SelectClauses<'q> {
    /// ORDER BY.
    pub(crate) order_by: &'q [TaosOrder],
    /// SLIMIT.
    pub(crate) partition_limit: Option<TaosLimit>,
    /// LIMIT.
    pub(crate) limit: Option<TaosLimit>,
}

/// A selected expression with the name of its column.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The expression.
    pub(crate) expr: TaosExpr,
    /// The name.
    pub(crate) name: String,
}

/// Plans a SELECT.
pub(crate) async fn plan_select(
    run: &TaosRun<'_>,
    select: &TaosSelect,
    clauses: &SelectClauses<'_>,
) -> SqlResult<Relation> {
    let mut source = match &select.from {
        Some(from) => relation_of(run, from).await?,
        None => one_row(run)?,
    };
    if let Some(children) = child_list(run, select, &source).await? {
        source = children;
    }
    let setting = run.setting(source.precision);
    let mut times = Times::ALL;
    if let Some(condition) = &select.condition {
        let scope = Scope::for_relation(run, &source, &setting);
        let filter = scope.condition(condition)?;
        times = time_range(Some(condition), &|expr| scope.is_time(expr), &setting)?.0;
        source.plan = builder(source.plan).filter(filter)?.build()?;
    }
    let items = items(select, &source)?;
    let mut calls: Vec<&TaosCall> = Vec::new();
    for item in &items {
        calls_within(&item.expr, &mut calls)?;
    }
    if let Some(having) = &select.having {
        calls_within(having, &mut calls)?;
    }
    let resolved: Vec<TaosExpr> = clauses
        .order_by
        .iter()
        .map(|part| order_target(part, &items))
        .collect::<SqlResult<_>>()?;
    for part in &resolved {
        calls_within(part, &mut calls)?;
    }
    let has_groups = !select.group_by.is_empty() || select.window.is_some();
    if select.fill.is_some() && select.window.is_none() && select.range.is_none() {
        return Err(fault(TaosCode::FillNotAllowed));
    }
    if clauses.partition_limit.is_some()
        && select.partition_by.is_empty()
        && select.group_by.is_empty()
    {
        return Err(fault(TaosCode::SlimitWithoutPartition));
    }
    if calls.is_empty() && !has_groups {
        check_plain(&items)?;
        let keys = select
            .partition_by
            .iter()
            .map(|part| part.expr.clone())
            .collect();
        let shown = Shown {
            source,
            known: Vec::new(),
            keys,
            setting,
            is_ordered: false,
        };
        return shown.finish(run, select, (&items, &resolved), clauses);
    }
    let exprs: Vec<&TaosExpr> = items
        .iter()
        .map(|item| &item.expr)
        .chain(&select.having)
        .chain(&resolved)
        .collect();
    let of = Grouped {
        select,
        items: &items,
        exprs: &exprs,
        calls: &calls,
        times,
        setting: &setting,
    };
    let (relation, known, keys) = grouped(run, source, &of).await?;
    let shown = Shown {
        source: relation,
        known,
        keys,
        setting,
        is_ordered: true,
    };
    shown.finish(run, select, (&items, &resolved), clauses)
}

/// The items, with `*` and functions of `*` written out.
fn items(select: &TaosSelect, source: &Relation) -> SqlResult<Vec<Item>> {
    let mut items = Vec::new();
    for item in &select.items {
        match &item.expr {
            TaosExpr::Star(table) => {
                let before = items.len();
                items.extend(source.shown(table.as_deref()).map(column_item));
                if items.len() == before {
                    return Err(fault_about(TaosCode::InvalidColumn, "*"));
                }
            }
            TaosExpr::Call(call)
                if matches!(call.name.as_str(), "first" | "last" | "last_row")
                    && matches!(call.arguments.as_slice(), [TaosExpr::Star(_)]) =>
            {
                let columns = source
                    .shown(None)
                    .filter(|column| column.role != RelationColumnRole::Tag);
                for column in columns {
                    let own = column_item(column);
                    let name = format!("{}({})", call.name, own.name);
                    let expr = TaosExpr::Call(TaosCall {
                        name: call.name.clone(),
                        arguments: vec![own.expr],
                    });
                    items.push(Item { expr, name });
                }
            }
            _ => items.push(Item {
                expr: item.expr.clone(),
                name: item_name(item),
            }),
        }
    }
    Ok(items)
}

fn item_name(item: &TaosSelectItem) -> String {
    item.alias.clone().unwrap_or_else(|| item.text.clone())
}

fn column_item(column: &RelationColumn) -> Item {
    Item {
        expr: TaosExpr::Column {
            table: column.table.clone(),
            name: column.name.clone(),
        },
        name: column.name.clone(),
    }
}

/// What a part of ORDER BY stands for: an item by its number or name, or an expression.
fn order_target(part: &TaosOrder, items: &[Item]) -> SqlResult<TaosExpr> {
    if let Some(place) = number_of(&part.expr, items.len())? {
        return Ok(items[place].expr.clone());
    }
    if let TaosExpr::Column { table: None, name } = &part.expr
        && let Some(item) = items.iter().find(|item| item.name == *name)
    {
        return Ok(item.expr.clone());
    }
    Ok(part.expr.clone())
}

/// Pseudo columns of windows need a window.
fn check_plain(items: &[Item]) -> SqlResult<()> {
    for item in items {
        if let TaosExpr::Column { table: None, name } = &item.expr
            && matches!(name.as_str(), "_wstart" | "_wend" | "_wduration")
        {
            return Err(fault(TaosCode::InvalidWindowColumn));
        }
    }
    Ok(())
}

/// Rows from which the items are computed.
struct Shown {
    source: Relation,
    known: Vec<ComputedExpr>,
    /// The expressions of PARTITION BY or GROUP BY.
    keys: Vec<TaosExpr>,
    setting: TimeSetting,
    /// Whether the rows are already ordered by keys and time.
    is_ordered: bool,
}

impl Shown {
    /// Computes the items, and applies HAVING, DISTINCT, ORDER BY and the limits.
    fn finish(
        self,
        run: &TaosRun<'_>,
        select: &TaosSelect,
        (items, order): (&[Item], &[TaosExpr]),
        clauses: &SelectClauses<'_>,
    ) -> SqlResult<Relation> {
        let scope = Scope::with(run, &self.source.columns, &self.known, &self.setting);
        let mut plan = builder(self.source.plan.clone());
        if let Some(having) = &select.having {
            plan = plan.filter(scope.condition(having)?)?;
        }
        let mut shown = Vec::new();
        let mut columns = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            let typed = scope.typed(&item.expr)?;
            let name = format!("o{place}");
            columns.push(output(&scope, item, (&typed, &name), columns.is_empty()));
            shown.push(typed.expr.alias(name));
        }
        let own: Vec<Expr> = (0..items.len())
            .map(|place| plan_column(&format!("o{place}")))
            .collect();
        let mut sort = Vec::new();
        for (part, target) in clauses.order_by.iter().zip(order) {
            let place = items.iter().position(|item| item.expr == *target);
            let expr = match place {
                Some(place) => own[place].clone(),
                None => added(&mut shown, scope.typed(target)?.expr),
            };
            sort.push(sort_expr(expr, part));
        }
        let is_distinct = select.distinct || select.tags_only;
        if sort.is_empty() && !is_distinct {
            sort = self.natural_order(&mut shown);
        }
        let per_partition = !select.partition_by.is_empty()
            && (clauses.limit.is_some() || clauses.partition_limit.is_some());
        let grouped_limit = !select.group_by.is_empty() && clauses.partition_limit.is_some();
        let mut keys = Vec::new();
        if per_partition || grouped_limit {
            for key in &self.keys {
                keys.push(added(&mut shown, scope.typed(key)?.expr));
            }
        }
        let extra = shown.len() - items.len();
        plan = plan.project(shown)?;
        if is_distinct {
            if extra > 0 && !clauses.order_by.is_empty() {
                return Err(fault(TaosCode::InvalidOrderBy));
            }
            plan = plan.project(own.clone())?.distinct()?;
        }
        let mut limit = clauses.limit;
        if !keys.is_empty() {
            let of = PartitionLimits {
                keys: &keys,
                sort: &sort,
                rows: limit.filter(|_| per_partition),
                partitions: clauses.partition_limit,
            };
            plan = builder(of.apply(plan.build()?)?);
            if per_partition {
                limit = None;
            }
        }
        if !sort.is_empty() {
            plan = plan.sort(sort)?;
        }
        let relation = Relation {
            plan: plan.build()?,
            columns,
            precision: self.source.precision,
            is_one_table: self.source.is_one_table,
        };
        let mut relation = limited(relation, limit)?;
        if extra > 0 {
            relation.plan = builder(relation.plan).project(own)?.build()?;
        }
        Ok(relation)
    }

    /// The order of rows that nothing else orders: that of one table, or of partitions and windows.
    fn natural_order(&self, shown: &mut Vec<Expr>) -> Vec<SortExpr> {
        if self.is_ordered {
            let columns = self.source.columns.iter();
            let order = columns.filter(|column| column.name.starts_with('\u{1}'));
            let order: Vec<Expr> = order.map(|column| column.expr.clone()).collect();
            let order = order.into_iter().map(|expr| added(shown, expr));
            return order.map(|expr| SortExpr::new(expr, true, true)).collect();
        }
        match self.source.time() {
            Some(time) if self.source.is_one_table && self.keys.is_empty() => {
                let time = added(shown, time.expr.clone());
                vec![SortExpr::new(time, true, true)]
            }
            _ => Vec::new(),
        }
    }
}

/// The column of an item.
fn output(
    scope: &Scope<'_>,
    item: &Item,
    (typed, name): (&Typed, &str),
    is_first: bool,
) -> RelationColumn {
    let is_start = matches!(&item.expr, TaosExpr::Column { name, .. } if name == "_wstart"
        || name == "_irowts");
    let is_time = scope.is_time(&item.expr) || is_start;
    let is_other_time = is_first && typed.kind == TaosType::Timestamp;
    RelationColumn {
        table: None,
        name: item.name.clone(),
        kind: typed.kind,
        expr: plan_column(name),
        role: if is_time || is_other_time {
            RelationColumnRole::Time
        } else {
            RelationColumnRole::Field
        },
    }
}

/// Adds a column to those that are computed, and returns it.
fn added(shown: &mut Vec<Expr>, expr: Expr) -> Expr {
    let name = format!("o{}", shown.len());
    shown.push(expr.alias(&name));
    plan_column(&name)
}

/// LIMIT in each partition, and SLIMIT.
struct PartitionLimits<'a> {
    keys: &'a [Expr],
    sort: &'a [SortExpr],
    rows: Option<TaosLimit>,
    partitions: Option<TaosLimit>,
}

impl PartitionLimits<'_> {
    fn apply(
        &self,
        plan: datafusion::logical_expr::LogicalPlan,
    ) -> SqlResult<datafusion::logical_expr::LogicalPlan> {
        let mut plan = builder(plan);
        let within = |limit: TaosLimit, number: Expr| {
            let (skip, fetch) = bounds(limit);
            let skip = u64::try_from(skip).unwrap_or(u64::MAX);
            let last = skip.saturating_add(u64::try_from(fetch).unwrap_or(u64::MAX));
            number.clone().gt(lit(skip)).and(number.lt_eq(lit(last)))
        };
        if let Some(limit) = self.partitions {
            let order = self.keys.iter();
            let order = order.map(|key| SortExpr::new(key.clone(), true, true));
            let number = datafusion::functions_window::expr_fn::dense_rank();
            let number = number.order_by(order.collect()).build()?.alias("p");
            plan = plan
                .window(vec![number])?
                .filter(within(limit, plan_column("p")))?;
        }
        if let Some(limit) = self.rows {
            let mut number = row_number().partition_by(self.keys.to_vec());
            if !self.sort.is_empty() {
                number = number.order_by(self.sort.to_vec());
            }
            let number = number.build()?.alias("n");
            plan = plan
                .window(vec![number])?
                .filter(within(limit, plan_column("n")))?;
        }
        Ok(plan.build()?)
    }
}
