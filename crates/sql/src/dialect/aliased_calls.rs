//! Renames nested calls of functions by an alias, such as `pow` for `power`.
//!
//! The planner gives the value of such a call the name of the call in the text, and that name contains
//! the names of all arguments beside the arguments themselves: each level of nesting doubles it. So
//! calls within [`ALIASED_CALLS_MAX`] others get the functions' own names, which do not grow. Calls
//! outside of them keep their names, which may be those of columns.

use crate::dialect::rewriting::rewrite;
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, Function, Ident, ObjectName, VisitorMut};
use std::ops::ControlFlow;

/// The number of calls by an alias inside each other that keep their names.
const ALIASED_CALLS_MAX: usize = 4;

/// Renames the calls in a statement, which may be inside EXPLAIN or COPY.
///
/// # Errors
/// None today: the walk never breaks.
pub(crate) fn rename_aliased_calls(
    state: &SessionState,
    statement: &mut Statement,
) -> SqlResult<()> {
    let mut renaming = AliasedCalls {
        state,
        depth: 0,
        around: Vec::new(),
    };
    rewrite(statement, &mut renaming)
}

struct AliasedCalls<'a> {
    state: &'a SessionState,
    /// The number of calls by an alias around the current expression.
    depth: usize,
    /// For each expression around the current one, whether it is such a call.
    around: Vec<bool>,
}

impl AliasedCalls<'_> {
    /// The own name of a function that is called by an alias.
    fn own_name(&self, call: &Function) -> Option<String> {
        let [part] = call.name.0.as_slice() else {
            return None;
        };
        let name = fold_case(part.as_ident()?);
        let state = self.state;
        let scalar = state.scalar_functions().get(&name).map(|udf| udf.name());
        let scalar = scalar.or_else(|| {
            let functions = state.higher_order_functions();
            functions.get(&name).map(|function| function.name())
        });
        let window = || state.window_functions().get(&name).map(|udf| udf.name());
        let aggregate = || state.aggregate_functions().get(&name).map(|udf| udf.name());
        let own = scalar.or_else(window).or_else(aggregate)?;
        (own != name).then(|| own.to_owned())
    }
}

impl VisitorMut for AliasedCalls<'_> {
    type Break = SqlError;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let own_name = match expr {
            Expr::Function(call) => self.own_name(call),
            _ => None,
        };
        let is_aliased = own_name.is_some();
        if let (Some(name), Expr::Function(call)) = (own_name, expr)
            && self.depth >= ALIASED_CALLS_MAX
        {
            call.name = ObjectName::from(vec![Ident::with_quote('"', name)]);
        }
        self.depth += usize::from(is_aliased);
        self.around.push(is_aliased);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<SqlError> {
        let was_aliased = self.around.pop().unwrap_or_default();
        self.depth -= usize::from(was_aliased);
        ControlFlow::Continue(())
    }
}
