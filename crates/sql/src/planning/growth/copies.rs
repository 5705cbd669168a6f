//! Counts how many copies of its parts the plan of a statement contains.

use crate::dialect::ast_walk::walk;
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{Expr, ObjectName, Query, Visitor};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::ptr;

/// The largest number of tables that a plan reads beyond those that its text names.
const TABLES_COPIED_MAX: u64 = 1024;
/// The largest number of additional expressions.
const EXPRESSIONS_COPIED_MAX: u64 = 50_000;

/// Refuses a statement whose use of common table expressions makes its plan too large.
///
/// # Errors
/// `54001`
pub(crate) fn check_copies(statement: &Statement) -> SqlResult<()> {
    let mut counting = CopyCounter::default();
    let _ = match statement {
        Statement::Statement(statement) => walk(&**statement, &mut counting),
        Statement::Explain(explain) => return check_copies(&explain.statement),
        Statement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => walk(&**query, &mut counting),
            CopyToSource::Relation(_) => return Ok(()),
        },
        _ => return Ok(()),
    };
    let CopyCounter { all, in_text, .. } = counting;
    let tables = all.tables.saturating_sub(in_text.tables);
    let expressions = all.expressions.saturating_sub(in_text.expressions);
    if tables > TABLES_COPIED_MAX || expressions > EXPRESSIONS_COPIED_MAX {
        let message = format!(
            "the WITH queries of this statement are used inside each other so often that its plan \
             would read {tables} more tables than its text names, with {expressions} more \
             expressions; at most {TABLES_COPIED_MAX} and {EXPRESSIONS_COPIED_MAX} are planned: \
             write the result of a WITH query into a table, and use that"
        );
        return Err(SqlError::invalid("54001", message));
    }
    Ok(())
}

/// The size of a part of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PlanPartSize {
    tables: u64,
    expressions: u64,
}

impl PlanPartSize {
    fn add(&mut self, other: Self) {
        self.tables = self.tables.saturating_add(other.tables);
        self.expressions = self.expressions.saturating_add(other.expressions);
    }
}

/// A query that is being traversed.
#[derive(Default)]
struct QueryFrame {
    size: PlanPartSize,
    /// Its WITH queries that have been traversed, by name.
    known: HashMap<String, PlanPartSize>,
    /// All of them, by their address.
    named: Vec<(*const Query, String)>,
}

#[derive(Default)]
struct CopyCounter {
    frames: Vec<QueryFrame>,
    /// Of the plan, and of the text.
    all: PlanPartSize,
    in_text: PlanPartSize,
}

impl CopyCounter {
    fn add(&mut self, size: PlanPartSize) {
        match self.frames.last_mut() {
            Some(frame) => frame.size.add(size),
            None => self.all.add(size),
        }
    }

    /// The WITH query to which a name refers.
    fn known(&self, name: &ObjectName) -> Option<PlanPartSize> {
        let [part] = &name.0[..] else { return None };
        let name = fold_case(part.as_ident()?);
        let mut frames = self.frames.iter().rev();
        frames.find_map(|frame| frame.known.get(&name)).copied()
    }
}

impl Visitor for CopyCounter {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        let named = tables.map(|cte| (ptr::from_ref(&*cte.query), fold_case(&cte.alias.name)));
        self.frames.push(QueryFrame {
            named: named.collect(),
            ..QueryFrame::default()
        });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let Some(QueryFrame { size, .. }) = self.frames.pop() else {
            return ControlFlow::Continue(());
        };
        if let Some(outer) = self.frames.last_mut() {
            let mut named = outer.named.iter();
            if let Some((_, name)) = named.find(|(place, _)| ptr::eq(*place, query)) {
                // It counts where it is used.
                outer.known.insert(name.clone(), size);
                return ControlFlow::Continue(());
            }
        }
        self.add(size);
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        let one = PlanPartSize {
            tables: 1,
            expressions: 0,
        };
        self.in_text.add(one);
        let mut size = self.known(name).unwrap_or_default();
        size.add(one);
        self.add(size);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        let one = PlanPartSize {
            tables: 0,
            expressions: 1,
        };
        self.in_text.add(one);
        self.add(one);
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::parse::parse;
    use crate::dialect::statement::Command;

    fn check(sql: &str) -> SqlResult<()> {
        match parse(sql).unwrap() {
            Command::Plan(statement, _) => check_copies(&statement),
            other => panic!("{other:?}"),
        }
    }

    /// Each of `steps` uses the one before it `uses` times.
    fn chain(steps: usize, uses: usize) -> String {
        let mut sql = "WITH c0 AS (SELECT 1 AS n)".to_owned();
        for step in 1..=steps {
            let all: Vec<String> = (0..uses)
                .map(|at| format!("c{} AS x{at}", step - 1))
                .collect();
            sql += ", c";
            sql += &step.to_string();
            sql += " AS (SELECT x0.n FROM ";
            sql += &all.join(", ");
            sql += ")";
        }
        format!("{sql} SELECT count(*) FROM c{steps}")
    }

    #[test]
    fn what_doubles_with_each_step_is_refused_and_what_adds_up_is_not() {
        assert!(check(&chain(200, 1)).is_ok());
        assert!(check(&chain(8, 2)).is_ok());
        for sql in [
            chain(12, 2),
            chain(64, 2),
            format!("EXPLAIN {}", chain(30, 3)),
            format!("SELECT * FROM ({}) q", chain(30, 2)),
            format!("INSERT INTO t {}", chain(30, 2)),
        ] {
            let error = check(&sql).unwrap_err();
            assert!(error.to_string().contains("WITH queries"), "{error}");
        }
    }

    #[test]
    fn long_texts_without_copies_are_not_refused() {
        let values: Vec<String> = (0..60_000).map(|value| value.to_string()).collect();
        assert!(check(&format!("SELECT 1 WHERE 1 IN ({})", values.join(","))).is_ok());
        let tables: Vec<String> = (0..500).map(|at| format!("t AS t{at}")).collect();
        assert!(check(&format!("SELECT 1 FROM {}", tables.join(","))).is_ok());
    }

    #[test]
    fn an_inner_name_hides_an_outer_one() {
        let sql = format!(
            "{} , (WITH c12 AS (SELECT 1) SELECT * FROM c12) q",
            chain(8, 2)
        );
        assert!(check(&sql).is_ok());
    }
}
