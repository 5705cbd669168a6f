//! PostgreSQL's name of an expression (`FigureColname` in its `parse_target.c`).

use super::naming_select;
use crate::dialect::types::is_wide_float;
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, DataType, Expr, ObjectName, Query, SelectItem, SetExpr,
    TrimWhereField,
};

/// PostgreSQL's name of an unnamed column.
const UNNAMED: &str = "?column?";

/// PostgreSQL's name of a column without an alias.
pub(super) fn name_of(expr: &Expr) -> String {
    figured(expr).map_or_else(|| UNNAMED.to_owned(), |figured| figured.name)
}

/// A name, and whether a cast or a CASE around the expression keeps it.
struct Figured {
    name: String,
    is_strong: bool,
}

#[expect(clippy::unnecessary_wraps, reason = "figured() returns it unchanged")]
fn strong(name: impl Into<String>) -> Option<Figured> {
    let (name, is_strong) = (name.into(), true);
    Some(Figured { name, is_strong })
}

#[expect(clippy::unnecessary_wraps, reason = "figured() returns it unchanged")]
fn weak(name: impl Into<String>) -> Option<Figured> {
    let (name, is_strong) = (name.into(), false);
    Some(Figured { name, is_strong })
}

fn figured(expr: &Expr) -> Option<Figured> {
    match expr {
        Expr::Identifier(name) => strong(fold_case(name)),
        Expr::CompoundIdentifier(parts) => strong(fold_case(parts.last()?)),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let mut accesses = access_chain.iter().rev();
            let field = accesses.find_map(|access| match access {
                AccessExpr::Dot(Expr::Identifier(name)) => Some(fold_case(name)),
                _ => None,
            });
            field.map_or_else(|| figured(root), strong)
        }
        Expr::Nested(expr) | Expr::Collate { expr, .. } => figured(expr),
        Expr::Cast {
            expr, data_type, ..
        } => match figured(expr) {
            Some(inner) if inner.is_strong => Some(inner),
            _ => weak(type_name(data_type)),
        },
        Expr::TypedString(typed) => weak(type_name(&typed.data_type)),
        Expr::Interval(_) => weak("interval"),
        Expr::Case { else_result, .. } => match else_result.as_deref().and_then(figured) {
            Some(inner) if inner.is_strong => Some(inner),
            _ => weak("case"),
        },
        Expr::Function(call) => strong(last_part(&call.name)?),
        Expr::Exists { negated: false, .. } => strong("exists"),
        Expr::Subquery(query) => strong(name_of_first(query)),
        Expr::Array(_) => strong("array"),
        Expr::Tuple(_) => strong("row"),
        Expr::Extract { .. } => strong("extract"),
        Expr::Ceil { .. } => strong("ceil"),
        Expr::Floor { .. } => strong("floor"),
        Expr::Position { .. } => strong("position"),
        Expr::Substring { shorthand, .. } => {
            strong(if *shorthand { "substr" } else { "substring" })
        }
        Expr::Overlay { .. } => strong("overlay"),
        Expr::AtTimeZone { .. } => strong("timezone"),
        Expr::Trim { trim_where, .. } => strong(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            _ => "btrim",
        }),
        _ => None,
    }
}

/// The name of a query's first column.
fn name_of_first(query: &Query) -> String {
    let item = naming_select(query).and_then(|select| select.projection.first());
    match item {
        Some(SelectItem::UnnamedExpr(expr)) => name_of(expr),
        Some(SelectItem::ExprWithAlias { alias, .. }) => fold_case(alias),
        None if matches!(*query.body, SetExpr::Values(_)) => "column1".to_owned(),
        _ => UNNAMED.to_owned(),
    }
}

fn last_part(name: &ObjectName) -> Option<String> {
    name.0.last()?.as_ident().map(fold_case)
}

/// PostgreSQL's name of a type.
fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => return type_name(element),
        DataType::Custom(name, _) => {
            if let Some(name) = last_part(name) {
                return name;
            }
        }
        DataType::Float(_) if !is_wide_float(kind) => return "float4".to_owned(),
        _ => {}
    }
    let written = kind.to_string().to_lowercase();
    let base = written.split('(').next().unwrap_or(&written).trim();
    let has_zone = written.ends_with("with time zone");
    let name = match base {
        "int" | "integer" => "int4",
        "bigint" => "int8",
        "smallint" => "int2",
        "real" => "float4",
        "double precision" | "double" | "float" => "float8",
        "decimal" | "dec" => "numeric",
        "boolean" => "bool",
        "character varying" | "char varying" => "varchar",
        "char" | "character" => "bpchar",
        "string" => "text",
        _ if base.starts_with("timestamp") && has_zone => "timestamptz",
        _ if base.starts_with("timestamp ") => "timestamp",
        _ if base.starts_with("time") && has_zone => "timetz",
        _ if base.starts_with("time ") => "time",
        other => other,
    };
    name.to_owned()
}
