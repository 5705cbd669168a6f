//! Statements that query PostgreSQL's catalog: the rules of `datafusion-pg-catalog` rewrite the
//! forms of PostgreSQL that the planner does not accept.
//!
//! The library's parser handles the few client statements that it knows by their text. Two of its
//! rules are left out: Marigram evaluates correlated subqueries, which one would replace with NULL,
//! and comparisons with ANY and ALL.

use crate::dialect::ast_walk::walk_mut;
use crate::dialect::rewriting::call;
use crate::dialect::system_columns::replace_table_oids;
use crate::error::{SqlError, SqlResult};
use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{self, Expr, Value, VisitorMut};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
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
pub(crate) fn asks_postgres(folded: &str) -> bool {
    const SIGNS: [&str; 13] = [
        "pg_",
        "to_reg",
        "regnamespace",
        "regproc",
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
pub(crate) fn known_by_text(sql: &str, folded: &str) -> Result<Option<Statement>, ParserError> {
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

/// Parts of psql's statements that the planner does not know, by their beginnings and ends, and what
/// stands for them: the options of a table's TOAST table (`\d+`), the policies of a table (`\dp`), the tags
/// of event triggers (`\dy`), the options of foreign servers (`\des+`), the partitions of a table (`\dP+`)
/// and the tokens of text search (`\dF+`), of which Marigram has none; and the functions of operator
/// families (`\dAp`), which the library has by their names.
const STAND_INS: [(&str, &str, &str); 10] = [
    (
        "pg_catalog.array_to_string(c.reloptions || array(",
        "pg_catalog.unnest(tc.reloptions) x), ', ')",
        "''",
    ),
    (
        "pg_catalog.array_to_string(ARRAY(\n    SELECT polname",
        "WHERE polrelid = c.oid), E'\\n')",
        "''",
    ),
    (
        "pg_catalog.array_to_string(array(select x from pg_catalog.unnest(evttags",
        "as t(x)), ', ')",
        "''",
    ),
    (
        "pg_catalog.array_to_string(ARRAY(SELECT   pg_catalog.quote_ident(option_name)",
        ")),  ', ')",
        "''",
    ),
    (
        "FROM pg_catalog.pg_partition_tree(",
        ") ppt",
        "FROM (SELECT 0 AS relid, true AS isleaf, 0 AS level WHERE false) ppt",
    ),
    (
        "( SELECT t.alias FROM\n    pg_catalog.ts_token_type(",
        "m.maptokentype )",
        "''",
    ),
    (
        "pg_catalog.btrim(\n    ARRAY( SELECT mm.mapdict",
        "'{}')",
        "''",
    ),
    (
        "pg_catalog.ts_token_type( '",
        ") as t",
        "(SELECT '' AS alias, '' AS description WHERE false) AS t",
    ),
    (
        ", p.proname AS \"Function\"\nFROM pg_catalog.pg_amproc",
        " ap\n",
        ", ap.amproc AS \"Function\"\nFROM pg_catalog.pg_amproc ap\n",
    ),
    (
        "LEFT JOIN pg_catalog.pg_proc p ON ap.amproc = p.oid",
        "\n",
        "\n",
    ),
];

/// The statement with what stands for the parts that the planner does not know; `None` if it has none.
pub(crate) fn without_unknown_parts(sql: &str) -> Option<String> {
    let mut left = None;
    for (begin, end, stand_in) in STAND_INS {
        let text = left.as_deref().unwrap_or(sql);
        if let Some(from) = text.find(begin)
            && let Some(length) = text[from + begin.len()..].find(end)
        {
            let rest = &text[from + begin.len() + length + end.len()..];
            left = Some(format!("{}{stand_in}{rest}", &text[..from]));
        }
    }
    left
}

/// Refuses psql's `\sf`, which looks for the text of a function.
///
/// # Errors
/// If the statement is that of `\sf`.
pub(crate) fn refuse_function_text(folded: &str) -> SqlResult<()> {
    let asked = ["regproc", "regprocedure"].iter().any(|kind| {
        let end = format!("'::pg_catalog.{kind}::pg_catalog.oid");
        folded.trim_end().ends_with(&end) && folded.starts_with("select '")
    });
    if asked {
        let message = "functions are built in and have no text; \\df lists them";
        return Err(SqlError::unsupported(message));
    }
    Ok(())
}

/// Rewrites a statement by the library's rules.
pub(crate) fn rewrite_for_catalog(statement: &mut Statement) {
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
        if let Some(replaced) = oid_or_null(expr).or_else(|| view_definition(expr)) {
            *expr = replaced;
            return ControlFlow::Continue(());
        }
        name_no_function(expr);
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
            // The library's tables have functions by their names already.
            let is_name = matches!(
                value.as_ref(),
                Expr::Identifier(_) | Expr::CompoundIdentifier(_)
            );
            if is_name && kind.starts_with("regproc") {
                *expr = value.as_ref().clone();
            }
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

/// Compares a function of `pg_type` with the name `-` of no function, where it was compared with the
/// OID 0: the library's tables have functions by their names.
fn name_no_function(expr: &mut Expr) {
    const FUNCTIONS: [&str; 8] = [
        "typinput",
        "typoutput",
        "typreceive",
        "typsend",
        "typmodin",
        "typmodout",
        "typanalyze",
        "typsubscript",
    ];
    let Expr::BinaryOp {
        left,
        op: ast::BinaryOperator::Eq | ast::BinaryOperator::NotEq,
        right,
    } = expr
    else {
        return;
    };
    let column = match left.as_ref() {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(names) => names.last(),
        _ => None,
    };
    let is_function =
        column.is_some_and(|name| FUNCTIONS.contains(&name.value.to_ascii_lowercase().as_str()));
    if let Expr::Value(value) = right.as_mut()
        && is_function
        && matches!(&value.value, Value::Number(number, _) if number == "0")
    {
        value.value = Value::SingleQuotedString("-".to_owned());
    }
}

/// The cast that a call such as `to_regclass('t')` stands for: the OID, or NULL if there is no such
/// name.
fn oid_or_null(expr: &Expr) -> Option<Expr> {
    const CALLS: [(&str, &str); 3] = [
        ("to_regclass", "regclass"),
        ("to_regproc", "regproc"),
        ("to_regnamespace", "regnamespace"),
    ];
    let Expr::Function(function) = expr else {
        return None;
    };
    let name = function.name.0.last()?.as_ident()?.value.to_lowercase();
    let (_, kind) = CALLS.iter().find(|(call, _)| *call == name)?;
    let ast::FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(name))] = list.args.as_slice() else {
        return None;
    };
    // A name may be qualified by its schema, and quoted; that of a table stays as it is written.
    let mut name = name.clone();
    if *kind != "regclass"
        && let Expr::Value(value) = &mut name
        && let Value::SingleQuotedString(text) = &mut value.value
    {
        let plain = text.rsplit('.').next().unwrap_or_default().trim();
        *text = match plain
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
        {
            Some(quoted) => quoted.replace("\"\"", "\""),
            None => plain.to_lowercase(),
        };
    }
    Some(Expr::Cast {
        kind: ast::CastKind::DoubleColon,
        expr: Box::new(name),
        data_type: ast::DataType::Custom(
            ast::ObjectName::from(vec![ast::Ident::new(*kind)]),
            Vec::new(),
        ),
        array: false,
        format: None,
    })
}

/// The query for which a call of `pg_get_viewdef` stands: that of a view, by its OID or its name.
fn view_definition(expr: &Expr) -> Option<Expr> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let name = function.name.0.last()?.as_ident()?;
    let ast::FunctionArguments::List(list) = &function.args else {
        return None;
    };
    if !name.value.eq_ignore_ascii_case("pg_get_viewdef") {
        return None;
    }
    let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(asked)) = list.args.first()? else {
        return None;
    };
    let is_name = matches!(
        asked,
        Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_))
    );
    let column = if is_name { "relname" } else { "oid" };
    let query = format!(
        "(SELECT max(of_view.definition) FROM pg_catalog.pg_views AS of_view JOIN \
         pg_catalog.pg_class AS as_class ON as_class.relname = of_view.viewname WHERE \
         as_class.{column} = {asked})"
    );
    let mut parser = Parser::new(&PostgreSqlDialect {})
        .try_with_sql(&query)
        .ok()?;
    parser.parse_expr().ok()
}

fn rewritten(mut statement: ast::Statement) -> ast::Statement {
    replace_table_oids(&mut statement);
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
