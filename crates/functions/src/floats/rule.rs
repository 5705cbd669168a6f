//! The logical rule that makes plans compare, sort, group and join floats in PostgreSQL's order.

use super::compare::{compares, comparison};
use super::key::{canonical_scalar, is_float, is_key, key};
use crate::interrupt;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{
    AggregateFunction, Between, Case, InList, Sort, WindowFunction,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, GroupingSet, LogicalPlan, Operator, ScalarUDF, TryCast,
    lit,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};

/// Aggregates that sort floats, or look for equal ones, by their bits.
const BY_BITS: [&str; 5] = [
    "approx_distinct",
    "approx_median",
    "approx_percentile_cont",
    "median",
    "percentile_cont",
];
/// Functions that return one of their arguments.
const GIVING_ONE: [&str; 6] = ["coalesce", "greatest", "ifnull", "least", "nullif", "nvl"];
/// Functions that compare their arguments.
const COMPARING: [&str; 3] = ["greatest", "least", "nullif"];

/// See the documentation of `crate::floats`.
#[derive(Debug)]
pub struct FloatOrderRule;

impl OptimizerRule for FloatOrderRule {
    fn name(&self) -> &'static str {
        "float_order"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if !matches!(
            plan,
            LogicalPlan::Aggregate(_)
                | LogicalPlan::Filter(_)
                | LogicalPlan::Join(_)
                | LogicalPlan::Projection(_)
                | LogicalPlan::Sort(_)
                | LogicalPlan::Values(_)
                | LogicalPlan::Window(_)
        ) {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        // Whether the node itself uses the order or equality of its expressions.
        let by_key = matches!(
            plan,
            LogicalPlan::Aggregate(_) | LogicalPlan::Join(_) | LogicalPlan::Sort(_)
        );
        let named = !matches!(plan, LogicalPlan::Sort(_));
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let mut made = expr.transform_up(|node| compared(node, &schema))?;
            if by_key {
                made = made.transform_data(|expr| keyed(expr, &schema))?;
            }
            Ok(if named && made.transformed {
                made.update_data(|expr| name.restore(expr))
            } else {
                made
            })
        })
    }
}

/// Does the same for comparisons of constants, which are folded before [`FloatOrderRule`] would see
/// them. In other comparisons, it changes the constants so that their bits have the right order.
impl AnalyzerRule for FloatOrderRule {
    fn name(&self) -> &'static str {
        "float_order_of_constants"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let empty = DFSchema::empty();
        let analyzed = plan.transform_up_with_subqueries(|plan| {
            interrupt::check()?;
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let made = expr.transform_up(|node| {
                    let may_compare = matches!(
                        node,
                        Expr::BinaryExpr(_)
                            | Expr::Between(_)
                            | Expr::Case(_)
                            | Expr::InList(_)
                            | Expr::ScalarFunction(_)
                    );
                    if !may_compare {
                        Ok(Transformed::no(node))
                    } else if node.any_column_refs() {
                        tamed(node)
                    } else {
                        compared(node, &empty)
                    }
                })?;
                Ok(if made.transformed {
                    made.update_data(|expr| name.restore(expr))
                } else {
                    made
                })
            })
        })?;
        Ok(analyzed.data)
    }
}

