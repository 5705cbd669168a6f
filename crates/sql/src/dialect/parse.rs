//! Parses text into a [`Command`]: splits scripts and reads Marigram's own statements.
//!
//! sqlparser reads everything else in PostgreSQL's dialect. Statements about PostgreSQL's catalogs
//! also pass through the rewrite rules of `catalog_statements`.

use crate::dialect::access_syntax;
use crate::dialect::array_literals::{self, ArrayLiterals};
use crate::dialect::array_subqueries::ArraySubqueries;
use crate::dialect::asof_syntax;
use crate::dialect::ast_walk::walk_mut;
use crate::dialect::at_time_zone::{AtTimeZone, may_name_zone};
use crate::dialect::balance::balance;
use crate::dialect::casts::{self, NamedCasts};
use crate::dialect::catalog_statements::{
    asks_postgres, known_by_text, refuse_function_text, rewrite_for_catalog, without_unknown_parts,
};
use crate::dialect::client_statements::stand_in;
use crate::dialect::column_names::{Names, OutputNames, alias_outermost, name_columns};
use crate::dialect::copy_syntax;
use crate::dialect::ddl::{self, materialized_views, query};
use crate::dialect::deleted_alias::unalias_deleted;
use crate::dialect::exact_numbers::{self, ExactNumbers};
use crate::dialect::from_first::{self, FromFirst};
use crate::dialect::grammar::MarigramDialect;
use crate::dialect::grouping_forms::{self, GroupingForms};
use crate::dialect::identifiers::{accept_words, end, parse_name, parse_target};
use crate::dialect::index_definitions::{self, IndexDefinitions};
use crate::dialect::inserted_lists::rewrite_inserted_lists;
use crate::dialect::json_calls::{self, JsonCalls};
use crate::dialect::latest_on;
use crate::dialect::literal_scales::{self, LiteralScales};
use crate::dialect::named;
use crate::dialect::named_windows::{self, NamedWindows};
use crate::dialect::nested_exists::{self, NestedExists};
use crate::dialect::nesting::StatementNesting;
use crate::dialect::other_statements;
use crate::dialect::postgres_calls::{self, PostgresCalls};
use crate::dialect::recursions;
use crate::dialect::reference;
use crate::dialect::rewriting::{
    ExpandSubscripts, OtherEscapes, RefuseIgnoredClauses, RenameDuplicateColumns, RewriteSimilarTo,
    explained, rewrite,
};
use crate::dialect::sample::syntax as sample;
use crate::dialect::series::{self, SeriesInFrom};
use crate::dialect::set_returning::{self, SetReturning};
use crate::dialect::standard_forms::{self, StandardForms};
use crate::dialect::statement::{Command, ShowStatement};
use crate::dialect::table_queries;
use crate::dialect::timescale::accessors::{self, SummaryAccessors};
use crate::dialect::timescale::{calls, readings};
use crate::dialect::transactions;
use crate::dialect::trim_from;
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use crate::stack::{DeepTree, NESTED_MAX, StackNeed};
use datafusion::sql::parser::{CopyToSource, DFParserBuilder, ParserInput, Statement};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use std::collections::HashSet;
use std::sync::Arc;

/// The longest accepted script, bytes.
const STATEMENT_BYTES_MAX: usize = 64 << 20;

/// The name of the schema that holds the tables' series (see `catalog`).
pub(crate) const SERIES_SCHEMA: &str = "marigram_series";

/// Converts locations (line and column) of a text to bytes, for ascending locations.
struct TextOffsets<'a> {
    text: &'a str,
    at: Location,
    byte: usize,
}

impl<'a> TextOffsets<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: Location { line: 1, column: 1 },
            byte: 0,
        }
    }

    /// The byte at `location`, which must not be before the previous one.
    fn byte(&mut self, location: Location) -> usize {
        for ch in self.text[self.byte..].chars() {
            if self.at >= location {
                break;
            }
            self.byte += ch.len_utf8();
            if ch == '\n' {
                self.at = Location {
                    line: self.at.line + 1,
                    column: 1,
                };
            } else {
                self.at.column += 1;
            }
        }
        self.byte
    }
}

