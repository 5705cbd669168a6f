//! Statements that query PostgreSQL's catalog: the rules of `datafusion-pg-catalog` rewrite the
//! forms of PostgreSQL that the planner does not accept.
//!
//! The library's parser handles the few client statements that it knows by their text. Two of its
//! rules are left out: Marigram evaluates correlated subqueries, which one would replace with NULL,
//! and comparisons with ANY and ALL.

use crate::dialect::ast_walk::walk_mut;
use crate::dialect::rewriting::call;
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{self, Expr, Value, VisitorMut};
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use datafusion_pg_catalog::sql::rules::{
    AliasDuplicatedProjectionRewrite, CurrentUserVariableToSessionUserFunctionCall,
    FixArrayLiteral, FixVersionColumnName, PrependUnqualifiedPgTableName,
    ResolveUnqualifiedIdentifier, RewritePgCatalogOperator, RewriteRegCastToSubquery,
    SqlStatementRewriteRule, StripCallableQualifier, StripCollate,
};
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

/// Text in statements that the library recognizes: queries of psql for policies, extended
/// statistics and publications, which are empty here.
const KNOWN_BY_TEXT: [&str; 6] = [
    "from pg_catalog.pg_policy pol",
    "from pg_catalog.pg_statistic_ext",
    "from pg_catalog.pg_publication p",
    "as parentcolumn",
    "current_setting('search_path')",
    "c.relnamespace='public'",
];

/// Whether a statement, in lower case, may need PostgreSQL's catalogs or forms that only the rewrite
/// rules know.
/// Other statements skip the rules, which saves time and keeps the positions of errors.
pub fn asks_postgres(folded: &str) -> bool {
    const SIGNS: [&str; 10] = [
        "pg_",
        "information_schema",
        "current_schema",
        "current_user",
        "session_user",
        "current_catalog",
        "version",
        "regclass",
        "regtype",
        "collate",
    ];
    SIGNS.iter().any(|sign| folded.contains(sign))
}

/// The library's replacement for a statement that it recognizes by its text.
///
/// # Errors
/// If the text is not a statement.
pub fn known_by_text(sql: &str, folded: &str) -> Result<Option<Statement>, ParserError> {
    static POSTGRES: LazyLock<PostgresCompatibilityParser> =
        LazyLock::new(PostgresCompatibilityParser::new);
    if !KNOWN_BY_TEXT.iter().any(|known| folded.contains(known)) {
        return Ok(None);
    }
    let mut statements = POSTGRES.parse(sql)?;
    Ok(match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Some(Statement::Statement(Box::new(statement))),
        _ => None,
    })
}

/// The beginnings and ends of expressions of psql that the planner does not know: the options of a table's TOAST
/// table (`\d+`), and the policies of a table (`\dp`). Marigram has neither.
const EMPTY_TEXTS: [(&str, &str); 2] = [
    (
        "pg_catalog.array_to_string(c.reloptions || array(",
        "pg_catalog.unnest(tc.reloptions) x), ', ')",
    ),
    (
        "pg_catalog.array_to_string(ARRAY(\n    SELECT polname",
        "WHERE polrelid = c.oid), E'\\n')",
    ),
];

/// The statement with an empty text for each expression that would be empty; `None` if it has none.
pub fn without_empty_texts(sql: &str) -> Option<String> {
    let mut left = None;
    for (begin, end) in EMPTY_TEXTS {
        let text = left.as_deref().unwrap_or(sql);
        if let Some(from) = text.find(begin)
            && let Some(length) = text[from..].find(end)
        {
            let rest = &text[from + length + end.len()..];
            left = Some(format!("{}''{rest}", &text[..from]));
        }
    }
    left
}

/// Rewrites a statement by the library's rules.
pub fn rewrite_for_catalog(statement: &mut Statement) {
    match statement {
        Statement::Statement(statement) => {
            let written = std::mem::replace(statement.as_mut(), nothing());
            **statement = rewritten(written);
        }
        Statement::Explain(explain) => rewrite_for_catalog(&mut explain.statement),
        Statement::CopyTo(copy) => {
            if let CopyToSource::Query(query) = &mut copy.source {
                let written = ast::Statement::Query(query.clone());
                if let ast::Statement::Query(rewritten) = rewritten(written) {
                    *query = rewritten;
                }
            }
        }
        _ => {}
    }
}

/// A temporary placeholder.
fn nothing() -> ast::Statement {
    ast::Statement::Deallocate {
        name: ast::Ident::new(""),
        prepare: false,
    }
}

/// Lets casts of names to oids say what does not exist. PostgreSQL's own names, of which not all are
/// here, stay NULL: clients ask for them and find nothing.
struct NamedOids;

impl VisitorMut for NamedOids {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        const KINDS: [&str; 4] = ["regclass", "regtype", "regproc", "regnamespace"];
        let Expr::Cast {
            expr: value,
            data_type,
            ..
        } = &*expr
        else {
            return ControlFlow::Continue(());
        };
        let kind = data_type.to_string().to_lowercase();
        let kind = kind.strip_prefix("pg_catalog.").unwrap_or(&kind);
        let Expr::Value(literal) = value.as_ref() else {
            return ControlFlow::Continue(());
        };
        if let Value::SingleQuotedString(name) = &literal.value
            && KINDS.contains(&kind)
            && !name.starts_with("pg_")
            && !name.starts_with("information_schema")
            && name.parse::<u32>().is_err()
        {
            let text = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
            *expr = call("named_oid", vec![text(kind), text(name), expr.clone()]);
        }
        ControlFlow::Continue(())
    }
}

fn rewritten(mut statement: ast::Statement) -> ast::Statement {
    // The visitor never breaks.
    let _ = walk_mut(&mut statement, &mut NamedOids);
    type Rules = Vec<Arc<dyn SqlStatementRewriteRule>>;
    static RULES: LazyLock<Rules> = LazyLock::new(|| {
        vec![
            Arc::new(AliasDuplicatedProjectionRewrite),
            Arc::new(ResolveUnqualifiedIdentifier),
            Arc::new(PrependUnqualifiedPgTableName),
            Arc::new(StripCallableQualifier),
            Arc::new(FixArrayLiteral),
            Arc::new(CurrentUserVariableToSessionUserFunctionCall),
            Arc::new(StripCollate),
            Arc::new(RewritePgCatalogOperator),
            Arc::new(RewriteRegCastToSubquery::new()),
            Arc::new(FixVersionColumnName),
        ]
    });
    RULES
        .iter()
        .fold(statement, |statement, rule| rule.rewrite(statement))
}
