//! The order of intervals: by their lengths, with a day of 24 hours and a month of 30 days.
//!
//! Arrow orders intervals part by part, months first, so that 31 days would be less than a month.
//! Comparisons by operators are planned in [`crate::interval_arithmetic`]; this rule does the same for
//! BETWEEN, IN and ORDER BY. `min` and `max` have an accumulator of their own.

use crate::interval_arithmetic::{length, length_ns};
use crate::plan_expressions::replace_in_expressions;
use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Accumulator, Between, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

/// See the module documentation. The rule runs after DataFusion's type coercion.
#[derive(Debug)]
pub struct IntervalOrder;

impl AnalyzerRule for IntervalOrder {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = replace_in_expressions(
            plan,
            |expr| matches!(expr, Expr::Between(_) | Expr::InList(_)),
            by_length,
        )?;
        let sorted = plan.transform_up_with_subqueries(|node| {
            let LogicalPlan::Sort(mut sort) = node else {
                return Ok(Transformed::no(node));
            };
            let mut is_changed = false;
            for by in &mut sort.expr {
                if is_interval(&by.expr, sort.input.schema()) {
                    by.expr = length(std::mem::take(&mut by.expr));
                    is_changed = true;
                }
            }
            let plan = LogicalPlan::Sort(sort);
            Ok(Transformed::new_transformed(plan, is_changed))
        })?;
        Ok(sorted.data)
    }

    fn name(&self) -> &'static str {
        "interval_order"
    }
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Interval(_)))
}

fn by_length(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::Between(between) if is_interval(&between.expr, schema) => {
            let of = |side: Box<Expr>| Box::new(length(*side));
            Transformed::yes(Expr::Between(Between {
                expr: of(between.expr),
                low: of(between.low),
                high: of(between.high),
                negated: between.negated,
            }))
        }
        Expr::InList(list) if is_interval(&list.expr, schema) => {
            Transformed::yes(Expr::InList(InList {
                expr: Box::new(length(*list.expr)),
                list: list.list.into_iter().map(length).collect(),
                negated: list.negated,
            }))
        }
        other => Transformed::no(other),
    }
}

/// Whether `min` and `max` of a type are found by [`ExtremeInterval`].
pub fn has_extremes(kind: &DataType) -> bool {
    *kind == DataType::Interval(IntervalUnit::MonthDayNano)
}

/// The shortest or the longest interval.
#[derive(Debug)]
pub struct ExtremeInterval {
    is_min: bool,
    best: Option<IntervalMonthDayNano>,
}

impl ExtremeInterval {
    /// An accumulator of `min` or `max`.
    pub fn new(is_min: bool) -> Self {
        Self { is_min, best: None }
    }
}

impl Accumulator for ExtremeInterval {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else {
            return Ok(());
        };
        let values = values.as_primitive::<IntervalMonthDayNanoType>();
        for value in values.iter().flatten() {
            let is_better = self.best.is_none_or(|best| {
                let (new, old) = (length_ns(value), length_ns(best));
                if self.is_min { new < old } else { new > old }
            });
            if is_better {
                self.best = Some(value);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::IntervalMonthDayNano(self.best))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