fn tokenize(sql: &str) -> SqlResult<Vec<TokenWithSpan>> {
    if sql.len() > STATEMENT_BYTES_MAX {
        let message = format!("a statement may have at most {STATEMENT_BYTES_MAX} bytes");
        return Err(SqlError::invalid("54000", message));
    }
    Tokenizer::new(&MarigramDialect, sql)
        .tokenize_with_location()
        .map_err(|error| SqlError::from(ParserError::from(error)))
}

/// Parses one statement; a semicolon at its end is allowed.
///
/// # Errors
/// If it is not a statement, or not one that Marigram supports, or nested too deeply.
pub(crate) fn parse(sql: &str) -> SqlResult<Command> {
    let sql = stand_in(sql);
    let tokens = tokenize(sql)?;
    let nesting = StatementNesting::from_tokens(&tokens);
    nesting.check()?;
    let need = nesting.parse_need();
    let parsed = need.run_anywhere(|| parse_tokens(sql, tokens, nesting));
    parsed.map_err(|error| {
        let is_too_deep = recursions::is_syntax_error(&error)
            && tokenize(sql).is_ok_and(|tokens| recursions::is_too_deep(&tokens));
        if is_too_deep {
            ParserError::RecursionLimitExceeded.into()
        } else {
            error
        }
    })
}

fn parse_tokens(
    sql: &str,
    tokens: Vec<TokenWithSpan>,
    nesting: StatementNesting,
) -> SqlResult<Command> {
    let words = leading_words(&tokens);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words.is_empty()
        && !tokens
            .iter()
            .any(|t| !matches!(t.token, Token::Whitespace(_)))
    {
        return Err(SqlError::syntax("the statement is empty"));
    }
    let dialect = MarigramDialect;
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(NESTED_MAX)
        .with_tokens_with_locations(tokens);
    let own = own_statement(&mut parser, &words, sql)?;
    match own {
        Some(command) => {
            end(&mut parser)?;
            Ok(command)
        }
        None => foreign_statement(sql, &words, nesting),
    }
}

/// The first words in upper case, up to the first token that is not a word.
fn leading_words(tokens: &[TokenWithSpan]) -> Vec<String> {
    let significant = tokens
        .iter()
        .filter(|t| !matches!(t.token, Token::Whitespace(_)));
    significant
        .take(6)
        .map_while(|token| match &token.token {
            Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_uppercase()),
            _ => None,
        })
        .collect()
}

/// The text between two locations of a statement.
fn between(sql: &str, start: Location, end: Location) -> String {
    let mut offsets = TextOffsets::new(sql);
    let (start, end) = (offsets.byte(start), offsets.byte(end));
    sql[start..end].to_owned()
}

/// `SUMMARIZE table | query`
fn summarized(parser: &mut Parser<'_>, sql: &str) -> SqlResult<Command> {
    const QUERIES: [&str; 5] = ["SELECT", "WITH", "FROM", "VALUES", "SUMMARIZE"];
    parser.next_token();
    let first = parser.peek_token();
    let is_query = match &first.token {
        Token::LParen => true,
        Token::Word(word) if word.quote_style.is_none() => {
            QUERIES.contains(&word.value.to_uppercase().as_str())
        }
        _ => false,
    };
    if first.token == Token::EOF {
        return Ok(parser.expected("a table or a query", first)?);
    }
    let mut end = first.span.start;
    while !matches!(parser.peek_token().token, Token::EOF | Token::SemiColon) {
        end = parser.next_token().span.end;
    }
    let rest = between(sql, first.span.start, end);
    let query = if is_query {
        rest
    } else {
        format!("SELECT * FROM {rest}")
    };
    match parse(&query)? {
        Command::Plan(mut statement, _) => {
            alias_outermost(&mut statement);
            Ok(Command::Summarize(statement))
        }
        _ => Err(SqlError::syntax("SUMMARIZE takes a table or a query")),
    }
}

