//! Aliases for a statement that the planner refuses because two of its expressions have one name.
//!
//! The planner names an expression without its casts, and some calls after what they stand for, so
//! that `0.1 + 0.2` and `0.1::float8 + 0.2::float8` have the same name. Which do is known only to
//! the planner. A statement that it refuses for this is planned again, in which each such column has
//! a name of its own; results show PostgreSQL's names.

use super::figure;
use crate::dialect::ast_walk::walk;
use crate::dialect::rewriting::rewrite;
use crate::error::{SqlError, SqlResult};
use crate::name_forms::marked;
use datafusion::common::DataFusionError;
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{Expr, Ident, Select, SelectItem, Visitor, VisitorMut};
use std::ops::ControlFlow;

/// Whether the planner refused a statement because two expressions have one name.
pub(crate) fn names_collide(error: &DataFusionError) -> bool {
    matches!(
        error.find_root(),
        DataFusionError::Plan(message)
            if message.starts_with("Projections require unique expression names")
    )
}

/// Whether the names of a statement's columns may collide.
pub(crate) fn may_collide(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(statement) => walk(statement.as_ref(), &mut SeveralUnnamed).is_break(),
        Statement::Explain(explain) => may_collide(&explain.statement),
        Statement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => walk(query.as_ref(), &mut SeveralUnnamed).is_break(),
            CopyToSource::Relation(_) => false,
        },
        _ => false,
    }
}

/// Gives each column of a statement's queries that has none a name of its own.
///
/// # Errors
/// None; the visitor never breaks.
pub(crate) fn name_apart(statement: &mut Statement) -> SqlResult<()> {
    rewrite(statement, &mut NameApart)
}

/// Whether the planner makes a name for an item.
fn is_unnamed(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expr) => {
            !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        }
        _ => false,
    }
}

struct SeveralUnnamed;

impl Visitor for SeveralUnnamed {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if select.projection.len() > 1 && select.projection.iter().any(is_unnamed) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

struct NameApart;

impl VisitorMut for NameApart {
    type Break = SqlError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        for (at, item) in select.projection.iter_mut().enumerate() {
            if !is_unnamed(item) {
                continue;
            }
            if let SelectItem::UnnamedExpr(expr) = item {
                let name = marked(&figure::name_of(expr), at);
                let expr = std::mem::replace(expr, Expr::Identifier(Ident::new("")));
                let alias = Ident::with_quote('"', name);
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
        }
        ControlFlow::Continue(())
    }
}
