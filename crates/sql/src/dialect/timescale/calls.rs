//! Reads the calls of TimescaleDB that change something: `SELECT create_hypertable('t', 'time')`,
//! `SELECT * FROM create_hypertable(…)`, `CALL add_columnstore_policy(…)`.
//!
//! Such a call is a statement of its own. Inside another statement it would act once, never, or for
//! every row, depending on the plan, so it is refused there.

use crate::dialect::ast_walk::walk;
use crate::dialect::grammar::MarigramDialect;
use crate::dialect::hypertable_functions::{
    ADD_BY_DIMENSION, CREATE_BY_DIMENSION, FUNCTIONS, FunctionDescription, HypertableFunction, find,
};
use crate::dialect::identifiers::parse_target;
use crate::dialect::statement::{
    CallAnswerForm, HypertableCall, HypertableStatement, TableReferenceName,
};
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Query, Select,
    SelectItem, SetExpr, Statement, TableFactor, Value, Visitor,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use std::ops::ControlFlow;

/// Longest statement that is looked at; the calls are short.
const STATEMENT_BYTES_MAX: usize = 64 << 10;

/// Whether a statement, in lower case, may have such a call.
pub(crate) fn may_act(folded: &str) -> bool {
    folded.len() <= STATEMENT_BYTES_MAX
        && FUNCTIONS
            .iter()
            .any(|function| folded.contains(function.name))
}

/// The calls of a statement, if it consists of them; `None` for a statement that has none.
///
/// # Errors
/// If a call stands anywhere else, or has wrong arguments.
pub(crate) fn acting_calls(parsed: &mut Parsed) -> SqlResult<Option<HypertableStatement>> {
    if let Parsed::Statement(statement) = parsed {
        if let Some(found) = top_level(statement)? {
            return Ok(Some(found));
        }
        refuse_nested(statement)?;
    } else if let Parsed::Explain(explain) = parsed
        && let Parsed::Statement(statement) = explain.statement.as_ref()
    {
        refuse_nested(statement)?;
    }
    Ok(None)
}

fn top_level(statement: &mut Statement) -> SqlResult<Option<HypertableStatement>> {
    match statement {
        Statement::Call(function) => {
            let Some(description) = described(&function.name) else {
                return Ok(None);
            };
            let calls = vec![call_of(description, function)?];
            Ok(Some(HypertableStatement {
                calls,
                form: CallAnswerForm::Nothing,
            }))
        }
        Statement::Query(query) => selected(query),
        _ => Ok(None),
    }
}

/// The calls that a query consists of.
fn selected(query: &mut Query) -> SqlResult<Option<HypertableStatement>> {
    let is_plain = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Ok(None);
    };
    if without_storage_calls(select) {
        return Ok(None);
    }
    if !is_plain || !has_no_clause(select) {
        return Ok(None);
    }
    if select.from.is_empty() {
        return listed(select);
    }
    let [table] = select.from.as_slice() else {
        return Ok(None);
    };
    let TableFactor::Table {
        name,
        args: Some(arguments),
        ..
    } = &table.relation
    else {
        return Ok(None);
    };
    let Some(description) = described(name) else {
        return Ok(None);
    };
    let is_all = matches!(select.projection.as_slice(), [SelectItem::Wildcard(_)]);
    if !is_all || !table.joins.is_empty() {
        return Err(refused(description.name));
    }
    let call = call_with(description, &arguments.args)?;
    Ok(Some(HypertableStatement {
        calls: vec![call],
        form: CallAnswerForm::Columns,
    }))
}

/// `SELECT call, call, …`
fn listed(select: &Select) -> SqlResult<Option<HypertableStatement>> {
    let mut calls = Vec::new();
    for item in &select.projection {
        let (expr, alias) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(fold_case(alias))),
            _ => return Ok(None),
        };
        let Expr::Function(function) = expr else {
            return Ok(None);
        };
        let Some(description) = described(&function.name) else {
            return Ok(None);
        };
        let mut call = call_of(description, function)?;
        call.column = alias.unwrap_or(call.column);
        calls.push(call);
    }
    if calls.is_empty() {
        return Ok(None);
    }
    if calls.len() > 1 && calls.iter().any(|call| call.description.returns_set()) {
        return Err(SqlError::unsupported(
            "drop_chunks returns any number of rows; send it as a statement of its own",
        ));
    }
    Ok(Some(HypertableStatement {
        calls,
        form: CallAnswerForm::Values,
    }))
}

