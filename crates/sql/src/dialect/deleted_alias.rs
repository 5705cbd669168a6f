//! `DELETE FROM readings AS r WHERE r.v > 5`: the planner knows no alias here, so its references become
//! those of the table.

use crate::dialect::ast_walk::{walk, walk_mut};
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    Delete, Expr, FromTable, Ident, TableFactor, Visitor, VisitorMut,
};
use std::ops::ControlFlow;

/// Replaces the alias of the table by its name.
///
/// # Errors
/// If a subquery has a table with the name of either: a reference could then mean both.
pub(crate) fn unalias_deleted(delete: &mut Delete) -> SqlResult<()> {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &mut delete.from;
    let [table] = from.as_mut_slice() else {
        return Ok(());
    };
    let TableFactor::Table { name, alias, .. } = &mut table.relation else {
        return Ok(());
    };
    let named = name.0.last().and_then(|part| part.as_ident());
    let (Some(named), Some(alias)) = (named.cloned(), alias.take()) else {
        return Ok(());
    };
    let Some(condition) = &mut delete.selection else {
        return Ok(());
    };
    let mut shadows = ShadowingTables {
        names: [fold_case(&alias.name), fold_case(&named)],
    };
    if walk(condition, &mut shadows).is_break() {
        let message = format!(
            "a subquery of this DELETE has a table with the name '{}' or '{}' as well; give that one another \
             alias",
            shadows.names[0], shadows.names[1]
        );
        return Err(SqlError::named("42712", &alias.name.value, message));
    }
    let [alias, _] = shadows.names;
    let _ = walk_mut(condition, &mut DeletedReferences { alias, named });
    Ok(())
}

/// Finds tables of subqueries with one of these names.
struct ShadowingTables {
    names: [String; 2],
}

impl Visitor for ShadowingTables {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let (alias, name) = match factor {
            TableFactor::Table { name, alias, .. } => (alias, name.0.last()),
            TableFactor::Derived { alias, .. } | TableFactor::NestedJoin { alias, .. } => {
                if alias.is_none() {
                    return ControlFlow::Continue(());
                }
                (alias, None)
            }
            TableFactor::UNNEST { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::TableFunction { alias, .. } => (alias, None),
            _ => return ControlFlow::Break(()),
        };
        let own = match alias {
            Some(alias) => Some(&alias.name),
            None => name.and_then(|part| part.as_ident()),
        };
        match own {
            Some(own) if !self.names.contains(&fold_case(own)) => ControlFlow::Continue(()),
            // Without an alias, a function's rows have the function's name.
            _ => ControlFlow::Break(()),
        }
    }
}

/// Renames the qualifier of references to the table.
struct DeletedReferences {
    alias: String,
    named: Ident,
}

impl VisitorMut for DeletedReferences {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [table, _] = parts.as_mut_slice()
            && fold_case(table) == self.alias
        {
            table.clone_from(&self.named);
        }
        ControlFlow::Continue(())
    }
}
