//! Rewrites parsed statements.

use crate::dialect::ast_walk::{walk, walk_mut};
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, DataType, Distinct, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName, OrderByKind,
    Query, Select, SelectItem, SetExpr, TableFactor, Value, Visitor, VisitorMut,
};
use marigram_functions::SIMILAR_TO_REGEX;
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::ops::ControlFlow;

/// Rewrites a statement, even if it is inside EXPLAIN or COPY.
///
/// # Errors
/// The first error with which `how` breaks.
pub(crate) fn rewrite(
    statement: &mut Statement,
    how: &mut impl VisitorMut<Break = SqlError>,
) -> SqlResult<()> {
    let broken = match statement {
        Statement::Statement(statement) => walk_mut(&mut **statement, how),
        Statement::Explain(explain) => return rewrite(&mut explain.statement, how),
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => walk_mut(&mut **query, how),
            CopyToSource::Relation(_) => return Ok(()),
        },
        _ => return Ok(()),
    };
    match broken {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// The statement itself, which may be inside EXPLAIN.
pub(crate) fn explained(statement: &mut Statement) -> Option<&mut ast::Statement> {
    match statement {
        Statement::Statement(statement) => Some(statement.as_mut()),
        Statement::Explain(explain) => explained(&mut explain.statement),
        _ => None,
    }
}

/// The text that a rewriting pass copied. A statement may nest what is copied, or use it often, so
/// that copies grow much larger than the statement.
#[derive(Default)]
pub(crate) struct CopiedText {
    bytes: usize,
}

impl CopiedText {
    /// The bytes that the copies of a pass may take.
    const BYTES_MAX: usize = 256 << 10;

    /// Counts copies of a node.
    ///
    /// # Errors
    /// 54001 if the copies take too much.
    pub(crate) fn add(&mut self, node: &impl Display, times: usize) -> Result<(), SqlError> {
        let length = node.to_string().len();
        self.bytes = self.bytes.saturating_add(length.saturating_mul(times));
        if self.bytes > Self::BYTES_MAX {
            let message = format!(
                "the statement becomes too large: it repeats expressions of more than {} KiB",
                Self::BYTES_MAX >> 10
            );
            return Err(SqlError::invalid("54001", message));
        }
        Ok(())
    }
}

/// Renames the second occurrence of a column that is selected twice: DataFusion requires unique
/// names, SQL does not. DataFusion names a cast after its column; if the query sorts by that name,
/// the cast gets PostgreSQL's name, and the query sorts by the cast.
pub(crate) struct RenameDuplicateColumns;

/// The expression inside casts and parentheses.
fn uncast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => uncast(expr),
        other => other,
    }
}

/// The names by which a query sorts; `None` if it sorts by other expressions, in which a name is an
/// input column, not a selected one.
fn sorted_by(query: &Query) -> Option<Vec<&Ident>> {
    let OrderByKind::Expressions(by) = &query.order_by.as_ref()?.kind else {
        return None;
    };
    let mut names = Vec::new();
    for by in by {
        match &by.expr {
            Expr::Identifier(name) => names.push(name),
            Expr::CompoundIdentifier(parts) => names.extend(parts.last()),
            Expr::Value(_) => {}
            _ => return None,
        }
    }
    Some(names)
}

/// The name of a column that is selected with a cast and used for sorting.
fn sorted_cast(expr: &Expr, sorted_by: &[Ident]) -> Option<Ident> {
    let Expr::Cast { .. } = expr else { return None };
    let name = match uncast(expr) {
        Expr::Identifier(name) => name,
        Expr::CompoundIdentifier(parts) => parts.last()?,
        _ => return None,
    };
    let same = |other: &Ident| fold_case(other) == fold_case(name);
    sorted_by.iter().any(same).then(|| name.clone())
}

/// The name of a column that is selected unchanged.
fn plain_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(fold_case(name)),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last().map(fold_case),
        _ => None,
    }
}

impl VisitorMut for RenameDuplicateColumns {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let sorted_by = sorted_by(query).unwrap_or_default();
        let sorted_by: Vec<Ident> = sorted_by.into_iter().cloned().collect();
        let is_one = matches!(*query.body, SetExpr::Select(_));
        for select in selects(&mut query.body) {
            // The planner takes each key once, and expects as many columns as there are keys.
            if let Some(Distinct::On(keys)) = &mut select.distinct {
                let mut seen = HashSet::new();
                keys.retain(|key| seen.insert(key.clone()));
            }
            tell_apart(select, if is_one { &sorted_by } else { &[] });
        }
        ControlFlow::Continue(())
    }
}

