//! The columns of an answer: expands wildcards, and names columns.

use crate::ast::{Call, Cast, Expr, Field, Literal, RegexSource, VarRef, Walk, Wildcard};
use crate::select_error::SelectError;
use std::collections::HashMap;

/// The most columns that the wildcards of one list may stand for: twice those of the widest table.
pub const COLUMNS_MAX: usize = 32 * 1024;

/// The type of a stored field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InfluxFieldType {
    /// A 64-bit float.
    Float,
    /// A signed 64-bit integer.
    Integer,
    /// Text.
    String,
    /// A boolean.
    Boolean,
    /// An unsigned 64-bit integer.
    Unsigned,
}

impl InfluxFieldType {
    const fn cast(self) -> Cast {
        match self {
            Self::Float => Cast::Float,
            Self::Integer => Cast::Integer,
            Self::String => Cast::String,
            Self::Boolean => Cast::Boolean,
            Self::Unsigned => Cast::Unsigned,
        }
    }
}

/// The combined schema of the sources of a SELECT.
#[derive(Clone)]
pub struct SourceSchema<'a> {
    /// Fields with their types, each once.
    pub fields: Vec<(String, InfluxFieldType)>,
    /// Tags, each once.
    pub tags: Vec<String>,
    /// Whether a regular expression matches a name.
    pub matches: &'a dyn Fn(&RegexSource, &str) -> bool,
}

/// Columns and dimensions without wildcards.
#[derive(Debug, Clone, PartialEq)]
pub struct Expanded {
    /// The columns. Those from a wildcard have the type of their field as a cast.
    pub fields: Vec<Field>,
    /// The expressions of GROUP BY besides `time(…)`.
    pub dimensions: Vec<Expr>,
}

/// Replaces wildcards and regular expressions with fields and tags, in alphabetical order. In the
/// list of columns, `*` stands for fields and for tags that are not in GROUP BY; in a function, for
/// the fields that it accepts.
///
/// # Errors
/// `*::tag` in a function; more than [`COLUMNS_MAX`] columns.
pub fn expand_wildcards(
    fields: &[Field],
    dimensions: &[Expr],
    schema: &SourceSchema<'_>,
) -> Result<Expanded, SelectError> {
    let many = |expr: &Expr| matches!(expr, Expr::Wildcard(_) | Expr::Literal(Literal::Regex(_)));
    let groups_by_many = dimensions.iter().any(many);
    let mut names = Names {
        columns: Vec::new(),
        matches: schema.matches,
    };
    if !schema.fields.is_empty() {
        let stored = schema.fields.iter();
        names
            .columns
            .extend(stored.map(|(name, kind)| (name.as_str(), Some(*kind))));
    }
    if !schema.fields.is_empty() && !groups_by_many {
        let grouped = |tag: &&String| {
            dimensions
                .iter()
                .any(|by| matches!(by, Expr::VarRef(var) if var.name == **tag))
        };
        let tags = schema.tags.iter().filter(|tag| !grouped(tag));
        names.columns.extend(tags.map(|tag| (tag.as_str(), None)));
    }
    // If a field and a tag have the same name, the field comes first, unless it is unsigned.
    names
        .columns
        .sort_by_key(|(name, kind)| (*name, kind.is_none() as u8 * 2, *kind));
    let mut expanded = Expanded {
        fields: Vec::with_capacity(fields.len()),
        dimensions: Vec::with_capacity(dimensions.len()),
    };
    for field in fields {
        names.expand(field, &mut expanded.fields)?;
        if expanded.fields.len() > COLUMNS_MAX.max(fields.len()) {
            return Err(SelectError::TooManyColumns(COLUMNS_MAX));
        }
    }
    let mut tags: Vec<&String> = schema.tags.iter().collect();
    tags.sort();
    for dimension in dimensions {
        let chosen = |tag: &&&String| match dimension {
            Expr::Literal(Literal::Regex(regex)) => (schema.matches)(regex, tag),
            _ => true,
        };
        if many(dimension) {
            let chosen = tags.iter().filter(chosen);
            expanded
                .dimensions
                .extend(chosen.map(|tag| Expr::var(tag.as_str())));
        } else {
            expanded.dimensions.push(dimension.clone());
        }
    }
    Ok(expanded)
}

/// What a wildcard in the list of columns may stand for; a tag has no type.
struct Names<'a> {
    columns: Vec<(&'a str, Option<InfluxFieldType>)>,
    matches: &'a dyn Fn(&RegexSource, &str) -> bool,
}

