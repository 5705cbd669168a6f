//! Windows that extend a named one: `OVER (w ORDER BY time)`, and `WINDOW v AS (w …)`.
//!
//! The planner ignores the name inside the parentheses. This pass copies the clauses of the named
//! window by PostgreSQL's rules. It writes `OVER w` out, too: otherwise two columns over one window
//! look different here and get the same name from the planner.

use crate::dialect::ast_walk::walk_mut;
use crate::dialect::rewriting::{CopiedText, selects};
use crate::error::SqlError;
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, NamedWindowExpr, Query, SetExpr, VisitorMut, WindowSpec, WindowType,
};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// See the module documentation.
#[derive(Default)]
pub(crate) struct NamedWindows {
    copied: CopiedText,
}

/// Whether a statement, in lower case, may have windows.
pub(crate) fn may_have_some(folded: &str) -> bool {
    folded.contains("over") || folded.contains("window")
}

/// The windows of a SELECT by their names.
struct KnownWindows<'a> {
    windows: HashMap<String, WindowSpec>,
    copied: &'a mut CopiedText,
}

impl KnownWindows<'_> {
    /// A copy of the clauses of the window `name`; errors: 42704 if there is none, 54001 if the
    /// copies take too much.
    fn copy(&mut self, name: &Ident) -> Result<WindowSpec, SqlError> {
        let Some(known) = self.windows.get(&fold_case(name)) else {
            let message = format!("window \"{}\" does not exist", name.value);
            return Err(SqlError::named("42704", &name.value, message));
        };
        self.copied.add(known, 1)?;
        Ok(known.clone())
    }

    /// Replaces the name of a window with its clauses.
    fn extend(&mut self, spec: &mut WindowSpec) -> Result<(), SqlError> {
        let Some(ident) = spec.window_name.take() else {
            return Ok(());
        };
        let known = self.copy(&ident)?;
        let name = &ident.value;
        let invalid =
            |code: &'static str, message: String| Err(SqlError::named(code, name, message));
        if !spec.partition_by.is_empty() {
            let message = format!("cannot override PARTITION BY clause of window \"{name}\"");
            return invalid("42P20", message);
        }
        if !known.order_by.is_empty() && !spec.order_by.is_empty() {
            let message = format!("cannot override ORDER BY clause of window \"{name}\"");
            return invalid("42P20", message);
        }
        if known.window_frame.is_some() {
            let message = format!("cannot copy window \"{name}\" because it has a frame clause");
            return invalid("42P20", message);
        }
        spec.partition_by = known.partition_by;
        if spec.order_by.is_empty() {
            spec.order_by = known.order_by;
        }
        Ok(())
    }
}

impl VisitorMut for KnownWindows<'_> {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::Function(function) = expr else {
            return ControlFlow::Continue(());
        };
        let resolved = match &mut function.over {
            Some(WindowType::WindowSpec(spec)) => self.extend(spec),
            Some(WindowType::NamedWindow(name)) => self.copy(name).map(|spec| {
                function.over = Some(WindowType::WindowSpec(spec));
            }),
            None => Ok(()),
        };
        match resolved {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl VisitorMut for NamedWindows {
    type Break = SqlError;

    // Subqueries come first: their windows are their own.
    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        let is_one = matches!(*query.body, SetExpr::Select(_));
        for select in selects(&mut query.body) {
            let mut known = KnownWindows {
                windows: HashMap::new(),
                copied: &mut self.copied,
            };
            for window in &mut select.named_window {
                if let NamedWindowExpr::WindowSpec(spec) = &mut window.1 {
                    if let Err(error) = known.extend(spec) {
                        return ControlFlow::Break(error);
                    }
                    known.windows.insert(fold_case(&window.0), spec.clone());
                }
            }
            walk_mut(&mut select.projection, &mut known)?;
            walk_mut(&mut select.qualify, &mut known)?;
            if is_one && let Some(order_by) = &mut query.order_by {
                walk_mut(order_by, &mut known)?;
            }
        }
        ControlFlow::Continue(())
    }
}
