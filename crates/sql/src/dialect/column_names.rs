//! Names of unnamed columns, as in PostgreSQL: an aggregate's column is called `count`, and not
//! `count(*)`.
//!
//! The columns of a result are renamed by their positions when it leaves ([`OutputNames`]), so the
//! names do not change the plan. The columns of a subquery get aliases, by which the outer query
//! finds them (`aliases`).
//!
//! DataFusion's planner requires unique names in a SELECT; PostgreSQL does not. Columns with the
//! same name get a mark after it, which no result shows. A marked column cannot be named from
//! outside; in PostgreSQL, such a name is ambiguous.

mod aliases;
mod distinct;
mod figure;
mod output;

pub(crate) use aliases::{alias_outermost, name_columns};
pub(crate) use distinct::{may_collide, name_apart, names_collide};
pub(crate) use output::{Names, OutputNames, named_batch, named_schema};

use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{Query, Select, SelectItem, SetExpr};

/// The SELECT that names the columns of a query: the first operand of its set operations.
fn naming_select(query: &Query) -> Option<&Select> {
    let mut body = query.body.as_ref();
    loop {
        body = match body {
            SetExpr::Select(select) => return Some(select),
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(query) => &query.body,
            _ => return None,
        };
    }
}

/// The name of a selected column; `None` for a `*`.
pub(crate) fn name_of_item(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => Some(figure::name_of(expr)),
        SelectItem::ExprWithAlias { alias, .. } => Some(fold_case(alias)),
        _ => None,
    }
}