fn own_statement(
    parser: &mut Parser<'_>,
    leading: &[&str],
    sql: &str,
) -> SqlResult<Option<Command>> {
    let command = match leading {
        ["CREATE", "DATABASE", ..] => ddl::create_database(parser)?,
        ["CREATE", "TABLE", ..] => {
            reference::create_table(parser, tokenize(sql)?, |start, end| {
                between(sql, start, end)
            })?
        }
        ["CREATE", "TEMP" | "TEMPORARY" | "GLOBAL" | "LOCAL", ..] => {
            match reference::create_temporary_table(parser, tokenize(sql)?)? {
                Some(table) => table,
                None => return other_statements::other_statement(parser, leading),
            }
        }
        ["CREATE", "VIEW", ..] | ["CREATE", "OR", "REPLACE", "VIEW", ..] => {
            query::create_view(parser, |start, end| between(sql, start, end))?
        }
        ["DROP", "VIEW", ..] => query::drop_view(parser)?,
        ["ALTER", "VIEW", ..] => query::rename_view(parser)?,
        ["CREATE", "INDEX", ..] | ["CREATE", "UNIQUE", "INDEX", ..] => {
            reference::create_index(parser, tokenize(sql)?)?
        }
        ["DROP", "INDEX", ..] => reference::drop_index(parser)?,
        ["TRUNCATE", ..] => query::truncate(parser)?,
        ["SUMMARIZE", ..] => summarized(parser, sql)?,
        ["DROP", "DATABASE", ..] => ddl::drop_database(parser)?,
        ["DROP", "TABLE", ..] => ddl::drop_table(parser)?,
        ["ALTER", "TABLE", ..] => reference::alter_table(parser, tokenize(sql)?)?,
        ["CREATE", "MATERIALIZED", "VIEW", ..] => {
            materialized_views::create(parser, |start, end| between(sql, start, end))?
        }
        ["ALTER", "MATERIALIZED", "VIEW", ..] => materialized_views::alter(parser)?,
        ["DROP", "MATERIALIZED", "VIEW", ..] => materialized_views::drop(parser)?,
        ["REFRESH", "MATERIALIZED", "VIEW", ..] => materialized_views::refresh(parser)?,
        ["USE", ..] => {
            parser.next_token();
            accept_words(parser, &["DATABASE"]);
            Command::Use(parse_name(parser)?)
        }
        ["CREATE" | "ALTER" | "DROP", "USER" | "ROLE" | "TOKEN", ..]
        | ["GRANT" | "REVOKE", ..]
        | ["SHOW", "USERS" | "ROLES" | "GRANTS" | "TOKENS", ..] => {
            let statement = access_syntax::parse_access(parser, leading)?;
            return Ok(statement.map(Command::Access));
        }
        ["SHOW", "SERIES", ..] => return Ok(None),
        ["SHOW", ..] => Command::Show(show(parser)?),
        ["DESCRIBE" | "DESC", ..] => {
            parser.next_token();
            accept_words(parser, &["TABLE"]);
            Command::Show(ShowStatement::Columns(parse_target(parser)?))
        }
        ["SET" | "RESET" | "DISCARD", ..] => crate::dialect::session_syntax::parse_set(parser)?,
        ["FLUSH", ..] => {
            parser.next_token();
            Command::Flush
        }
        ["COMPACT", "TABLE", ..] => {
            accept_words(parser, &["COMPACT", "TABLE"]);
            Command::CompactTable(parse_target(parser)?)
        }
        ["COMPACT", ..] => {
            parser.next_token();
            Command::Compact
        }
        ["COPY", ..] => match copy_syntax::parse_from(parser)? {
            Some(copy) => Command::CopyFrom(copy),
            None => return Ok(None),
        },
        ["COMMIT" | "ROLLBACK", "PREPARED", ..] => {
            return Err(SqlError::unsupported(
                "prepared transactions are not supported; COMMIT or ROLLBACK the transaction",
            ));
        }
        [
            "BEGIN" | "COMMIT" | "END" | "ROLLBACK" | "ABORT" | "SAVEPOINT" | "RELEASE",
            ..,
        ]
        | ["START", "TRANSACTION", ..] => transactions::parse_step(parser)?,
        ["DEALLOCATE", ..] => rest_of(parser, "DEALLOCATE"),
        ["CLOSE", ..] => rest_of(parser, "CLOSE CURSOR"),
        ["UNLISTEN", ..] => rest_of(parser, "UNLISTEN"),
        ["CALL", ..] if calls::may_act(&sql.to_ascii_lowercase()) => return Ok(None),
        _ => return other_statements::other_statement(parser, leading),
    };
    Ok(Some(command))
}

