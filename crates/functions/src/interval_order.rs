//! The order of intervals: by their lengths, with a day of 24 hours and a month of 30 days.
//!
//! Arrow orders intervals part by part, months first, so that 31 days would be less than a month, and
//! 24 hours are no day. Comparisons by operators are planned in [`crate::interval_arithmetic`]; this rule
//! does the same for all others: BETWEEN, IN, CASE, `IS DISTINCT FROM`, NULLIF, `greatest`, `least`, and the
//! orders and partitions of aggregates and windows. The rule of `interval_keys` does it for ORDER BY, GROUP BY,
//! DISTINCT and joins. `min` and `max` have an accumulator of their own.

use crate::interval_arithmetic::{becomes_length, is_interval, length, length_ns};
use crate::interval_keys::with_keys;
use crate::plan_expressions::replace_in_expressions;
use crate::value_casts::as_intervals;
use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Case, InList, InSubquery, ScalarFunction};
use datafusion::logical_expr::{
    Accumulator, Between, BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan,
    LogicalPlanBuilder, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Subquery, Volatility, lit,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::{Arc, LazyLock};

/// See the module documentation. The rule runs after DataFusion's type coercion.
#[derive(Debug)]
pub struct IntervalOrder;

impl AnalyzerRule for IntervalOrder {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = replace_in_expressions(plan, may_compare, |expr, schema| {
            let kept = expr.clone();
            by_length(expr, schema).unwrap_or(Transformed::no(kept))
        })?;
        Ok(plan.transform_up_with_subqueries(with_keys)?.data)
    }

    fn name(&self) -> &'static str {
        "interval_order"
    }
}

/// `left op right`, by the lengths of both if they are intervals.
pub fn comparison(left: Expr, op: Operator, right: Expr, kind: &DataType) -> Expr {
    let (left, right) = match kind {
        DataType::Interval(_) => (length(left), length(right)),
        _ => (left, right),
    };
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
}

/// Functions that compare their arguments.
const COMPARING: [&str; 3] = ["nullif", "greatest", "least"];

fn may_compare(expr: &Expr) -> bool {
    match expr {
        Expr::Between(_) | Expr::InList(_) | Expr::InSubquery(_) | Expr::WindowFunction(_) => true,
        Expr::BinaryExpr(binary) => matches!(
            binary.op,
            Operator::IsDistinctFrom | Operator::IsNotDistinctFrom
        ),
        Expr::Case(case) => case.expr.is_some(),
        Expr::ScalarFunction(call) => COMPARING.contains(&call.func.name()),
        Expr::AggregateFunction(call) => call.params.distinct || !call.params.order_by.is_empty(),
        _ => false,
    }
}

fn by_length(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
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
        Expr::InSubquery(asked) if is_interval(&asked.expr, schema) => {
            Transformed::yes(Expr::InSubquery(InSubquery {
                expr: Box::new(length(*asked.expr)),
                subquery: lengths_of(asked.subquery)?,
                negated: asked.negated,
            }))
        }
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::IsDistinctFrom | Operator::IsNotDistinctFrom),
            right,
        }) if is_interval(&left, schema) || is_interval(&right, schema) => {
            let sides = (Box::new(length(*left)), Box::new(length(*right)));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(sides.0, op, sides.1)))
        }
        Expr::Case(Case {
            expr: Some(value),
            when_then_expr,
            else_expr,
        }) if is_interval(&value, schema) => {
            let branches = when_then_expr.into_iter();
            let branches = branches.map(|(when, then)| (Box::new(length(*when)), then));
            Transformed::yes(Expr::Case(Case {
                expr: Some(Box::new(length(*value))),
                when_then_expr: branches.collect(),
                else_expr,
            }))
        }
        Expr::ScalarFunction(call) => one_of_arguments(call, schema)?,
        Expr::AggregateFunction(mut call) => {
            let mut is_changed = false;
            for by in &mut call.params.order_by {
                is_changed |= becomes_length(&mut by.expr, schema);
            }
            if call.params.distinct && call.func.name() == "count" {
                for argument in &mut call.params.args {
                    is_changed |= becomes_length(argument, schema);
                }
            }
            Transformed::new_transformed(Expr::AggregateFunction(call), is_changed)
        }
        Expr::WindowFunction(mut call) => {
            let mut is_changed = false;
            for by in &mut call.params.order_by {
                is_changed |= becomes_length(&mut by.expr, schema);
            }
            for key in &mut call.params.partition_by {
                is_changed |= becomes_length(key, schema);
            }
            Transformed::new_transformed(Expr::WindowFunction(call), is_changed)
        }
        other => Transformed::no(other),
    })
}

