//! Names of columns that nothing names, as PostgreSQL gives them: an aggregate's column is `count`,
//! and not `count(*)`.
//!
//! Where an answer leaves, its columns are renamed by their places ([`OutputNames`]): a plan is the
//! same with these names as without. Where a query stands in another one, its columns get aliases,
//! by which the outer one finds them (`aliases`).
//!
//! The planner takes each name of a SELECT once, PostgreSQL as often as one likes. Columns of one
//! name get a mark behind it, which no answer shows. What is marked cannot be named from outside, as in
//! PostgreSQL, to which such a name is ambiguous.

mod aliases;
mod figure;
mod output;

pub use aliases::{alias_outermost, name_columns};
pub use output::{Names, OutputNames, named_batch, named_schema};

use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{Query, Select, SelectItem, SetExpr};

/// The SELECT that names the columns of a query: the first of its set operations.
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

/// The name of a column that is selected; `None` of a `*`.
fn name_of_item(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expr) => Some(figure::name_of(expr)),
        SelectItem::ExprWithAlias { alias, .. } => Some(fold_case(alias)),
        _ => None,
    }
}