/// PostgreSQL's name of a column whose value is that of a subquery; DataFusion gives all of them
/// the same name.
fn subquery_name(expr: &Expr) -> Option<&'static str> {
    struct SubqueryVisitor;

    impl Visitor for SubqueryVisitor {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::InSubquery { .. } | Expr::Exists { .. } => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }

    if walk(expr, &mut SubqueryVisitor).is_continue() {
        return None;
    }
    let is_exists = matches!(uncast(expr), Expr::Exists { .. });
    Some(if is_exists { "exists" } else { "?column?" })
}

/// The name of the column that a scalar subquery selects. DataFusion names its value so, and cannot
/// tell it from a column of that name.
fn name_in_subquery(expr: &Expr) -> Option<String> {
    let Expr::Subquery(query) = uncast(expr) else {
        return None;
    };
    match query.body.as_ref() {
        SetExpr::Select(select) => select.projection.first().and_then(plain_name),
        _ => None,
    }
}

/// Gives the columns of one SELECT different names.
fn tell_apart(select: &mut Select, sorted_by: &[Ident]) {
    let mut seen = HashMap::new();
    let is_grouped = select.having.is_some();
    let plain: Vec<String> = select.projection.iter().filter_map(plain_name).collect();
    for item in &mut select.projection {
        let SelectItem::UnnamedExpr(expr) = item else {
            continue;
        };
        let is_alike = name_in_subquery(expr).is_some_and(|name| plain.contains(&name));
        let name = if is_alike {
            Some("?column?")
        } else {
            subquery_name(expr)
        };
        let text = match name {
            Some(name) => {
                let count = seen.entry(name.to_owned()).or_insert(0);
                let alias = match *count {
                    0 => name.to_owned(),
                    count => format!("{name}_{count}"),
                };
                *count += 1;
                let alias = Ident::with_quote('"', alias);
                let expr = expr.clone();
                *item = SelectItem::ExprWithAlias { expr, alias };
                continue;
            }
            None => uncast(expr).to_string(),
        };
        let count = seen
            .entry(text.clone())
            .and_modify(|count| *count += 1)
            .or_insert(0);
        if *count == 0
            && !is_grouped
            && let Some(mut alias) = sorted_cast(expr, sorted_by)
        {
            if plain.contains(&fold_case(&alias)) {
                alias = Ident::with_quote('"', format!("{}_1", fold_case(&alias)));
            }
            let expr = expr.clone();
            *item = SelectItem::ExprWithAlias { expr, alias };
        } else if *count > 0 {
            let name = match uncast(expr) {
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

/// The SELECTs of a query, without those of its subqueries.
pub(crate) fn selects(body: &mut SetExpr) -> Vec<&mut Select> {
    let (mut selects, mut bodies) = (Vec::new(), vec![body]);
    while let Some(body) = bodies.pop() {
        match body {
            SetExpr::Select(select) => selects.push(select.as_mut()),
            SetExpr::SetOperation { left, right, .. } => {
                bodies.extend([right.as_mut(), left.as_mut()]);
            }
            _ => {}
        }
    }
    selects
}

/// Refuses what the planner would ignore beside a table: `TABLESAMPLE`, and `WITH ORDINALITY` where it was
/// not rewritten.
pub(crate) struct RefuseIgnoredClauses;

impl VisitorMut for RefuseIgnoredClauses {
    type Break = SqlError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        if let TableFactor::Table {
            with_ordinality: true,
            ..
        } = factor
        {
            return ControlFlow::Break(SqlError::unsupported(
                "WITH ORDINALITY is not supported here; number the rows with row_number() OVER ()",
            ));
        }
        let (TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. }) = factor
        else {
            return ControlFlow::Continue(());
        };
        if sample.is_none() {
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(SqlError::unsupported(
            "TABLESAMPLE is not supported; for a tenth of the rows write WHERE random() < 0.1",
        ))
    }
}

/// Rewrites `SIMILAR TO` to match by a regular expression, because the planner would take the
/// pattern for one.
pub(crate) struct RewriteSimilarTo;

impl VisitorMut for RewriteSimilarTo {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::SimilarTo {
            negated,
            expr: text,
            pattern,
            escape_char,
        } = expr
        else {
            return ControlFlow::Continue(());
        };
        let escape = match escape_char.take() {
            Some(escape) => Expr::Value(escape),
            None => Expr::value(Value::SingleQuotedString("\\".to_owned())),
        };
        let nothing = || Expr::value(Value::Null);
        let pattern = std::mem::replace(pattern.as_mut(), nothing());
        let op = if *negated {
            BinaryOperator::PGRegexNotMatch
        } else {
            BinaryOperator::PGRegexMatch
        };
        let matched = Expr::BinaryOp {
            left: Box::new(std::mem::replace(text.as_mut(), nothing())),
            op,
            right: Box::new(call(SIMILAR_TO_REGEX, vec![pattern, escape])),
        };
        *expr = Expr::Nested(Box::new(matched));
        ControlFlow::Continue(())
    }
}

/// The array of the places of an array's elements.
pub(crate) fn subscripts(array: Expr) -> Expr {
    let one = || Expr::value(Value::Number("1".to_owned(), false));
    let count = Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(call("cardinality", vec![array])),
        data_type: DataType::BigInt(None),
        array: false,
        format: None,
    };
    let end = Expr::BinaryOp {
        left: Box::new(count),
        op: BinaryOperator::Plus,
        right: Box::new(one()),
    };
    call("range", vec![one(), end])
}

/// Rewrites `generate_subscripts(array, 1)` to `unnest(range(1, cardinality(array) + 1))`.
pub(crate) struct ExpandSubscripts;

impl VisitorMut for ExpandSubscripts {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::Function(function) = expr else {
            return ControlFlow::Continue(());
        };
        let name = function.name.0.last().and_then(|part| part.as_ident());
        let FunctionArguments::List(list) = &function.args else {
            return ControlFlow::Continue(());
        };
        let array = match (name.map(fold_case).as_deref(), list.args.as_slice()) {
            (
                Some("generate_subscripts"),
                [FunctionArg::Unnamed(FunctionArgExpr::Expr(array)), _],
            ) => array.clone(),
            _ => return ControlFlow::Continue(()),
        };
        *expr = call("unnest", vec![subscripts(array)]);
        ControlFlow::Continue(())
    }
}

