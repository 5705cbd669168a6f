//! Turns `tag LIKE 'text'` without a wildcard into a comparison with the tag.
//!
//! DataFusion does so itself, with a text constant, although all other comparisons with a tag have
//! a dictionary constant. For `tag = 'a' AND tag LIKE 'a'` it then concludes that the tag cannot
//! equal two different constants. So this rule runs first, and uses the same kind of constant as
//! the others.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Like, LogicalPlan, Operator, lit};
use datafusion::optimizer::AnalyzerRule;
use marigram_functions::replace_in_expressions;

/// See the module documentation. The rule runs after DataFusion's type coercion.
#[derive(Debug)]
pub(crate) struct TagPatterns;

impl AnalyzerRule for TagPatterns {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        replace_in_expressions(plan, is_plain, compared)
    }

    fn name(&self) -> &'static str {
        "tag_patterns"
    }
}

/// The text of a pattern that has neither a wildcard nor an escape.
fn plain_text(like: &Like) -> Option<&str> {
    let Expr::Literal(pattern, _) = like.pattern.as_ref() else {
        return None;
    };
    let text = pattern.try_as_str().flatten()?;
    let is_plain = !like.case_insensitive && !text.contains(['%', '_', '\\']);
    (is_plain && like.escape_char.is_none()).then_some(text)
}

fn is_plain(expr: &Expr) -> bool {
    matches!(expr, Expr::Like(like) if plain_text(like).is_some())
}

fn compared(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::Like(like) = &expr else {
        return Transformed::no(expr);
    };
    let (Some(text), Ok(DataType::Dictionary(key, value))) =
        (plain_text(like), like.expr.get_type(schema))
    else {
        return Transformed::no(expr);
    };
    if *value != DataType::Utf8 {
        return Transformed::no(expr);
    }
    let op = if like.negated {
        Operator::NotEq
    } else {
        Operator::Eq
    };
    let text = ScalarValue::Dictionary(key, Box::new(ScalarValue::from(text)));
    let (left, right) = (like.expr.clone(), Box::new(lit(text)));
    Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
}