/// Whether a SELECT has nothing but a list and FROM.
fn has_no_clause(select: &Select) -> bool {
    select.selection.is_none()
        && select.having.is_none()
        && select.distinct.is_none()
        && select.into.is_none()
        && select.qualify.is_none()
}

/// `SELECT compress_chunk(c) FROM show_chunks('t') c` selects the names of chunks: compaction stores them.
pub(super) fn without_storage_calls(select: &mut Select) -> bool {
    if select.from.is_empty() {
        return false;
    }
    let mut is_found = false;
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            continue;
        };
        let Expr::Function(function) = &*expr else {
            continue;
        };
        let description = described(&function.name);
        let Some(description) = description else {
            continue;
        };
        if description.function != HypertableFunction::ChunkStorage {
            continue;
        }
        let Some(chunk) = expressions(function).first().copied().cloned() else {
            continue;
        };
        let alias = match item {
            SelectItem::ExprWithAlias { alias, .. } => alias.clone(),
            _ => description.name.into(),
        };
        *item = SelectItem::ExprWithAlias { expr: chunk, alias };
        is_found = true;
    }
    is_found
}

/// The arguments without names.
fn expressions(function: &Function) -> Vec<&Expr> {
    let FunctionArguments::List(list) = &function.args else {
        return Vec::new();
    };
    let values = list.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    values.collect()
}

/// The function of a name, which may begin with a schema of TimescaleDB's functions.
pub(super) fn described(name: &ObjectName) -> Option<&'static FunctionDescription> {
    const SCHEMAS: [&str; 3] = ["public", "_timescaledb_functions", "_timescaledb_internal"];
    let parts: Option<Vec<String>> = name
        .0
        .iter()
        .map(|part| part.as_ident().map(fold_case))
        .collect();
    match parts?.as_slice() {
        [name] => find(name),
        [schema, name] if SCHEMAS.contains(&schema.as_str()) => find(name),
        _ => None,
    }
}

fn call_of(
    description: &'static FunctionDescription,
    function: &Function,
) -> SqlResult<HypertableCall> {
    let is_plain = function.filter.is_none() && function.over.is_none();
    match &function.args {
        FunctionArguments::List(list) if is_plain => call_with(description, &list.args),
        _ => Err(refused(description.name)),
    }
}

fn call_with(
    description: &'static FunctionDescription,
    arguments: &[FunctionArg],
) -> SqlResult<HypertableCall> {
    if let HypertableFunction::Refused(instead) = description.function {
        let message = format!("{} is not supported; {instead}", description.name);
        return Err(SqlError::named("0A000", description.name, message));
    }
    let mut call = HypertableCall {
        description,
        target: None,
        arguments: Vec::new(),
        is_by_dimension: false,
        column: description.name.to_owned(),
    };
    let names = names_of(description, arguments);
    call.is_by_dimension = names.contains(&"dimension");
    for (name, value) in matched(description.name, names, arguments)? {
        if name == "dimension" {
            dimension(&mut call, value)?;
        } else if call.description.names_table() && name == names[0] {
            call.target = Some(relation(description.name, value)?);
        } else {
            call.arguments.push((name, argument_text(value)));
        }
    }
    if call.target.is_none() && description.names_table() {
        let message = format!("{} needs the name of a table or view", description.name);
        return Err(SqlError::named("42883", description.name, message));
    }
    Ok(call)
}

/// The names of the arguments: a dimension instead of a column makes them others.
fn names_of(
    description: &FunctionDescription,
    arguments: &[FunctionArg],
) -> &'static [&'static str] {
    let has_dimension = arguments.iter().any(|argument| match argument {
        FunctionArg::Named { name, .. } => name.value.eq_ignore_ascii_case("dimension"),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(function))) => {
            let name = function.name.to_string().to_lowercase();
            name == "by_range" || name == "by_hash"
        }
        _ => false,
    });
    match description.function {
        HypertableFunction::CreateHypertable if has_dimension => CREATE_BY_DIMENSION,
        HypertableFunction::AddDimension if has_dimension => ADD_BY_DIMENSION,
        _ => description.arguments,
    }
}

