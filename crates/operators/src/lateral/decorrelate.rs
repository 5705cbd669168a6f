//! Removes references to the left side from a lateral subquery.

use super::refusal::lateral_error;
use super::rows::RowLimit;
use datafusion::common::TableReference;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, JoinType, Result};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, Filter, Limit, LogicalPlan, LogicalPlanBuilder, Operator,
    SubqueryAlias,
};
use std::sync::Arc;

/// A subquery without its correlation.
pub struct DecorrelatedSubquery {
    /// The remaining plan; its columns are followed by those that `conditions` and `order` need.
    pub plan: LogicalPlan,
    /// The conditions on a row of each side; columns of the left side are outer references.
    pub conditions: Vec<Expr>,
    /// The order of its rows.
    pub order: Vec<Sort>,
    /// The rows to take for each row of the left side, if the plan does not do so itself.
    pub rows: Option<RowLimit>,
    /// The number of columns added so far.
    added: usize,
}

/// What a condition in a subquery says about the left side.
#[derive(Debug)]
pub enum CorrelatedCondition {
    /// It does not use the subquery's columns.
    Outer,
    /// It compares an expression of the left side with one of the subquery.
    Compared(Box<Expr>, Operator, Box<Expr>),
    /// Anything else.
    Other,
}

impl CorrelatedCondition {
    /// Classifies a condition.
    pub fn classify(condition: &Expr) -> Self {
        if !condition.any_column_refs() {
            return Self::Outer;
        }
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else {
            return Self::Other;
        };
        let is_outer = |expr: &Expr| expr.contains_outer() && !expr.any_column_refs();
        if is_outer(left) && !right.contains_outer() {
            return Self::Compared(left.clone(), *op, right.clone());
        }
        match op.swap() {
            Some(op) if is_outer(right) && !left.contains_outer() => {
                Self::Compared(right.clone(), op, left.clone())
            }
            _ => Self::Other,
        }
    }
}

/// Whether a plan refers to columns outside it.
pub(super) fn is_correlated(plan: &LogicalPlan) -> bool {
    !plan.all_out_ref_exprs().is_empty()
}

impl DecorrelatedSubquery {
    /// Decorrelates a subquery.
    ///
    /// # Errors
    /// If the left side is named in a place from which it cannot be removed.
    pub fn new(plan: &LogicalPlan) -> Result<Self> {
        if !is_correlated(plan) {
            return Ok(Self {
                plan: plan.clone(),
                conditions: Vec::new(),
                order: Vec::new(),
                rows: None,
                added: 0,
            });
        }
        if plan.contains_outer_reference() && !matches!(plan, LogicalPlan::Filter(_)) {
            return Err(lateral_error(
                "a LATERAL subquery with a LIMIT can only refer to the left side in its WHERE",
            ));
        }
        match plan {
            LogicalPlan::Filter(filter) => Self::new(&filter.input)?.filtered(filter),
            LogicalPlan::Projection(projection) => {
                Self::new(&projection.input)?.projected(projection.expr.clone())
            }
            LogicalPlan::SubqueryAlias(alias) => Self::new(&alias.input)?.named(&alias.alias),
            LogicalPlan::Sort(sort) => {
                let below = Self::new(&sort.input)?;
                let order = if below.rows.is_none() {
                    sort.expr.clone()
                } else {
                    below.order
                };
                Ok(Self { order, ..below })
            }
            LogicalPlan::Limit(limit) => Self::new(&limit.input)?.limited(limit),
            LogicalPlan::Aggregate(aggregate) if !aggregate.group_expr.is_empty() => {
                Self::new(&aggregate.input)?.grouped(aggregate)
            }
            LogicalPlan::Join(join)
                if matches!(join.join_type, JoinType::Inner | JoinType::Left)
                    && !is_correlated(&join.right) =>
            {
                let below = Self::new(&join.left)?;
                if below.rows.is_some() {
                    return Err(lateral_error(
                        "a LATERAL subquery with a LIMIT is joined within by equalities alone",
                    ));
                }
                let inputs = vec![below.plan.clone(), join.right.as_ref().clone()];
                let plan = plan.with_new_exprs(plan.expressions(), inputs)?;
                Ok(Self { plan, ..below })
            }
            _ => Err(lateral_error(
                "a LATERAL subquery with a LIMIT must have its conditions on the left side in its own WHERE, \
                 without GROUP BY, DISTINCT, UNION or window functions",
            )),
        }
    }

    fn filtered(mut self, filter: &Filter) -> Result<Self> {
        if self.rows.is_some() {
            return Err(lateral_error(
                "conditions around the LIMIT of a LATERAL subquery belong in ON or WHERE of the join",
            ));
        }
        let (correlated, own): (Vec<&Expr>, Vec<&Expr>) = split_conjunction(&filter.predicate)
            .into_iter()
            .partition(|condition| condition.contains_outer());
        self.conditions.extend(correlated.into_iter().cloned());
        if let Some(condition) = conjunction(own.into_iter().cloned()) {
            let filter = Filter::try_new(condition, Arc::new(self.plan))?;
            self.plan = LogicalPlan::Filter(filter);
        }
        Ok(self)
    }

