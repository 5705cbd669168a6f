//! Bounds the functions in a plan that do not come from the registry.
//!
//! DataFusion's planner itself translates operators (`[…]`, `||` of arrays, `SUBSTRING`) into calls
//! of its own functions; and `||` of texts is an operator, which no function bounds.

use super::concatenation::Concatenation;
use super::{bound_calls, bounded};
use crate::interrupt;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// See the module documentation. The rule runs when types are final.
#[derive(Debug)]
pub struct BoundFunctions {
    pool: Arc<dyn MemoryPool>,
    concatenation: Arc<ScalarUDF>,
}

impl BoundFunctions {
    /// Creates the rule, which takes its bounds from a memory pool.
    pub fn new(pool: Arc<dyn MemoryPool>) -> Self {
        let concatenation = bounded(&Arc::new(ScalarUDF::from(Concatenation::new())), &pool);
        Self {
            pool,
            concatenation,
        }
    }

    fn bound(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let bounded = bound_calls(expr, &self.pool)?;
        bounded.transform_data(|expr| {
            expr.transform_down(|expr| {
                if !is_concatenation(&expr) {
                    return Ok(Transformed::no(expr));
                }
                let takes = |operand: &&Expr| {
                    let text = operand.get_type(schema);
                    text.is_ok_and(|text| Concatenation::takes(&text))
                };
                let texts = operands(&expr);
                let first = texts.first().map(|text| text.get_type(schema));
                let same = |text: &&Expr| {
                    matches!((&first, text.get_type(schema)), (Some(Ok(first)), Ok(text)) if *first == text)
                };
                if !texts.iter().all(|text| takes(text) && same(text)) {
                    return Ok(Transformed::no(expr));
                }
                let texts = texts.into_iter().cloned().collect();
                Ok(Transformed::yes(self.concatenation.call(texts)))
            })
        })
    }
}

fn is_concatenation(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(binary) if binary.op == Operator::StringConcat)
}

/// The operands of a chain of `||`, in order.
fn operands(row: &Expr) -> Vec<&Expr> {
    let (mut operands, mut todo) = (Vec::new(), vec![row]);
    while let Some(next) = todo.pop() {
        match next {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::StringConcat,
                right,
            }) => todo.extend([right.as_ref(), left.as_ref()]),
            operand => operands.push(operand),
        }
    }
    operands
}

impl AnalyzerRule for BoundFunctions {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let bounded = plan.transform_down_with_subqueries(|node| {
            interrupt::check()?;
            let mut schema = merge_schema(&node.inputs());
            schema.merge(node.schema());
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                if !expr.exists(|part| Ok(is_concatenation(part)))? {
                    return self.bound(expr, &schema);
                }
                // An aggregate is named after the displayed form of its condition.
                let name = names.save(&expr);
                let bounded = self.bound(expr, &schema)?;
                Ok(bounded.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(bounded.data)
    }

    fn name(&self) -> &'static str {
        "bound_functions"
    }
}