/// A comparison in which no constant is −0.0 or a NaN with a sign, and no operand can evaluate to
/// such a constant, as in `coalesce(-0.0, x)`.
fn tamed(comparison: Expr) -> Result<Transformed<Expr>> {
    let operand = |expr: Expr| expr.transform_down(|part| Ok(tamed_operand(part)));
    match comparison {
        Expr::BinaryExpr(ref binary) if compares(binary.op) => comparison.map_children(operand),
        Expr::Between(_) | Expr::InList(_) => comparison.map_children(operand),
        Expr::Case(ref case) if case.expr.is_some() => {
            let Expr::Case(mut case) = comparison else {
                return Ok(Transformed::no(comparison));
            };
            case.expr = case
                .expr
                .map(|expr| operand(*expr).map(|made| Box::new(made.data)))
                .transpose()?;
            for (when, _) in &mut case.when_then_expr {
                **when = operand(std::mem::take(when))?.data;
            }
            Ok(Transformed::yes(Expr::Case(case)))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Makes the constants canonical that can be the value of an operand; `'-0.0'::DOUBLE` is still a
/// cast of a text.
fn tamed_operand(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::Literal(value, metadata) if is_float(&value.data_type()) => {
            Transformed::yes(Expr::Literal(canonical_scalar(value), metadata))
        }
        Expr::Cast(Cast {
            ref expr,
            ref field,
        }) if is_float(field.data_type()) => {
            let number = match expr.as_ref() {
                Expr::Literal(value, _) => value.cast_to(field.data_type()).ok(),
                _ => None,
            };
            match number {
                Some(number) => Transformed::yes(lit(canonical_scalar(number))),
                None => Transformed::no(Expr::Cast(Cast {
                    expr: expr.clone(),
                    field: field.clone(),
                })),
            }
        }
        Expr::Alias(_) | Expr::Case(_) => Transformed::no(expr),
        Expr::ScalarFunction(ref call) if GIVING_ONE.contains(&call.func.name()) => {
            Transformed::no(expr)
        }
        other => Transformed::new(other, false, TreeNodeRecursion::Jump),
    }
}

fn is_of_floats(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|kind| is_float(&kind))
}

/// Wraps an expression by which a node groups, sorts or joins in a key.
fn keyed(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let each = |exprs: Vec<Expr>| -> Result<Vec<Expr>> {
        let keyed = exprs.into_iter().map(|expr| Ok(keyed(expr, schema)?.data));
        keyed.collect()
    };
    Ok(match expr {
        Expr::AggregateFunction(_) => Transformed::no(expr),
        Expr::Alias(alias) if matches!(*alias.expr, Expr::AggregateFunction(_)) => {
            Transformed::no(Expr::Alias(alias))
        }
        Expr::GroupingSet(sets) => {
            let is_one = |expr: &&Expr| is_of_floats(expr, schema) && !is_key(expr);
            if !sets.distinct_expr().iter().any(is_one) {
                return Ok(Transformed::no(Expr::GroupingSet(sets)));
            }
            Transformed::yes(Expr::GroupingSet(match sets {
                GroupingSet::Rollup(exprs) => GroupingSet::Rollup(each(exprs)?),
                GroupingSet::Cube(exprs) => GroupingSet::Cube(each(exprs)?),
                GroupingSet::GroupingSets(sets) => {
                    GroupingSet::GroupingSets(sets.into_iter().map(each).collect::<Result<_>>()?)
                }
            }))
        }
        other if is_key(&other) || !is_of_floats(&other, schema) => Transformed::no(other),
        // An expression to group by keeps its name, within grouping sets, too.
        other => {
            let (relation, name) = match &other {
                Expr::Alias(alias) => (alias.relation.clone(), alias.name.clone()),
                other => other.qualified_name(),
            };
            Transformed::yes(key(other.unalias()).alias_qualified(relation, name))
        }
    })
}

/// Whether values are neither NaN nor −0.0, so that the order of their bits is right.
fn is_tame(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Float64(value), _) => {
            value.is_none_or(|value| !value.is_nan() && value.to_bits() != (-0.0_f64).to_bits())
        }
        Expr::Literal(ScalarValue::Float32(value), _) => {
            value.is_none_or(|value| !value.is_nan() && value.to_bits() != (-0.0_f32).to_bits())
        }
        Expr::Alias(alias) => is_tame(&alias.expr, schema),
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => {
            expr.get_type(schema).is_ok_and(|kind| kind.is_integer())
        }
        _ => false,
    }
}

/// Whether a call is a NULLIF of floats whose first argument may be repeated in the plan: it is
/// returned as it is, with the sign of a zero.
fn is_nullif(function: &ScalarUDF, args: &[Expr], schema: &DFSchema) -> Result<bool> {
    let [value, other] = args else {
        return Ok(false);
    };
    Ok(function.name() == "nullif"
        && is_of_floats(value, schema)
        && !value.is_volatile()
        && value.get_type(schema)? == other.get_type(schema)?)
}

/// Replaces a comparison of floats with one of ours.
fn compared(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let floats = |expr: &Expr| is_of_floats(expr, schema);
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if compares(op)
                && floats(&left)
                && floats(&right)
                && left.get_type(schema)? == right.get_type(schema)?
                && !(is_tame(&left, schema) && is_tame(&right, schema)) =>
        {
            match comparison(*left.clone(), op, *right.clone()) {
                Some(made) => Transformed::yes(made),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            }
        }
        Expr::Between(Between {
            expr,
            negated,
            low,
            high,
        }) if floats(&expr) && floats(&low) && floats(&high) => {
            let bound = |op, bound: Expr| comparison(Expr::clone(&expr), op, bound);
            let (low_op, high_op) = if negated {
                (Operator::Lt, Operator::Gt)
            } else {
                (Operator::GtEq, Operator::LtEq)
            };
            match (bound(low_op, *low.clone()), bound(high_op, *high.clone())) {
                (Some(low), Some(high)) if negated => Transformed::yes(low.or(high)),
                (Some(low), Some(high)) => Transformed::yes(low.and(high)),
                _ => Transformed::no(Expr::Between(Between {
                    expr,
                    negated,
                    low,
                    high,
                })),
            }
        }
        Expr::InList(InList {
            expr,
            list,
            negated,
        }) if floats(&expr) && !is_key(&expr) => {
            let list = list.into_iter().map(key).collect();
            Transformed::yes(Expr::InList(InList {
                expr: Box::new(key(*expr)),
                list,
                negated,
            }))
        }
        Expr::Case(Case {
            expr: Some(expr),
            when_then_expr,
            else_expr,
        }) if floats(&expr) && !is_key(&expr) => {
            let when = when_then_expr.into_iter();
            Transformed::yes(Expr::Case(Case {
                expr: Some(Box::new(key(*expr))),
                when_then_expr: when
                    .map(|(when, then)| (Box::new(key(*when)), then))
                    .collect(),
                else_expr,
            }))
        }
        Expr::ScalarFunction(call) if is_nullif(&call.func, &call.args, schema)? => {
            let [value, other] = &call.args[..] else {
                return Ok(Transformed::no(Expr::ScalarFunction(call)));
            };
            let Some(is_equal) = comparison(value.clone(), Operator::Eq, other.clone()) else {
                return Ok(Transformed::no(Expr::ScalarFunction(call)));
            };
            let null = lit(ScalarValue::try_from(&value.get_type(schema)?)?);
            let branch = (Box::new(is_equal), Box::new(null));
            let value = Some(Box::new(value.clone()));
            Transformed::yes(Expr::Case(Case::new(None, vec![branch], value)))
        }
        Expr::ScalarFunction(mut call)
            if COMPARING.contains(&call.func.name())
                && call.args.iter().any(|arg| floats(arg) && !is_key(arg)) =>
        {
            let keyed = |arg: Expr| if floats(&arg) { key(arg) } else { arg };
            call.args = call.args.into_iter().map(keyed).collect();
            Transformed::yes(Expr::ScalarFunction(call))
        }
        Expr::AggregateFunction(call) => aggregate(call, schema),
        Expr::WindowFunction(call) => window(*call, schema),
        other => Transformed::no(other),
    })
}