    /// A projection, followed by the columns that are needed above it.
    fn projected(mut self, mut exprs: Vec<Expr>) -> Result<Self> {
        let (mut added, mut known) = (self.added, Vec::<(Column, Column)>::new());
        self.for_columns(|column| {
            if let Some((_, name)) = known.iter().find(|(known, _)| *known == column) {
                return name.clone();
            }
            let mut same = exprs
                .iter()
                .filter(|expr| expr.qualified_name().1 == column.name);
            let name = match (same.next(), same.next()) {
                // The column is selected already, and nothing else has its name.
                (Some(Expr::Column(there)), None) if *there == column => column.clone(),
                _ => {
                    let name = Column::new_unqualified(format!("__lateral_{added}"));
                    exprs.push(Expr::Column(column.clone()).alias(&name.name));
                    added += 1;
                    name
                }
            };
            known.push((column, name.clone()));
            name
        })?;
        self.added = added;
        self.plan = LogicalPlanBuilder::from(self.plan)
            .project(exprs)?
            .build()?;
        Ok(self)
    }

    /// An aggregate with groups, which also groups by the keys of equal values on the left side.
    fn grouped(mut self, aggregate: &Aggregate) -> Result<Self> {
        let is_plain = !matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]);
        let mut groups = aggregate.group_expr.clone();
        for condition in &self.conditions {
            match CorrelatedCondition::classify(condition) {
                CorrelatedCondition::Outer => {}
                CorrelatedCondition::Compared(
                    _,
                    Operator::Eq | Operator::IsNotDistinctFrom,
                    key,
                ) if is_plain && matches!(*key, Expr::Column(_)) => {
                    if !groups.contains(key.as_ref()) {
                        groups.push(*key);
                    }
                }
                _ => {
                    return Err(lateral_error(
                        "a subquery with GROUP BY can compare only its columns with the left side, and \
                         only by =; without GROUP BY it may compare anything",
                    ));
                }
            }
        }
        if self.rows.is_some() {
            return Err(lateral_error(
                "a LATERAL subquery with a LIMIT cannot be grouped around the LIMIT",
            ));
        }
        self.order = Vec::new();
        let aggregates = aggregate.aggr_expr.clone();
        let grouped = Aggregate::try_new(Arc::new(self.plan), groups, aggregates)?;
        self.plan = LogicalPlan::Aggregate(grouped);
        Ok(self)
    }

    fn named(mut self, name: &TableReference) -> Result<Self> {
        self.for_columns(|column| Column::new(Some(name.clone()), column.name))?;
        let alias = SubqueryAlias::try_new(Arc::new(self.plan), name.clone())?;
        self.plan = LogicalPlan::SubqueryAlias(alias);
        Ok(self)
    }

    fn limited(mut self, limit: &Limit) -> Result<Self> {
        if self.rows.is_some() {
            return Err(lateral_error("a LATERAL subquery can have only one LIMIT"));
        }
        let rows = RowLimit::from_limit(limit)?;
        let mut keys = Vec::new();
        for condition in &self.conditions {
            match CorrelatedCondition::classify(condition) {
                CorrelatedCondition::Outer => {}
                CorrelatedCondition::Compared(
                    _,
                    Operator::Eq | Operator::IsNotDistinctFrom,
                    key,
                ) => {
                    if !keys.contains(key.as_ref()) {
                        keys.push(*key);
                    }
                }
                CorrelatedCondition::Compared(..) | CorrelatedCondition::Other => {
                    self.rows = Some(rows);
                    return Ok(self);
                }
            }
        }
        self.plan = rows.of_each(self.plan, keys, std::mem::take(&mut self.order))?;
        Ok(self)
    }

    /// The same subquery, under the name by which the join knows it.
    ///
    /// # Errors
    /// DataFusion's errors.
    pub fn under(self, name: Option<&TableReference>) -> Result<Self> {
        match name {
            Some(name) => self.named(name),
            None => Ok(self),
        }
    }

    /// Replaces the columns that conditions and order name.
    fn for_columns(&mut self, mut other: impl FnMut(Column) -> Column) -> Result<()> {
        let orders = self.order.iter_mut().map(|order| &mut order.expr);
        for expr in self.conditions.iter_mut().chain(orders) {
            let replaced = std::mem::take(expr).transform(|expr| {
                Ok(match expr {
                    Expr::Column(column) => Transformed::yes(Expr::Column(other(column))),
                    expr => Transformed::no(expr),
                })
            });
            *expr = replaced?.data;
        }
        Ok(())
    }
}