/// Rewrites `LIKE … ESCAPE 'x'` to use the backslash as escape character, the only one that the
/// planner accepts.
pub(crate) struct OtherEscapes;

impl VisitorMut for OtherEscapes {
    type Break = SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let (Expr::Like {
            pattern,
            escape_char,
            ..
        }
        | Expr::ILike {
            pattern,
            escape_char,
            ..
        }) = expr
        else {
            return ControlFlow::Continue(());
        };
        let escape = match escape_char.as_ref().map(|escape| &escape.value) {
            Some(Value::SingleQuotedString(escape)) if escape != "\\" => escape.clone(),
            _ => return ControlFlow::Continue(()),
        };
        if escape.chars().count() > 1 {
            let message = "invalid escape string: one character escapes, or none";
            return ControlFlow::Break(SqlError::named("22025", &escape, message));
        }
        *escape_char = None;
        let nothing = Expr::value(Value::Null);
        let mut changed = std::mem::replace(pattern.as_mut(), nothing);
        let text = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
        let mut replace = |from: &str, to: &str| {
            let pattern = std::mem::replace(&mut changed, Expr::value(Value::Null));
            changed = call("replace", vec![pattern, text(from), text(to)]);
        };
        replace("\\", "\\\\");
        if !escape.is_empty() {
            // A doubled escape character stands for itself.
            replace(&escape.repeat(2), "\u{1f}");
            replace(&escape, "\\");
            replace("\u{1f}", &escape);
        }
        **pattern = changed;
        ControlFlow::Continue(())
    }
}

/// The time column of the table to which the parts of a name refer; `None` if it is not one of our
/// tables.
pub(crate) type TimeOf<'a> = &'a dyn Fn(&[String]) -> Option<String>;

/// The first table of a SELECT, whose times are used if none are named.
#[derive(Debug)]
pub(crate) struct FirstTable {
    /// Its time column, if it is one of our tables.
    pub time: Option<String>,
    /// What the SELECT calls it.
    pub name: Option<String>,
    /// Whether it is the only table.
    alone: bool,
}

impl FirstTable {
    /// The first table of a SELECT; `None` if it has no table.
    pub(crate) fn from_select(select: &Select, time_of: TimeOf<'_>) -> Option<Self> {
        let first = select.from.first()?;
        let (parts, alias) = match &first.relation {
            TableFactor::Table { name, alias, .. } => {
                let parts = name
                    .0
                    .iter()
                    .filter_map(|part| part.as_ident().map(fold_case));
                (parts.collect::<Vec<_>>(), alias.as_ref())
            }
            TableFactor::Derived { alias, .. } => (Vec::new(), alias.as_ref()),
            _ => (Vec::new(), None),
        };
        let alias = alias.map(|alias| fold_case(&alias.name));
        Some(Self {
            time: time_of(&parts),
            name: alias.or_else(|| parts.last().cloned()),
            alone: select.from.len() == 1 && first.joins.is_empty(),
        })
    }

    /// One of its columns.
    pub(crate) fn column(&self, name: &str) -> Expr {
        let quoted = |name: &str| Ident::with_quote('"', name);
        match &self.name {
            Some(table) if !self.alone => {
                Expr::CompoundIdentifier(vec![quoted(table), quoted(name)])
            }
            _ => Expr::Identifier(quoted(name)),
        }
    }
}

/// An expression in parentheses.
pub(crate) fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

/// `left op right`; sides that are operations themselves need parentheses ([`nested`]).
pub(crate) fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    }
}

/// A call of a function.
pub(crate) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
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