/// The arguments with their names.
pub(super) fn matched<'a>(
    function: &str,
    names: &'static [&'static str],
    arguments: &'a [FunctionArg],
) -> SqlResult<Vec<(&'static str, &'a Expr)>> {
    let mut found = Vec::with_capacity(arguments.len());
    for (position, argument) in arguments.iter().enumerate() {
        let (name, value) = match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (None, value),
            FunctionArg::Named {
                name,
                arg: FunctionArgExpr::Expr(value),
                ..
            } => (Some(fold_case(name)), value),
            other => {
                let message = format!("{function} has no argument '{other}'");
                return Err(SqlError::named("42883", function, message));
            }
        };
        let place = match &name {
            None => names.get(position),
            Some(name) => names.iter().find(|known| *known == name),
        };
        let Some(place) = place else {
            let given = name.unwrap_or_else(|| value.to_string());
            let known = names.join(", ");
            let message =
                format!("{function} has no argument '{given}'; its arguments are {known}");
            return Err(SqlError::named("42883", &given, message));
        };
        if found.iter().any(|(known, _)| known == place) {
            let message = format!("{function}: argument '{place}' is given twice");
            return Err(SqlError::named("42601", place, message));
        }
        found.push((*place, value));
    }
    Ok(found)
}

/// `by_range('time', INTERVAL '1 day')` or `by_hash('device', 4)`, as the arguments that say the same.
fn dimension(call: &mut HypertableCall, value: &Expr) -> SqlResult<()> {
    let wrong = || {
        let message = "a dimension is by_range('time', INTERVAL '1 day') or by_hash('device', 4)";
        SqlError::named("22023", "dimension", message)
    };
    let Expr::Function(function) = value else {
        return Err(wrong());
    };
    let FunctionArguments::List(list) = &function.args else {
        return Err(wrong());
    };
    let name = function.name.to_string().to_lowercase();
    let (names, column, rest): (&'static [&'static str], _, _) = match name.as_str() {
        "by_range" => (
            &["column_name", "partition_interval", "partition_func"],
            "time_column_name",
            "chunk_time_interval",
        ),
        "by_hash" => (
            &["column_name", "number_partitions", "partition_func"],
            "partitioning_column",
            "number_partitions",
        ),
        _ => return Err(wrong()),
    };
    for (given, value) in matched(&name, names, &list.args)? {
        let means = match given {
            "column_name" => column,
            "partition_func" => "partitioning_func",
            _ => rest,
        };
        call.arguments.push((means, argument_text(value)));
    }
    Ok(())
}

/// An argument as SQL; a text that is cast to a name stays a text.
fn argument_text(value: &Expr) -> String {
    const NAMES: [&str; 3] = ["name", "regclass", "text"];
    match value {
        Expr::Cast {
            expr, data_type, ..
        } if NAMES.contains(&data_type.to_string().to_lowercase().as_str()) => expr.to_string(),
        other => other.to_string(),
    }
}

/// The expression inside casts to names of tables.
pub(super) fn without_cast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => without_cast(expr),
        other => other,
    }
}

