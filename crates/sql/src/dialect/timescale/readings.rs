//! The functions of TimescaleDB that describe tables: `show_chunks('t', older_than => …)` and the like.
//!
//! They are functions of the catalog here. This pass gives them the form in which the planner takes
//! them: without names of arguments, without casts to `regclass`, and those that return rows in FROM.

use super::calls::{matched, without_cast, without_storage_calls};
use crate::dialect::ast_walk::walk_mut;
use crate::dialect::grammar::MarigramDialect;
use crate::dialect::rewriting::call;
use crate::error::SqlError;
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Select,
    SelectItem, SetExpr, Statement, TableFactor, TimezoneInfo, TypedString, Value, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// A function that describes a table: its name, the names of its arguments, and whether it returns rows.
struct TableReadingFunction {
    name: &'static str,
    arguments: &'static [&'static str],
    returns_rows: bool,
}

const ONE_TABLE: &[&str] = &["hypertable"];

/// `show_chunks`
pub(crate) const SHOW_CHUNKS: &str = "show_chunks";
/// `hypertable_detailed_size`
pub(crate) const TABLE_SIZES: &str = "hypertable_detailed_size";
/// `chunks_detailed_size`
pub(crate) const CHUNK_SIZES: &str = "chunks_detailed_size";
/// The names of the statistics of compressed tables.
pub(crate) const TABLE_COMPRESSION: [&str; 2] = [
    "hypertable_compression_stats",
    "hypertable_columnstore_stats",
];
/// The names of the statistics of compressed chunks.
pub(crate) const CHUNK_COMPRESSION: [&str; 2] =
    ["chunk_compression_stats", "chunk_columnstore_stats"];
/// The names of the functions that return the bytes of a table.
pub(crate) const TABLE_SIZE: [&str; 2] = ["hypertable_size", "hypertable_approximate_size"];
/// The function that reads a text as a `timestamptz`. Arguments of functions in FROM are evaluated by the planner,
/// which would read the text in UTC.
pub(crate) const READ_MOMENT: &str = "read_moment";
/// `approximate_row_count`
pub(crate) const ROW_COUNT: &str = "approximate_row_count";

const READINGS: [TableReadingFunction; 10] = [
    TableReadingFunction {
        name: SHOW_CHUNKS,
        arguments: &[
            "relation",
            "older_than",
            "newer_than",
            "created_before",
            "created_after",
        ],
        returns_rows: true,
    },
    rows(TABLE_SIZES),
    rows(CHUNK_SIZES),
    rows(TABLE_COMPRESSION[0]),
    rows(TABLE_COMPRESSION[1]),
    rows(CHUNK_COMPRESSION[0]),
    rows(CHUNK_COMPRESSION[1]),
    value(TABLE_SIZE[0]),
    value(TABLE_SIZE[1]),
    value(ROW_COUNT),
];

const fn rows(name: &'static str) -> TableReadingFunction {
    TableReadingFunction {
        name,
        arguments: ONE_TABLE,
        returns_rows: true,
    }
}

const fn value(name: &'static str) -> TableReadingFunction {
    TableReadingFunction {
        name,
        arguments: ONE_TABLE,
        returns_rows: false,
    }
}

/// Whether a statement, in lower case, may contain such functions.
pub(crate) fn may_have_some(folded: &str) -> bool {
    READINGS.iter().any(|reading| folded.contains(reading.name))
}

/// See the module documentation.
pub(crate) struct TableReadings;

fn reading_of(name: &ObjectName) -> Option<&'static TableReadingFunction> {
    let name = fold_case(name.0.last()?.as_ident()?);
    READINGS.iter().find(|reading| reading.name == name)
}

/// The arguments in order, without casts of the table's name.
fn ordered(
    reading: &'static TableReadingFunction,
    arguments: &[FunctionArg],
) -> Result<Vec<FunctionArg>, SqlError> {
    let given = matched(reading.name, reading.arguments, arguments)?;
    let null = || Expr::value(Value::Null);
    let values = reading.arguments.iter().map(|name| {
        let found = given.iter().find(|(known, _)| known == name);
        found.map_or_else(null, |(_, value)| (*value).clone())
    });
    let mut values: Vec<Expr> = values.collect();
    if let Some(table) = values.first_mut() {
        *table = without_cast(table).clone();
    }
    for value in values.iter_mut().skip(1) {
        let _ = walk_mut(value, &mut ReadMoments);
    }
    let values = values.into_iter();
    Ok(values
        .map(|value| FunctionArg::Unnamed(FunctionArgExpr::Expr(value)))
        .collect())
}