/// Skips to the end of a statement that has no effect.
fn rest_of(parser: &mut Parser<'_>, tag: &'static str) -> Command {
    while !matches!(parser.peek_token().token, Token::EOF | Token::SemiColon) {
        parser.next_token();
    }
    Command::Nothing(tag)
}

fn show(parser: &mut Parser<'_>) -> SqlResult<ShowStatement> {
    parser.next_token();
    if accept_words(parser, &["DATABASES"]) {
        return Ok(ShowStatement::Databases);
    }
    if accept_words(parser, &["TABLES"]) {
        let from = accept_words(parser, &["FROM"]) || accept_words(parser, &["IN"]);
        return Ok(ShowStatement::Tables(if from {
            Some(parse_name(parser)?)
        } else {
            None
        }));
    }
    if accept_words(parser, &["MATERIALIZED", "VIEWS"]) {
        let from = accept_words(parser, &["FROM"]) || accept_words(parser, &["IN"]);
        return Ok(ShowStatement::Views(if from {
            Some(parse_name(parser)?)
        } else {
            None
        }));
    }
    if accept_words(parser, &["COLUMNS"]) {
        if !(accept_words(parser, &["FROM"]) || accept_words(parser, &["IN"])) {
            let found = parser.peek_token();
            return Ok(parser.expected("FROM and a table", found)?);
        }
        return Ok(ShowStatement::Columns(parse_target(parser)?));
    }
    if accept_words(parser, &["CREATE", "TABLE"]) {
        return Ok(ShowStatement::CreateTable(parse_target(parser)?));
    }
    if accept_words(parser, &["SEGMENTS"]) {
        let from = accept_words(parser, &["FROM"]) || accept_words(parser, &["IN"]);
        return Ok(ShowStatement::Segments(if from {
            Some(parse_target(parser)?)
        } else {
            None
        }));
    }
    if accept_words(parser, &["PAGES"]) {
        return pages(parser);
    }
    if accept_words(parser, &["COMPACTIONS"]) {
        return Ok(ShowStatement::Compactions);
    }
    if accept_words(parser, &["ALL"]) {
        return Ok(ShowStatement::All);
    }
    if accept_words(parser, &["TIME", "ZONE"]) {
        return Ok(ShowStatement::Variable("timezone".into()));
    }
    if accept_words(parser, &["TRANSACTION", "ISOLATION", "LEVEL"]) {
        return Ok(ShowStatement::Variable("transaction_isolation".into()));
    }
    let mut variable = parse_name(parser)?;
    while parser.consume_token(&Token::Period) {
        variable = format!("{variable}.{}", parse_name(parser)?);
    }
    Ok(ShowStatement::Variable(variable.to_lowercase()))
}

/// `FROM table [SEGMENT number] [LIMIT pages]`
fn pages(parser: &mut Parser<'_>) -> SqlResult<ShowStatement> {
    if !(accept_words(parser, &["FROM"]) || accept_words(parser, &["IN"])) {
        let found = parser.peek_token();
        return Ok(parser.expected("FROM and a table", found)?);
    }
    let target = parse_target(parser)?;
    let mut number = |word: &str| -> SqlResult<Option<u64>> {
        let is_there = accept_words(parser, &[word]);
        Ok(if is_there {
            Some(parser.parse_literal_uint()?)
        } else {
            None
        })
    };
    Ok(ShowStatement::Pages {
        target,
        segment: number("SEGMENT")?,
        limit: number("LIMIT")?,
    })
}

