//! Rewriting statements that were parsed.

use crate::error::{SqlError, SqlResult};
use crate::words::fold;
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Query, Select, SelectItem, SetExpr, TableFactor, VisitMut, VisitorMut,
};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Rewrites a statement, also one that is explained or copied.
///
/// # Errors
/// The first that `how` breaks off with.
pub fn rewrite(
    statement: &mut Statement,
    how: &mut impl VisitorMut<Break = SqlError>,
) -> SqlResult<()> {
    let broken = match statement {
        Statement::Statement(statement) => statement.visit(how),
        Statement::Explain(explain) => return rewrite(&mut explain.statement, how),
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(how),
            CopyToSource::Relation(_) => return Ok(()),
        },
        _ => return Ok(()),
    };
    match broken {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Gives a column that is selected twice another name the second time: DataFusion takes each name
/// once, SQL as often as one likes.
pub struct TellApart;

impl VisitorMut for TellApart {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let SetExpr::Select(select) = query.body.as_mut() {
            let mut seen = HashMap::new();
            for item in &mut select.projection {
                let SelectItem::UnnamedExpr(expr) = item else {
                    continue;
                };
                let text = expr.to_string();
                let count = seen
                    .entry(text.clone())
                    .and_modify(|count| *count += 1)
                    .or_insert(0);
                if *count > 0 {
                    let name = match expr {
                        Expr::CompoundIdentifier(parts) => {
                            parts.last().map_or(text, |part| part.value.clone())
                        }
                        _ => text,
                    };
                    let alias = Ident::with_quote('"', format!("{name}_{count}"));
                    *item = SelectItem::ExprWithAlias {
                        expr: expr.clone(),
                        alias,
                    };
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// The time column of the table that the parts of a name mean; `None` of what is no table of ours.
pub type TimeOf<'a> = &'a dyn Fn(&[String]) -> Option<String>;

/// The first table of a SELECT, whose times are meant where none are named.
#[derive(Debug)]
pub struct FirstTable {
    /// Its column of times, where it is a table of ours.
    pub time: Option<String>,
    /// What the SELECT calls it.
    pub name: Option<String>,
    /// Whether it is the only one.
    alone: bool,
}

impl FirstTable {
    /// Of a SELECT; `None` where it has no table.
    pub fn of(select: &Select, time_of: TimeOf<'_>) -> Option<Self> {
        let first = select.from.first()?;
        let (parts, alias) = match &first.relation {
            TableFactor::Table { name, alias, .. } => {
                let parts = name.0.iter().filter_map(|part| part.as_ident().map(fold));
                (parts.collect::<Vec<_>>(), alias.as_ref())
            }
            TableFactor::Derived { alias, .. } => (Vec::new(), alias.as_ref()),
            _ => (Vec::new(), None),
        };
        let alias = alias.map(|alias| fold(&alias.name));
        Some(Self {
            time: time_of(&parts),
            name: alias.or_else(|| parts.last().cloned()),
            alone: select.from.len() == 1 && first.joins.is_empty(),
        })
    }

    /// One of its columns.
    pub fn column(&self, name: &str) -> Expr {
        let quoted = |name: &str| Ident::with_quote('"', name);
        match &self.name {
            Some(table) if !self.alone => {
                Expr::CompoundIdentifier(vec![quoted(table), quoted(name)])
            }
            _ => Expr::Identifier(quoted(name)),
        }
    }
}

/// A call of a function.
pub fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let arguments = arguments.into_iter();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments
                .map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)))
                .collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
