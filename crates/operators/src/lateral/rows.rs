//! The rows that a LIMIT takes, of all rows or of each partition.

use super::refusal::lateral_error;
use datafusion::common::{Column, Result};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{
    Aggregate, Expr, ExprFunctionExt, FetchType, Limit, LogicalPlan, LogicalPlanBuilder, SkipType,
    lit,
};
use std::sync::Arc;

/// Which of the rows in an order are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLimit {
    /// The number of rows to skip.
    pub skip: u64,
    /// The largest number of rows to take; `None` for all.
    pub fetch: Option<u64>,
}

/// The first row only.
pub const FIRST: RowLimit = RowLimit {
    skip: 0,
    fetch: Some(1),
};

impl RowLimit {
    /// Reads a LIMIT.
    ///
    /// # Errors
    /// If its numbers are not literals.
    pub fn from_limit(limit: &Limit) -> Result<Self> {
        match (limit.get_skip_type()?, limit.get_fetch_type()?) {
            (SkipType::Literal(skip), FetchType::Literal(fetch)) => Ok(Self {
                skip: skip as u64,
                fetch: fetch.map(|fetch| fetch as u64),
            }),
            _ => Err(lateral_error(
                "LIMIT and OFFSET of a LATERAL subquery must be literal numbers",
            )),
        }
    }

    /// Takes these rows of each partition of a plan, with the plan's columns.
    ///
    /// # Errors
    /// DataFusion's errors.
    pub fn of_each(
        self,
        plan: LogicalPlan,
        partition: Vec<Expr>,
        order: Vec<Sort>,
    ) -> Result<LogicalPlan> {
        if self == FIRST && !partition.is_empty() {
            return first_of_each(plan, partition, order);
        }
        let columns = columns_of(&plan);
        let mut number = row_number().partition_by(partition);
        if !order.is_empty() {
            number = number.order_by(order);
        }
        let number = number.build()?;
        let place = Expr::Column(Column::new_unqualified(number.schema_name().to_string()));
        let mut taken = place.clone().gt(lit(self.skip));
        if let Some(fetch) = self.fetch {
            taken = taken.and(place.lt_eq(lit(self.skip.saturating_add(fetch))));
        }
        LogicalPlanBuilder::from(plan)
            .window(vec![number])?
            .filter(taken)?
            .project(columns)?
            .build()
    }
}

/// Plans the rows like `DISTINCT ON`, except for the order of the output: last values can answer
/// this form.
fn first_of_each(plan: LogicalPlan, keys: Vec<Expr>, order: Vec<Sort>) -> Result<LogicalPlan> {
    let first = columns_of(&plan).into_iter().map(|column| {
        let call = first_value_udaf().call(vec![column]);
        if order.is_empty() {
            return Ok(call);
        }
        call.order_by(order.clone()).build()
    });
    let first = first.collect::<Result<Vec<_>>>()?;
    let (places, schema) = (keys.len(), Arc::clone(plan.schema()));
    let aggregate = Aggregate::try_new(Arc::new(plan), keys, first)?;
    let columns = schema.iter().enumerate().map(|(at, (qualifier, field))| {
        let column = Column::from(aggregate.schema.qualified_field(places + at));
        Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(LogicalPlan::Aggregate(aggregate))
        .project(columns)?
        .build()
}

/// The columns of a plan.
pub fn columns_of(plan: &LogicalPlan) -> Vec<Expr> {
    let columns = plan.schema().iter();
    columns
        .map(|field| Expr::Column(Column::from(field)))
        .collect()
}
