//! `CREATE TABLE`: which statements make a reference table, and what it is.
//!
//! A table of series has one time, tags and fields. What only a reference table has decides: a key without the
//! time, a foreign key, a check, a default, an identity, a type that fields do not have, no time at all, or the
//! setting `reference`. Without any of it, a table with a time is one of series, as it always was.

use super::columns::{ColumnWithConstraints, column};
use super::conditions::is_null;
use super::constraints::table_constraint;
use super::definitions::{check_names, refuse_like, require_key_columns};
use super::mixed_kinds::{better_error, with_other_kind};
use super::tokens::{parser_of, series_word, skip_rest, without_identity_options};
use super::types::is_serial;
use crate::dialect::ddl;
use crate::dialect::identifiers::{accept_word, accept_words, end, parse_name, parse_target};
use crate::dialect::statement::{Command, ReferenceStatement, TableReferenceName};
use crate::dialect::types::field_type;
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, DataType, Expr, IndexColumn, TableConstraint,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use marigram_model::FieldType;
use marigram_reference::NewReferenceTable;

/// `CREATE TABLE` of either kind. `tokens` are those of the whole statement, which `parser` begins to read;
/// `text` returns the text between two locations of it.
///
/// # Errors
/// If it is no definition of a table, or one that mixes both kinds.
pub(crate) fn create_table(
    parser: &mut Parser<'_>,
    tokens: Vec<TokenWithSpan>,
    text: impl Fn(Location, Location) -> String,
) -> SqlResult<Command> {
    let series = ddl::create_table(parser, text).and_then(|command| {
        end(parser)?;
        Ok(command)
    });
    if let Ok(Command::CreateTableAs(_)) = &series {
        return series;
    }
    let series_word = series_word(&tokens);
    match WrittenTable::from_tokens(tokens) {
        Ok(written) if written.is_reference() => {
            skip_rest(parser);
            written.into_command()
        }
        Ok(written) => {
            let word = written.series_setting().or(series_word);
            series.map_err(|error| with_other_kind(error, word.as_deref()))
        }
        // Its columns have roles or codecs, or they are no columns of either grammar.
        Err(error) => series.map_err(|of_series| match series_word {
            None => better_error(of_series, error),
            Some(word) => with_other_kind(of_series, Some(&word)),
        }),
    }
}

/// `CREATE [GLOBAL | LOCAL] {TEMP | TEMPORARY} TABLE` with columns; `None` for other statements, of which
/// nothing is read.
///
/// # Errors
/// If it is no definition of a reference table.
pub(crate) fn create_temporary_table(
    parser: &mut Parser<'_>,
    tokens: Vec<TokenWithSpan>,
) -> SqlResult<Option<Command>> {
    let mut ahead = parser_of(tokens.clone());
    let is_table = begins_table(&mut ahead) == Some(true);
    if !is_table {
        return Ok(None);
    }
    accept_words(&mut ahead, &["IF", "NOT", "EXISTS"]);
    let has_name = parse_target(&mut ahead).is_ok();
    if has_name && ahead.peek_token().token != Token::LParen {
        return Ok(None);
    }
    let written = WrittenTable::from_tokens(tokens)?;
    skip_rest(parser);
    written.into_command().map(Some)
}

/// Reads `CREATE [[GLOBAL | LOCAL] {TEMP | TEMPORARY}] TABLE`: whether the table is temporary; `None` if
/// something else follows.
fn begins_table(parser: &mut Parser<'_>) -> Option<bool> {
    accept_word(parser, "CREATE");
    let _ = accept_word(parser, "GLOBAL") || accept_word(parser, "LOCAL");
    let is_temporary = accept_word(parser, "TEMP") || accept_word(parser, "TEMPORARY");
    accept_word(parser, "TABLE").then_some(is_temporary)
}

/// A `CREATE TABLE` as PostgreSQL's grammar reads it.
struct WrittenTable {
    target: TableReferenceName,
    if_not_exists: bool,
    is_temporary: bool,
    columns: Vec<ColumnDef>,
    constraints: Vec<TableConstraint>,
    /// The names of its settings.
    settings: Vec<String>,
}

impl WrittenTable {
    fn from_tokens(tokens: Vec<TokenWithSpan>) -> SqlResult<Self> {
        let mut parser = parser_of(without_identity_options(tokens)?);
        let parser = &mut parser;
        let is_temporary = begins_table(parser).unwrap_or_default();
        let if_not_exists = accept_words(parser, &["IF", "NOT", "EXISTS"]);
        let target = parse_target(parser)?;
        if parser.peek_token().token != Token::LParen {
            let found = parser.peek_token();
            return Ok(parser.expected("columns in parentheses", found)?);
        }
        let (columns, constraints) = parser.parse_columns()?;
        let settings = if accept_word(parser, "WITH") {
            setting_names(parser)?
        } else {
            Vec::new()
        };
        if is_temporary && accept_words(parser, &["ON", "COMMIT"]) {
            on_commit(parser)?;
        }
        for clause in ["PARTITION", "INHERITS", "TABLESPACE", "ON", "USING", "OF"] {
            if accept_word(parser, clause) {
                let message = format!("CREATE TABLE … {clause} is not supported; leave it out");
                return Err(SqlError::named("0A000", clause, message));
            }
        }
        end(parser)?;
        Ok(Self {
            target,
            if_not_exists,
            is_temporary,
            columns,
            constraints,
            settings,
        })
    }