fn foreign_statement(sql: &str, leading: &[&str], nesting: StatementNesting) -> SqlResult<Command> {
    let need = nesting.parse_need().max(nesting.plan_need());
    // The text is folded once: it may have 64 MiB, and every pass asks whether it is needed.
    let folded = sql.to_ascii_lowercase();
    if calls::may_act(&folded)
        // What does not parse yet has clauses that are rewritten below.
        && let Ok(Command::Plan(mut statement, _)) = one_statement(sql.into(), need)
        && let Some(calls) = calls::acting_calls(&mut statement)?
    {
        return Ok(Command::Hypertable(calls));
    }
    let mut command = planned_statement(sql, &folded, leading, need)?;
    if let Command::Plan(statement, names) = &mut command {
        if nesting.has_long_rows() {
            balance(statement)?;
        }
        if from_first::may_begin_with_from(&folded) {
            rewrite(statement, &mut FromFirst)?;
        }
        // The passes below change the selected expressions.
        *names = name_columns(statement);
        if names.is_some() && asks_postgres(&folded) {
            *names = written_names(sql, need).or_else(|| names.take());
        }
        if array_literals::may_have_some(&folded) {
            rewrite(statement, &mut ArrayLiterals)?;
        }
        if exact_numbers::may_cast_to_numeric(&folded) {
            rewrite(statement, &mut ExactNumbers)?;
        }
        if literal_scales::may_have_some(&folded) {
            rewrite(statement, &mut LiteralScales)?;
        }
        if named::may_name(&folded) {
            rewrite(statement, &mut named::NamedArguments)?;
        }
        if named_windows::may_have_some(&folded) {
            rewrite(statement, &mut NamedWindows::default())?;
        }
        if asof_syntax::may_join(&folded) {
            rewrite(statement, &mut asof_syntax::AsOfJoinMarker)?;
        }
        if nested_exists::may_have_some(&folded) {
            rewrite(statement, &mut NestedExists)?;
        }
        if standard_forms::may_have_some(&folded) {
            rewrite(statement, &mut StandardForms::default())?;
        }
        if grouping_forms::may_have_some(&folded) {
            rewrite(statement, &mut GroupingForms::default())?;
        }
        if json_calls::may_have_some(&folded) {
            rewrite(statement, &mut JsonCalls::default())?;
        }
        if set_returning::may_have_some(&folded) {
            rewrite(statement, &mut SetReturning)?;
        }
        if folded.contains("tablesample") || folded.contains("ordinality") {
            rewrite(statement, &mut RefuseIgnoredClauses)?;
        }
        if series::may_have_some(&folded) {
            rewrite(statement, &mut SeriesInFrom)?;
        }
        if accessors::may_have_some(&folded) {
            rewrite(statement, &mut SummaryAccessors)?;
        }
        if postgres_calls::may_have_some(&folded) {
            rewrite(statement, &mut PostgresCalls)?;
        }
        if folded.contains(index_definitions::NAME) {
            rewrite(statement, &mut IndexDefinitions)?;
        }
        if folded.contains("generate_subscripts") {
            rewrite(statement, &mut ExpandSubscripts)?;
        }
        if folded.contains("array") {
            rewrite(statement, &mut ArraySubqueries)?;
        }
        if folded.contains("escape") {
            rewrite(statement, &mut OtherEscapes)?;
        }
        if folded.contains("similar") {
            rewrite(statement, &mut RewriteSimilarTo)?;
        }
        if may_name_zone(&folded) {
            rewrite(statement, &mut AtTimeZone)?;
        }
    }
    if let Command::Plan(statement, _) = &mut command
        && let Some(statement) = explained(statement)
    {
        rewrite_changes(statement, &folded)?;
    }
    Ok(command)
}

/// Rewrites what changes something in a statement, or in the one that is explained.
fn rewrite_changes(statement: &mut ast::Statement, folded: &str) -> SqlResult<()> {
    if folded.contains("into") {
        other_statements::refuse_into(statement)?;
    }
    if let ast::Statement::Update(update) = statement {
        fold_assigned(update)?;
    }
    if let ast::Statement::Delete(delete) = statement {
        unalias_deleted(delete)?;
    }
    rewrite_inserted_lists(statement)?;
    // The visitor never breaks.
    let _ = walk_mut(statement, &mut RenameDuplicateColumns);
    if casts::may_cast(folded) {
        let _ = walk_mut(statement, &mut NamedCasts);
    }
    Ok(())
}

