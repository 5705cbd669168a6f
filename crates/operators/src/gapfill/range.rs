//! Determines the range of times that a query asks for: from arguments, or from the conditions
//! below the aggregate.

use arrow::datatypes::{DataType, TimeUnit};
use chrono::{DateTime, Utc};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, ScalarValue};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, LogicalPlan, Operator};
use datafusion::optimizer::OptimizerConfig;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use std::sync::Arc;

/// Whether times are in ns, without a zone or in UTC.
fn is_plain(kind: &DataType) -> bool {
    match kind {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => zone
            .as_ref()
            .is_none_or(|zone| ["UTC", "+00:00", "Z"].contains(&zone.as_ref())),
        _ => false,
    }
}

/// Evaluates expressions that do not depend on rows.
pub struct ConstantEvaluator {
    simplifier: ExprSimplifier,
    options: Arc<ConfigOptions>,
    start: Option<DateTime<Utc>>,
}

fn simplifier(
    schema: DFSchemaRef,
    options: &Arc<ConfigOptions>,
    start: Option<DateTime<Utc>>,
) -> ExprSimplifier {
    let context = SimplifyContext::builder()
        .with_schema(schema)
        .with_config_options(Arc::clone(options))
        .with_query_execution_start_time(start)
        .build();
    ExprSimplifier::new(context)
}

impl ConstantEvaluator {
    /// Creates the evaluator, in which `now()` is the time when the query began.
    pub fn new(config: &dyn OptimizerConfig) -> Self {
        let (options, start) = (config.options(), config.query_execution_start_time());
        let nothing = Arc::new(DFSchema::empty());
        Self {
            simplifier: simplifier(nothing, &options, start),
            options,
            start,
        }
    }

    /// Simplifies a condition over columns of `schema` as DataFusion's rules would.
    ///
    /// # Errors
    /// If a constant in it cannot be evaluated.
    pub fn simplified(&self, condition: Expr, schema: &DFSchemaRef) -> Result<Expr> {
        simplifier(Arc::clone(schema), &self.options, self.start).simplify(condition)
    }

    /// The value of a constant; `None` if the expression is not constant.
    ///
    /// # Errors
    /// If it cannot be evaluated.
    pub fn value(&self, expr: &Expr) -> Result<Option<ScalarValue>> {
        if !expr.column_refs().is_empty() {
            return Ok(None);
        }
        match self.simplifier.simplify(expr.clone())? {
            Expr::Literal(value, _) => Ok(Some(value)),
            _ => Ok(None),
        }
    }

    /// The time that a constant denotes, ns; `None` if the expression is not constant.
    ///
    /// # Errors
    /// If it cannot be evaluated, or is not a time.
    pub fn time(&self, expr: &Expr) -> Result<Option<i64>> {
        let Some(value) = self.value(expr)? else {
            return Ok(None);
        };
        let value = match &value {
            value if is_plain(&value.data_type()) => value.clone(),
            // The wall time of another zone is not a time in UTC.
            ScalarValue::TimestampNanosecond(_, Some(_)) => return Ok(None),
            value => value.cast_to(&DataType::Timestamp(TimeUnit::Nanosecond, None))?,
        };
        Ok(match value {
            ScalarValue::TimestampNanosecond(time, _) => time,
            _ => None,
        })
    }
}

/// Bounds of times, both inclusive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeBounds {
    /// The first, ns.
    pub first: Option<i64>,
    /// The last, ns.
    pub last: Option<i64>,
}

impl TimeBounds {
    fn from(&mut self, time: i64) {
        self.first = Some(self.first.map_or(time, |known| known.max(time)));
    }

    fn to(&mut self, time: i64) {
        self.last = Some(self.last.map_or(time, |known| known.min(time)));
    }

    /// Narrows the bounds by the conditions in `plan` on its column `time`.
    ///
    /// # Errors
    /// If a bound cannot be evaluated.
    pub(super) fn read(
        &mut self,
        plan: &LogicalPlan,
        time: &Column,
        constants: &ConstantEvaluator,
    ) -> Result<()> {
        match plan {
            LogicalPlan::Filter(filter) => {
                for condition in split_conjunction(&filter.predicate) {
                    self.condition(condition, time, constants)?;
                }
                self.read(&filter.input, time, constants)
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let Ok(at) = plan.schema().index_of_column(time) else {
                    return Ok(());
                };
                let inner = Column::from(alias.input.schema().qualified_field(at));
                self.read(&alias.input, &inner, constants)
            }
            LogicalPlan::Projection(projection) => {
                let Ok(at) = plan.schema().index_of_column(time) else {
                    return Ok(());
                };
                match column(&projection.expr[at]) {
                    Some(inner) => self.read(&projection.input, inner, constants),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn condition(
        &mut self,
        expr: &Expr,
        time: &Column,
        constants: &ConstantEvaluator,
    ) -> Result<()> {
        let is_time = |expr: &Expr| column(expr) == Some(time);
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (op, bound) = if is_time(left) {
                    (*op, right)
                } else if is_time(right) {
                    match op.swap() {
                        Some(op) => (op, left),
                        None => return Ok(()),
                    }
                } else {
                    return Ok(());
                };
                if let Some(bound) = constants.time(bound)? {
                    self.compare(op, bound);
                }
            }
            Expr::Between(Between {
                expr,
                negated: false,
                low,
                high,
            }) if is_time(expr) => {
                if let Some(low) = constants.time(low)? {
                    self.from(low);
                }
                if let Some(high) = constants.time(high)? {
                    self.to(high);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn compare(&mut self, op: Operator, bound: i64) {
        match op {
            Operator::Eq => {
                self.from(bound);
                self.to(bound);
            }
            Operator::Gt => self.from(bound.saturating_add(1)),
            Operator::GtEq => self.from(bound),
            Operator::Lt => self.to(bound.saturating_sub(1)),
            Operator::LtEq => self.to(bound),
            _ => {}
        }
    }
}

/// The column that an expression refers to, possibly under an alias or with another type of time.
pub fn column(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Alias(alias) => column(&alias.expr),
        Expr::Cast(Cast { expr, field }) if is_plain(field.data_type()) => column(expr),
        _ => None,
    }
}
