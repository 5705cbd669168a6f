//! Casts of an expression that also occurs without a cast, or with a different one:
//! `SELECT max(v), max(v::INT)`, or `GROUP BY unit, unit::TEXT`.
//!
//! DataFusion names a cast after its operand, and requires unique names of keys, aggregates and
//! window functions. If two of them would have the same name, each of their casts is wrapped in
//! [`named_cast`](marigram_functions::NAMED_CAST), which has a name of its own and is removed again
//! when the plan is simplified. Statements without such casts stay unchanged.

use crate::dialect::ast_walk::{walk, walk_mut};
use crate::dialect::rewriting::{call, selects};
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, OrderBy, Query,
    Select, SelectItem, SetExpr, Value, Visitor, VisitorMut,
};
use marigram_functions::NAMED_CAST;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// The most bytes of keys and calls that are compared; if nested calls of a long statement add up
/// to more, nothing is rewritten.
const COMPARED_BYTES_MAX: usize = 4 << 20;

/// See the module documentation.
pub(crate) struct NamedCasts;

impl VisitorMut for NamedCasts {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let Query { body, order_by, .. } = query;
        if let SetExpr::Select(select) = body.as_mut() {
            name_casts(select, order_by.as_mut());
            return ControlFlow::Continue(());
        }
        for select in selects(body) {
            name_casts(select, None);
        }
        ControlFlow::Continue(())
    }
}

/// Wraps the casts of a SELECT that would have the name of something else.
fn name_casts(select: &mut Select, order_by: Option<&mut OrderBy>) {
    let mut compared = CastFreeExpressions::default();
    for key in keys(select) {
        compared.add(key);
    }
    let _ = walk(&select.projection, &mut compared);
    let _ = walk(&select.having, &mut compared);
    let _ = walk(&select.qualify, &mut compared);
    if let Some(order_by) = &order_by {
        let _ = walk(&**order_by, &mut compared);
    }
    let mut named = compared.named();
    if named.0.is_empty() {
        return;
    }
    name_columns(&mut select.projection);
    let _ = walk_mut(&mut select.projection, &mut named);
    let _ = walk_mut(&mut select.group_by, &mut named);
    let _ = walk_mut(&mut select.having, &mut named);
    let _ = walk_mut(&mut select.qualify, &mut named);
    if let Some(order_by) = order_by {
        let _ = walk_mut(order_by, &mut named);
    }
}

