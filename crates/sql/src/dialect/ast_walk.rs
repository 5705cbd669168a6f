//! Walks over syntax trees, which all share one instance of the parser's traversal.
//!
//! The parser's `visit` is generic over the visitor and traverses about a hundred types of nodes,
//! so each instance for another visitor costs half a megabyte of code and seconds of compilation.
//! Here the traversal knows one visitor, which calls the real one through a pointer.

use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut,
    Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// Walks over the nodes below `node`, which the visitor only reads.
pub(crate) fn walk<V: Visitor>(node: &impl Visit, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut caller = ReadCaller {
        visitor,
        broken: None,
    };
    // The caller holds the value of a break.
    let _ = node.visit(&mut ReadPointer(&mut caller));
    caller
        .broken
        .map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// Walks over the nodes below `node`, which the visitor may change.
pub(crate) fn walk_mut<V: VisitorMut>(
    node: &mut impl VisitMut,
    visitor: &mut V,
) -> ControlFlow<V::Break> {
    let mut caller = ChangeCaller {
        visitor,
        broken: None,
    };
    // The caller holds the value of a break.
    let _ = node.visit(&mut ChangePointer(&mut caller));
    caller
        .broken
        .map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// Stores the value with which a visitor breaks, so that every visitor breaks with the same type.
fn keep<B>(flow: ControlFlow<B>, broken: &mut Option<B>) -> ControlFlow<()> {
    flow.map_break(|with| *broken = Some(with))
}

/// Defines the visitor that the traversal knows (`$pointer`), the trait to which it points
/// (`$calls`), and the adapter of the real visitor (`$caller`).
macro_rules! through_a_pointer {
    ($trait:ident, $calls:ident, $caller:ident, $pointer:ident, $($method:ident($node:ty)),+ $(,)?) => {
        trait $calls {
            $(fn $method(&mut self, node: $node) -> ControlFlow<()>;)+
        }

        struct $caller<'v, V: $trait> {
            visitor: &'v mut V,
            broken: Option<V::Break>,
        }

        impl<V: $trait> $calls for $caller<'_, V> {
            $(fn $method(&mut self, node: $node) -> ControlFlow<()> {
                keep(self.visitor.$method(node), &mut self.broken)
            })+
        }

        struct $pointer<'c>(&'c mut dyn $calls);

        impl $trait for $pointer<'_> {
            type Break = ();

            $(fn $method(&mut self, node: $node) -> ControlFlow<()> {
                self.0.$method(node)
            })+
        }
    };
}

through_a_pointer!(
    Visitor,
    ReadCalls,
    ReadCaller,
    ReadPointer,
    pre_visit_query(&Query),
    post_visit_query(&Query),
    pre_visit_select(&Select),
    post_visit_select(&Select),
    pre_visit_relation(&ObjectName),
    post_visit_relation(&ObjectName),
    pre_visit_table_factor(&TableFactor),
    post_visit_table_factor(&TableFactor),
    pre_visit_expr(&Expr),
    post_visit_expr(&Expr),
    pre_visit_statement(&Statement),
    post_visit_statement(&Statement),
    pre_visit_value(&ValueWithSpan),
    post_visit_value(&ValueWithSpan),
);

through_a_pointer!(
    VisitorMut,
    ChangeCalls,
    ChangeCaller,
    ChangePointer,
    pre_visit_query(&mut Query),
    post_visit_query(&mut Query),
    pre_visit_select(&mut Select),
    post_visit_select(&mut Select),
    pre_visit_relation(&mut ObjectName),
    post_visit_relation(&mut ObjectName),
    pre_visit_table_factor(&mut TableFactor),
    post_visit_table_factor(&mut TableFactor),
    pre_visit_expr(&mut Expr),
    post_visit_expr(&mut Expr),
    pre_visit_statement(&mut Statement),
    post_visit_statement(&mut Statement),
    pre_visit_value(&mut ValueWithSpan),
    post_visit_value(&mut ValueWithSpan),
);

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    struct Counting(usize);

    impl Visitor for Counting {
        type Break = String;

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
            self.0 += 1;
            match expr {
                Expr::Wildcard(_) | Expr::Exists { .. } => ControlFlow::Break(expr.to_string()),
                _ => ControlFlow::Continue(()),
            }
        }
    }

    struct Emptying;

    impl VisitorMut for Emptying {
        type Break = ();

        fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
            select.projection.clear();
            ControlFlow::Continue(())
        }
    }

    fn parsed(sql: &str) -> Vec<Statement> {
        Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap()
    }

    #[test]
    fn a_walk_meets_every_node_until_it_is_broken_off() {
        let mut counting = Counting(0);
        let statements = parsed("SELECT a + 1 FROM t WHERE b IN (SELECT c FROM u)");
        assert!(walk(&statements, &mut counting).is_continue());
        assert_eq!(counting.0, 6);
        let statements = parsed("SELECT 1 WHERE EXISTS (SELECT 2) AND x");
        let broken = walk(&statements, &mut Counting(0));
        assert_eq!(broken, ControlFlow::Break("EXISTS (SELECT 2)".to_owned()));
    }

    #[test]
    fn a_walk_may_change_what_it_meets() {
        let mut statements = parsed("SELECT a FROM (SELECT b FROM t) AS s");
        assert!(walk_mut(&mut statements, &mut Emptying).is_continue());
        assert_eq!(
            statements[0].to_string(),
            "SELECT FROM (SELECT FROM t) AS s"
        );
    }
}