/// Folds the names that an UPDATE assigns, which the planner takes as they are written.
fn fold_assigned(update: &mut ast::Update) -> SqlResult<()> {
    let mut seen = HashSet::new();
    for assignment in &mut update.assignments {
        if let ast::AssignmentTarget::ColumnName(name) = &mut assignment.target
            && let Some(ast::ObjectNamePart::Identifier(ident)) = name.0.last_mut()
        {
            let folded = fold_case(ident);
            if !seen.insert(folded.clone()) {
                let message = format!("column '{folded}' is assigned twice");
                return Err(SqlError::named("42601", &folded, message));
            }
            *ident = ast::Ident::with_quote('"', folded);
        }
    }
    Ok(())
}

/// The names of a statement's columns as it was written: the rules for PostgreSQL's catalogs change
/// the selected expressions.
fn written_names(sql: &str, need: StackNeed) -> Names {
    let Ok(Command::Plan(written, _)) = one_statement(sql.into(), need) else {
        return None;
    };
    let Statement::Statement(statement) = &*written else {
        return None;
    };
    match statement.as_ref() {
        ast::Statement::Query(query) => Some(Arc::new(OutputNames::from_query(query))),
        _ => None,
    }
}

fn planned_statement(
    sql: &str,
    folded: &str,
    leading: &[&str],
    need: StackNeed,
) -> SqlResult<Command> {
    if let ["SHOW", "SERIES", ..] = leading {
        return show_series(sql, need);
    }
    if let Some(tokens) = rewritten_tokens(sql, folded)? {
        let mut command = one_statement(tokens.into(), need)?;
        if let Command::Plan(statement, _) = &mut command {
            read_tables(statement, folded)?;
        }
        return Ok(command);
    }
    if asks_postgres(folded) {
        refuse_function_text(folded)?;
        let simpler = without_unknown_parts(sql);
        if simpler.is_none()
            && let Some(statement) = known_by_text(sql, folded)?
        {
            return Ok(Command::Plan(DeepTree::new(statement, need), None));
        }
        let mut command = one_statement(simpler.as_deref().unwrap_or(sql).into(), need)?;
        if let Command::Plan(statement, _) = &mut command {
            read_tables(statement, folded)?;
            rewrite_for_catalog(statement);
        }
        return Ok(command);
    }
    let mut command = one_statement(sql.into(), need)?;
    if let Command::Plan(statement, _) = &mut command {
        read_tables(statement, folded)?;
    }
    Ok(command)
}

/// Rewrites the functions of TimescaleDB that describe tables.
fn read_tables(statement: &mut Statement, folded: &str) -> SqlResult<()> {
    if readings::may_have_some(folded) || calls::may_act(folded) {
        rewrite(statement, &mut readings::TableReadings)?;
    }
    Ok(())
}

/// The tokens of a statement whose clauses of DuckDB and QuestDB are rewritten; `None` if it has
/// none.
fn rewritten_tokens(sql: &str, folded: &str) -> SqlResult<Option<Vec<TokenWithSpan>>> {
    let mut tokens = None;
    if from_first::may_begin_with_from(folded) {
        tokens = from_first::expanded(&tokenize(sql)?);
    }
    if table_queries::may_have_some(folded) {
        tokens = match &tokens {
            Some(tokens) => table_queries::expanded(tokens),
            None => table_queries::expanded(&tokenize(sql)?),
        }
        .or(tokens);
    }
    if latest_on::may_have_latest(folded) {
        tokens = match &tokens {
            Some(tokens) => latest_on::expanded(tokens)?,
            None => latest_on::expanded(&tokenize(sql)?)?,
        }
        .or(tokens);
    }
    if trim_from::may_trim(folded) {
        tokens = match &tokens {
            Some(tokens) => trim_from::without_from(tokens),
            None => trim_from::without_from(&tokenize(sql)?),
        }
        .or(tokens);
    }
    if folded.contains("overriding") {
        tokens = match &tokens {
            Some(tokens) => reference::overriding_marked(tokens),
            None => reference::overriding_marked(&tokenize(sql)?),
        }
        .or(tokens);
    }
    if sample::may_sample(folded) {
        let marked = match &tokens {
            Some(tokens) => sample::marked(tokens)?,
            None => sample::marked(&tokenize(sql)?)?,
        };
        tokens = marked.or(tokens);
    }
    Ok(tokens)
}