/// A literal text, inside casts to names of tables.
pub(super) fn literal(expr: &Expr) -> Option<&str> {
    match without_cast(expr) {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        Expr::TypedString(typed) => match &typed.value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// The table that a text names: `'t'`, `'public.t'`, `'"T"'`.
fn relation(function: &str, value: &Expr) -> SqlResult<TableReferenceName> {
    let Some(text) = literal(value) else {
        let message = format!("{function} takes the name of a table or view as a text, as in 't'");
        return Err(SqlError::named("0A000", function, message));
    };
    target_of_text(text)
}

/// The table that a text names.
///
/// # Errors
/// If it is not the name of a table.
pub(crate) fn target_of_text(text: &str) -> SqlResult<TableReferenceName> {
    let dialect = MarigramDialect;
    let mut parser = Parser::new(&dialect).try_with_sql(text)?;
    let target = parse_target(&mut parser)?;
    match parser.peek_token() {
        end if end.token == Token::EOF => Ok(target),
        found => Ok(parser.expected("the end of the name", found)?),
    }
}

fn refused(function: &str) -> SqlError {
    let message = format!(
        "{function} changes something, so it is a statement of its own: SELECT {function}(…), or \
         CALL {function}(…)"
    );
    SqlError::named("0A000", function, message)
}

/// Refuses calls inside another statement.
fn refuse_nested(statement: &Statement) -> SqlResult<()> {
    struct CallFinder;

    impl Visitor for CallFinder {
        type Break = &'static str;

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<&'static str> {
            match expr {
                Expr::Function(function) => found(&function.name),
                _ => ControlFlow::Continue(()),
            }
        }

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<&'static str> {
            match factor {
                TableFactor::Table {
                    name,
                    args: Some(_),
                    ..
                } => found(name),
                _ => ControlFlow::Continue(()),
            }
        }
    }

    fn found(name: &ObjectName) -> ControlFlow<&'static str> {
        match described(name) {
            Some(description) => ControlFlow::Break(description.name),
            None => ControlFlow::Continue(()),
        }
    }

    match walk(statement, &mut CallFinder) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(name) => Err(refused(name)),
    }
}

#[cfg(test)]
mod tests {
    use crate::dialect::parse::parse;
    use crate::dialect::statement::{CallAnswerForm, Command, HypertableCall};

    fn calls(sql: &str) -> (Vec<HypertableCall>, CallAnswerForm) {
        match parse(sql) {
            Ok(Command::Hypertable(statement)) => (statement.calls, statement.form),
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn calls_are_read_in_all_spellings() {
        for (sql, arguments) in [
            (
                "SELECT create_hypertable('t', 'time', chunk_time_interval => INTERVAL '1 day')",
                vec!["time_column_name", "chunk_time_interval"],
            ),
            (
                "select * from create_hypertable('public.t'::regclass, by_range('time', 86400000000))",
                vec!["time_column_name", "chunk_time_interval"],
            ),
            (
                "SELECT public.create_hypertable('t', by_hash('dev', 4), if_not_exists => true) AS x",
                vec!["partitioning_column", "number_partitions", "if_not_exists"],
            ),
            (
                "CALL add_columnstore_policy('t', after => INTERVAL '7d')",
                vec!["after"],
            ),
            ("select timescaledb_pre_restore();", vec![]),
            (
                "SELECT alter_job(1000, scheduled => false)",
                vec!["job_id", "scheduled"],
            ),
        ] {
            let (calls, _) = calls(sql);
            let names: Vec<&str> = calls[0].arguments.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, arguments, "{sql}");
        }
        let (both, form) =
            calls("SELECT create_hypertable('a', 'time'), create_hypertable('b', 'time')");
        assert_eq!((both.len(), form), (2, CallAnswerForm::Values));
        assert_eq!(both[1].target.as_ref().unwrap().table, "b");
    }

    #[test]
    fn calls_inside_other_statements_are_refused() {
        for sql in [
            "SELECT create_hypertable('t', 'time') FROM u",
            "SELECT 1, create_hypertable('t', 'time')",
            "SELECT * FROM u WHERE drop_chunks('t', now()) IS NULL",
            "SELECT created FROM create_hypertable('t', 'time')",
            "EXPLAIN SELECT create_hypertable('t', 'time')",
            "INSERT INTO u SELECT add_retention_policy('t', INTERVAL '1 day')",
            "WITH x AS (SELECT drop_chunks('t')) SELECT * FROM x",
            "SELECT add_job('f', '1 day')",
        ] {
            let error = parse(sql).expect_err(sql).into_service(sql);
            assert_eq!(error.sqlstate(), "0A000", "{sql}: {error}");
        }
    }

    #[test]
    fn storing_chunks_selects_their_names() {
        for sql in [
            "SELECT compress_chunk(c) FROM show_chunks('t') c",
            "SELECT decompress_chunk(c, true) FROM show_chunks('t', older_than => now()) AS c",
        ] {
            assert!(matches!(parse(sql), Ok(Command::Plan(..))), "{sql}");
        }
    }
}