    /// Whether it is a reference table.
    fn is_reference(&self) -> bool {
        let is_declared = self.settings.iter().any(|name| name == REFERENCE);
        if is_declared || self.is_temporary {
            return true;
        }
        self.series_setting().is_none() && (self.time().is_none() || self.has_relational_part())
    }

    /// The first setting that only tables of series have.
    fn series_setting(&self) -> Option<String> {
        let is_of_series = |name: &&String| *name != REFERENCE && !is_storage_parameter(name);
        self.settings.iter().find(is_of_series).cloned()
    }

    /// The column that would be the time of a table of series.
    fn time(&self) -> Option<String> {
        let times = self.columns.iter().filter(|column| {
            field_type(&column.name.value, &column.data_type)
                .is_ok_and(|kind| kind == FieldType::Timestamp)
        });
        let names: Vec<String> = times.map(|column| fold_case(&column.name)).collect();
        let named = names.iter().find(|name| *name == "time");
        named.or(names.first()).cloned()
    }

    /// Whether it has what only a reference table has.
    fn has_relational_part(&self) -> bool {
        let time = self.time().unwrap_or_default();
        let in_columns = self.columns.iter().any(|column| {
            let is_time = fold_case(&column.name) == time;
            let has_option = column.options.iter().any(|option| match &option.option {
                ColumnOption::PrimaryKey(_) | ColumnOption::Unique(_) => !is_time,
                ColumnOption::Default(expr) => !is_null(expr),
                ColumnOption::ForeignKey(_)
                | ColumnOption::Check(_)
                | ColumnOption::Generated { .. } => true,
                _ => false,
            });
            has_option || is_relational_type(&column.data_type)
        });
        let lacks_time = |columns: &[IndexColumn]| {
            !columns.iter().any(|column| {
                matches!(&column.column.expr, Expr::Identifier(name) if fold_case(name) == time)
            })
        };
        let in_constraints = self.constraints.iter().any(|constraint| match constraint {
            TableConstraint::PrimaryKey(key) => lacks_time(&key.columns),
            TableConstraint::Unique(key) => lacks_time(&key.columns),
            TableConstraint::ForeignKey(_) | TableConstraint::Check(_) => true,
            _ => false,
        });
        in_columns || in_constraints
    }

    fn into_command(self) -> SqlResult<Command> {
        if let Some(name) = self.series_setting() {
            let message = format!(
                "a reference table has no setting '{name}'; WITH (reference) alone says which kind it is"
            );
            return Err(SqlError::named("0A000", &name, message));
        }
        let database = self.target.database;
        let mut columns = Vec::with_capacity(self.columns.len());
        let mut constraints = Vec::new();
        for written in &self.columns {
            refuse_like(written)?;
            let ColumnWithConstraints {
                column,
                constraints: own,
            } = column(written, database.as_ref())?;
            columns.push(column);
            constraints.extend(own);
        }
        for written in &self.constraints {
            constraints.push(table_constraint(written, database.as_ref())?);
        }
        let mut new = NewReferenceTable {
            database: database.clone().unwrap_or_default(),
            name: self.target.table,
            columns,
            constraints,
        };
        check_names(&new)?;
        require_key_columns(&mut new);
        Ok(Command::Reference(ReferenceStatement::CreateTable {
            new,
            database,
            if_not_exists: self.if_not_exists,
            is_temporary: self.is_temporary,
        }))
    }
}

/// The setting that makes a reference table of any definition.
const REFERENCE: &str = "reference";

/// Whether a setting is one of PostgreSQL's that say how a table is stored, which mean nothing here.
fn is_storage_parameter(name: &str) -> bool {
    const NAMES: [&str; 4] = [
        "fillfactor",
        "parallel_workers",
        "oids",
        "user_catalog_table",
    ];
    const BEGINNINGS: [&str; 3] = ["autovacuum_", "toast", "vacuum_"];
    NAMES.contains(&name) || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

/// Whether fields and tags do not have a type that reference tables have. NUMERIC is not one of these: a field
/// may be NUMERIC of few digits, and the error for more digits says so.
fn is_relational_type(written: &DataType) -> bool {
    is_serial(written)
        || matches!(
            written,
            DataType::Date | DataType::Time(..) | DataType::Interval { .. }
        )
}

/// The names in `(setting [= value], …)`.
fn setting_names(parser: &mut Parser<'_>) -> SqlResult<Vec<String>> {
    parser.expect_token(&Token::LParen)?;
    let mut names = Vec::new();
    loop {
        let mut name = parse_name(parser)?;
        while parser.consume_token(&Token::Period) {
            name = format!("{name}.{}", parse_name(parser)?);
        }
        if parser.consume_token(&Token::Eq) {
            // The value of a setting is a word or a literal, with a sign at most.
            let _ = parser.consume_token(&Token::Minus);
            parser.next_token();
        }
        names.push(name);
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    Ok(names)
}

/// What happens to a temporary table's rows when a transaction ends: they stay.
fn on_commit(parser: &mut Parser<'_>) -> SqlResult<()> {
    if accept_words(parser, &["PRESERVE", "ROWS"]) {
        return Ok(());
    }
    let found = parser.peek_token();
    if accept_words(parser, &["DELETE", "ROWS"]) || accept_word(parser, "DROP") {
        let message = format!(
            "ON COMMIT {} is not supported: a temporary table keeps its rows until it is dropped, or its \
             session ends",
            found.token.to_string().to_uppercase()
        );
        return Err(SqlError::named("0A000", "COMMIT", message));
    }
    Ok(parser.expected("PRESERVE ROWS", found)?)
}

#[cfg(test)]
mod tests;