/// `nullif`, `greatest` and `least`.
fn one_of_arguments(call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if !may_compare_arguments(&call, schema) {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    }
    let function = match call.func.name() {
        "greatest" => &*GREATEST,
        "least" => &*LEAST,
        _ => {
            let [value, other] = call.args.as_slice() else {
                return Ok(Transformed::no(Expr::ScalarFunction(call)));
            };
            let equal = length(value.clone()).eq(length(other.clone()));
            let null = lit(ScalarValue::try_from(&value.get_type(schema)?)?);
            let branch = (Box::new(equal), Box::new(null));
            let otherwise = Some(Box::new(value.clone()));
            let case = Case::new(None, vec![branch], otherwise);
            return Ok(Transformed::yes(Expr::Case(case)));
        }
    };
    Ok(Transformed::yes(function.call(call.args)))
}

fn may_compare_arguments(call: &ScalarFunction, schema: &DFSchema) -> bool {
    COMPARING.contains(&call.func.name())
        && call
            .args
            .iter()
            .any(|argument| is_interval(argument, schema))
}

/// The subquery with the lengths of its intervals.
fn lengths_of(subquery: Subquery) -> Result<Subquery> {
    let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
    let column = Expr::Column(Column::from((qualifier, field)));
    let named = length(column).alias_qualified(qualifier.cloned(), field.name());
    let rows = LogicalPlanBuilder::new_from_arc(Arc::clone(&subquery.subquery));
    Ok(Subquery {
        subquery: Arc::new(rows.project([named])?.build()?),
        ..subquery
    })
}

static GREATEST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| extreme("greatest_interval", false));
static LEAST: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| extreme("least_interval", true));

fn extreme(name: &'static str, is_least: bool) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(ExtremeArgument {
        name,
        is_least,
        signature: Signature::variadic_any(Volatility::Immutable),
    }))
}

/// The longest or the shortest of its arguments; NULLs do not count.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ExtremeArgument {
    name: &'static str,
    is_least: bool,
    signature: Signature,
}

impl ScalarUDFImpl for ExtremeArgument {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = args.args.iter().all(is_one);
        let rows = if all_one { 1 } else { args.number_rows };
        let mut best: Vec<Option<IntervalMonthDayNano>> = vec![None; rows];
        for argument in args.args {
            let values = as_intervals(&argument.into_array(rows)?)?;
            let values = values.as_primitive::<IntervalMonthDayNanoType>();
            for (best, value) in best.iter_mut().zip(values) {
                let Some(value) = value else { continue };
                if best.is_none_or(|best| precedes(value, best, self.is_least)) {
                    *best = Some(value);
                }
            }
        }
        let best = IntervalMonthDayNanoArray::from(best);
        Ok(if all_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&best, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(best))
        })
    }
}

/// Whether an interval is shorter than another, or else longer.
fn precedes(new: IntervalMonthDayNano, old: IntervalMonthDayNano, is_min: bool) -> bool {
    let (new, old) = (length_ns(new), length_ns(old));
    if is_min { new < old } else { new > old }
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
            // Of equal lengths, PostgreSQL takes the last.
            if self
                .best
                .is_none_or(|best| !precedes(best, value, self.is_min))
            {
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
