//! SELECT and its parts.

use super::expr::Expr;
use super::literal::RegexSource;
use super::print;
use super::span::SourceSpan;
use crate::number::ShortestFloat;
use crate::quote::QuotedIdent;
use std::fmt::{self, Write};

/// A SELECT statement or a subquery.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Select {
    /// The selected columns.
    pub fields: Vec<Field>,
    /// The target of INTO, to which the answer is written.
    pub target: Option<Target>,
    /// The sources of rows; at least one.
    pub sources: Vec<Source>,
    /// WHERE.
    pub condition: Option<Expr>,
    /// GROUP BY.
    pub dimensions: Vec<Dimension>,
    /// `fill(…)`.
    pub fill: Fill,
    /// ORDER BY: absent, or the time in one direction.
    pub order_by: Option<SortField>,
    /// The largest number of rows per series; 0 for all.
    pub limit: u64,
    /// The number of rows to skip at the beginning of each series.
    pub offset: u64,
    /// The largest number of series; 0 for all.
    pub slimit: u64,
    /// The number of series to skip.
    pub soffset: u64,
    /// The name in `tz('…')`.
    pub time_zone: Option<String>,
}

/// An expression in the list after SELECT.
#[derive(Debug, Clone)]
pub struct Field {
    /// The expression to compute.
    pub expr: Expr,
    /// The name after AS, or empty.
    pub alias: String,
    /// Where it stands in the text. Two fields that stand elsewhere can still be equal.
    pub span: SourceSpan,
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.expr == other.expr && self.alias == other.alias
    }
}

/// The destination of a SELECT's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The database, or empty for that of the request.
    pub database: String,
    /// The retention policy, or empty for the default one.
    pub retention_policy: String,
    /// The measurement; `None` for `:MEASUREMENT`, which means that of each row's source.
    pub measurement: Option<String>,
}

/// A source of rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Stored rows.
    Measurement(Measurement),
    /// The rows of another SELECT.
    Subquery(Box<Select>),
}

/// One measurement, or all whose names match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measurement {
    /// The database, or empty for that of the request.
    pub database: String,
    /// The retention policy, or empty for the default one.
    pub retention_policy: String,
    /// The measurement's name, or a pattern of names.
    pub name: MeasurementName,
}

/// How measurements are selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MeasurementName {
    /// By this name.
    Name(String),
    /// By a pattern that their names match.
    Regex(RegexSource),
}

/// An expression in GROUP BY: a tag, `time(…)`, `*`, or a regular expression over tags.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension(pub Expr);

/// The value of a group of time without rows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Fill {
    /// Null.
    #[default]
    Null,
    /// No value: the group is left out.
    None,
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// The value of the previous group.
    Previous,
    /// The linearly interpolated value between its neighbors.
    Linear,
}

/// An order of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortField {
    /// `time`, or empty if only the direction is given.
    pub name: String,
    /// From old to new.
    pub ascending: bool,
}

impl Select {
    /// Whether rows are sorted from old to new.
    pub fn is_ascending(&self) -> bool {
        self.order_by.as_ref().is_none_or(|order| order.ascending)
    }

    /// Whether the list of fields contains no function calls.
    pub fn is_raw(&self) -> bool {
        let calls = |field: &Field| field.expr.any(|expr| matches!(expr, Expr::Call(_)));
        !self.fields.iter().any(calls)
    }

    /// Calls `visit` for this SELECT and every subquery in it, from the outside in.
    pub fn each_select<'a>(&'a self, visit: &mut impl FnMut(&'a Select)) {
        visit(self);
        for source in &self.sources {
            if let Source::Subquery(select) = source {
                select.each_select(visit);
            }
        }
    }

    /// Calls `visit` for every measurement in FROM, including those of subqueries.
    pub fn each_measurement<'a>(&'a self, visit: &mut impl FnMut(&'a Measurement)) {
        self.each_select(&mut |select| {
            for source in &select.sources {
                if let Source::Measurement(measurement) = source {
                    visit(measurement);
                }
            }
        });
    }
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SELECT ")?;
        crate::quote::write_list(f, &self.fields, ", ")?;
        if let Some(target) = &self.target {
            write!(f, " {target}")?;
        }
        print::list(f, "FROM", &self.sources)?;
        print::optional(f, "WHERE", self.condition.as_ref())?;
        print::list(f, "GROUP BY", &self.dimensions)?;
        write!(f, "{}", self.fill)?;
        print::optional(f, "ORDER BY", self.order_by.as_ref())?;
        print::count(f, "LIMIT", self.limit)?;
        print::count(f, "OFFSET", self.offset)?;
        print::count(f, "SLIMIT", self.slimit)?;
        print::count(f, "SOFFSET", self.soffset)?;
        match &self.time_zone {
            Some(zone) => write!(f, " TZ('{zone}')"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.expr)?;
        if self.alias.is_empty() {
            return Ok(());
        }
        write!(f, " AS {}", QuotedIdent(&self.alias))
    }
}

/// The segments before the name of a measurement, each followed by a dot.
fn write_place(f: &mut fmt::Formatter<'_>, database: &str, policy: &str) -> fmt::Result {
    if !database.is_empty() {
        write!(f, "{}.", QuotedIdent(database))?;
    }
    if !policy.is_empty() {
        write!(f, "{}", QuotedIdent(policy))?;
    }
    if !database.is_empty() || !policy.is_empty() {
        f.write_char('.')?;
    }
    Ok(())
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("INTO ")?;
        write_place(f, &self.database, &self.retention_policy)?;
        match &self.measurement {
            Some(name) => write!(f, "{}", QuotedIdent(name)),
            None => f.write_str(":MEASUREMENT"),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measurement(measurement) => write!(f, "{measurement}"),
            Self::Subquery(select) => write!(f, "({select})"),
        }
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(f, &self.database, &self.retention_policy)?;
        match &self.name {
            MeasurementName::Name(name) if name.is_empty() => Ok(()),
            MeasurementName::Name(name) => write!(f, "{}", QuotedIdent(name)),
            MeasurementName::Regex(regex) => write!(f, "{regex}"),
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Prints a leading blank; nothing for null.
impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::None => f.write_str(" fill(none)"),
            Self::Integer(value) => write!(f, " fill({value})"),
            Self::Float(value) => write!(f, " fill({})", ShortestFloat(*value)),
            Self::Previous => f.write_str(" fill(previous)"),
            Self::Linear => f.write_str(" fill(linear)"),
        }
    }
}

impl fmt::Display for SortField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.name.is_empty() {
            write!(f, "{} ", self.name)?;
        }
        f.write_str(if self.ascending { "ASC" } else { "DESC" })
    }
}