/// Replaces literals of the type `timestamptz` by calls.
struct ReadMoments;

impl VisitorMut for ReadMoments {
    type Break = Infallible;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let (value, data_type) = match &*expr {
            Expr::TypedString(TypedString {
                data_type, value, ..
            }) => (value, data_type),
            Expr::Cast {
                expr: value,
                data_type,
                ..
            } => match value.as_ref() {
                Expr::Value(value) => (value, data_type),
                _ => return ControlFlow::Continue(()),
            },
            _ => return ControlFlow::Continue(()),
        };
        let is_text = matches!(value.value, Value::SingleQuotedString(_));
        let is_moment = matches!(
            data_type,
            DataType::Timestamp(_, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone)
        );
        if is_text && is_moment {
            *expr = call(READ_MOMENT, vec![Expr::Value(value.clone())]);
        }
        ControlFlow::Continue(())
    }
}

/// `SELECT show_chunks('t')` as `SELECT show_chunks FROM show_chunks('t')`.
fn in_from(select: &Select) -> Option<Select> {
    let [item] = select.projection.as_slice() else {
        return None;
    };
    let (expr, alias) = match item {
        SelectItem::UnnamedExpr(expr) => (expr, None),
        SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
        _ => return None,
    };
    let Expr::Function(function) = expr else {
        return None;
    };
    let reading = reading_of(&function.name)?;
    if !reading.returns_rows || !select.from.is_empty() {
        return None;
    }
    let column = if reading.name == SHOW_CHUNKS {
        format!(
            "{SHOW_CHUNKS} AS {}",
            alias.cloned().unwrap_or(Ident::new(SHOW_CHUNKS))
        )
    } else {
        "*".to_owned()
    };
    let text = format!("SELECT {column} FROM {function}");
    let dialect = MarigramDialect;
    let mut parser = Parser::new(&dialect).try_with_sql(&text).ok()?;
    let Ok(Statement::Query(query)) = parser.parse_statement() else {
        return None;
    };
    match *query.body {
        SetExpr::Select(select) => Some(*select),
        _ => None,
    }
}

impl VisitorMut for TableReadings {
    type Break = SqlError;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        without_storage_calls(select);
        if let Some(other) = in_from(select) {
            *select = other;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        let TableFactor::Table {
            name,
            alias,
            args: Some(arguments),
            ..
        } = factor
        else {
            return ControlFlow::Continue(());
        };
        let Some(reading) = reading_of(name) else {
            return ControlFlow::Continue(());
        };
        match ordered(reading, &arguments.args) {
            Ok(ordered) => arguments.args = ordered,
            Err(error) => return ControlFlow::Break(error),
        }
        *name = ObjectName::from(vec![Ident::new(reading.name)]);
        // The alias of a function that returns one column is also that of the column.
        if let Some(alias) = alias
            && alias.columns.is_empty()
            && reading.name == SHOW_CHUNKS
        {
            let column = datafusion::sql::sqlparser::ast::TableAliasColumnDef {
                name: alias.name.clone(),
                data_type: None,
            };
            alias.columns.push(column);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::Function(function) = expr else {
            return ControlFlow::Continue(());
        };
        let Some(reading) = reading_of(&function.name) else {
            return ControlFlow::Continue(());
        };
        if reading.returns_rows {
            let message = format!(
                "{name} returns rows: write it in FROM, as in SELECT * FROM {name}('t')",
                name = reading.name
            );
            return ControlFlow::Break(SqlError::named("0A000", reading.name, message));
        }
        let FunctionArguments::List(list) = &mut function.args else {
            return ControlFlow::Continue(());
        };
        match ordered(reading, &list.args) {
            Ok(ordered) => list.args = ordered,
            Err(error) => return ControlFlow::Break(error),
        }
        function.name = ObjectName::from(vec![Ident::new(reading.name)]);
        ControlFlow::Continue(())
    }
}