fn one_statement(input: ParserInput<'_>, need: StackNeed) -> SqlResult<Command> {
    let dialect = MarigramDialect;
    let mut statements = DFParserBuilder::new(input)
        .with_dialect(&dialect)
        .with_recursion_limit(NESTED_MAX)
        .build()?
        .parse_statements()?;
    match (statements.pop_front(), statements.is_empty()) {
        (Some(statement), true) => Ok(Command::Plan(DeepTree::new(statement, need), None)),
        (None, _) => Err(SqlError::syntax("the statement is empty")),
        (Some(_), false) => Err(SqlError::syntax(
            "there is more than one statement; send them one by one",
        )),
    }
}

/// `SHOW SERIES FROM t …` means `SELECT * FROM` the table's series `…`.
fn show_series(sql: &str, need: StackNeed) -> SqlResult<Command> {
    let tokens = tokenize(sql)?;
    let dialect = MarigramDialect;
    let mut parser = Parser::new(&dialect).with_tokens_with_locations(tokens.clone());
    parser.next_token();
    parser.next_token();
    if !(accept_words(&mut parser, &["FROM"]) || accept_words(&mut parser, &["IN"])) {
        let found = parser.peek_token();
        return Ok(parser.expected("FROM and a table", found)?);
    }
    let target = parse_target(&mut parser)?;
    let rest = parser.index();
    let mut query = Tokenizer::new(&dialect, "SELECT * FROM ")
        .tokenize_with_location()
        .map_err(ParserError::from)?;
    let quoted = |text: String| Token::make_word(&text, Some('"'));
    let schema = Token::make_word(SERIES_SCHEMA, Some('"'));
    let mut name = vec![schema, Token::Period, quoted(target.table)];
    if let Some(database) = target.database {
        name.splice(0..0, [quoted(database), Token::Period]);
    }
    query.extend(name.into_iter().map(TokenWithSpan::wrap));
    query.extend(tokens.into_iter().skip(rest));
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(NESTED_MAX)
        .with_tokens_with_locations(query);
    let statement = parser.parse_statement()?;
    end(&mut parser)?;
    let statement = Statement::Statement(Box::new(statement));
    Ok(Command::Plan(DeepTree::new(statement, need), None))
}

/// Whether a statement reads or writes files of the machine.
pub(crate) fn touches_files(statement: &Statement) -> bool {
    match statement {
        Statement::CreateExternalTable(_) => true,
        Statement::CopyTo(copy) => {
            matches!(
                copy.source,
                CopyToSource::Query(_) | CopyToSource::Relation(_)
            )
        }
        Statement::Explain(explain) => touches_files(&explain.statement),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::statement::TableReferenceName;

    #[test]
    fn names_are_folded_unless_quoted() {
        let Command::DropTable {
            targets,
            if_exists,
            cascades,
        } = parse("drop table if exists Plant.Pump, \"Kiln\";").unwrap()
        else {
            panic!("a drop");
        };
        assert!(if_exists && !cascades);
        let target = |database: Option<&str>, table: &str| TableReferenceName {
            database: database.map(str::to_owned),
            table: table.to_owned(),
        };
        assert_eq!(
            targets,
            [target(Some("plant"), "pump"), target(None, "Kiln")]
        );
    }

    #[test]
    fn more_than_a_statement_is_refused() {
        assert!(parse("flush flush").is_err());
        assert!(parse("select 1; select 2").is_err());
        assert!(parse("").is_err());
        assert!(parse("-- nothing").is_err());
    }
}