impl Names<'_> {
    fn expand(&self, field: &Field, fields: &mut Vec<Field>) -> Result<(), SelectError> {
        let of = |expr: Expr, alias: String| Field {
            expr,
            alias,
            span: field.span,
        };
        let var = |name: &str, kind: Option<InfluxFieldType>| {
            Expr::VarRef(VarRef {
                name: name.to_owned(),
                cast: Some(kind.map_or(Cast::Tag, InfluxFieldType::cast)),
            })
        };
        match &field.expr {
            Expr::Wildcard(wildcard) => {
                let chosen = self.columns.iter().filter(|(_, kind)| match wildcard {
                    Wildcard::All => true,
                    Wildcard::Fields => kind.is_some(),
                    Wildcard::Tags => kind.is_none(),
                });
                fields.extend(chosen.map(|(name, kind)| of(var(name, *kind), String::new())));
            }
            Expr::Literal(Literal::Regex(regex)) => {
                let chosen = self
                    .columns
                    .iter()
                    .filter(|(name, _)| (self.matches)(regex, name));
                fields.extend(chosen.map(|(name, kind)| of(var(name, *kind), String::new())));
            }
            Expr::Call(call) => {
                let inner = innermost(call);
                let regex = match inner.args.first() {
                    Some(Expr::Wildcard(Wildcard::Tags)) => {
                        return Err(SelectError::TagWildcard(inner.name.clone()));
                    }
                    Some(Expr::Wildcard(_)) => None,
                    Some(Expr::Literal(Literal::Regex(regex))) => Some(regex),
                    _ => {
                        fields.push(field.clone());
                        return Ok(());
                    }
                };
                for (name, kind) in &self.columns {
                    let takes = kind.is_some_and(|kind| takes(&inner.name, kind));
                    if takes && regex.is_none_or(|regex| (self.matches)(regex, name)) {
                        let call = with_innermost_argument(call, var(name, *kind));
                        let alias = format!("{}_{name}", field_name(field));
                        fields.push(of(Expr::Call(call), alias));
                    }
                }
            }
            _ => fields.push(field.clone()),
        }
        Ok(())
    }
}

/// The call at the end of a chain of calls in first arguments.
fn innermost(mut call: &Call) -> &Call {
    while let Some(Expr::Call(inner)) = call.args.first() {
        call = inner;
    }
    call
}

/// The call with a new first argument in its innermost call.
fn with_innermost_argument(call: &Call, arg: Expr) -> Call {
    let first = match call.args.first() {
        Some(Expr::Call(inner)) => Expr::Call(with_innermost_argument(inner, arg)),
        _ => arg,
    };
    let others = call.args.iter().skip(1).cloned();
    Call {
        name: call.name.clone(),
        args: std::iter::once(first).chain(others).collect(),
    }
}

/// Whether a wildcard in a function stands for fields of a type.
fn takes(function: &str, kind: InfluxFieldType) -> bool {
    match kind {
        InfluxFieldType::Float | InfluxFieldType::Integer => true,
        InfluxFieldType::Unsigned => !matches!(function, "holt_winters" | "holt_winters_with_fit"),
        InfluxFieldType::String => matches!(
            function,
            "count" | "first" | "last" | "distinct" | "elapsed" | "mode" | "sample"
        ),
        InfluxFieldType::Boolean => {
            takes(function, InfluxFieldType::String) || matches!(function, "min" | "max")
        }
    }
}

/// The name of a column, regardless of the others: its alias, its function, its field, or the
/// fields and functions in it, joined by `_`.
pub fn field_name(field: &Field) -> String {
    if field.alias.is_empty() {
        expr_name(&field.expr)
    } else {
        field.alias.clone()
    }
}

fn expr_name(expr: &Expr) -> String {
    match expr {
        Expr::Call(call) => call.name.clone(),
        Expr::VarRef(var) => var.name.clone(),
        Expr::Paren(inner) => expr_name(inner),
        Expr::Binary(_) => {
            let mut names = Vec::new();
            expr.walk(|expr| match expr {
                Expr::VarRef(var) => {
                    names.push(var.name.as_str());
                    Walk::Over
                }
                Expr::Call(call) => {
                    names.push(call.name.as_str());
                    Walk::Over
                }
                _ => Walk::Into,
            });
            names.join("_")
        }
        Expr::Distinct(_) | Expr::Literal(_) | Expr::Wildcard(_) => String::new(),
    }
}

/// The names of the columns of an answer. Aliases stay unchanged; any other name that is already
/// taken gets a number: `mean`, `mean_1`. The tags that `top` and `bottom` name are columns, too,
/// unless the answer is written to a target.
///
/// `time_column` is the name of the first column; a subquery has none.
pub fn column_names(fields: &[Field], time_column: Option<&str>, has_target: bool) -> Vec<String> {
    let mut columns: Vec<(&str, String)> = Vec::with_capacity(fields.len());
    for field in fields {
        columns.push((&field.alias, expr_name(&field.expr)));
        if let Expr::Call(call) = &field.expr
            && matches!(call.name.as_str(), "top" | "bottom")
            && !has_target
        {
            for arg in call.args.iter().skip(1) {
                if let Expr::VarRef(var) = arg {
                    columns.push(("", var.name.clone()));
                }
            }
        }
    }
    // How often each name was used, or the number that its next column gets.
    let mut given: HashMap<String, u64> = HashMap::new();
    for (alias, _) in columns.iter().filter(|(alias, _)| !alias.is_empty()) {
        given.insert((*alias).to_owned(), 1);
    }
    let mut names: Vec<String> = time_column.map(str::to_owned).into_iter().collect();
    for (alias, name) in columns {
        if alias.is_empty() {
            names.push(unused_name(name, &mut given));
        } else {
            names.push(alias.to_owned());
        }
    }
    names
}

fn unused_name(name: String, given: &mut HashMap<String, u64>) -> String {
    let mut resolved = name.clone();
    if let Some(count) = given.get(&name).copied() {
        let mut number = count;
        resolved = format!("{name}_{number}");
        while given.contains_key(&resolved) {
            number += 1;
            resolved = format!("{name}_{number}");
        }
        given.insert(name, number + 1);
    }
    *given.entry(resolved.clone()).or_default() += 1;
    resolved
}

#[cfg(test)]
mod tests;
