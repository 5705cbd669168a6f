//! Writes the regular expression `.*`, which every text matches, in a form that DataFusion does not
//! know. Its own form, `x IS NOT NULL`, is false for NULL, where the match is NULL.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, lit};
use datafusion::optimizer::AnalyzerRule;
use marigram_functions::replace_in_expressions;

/// See the module documentation. The rule runs after DataFusion's type coercion.
#[derive(Debug)]
pub(crate) struct AnyPattern;

impl AnalyzerRule for AnyPattern {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        replace_in_expressions(plan, matches_all, rewritten)
    }

    fn name(&self) -> &'static str {
        "any_pattern"
    }
}

/// Whether an expression matches a text against the constant `.*`.
fn matches_all(expr: &Expr) -> bool {
    use Operator::{RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    let Expr::BinaryExpr(binary) = expr else {
        return false;
    };
    let is_match = matches!(
        binary.op,
        RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch
    );
    let Expr::Literal(pattern, _) = binary.right.as_ref() else {
        return false;
    };
    is_match && pattern.try_as_str() == Some(Some(".*"))
}

fn rewritten(expr: Expr, _: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(mut binary) = expr else {
        return Transformed::no(expr);
    };
    if let Expr::Literal(pattern, _) = binary.right.as_ref()
        && let Ok(same) = ScalarValue::from("(?:.*)").cast_to(&pattern.data_type())
    {
        *binary.right = lit(same);
    }
    Transformed::yes(Expr::BinaryExpr(binary))
}