/// Wraps floats in keys and returns whether there were any.
fn put_keys<'a>(exprs: impl Iterator<Item = &'a mut Expr>, schema: &DFSchema) -> bool {
    let mut changed = false;
    for expr in exprs {
        // A constant orders nothing, and is canonical already.
        let is_constant = matches!(expr, Expr::Literal(..));
        if !is_constant && !is_key(expr) && is_of_floats(expr, schema) {
            *expr = key(std::mem::take(expr));
            changed = true;
        }
    }
    changed
}

fn sort_expressions(orders: &mut [Sort]) -> impl Iterator<Item = &mut Expr> {
    orders.iter_mut().map(|order| &mut order.expr)
}

fn aggregate(mut call: AggregateFunction, schema: &DFSchema) -> Transformed<Expr> {
    let mut changed = put_keys(sort_expressions(&mut call.params.order_by), schema);
    if call.params.distinct || BY_BITS.contains(&call.func.name()) {
        // The value of a percentile is its first argument.
        changed |= put_keys(call.params.args.iter_mut().take(1), schema);
    }
    let call = Expr::AggregateFunction(call);
    if changed {
        Transformed::yes(call)
    } else {
        Transformed::no(call)
    }
}

fn window(mut call: WindowFunction, schema: &DFSchema) -> Transformed<Expr> {
    let params = &mut call.params;
    let mut changed = put_keys(sort_expressions(&mut params.order_by), schema);
    changed |= put_keys(params.partition_by.iter_mut(), schema);
    if params.distinct {
        changed |= put_keys(params.args.iter_mut().take(1), schema);
    }
    let call = Expr::WindowFunction(Box::new(call));
    if changed {
        Transformed::yes(call)
    } else {
        Transformed::no(call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::tree_node::{TreeNodeRecursion, TreeNodeVisitor};
    use datafusion::logical_expr::{LogicalPlanBuilder, col, lit, table_scan};
    use datafusion::optimizer::OptimizerContext;

    /// Counts nodes that the rule would change again.
    struct RewriteCounter(usize);

    impl<'n> TreeNodeVisitor<'n> for RewriteCounter {
        type Node = LogicalPlan;

        fn f_up(&mut self, plan: &'n LogicalPlan) -> Result<TreeNodeRecursion> {
            let made = FloatOrderRule.rewrite(plan.clone(), &OptimizerContext::new())?;
            self.0 += usize::from(made.transformed);
            Ok(TreeNodeRecursion::Continue)
        }
    }

    #[test]
    fn names_stay_and_nothing_is_done_twice() {
        let schema = Schema::new(vec![
            Field::new("v", DataType::Float64, true),
            Field::new("n", DataType::Int64, true),
        ]);
        let plan = table_scan(Some("t"), &schema, None)
            .and_then(|scan| scan.filter(col("v").gt(lit(1.5)).and(col("n").gt(lit(1_i64)))))
            .and_then(|plan| plan.aggregate(vec![col("v")], Vec::<Expr>::new()))
            .and_then(|plan| plan.sort(vec![col("v").sort(true, false)]))
            .and_then(LogicalPlanBuilder::build)
            .unwrap();
        let before = plan.schema().clone();
        let made = plan
            .transform_up(|node| FloatOrderRule.rewrite(node, &OptimizerContext::new()))
            .unwrap();
        assert!(made.transformed);
        assert_eq!(*made.data.schema(), before);
        let mut again = RewriteCounter(0);
        made.data.visit(&mut again).unwrap();
        assert_eq!(again.0, 0, "{}", made.data.display_indent());
        let text = made.data.display_indent().to_string();
        assert!(text.contains("float_gt(t.v, Float64(1.5))"), "{text}");
        assert!(text.contains("t.n > Int64(1)"), "{text}");
    }
}