/// Gives selected casts of columns PostgreSQL's names, and repeated ones a number.
fn name_columns(selected: &mut [SelectItem]) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for item in selected.iter() {
        if let SelectItem::UnnamedExpr(expr) = item
            && !matches!(expr, Expr::Cast { .. })
            && let Some(name) = column(expr)
        {
            seen.insert(fold_case(&name), 1);
        }
    }
    for item in selected {
        if let SelectItem::UnnamedExpr(expr @ Expr::Cast { .. }) = item
            && let Some(name) = column(expr)
        {
            let count = seen.entry(fold_case(&name)).or_default();
            let alias = match *count {
                0 => name,
                count => Ident::with_quote('"', format!("{}_{count}", fold_case(&name))),
            };
            *count += 1;
            let expr = expr.clone();
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
}

/// The expressions by which a SELECT groups.
fn keys(select: &Select) -> Vec<&Expr> {
    let GroupByExpr::Expressions(keys, _) = &select.group_by else {
        return Vec::new();
    };
    let meant = |key| meant_key(&select.projection, key);
    keys.iter().filter_map(meant).collect()
}

/// A key, or the column to whose position it refers.
fn meant_key<'a>(selected: &'a [SelectItem], key: &'a Expr) -> Option<&'a Expr> {
    let Expr::Value(number) = key else {
        return Some(key);
    };
    let Value::Number(number, _) = &number.value else {
        return None;
    };
    let at = number.parse::<usize>().ok()?.checked_sub(1)?;
    // A position counts columns, and a wildcard may be several.
    match selected.get(at).filter(|_| selected.iter().all(is_one))? {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// Whether a selected item is a single column.
fn is_one(item: &SelectItem) -> bool {
    matches!(
        item,
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
    )
}

/// The operand of a cast, if it is a column.
fn column(expr: &Expr) -> Option<Ident> {
    match expr {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => column(expr),
        Expr::Identifier(name) => Some(name.clone()),
        Expr::CompoundIdentifier(parts) => parts.last().cloned(),
        _ => None,
    }
}

/// An expression without its casts, as text, in which a column is just its name, and `count(*)` has
/// its planned form. Expressions with different names may have the same text.
fn without_casts(expr: &Expr) -> String {
    struct CastEraser;

    impl VisitorMut for CastEraser {
        type Break = Infallible;

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
            let plain = |name: &Ident| Expr::Identifier(Ident::new(fold_case(name)));
            let replaced = match expr {
                Expr::Cast { expr, .. } | Expr::Nested(expr) => Some(std::mem::replace(
                    expr.as_mut(),
                    Expr::Identifier(Ident::new("")),
                )),
                Expr::Identifier(name) => Some(plain(name)),
                Expr::CompoundIdentifier(parts) => parts.last().map(plain),
                _ => named_cast(expr).cloned(),
            };
            if let Some(replaced) = replaced {
                *expr = replaced;
            }
            ControlFlow::Continue(())
        }
    }

    let mut erased = expr.clone();
    let _ = walk_mut(&mut erased, &mut CastEraser);
    let text = erased.to_string().to_lowercase();
    text.replace("count(*)", "count(1)")
}

/// The cast inside a `named_cast` call.
fn named_cast(expr: &Expr) -> Option<&Expr> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    match &list.args[..] {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(cast))]
            if function.name.to_string() == NAMED_CAST =>
        {
            Some(cast)
        }
        _ => None,
    }
}

/// The texts of the operands of casts in an expression.
#[derive(Default)]
struct CastOperands(HashSet<String>);

impl Visitor for CastOperands {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        if matches!(expr, Expr::Cast { .. }) {
            self.0.insert(without_casts(expr));
        }
        ControlFlow::Continue(())
    }
}

/// Keys and calls, by their texts without casts.
#[derive(Default)]
struct CastFreeExpressions {
    /// The texts with casts, and the operands of these casts.
    by_text: HashMap<String, (HashSet<String>, CastOperands)>,
    bytes: usize,
}

impl CastFreeExpressions {
    fn add(&mut self, expr: &Expr) {
        if self.bytes > COMPARED_BYTES_MAX {
            return;
        }
        let text = expr.to_string();
        self.bytes += text.len();
        let (texts, operands) = self.by_text.entry(without_casts(expr)).or_default();
        if texts.insert(text) {
            let _ = walk(expr, operands);
        }
    }

    /// The operands of casts for texts that occur several times.
    fn named(self) -> CastNamer {
        if self.bytes > COMPARED_BYTES_MAX {
            return CastNamer::default();
        }
        let several = |(texts, operands): (HashSet<_>, CastOperands)| {
            if texts.len() > 1 {
                operands.0
            } else {
                HashSet::new()
            }
        };
        CastNamer(self.by_text.into_values().flat_map(several).collect())
    }
}

impl Visitor for CastFreeExpressions {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        if matches!(expr, Expr::Function(_)) {
            self.add(expr);
        }
        ControlFlow::Continue(())
    }
}

/// Wraps the casts of these operands in calls.
#[derive(Default)]
struct CastNamer(HashSet<String>);

impl VisitorMut for CastNamer {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if matches!(expr, Expr::Cast { .. }) && self.0.contains(&without_casts(expr)) {
            let cast = std::mem::replace(expr, Expr::Identifier(Ident::new("")));
            *expr = call(NAMED_CAST, vec![cast]);
        }
        ControlFlow::Continue(())
    }
}

/// Whether a statement, in lower case, may contain casts.
pub(crate) fn may_cast(folded: &str) -> bool {
    folded.contains("::") || folded.contains("cast")
}
