//! Turns long chains of OR and UNION into balanced trees.
//!
//! `a OR b OR c OR …` is parsed into a tree that is as deep as the chain is long. OR, UNION and
//! UNION ALL are associative, so that a tree of logarithmic depth has the same meaning. Generated
//! statements have chains of thousands, and recursive code that walks the tree would run out of
//! stack.
#![expect(
    clippy::result_large_err,
    reason = "the error is the expression itself, returned unchanged"
)]

use crate::dialect::nesting::BALANCE_MIN;
use crate::dialect::rewriting::rewrite;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, SetExpr, SetOperator, SetQuantifier, Value, VisitorMut,
};
use std::mem;
use std::ops::ControlFlow;

/// Balances the chains of a statement.
///
/// # Errors
/// None; the visitor never breaks.
pub(crate) fn balance(statement: &mut Statement) -> crate::error::SqlResult<()> {
    rewrite(statement, &mut TreeBalancer)
}

struct TreeBalancer;

impl VisitorMut for TreeBalancer {
    type Break = crate::error::SqlError;

    /// Runs before the operands are visited, so that the visit descends into the balanced tree.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if is_long(expr, left_of_or) {
            let nothing = Expr::Value(Value::Null.into());
            let operands = operands(mem::replace(expr, nothing), split_or);
            *expr = tree(operands, |left, right| Expr::BinaryOp {
                left: Box::new(left),
                op: BinaryOperator::Or,
                right: Box::new(right),
            });
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        balance_unions(&mut query.body);
        ControlFlow::Continue(())
    }
}

/// Also balances chains of UNION below other set operations, and vice versa.
fn balance_unions(body: &mut SetExpr) {
    let mut todo = vec![body];
    while let Some(body) = todo.pop() {
        if let Some(all) = union(body)
            && is_long(body, |body| left_of_union(body, all))
        {
            let nothing = SetExpr::Values(datafusion::sql::sqlparser::ast::Values {
                explicit_row: false,
                value_keyword: false,
                rows: Vec::new(),
            });
            let row = mem::replace(body, nothing);
            let operands = operands(row, |body| split_union(body, all));
            *body = tree(operands, |left, right| SetExpr::SetOperation {
                op: SetOperator::Union,
                set_quantifier: if all {
                    SetQuantifier::All
                } else {
                    SetQuantifier::None
                },
                left: Box::new(left),
                right: Box::new(right),
            });
        }
        if let SetExpr::SetOperation { left, right, .. } = body {
            todo.push(left);
            todo.push(right);
        }
    }
}

/// Whether a chain is long enough to be worth balancing, and leans to the left: a balanced tree
/// does not lean, so that nothing is balanced twice.
fn is_long<T>(mut tree: &T, left: impl Fn(&T) -> Option<&T>) -> bool {
    for _ in 0..BALANCE_MIN {
        match left(tree) {
            Some(next) => tree = next,
            None => return false,
        }
    }
    true
}

fn left_of_or(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Or,
            ..
        } => Some(left),
        _ => None,
    }
}

fn split_or(expr: Expr) -> Result<(Expr, Expr), Expr> {
    match expr {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Or,
            right,
        } => Ok((*left, *right)),
        other => Err(other),
    }
}

/// Whether this is a UNION, and if so, whether of all rows.
fn union(body: &SetExpr) -> Option<bool> {
    match body {
        SetExpr::SetOperation {
            op: SetOperator::Union,
            set_quantifier,
            ..
        } => match set_quantifier {
            SetQuantifier::All => Some(true),
            SetQuantifier::None | SetQuantifier::Distinct => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn left_of_union(body: &SetExpr, all: bool) -> Option<&SetExpr> {
    match body {
        SetExpr::SetOperation { left, .. } if union(body) == Some(all) => Some(left),
        _ => None,
    }
}

fn split_union(body: SetExpr, all: bool) -> Result<(SetExpr, SetExpr), SetExpr> {
    if union(&body) != Some(all) {
        return Err(body);
    }
    match body {
        SetExpr::SetOperation { left, right, .. } => Ok((*left, *right)),
        other => Err(other),
    }
}

/// The operands of a chain, in order.
fn operands<T>(row: T, split: impl Fn(T) -> Result<(T, T), T>) -> Vec<T> {
    let (mut operands, mut todo) = (Vec::new(), vec![row]);
    while let Some(next) = todo.pop() {
        match split(next) {
            Ok((left, right)) => todo.extend([right, left]),
            Err(operand) => operands.push(operand),
        }
    }
    operands
}

/// The balanced tree of the operands; there is at least one.
fn tree<T>(mut operands: Vec<T>, join: impl Fn(T, T) -> T) -> T {
    while operands.len() > 1 {
        let mut pairs = Vec::with_capacity(operands.len().div_ceil(2));
        let mut rest = operands.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        operands = pairs;
    }
    operands.pop().expect("a row has operands")
}

#[cfg(test)]
mod tests {
    use crate::dialect::parse::parse;
    use crate::dialect::statement::Command;

    /// The printed statement, and its depth, counted in parentheses of its debug form.
    fn printed(sql: &str) -> (String, usize) {
        let Command::Plan(statement, _) = parse(sql).unwrap() else {
            panic!("a plan");
        };
        let (mut depth, mut deepest) = (0_usize, 0);
        for ch in format!("{:?}", *statement).chars() {
            match ch {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => depth -= 1,
                _ => {}
            }
            deepest = deepest.max(depth);
        }
        (statement.to_string(), deepest)
    }

    #[test]
    fn rows_keep_their_order_and_lose_their_depth() {
        let ors: Vec<String> = (0..5000).map(|n| format!("a = {n}")).collect();
        let sql = format!("SELECT * FROM t WHERE {}", ors.join(" OR "));
        let (text, depth) = printed(&sql);
        assert_eq!(text, sql);
        assert!(depth < 100, "{depth}");
        for union in [" UNION ALL ", " UNION "] {
            let selects: Vec<String> = (0..500).map(|n| format!("SELECT {n}")).collect();
            let sql = selects.join(union);
            let (text, depth) = printed(&sql);
            assert_eq!(text, sql);
            assert!(depth < 120, "{depth}");
        }
    }

    #[test]
    fn rows_of_two_kinds_stay_apart() {
        let sql = format!(
            "SELECT 0{}{}",
            " UNION ALL SELECT 1".repeat(20),
            " UNION SELECT 2 UNION ALL SELECT 3".repeat(20)
        );
        assert_eq!(printed(&sql).0, sql);
    }
}
