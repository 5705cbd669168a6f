//! The SHOW statements that have clauses.

use super::expr::Expr;
use super::literal::RegexSource;
use super::print;
use super::select::{Dimension, Measurement, MeasurementName, SortField, Source};
use crate::quote::{QuotedIdent, write_list};
use std::fmt;

/// SHOW SERIES.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ShowSeries {
    /// The database behind ON, or nothing for the one of the request.
    pub database: String,
    /// Measurements only; all if empty.
    pub sources: Vec<Source>,
    /// WHERE.
    pub condition: Option<Expr>,
    /// ORDER BY.
    pub order_by: Option<SortField>,
    /// Rows at most; 0 for all.
    pub limit: u64,
    /// Rows that are left out at the beginning.
    pub offset: u64,
}

/// SHOW MEASUREMENTS.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ShowMeasurements {
    /// The database behind ON, or nothing for the one of the request.
    pub database: String,
    /// WITH MEASUREMENT.
    pub measurement: Option<Measurement>,
    /// WHERE.
    pub condition: Option<Expr>,
    /// ORDER BY.
    pub order_by: Option<SortField>,
    /// Rows at most; 0 for all.
    pub limit: u64,
    /// Rows that are left out at the beginning.
    pub offset: u64,
}

/// SHOW TAG KEYS.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ShowTagKeys {
    /// The database behind ON, or nothing for the one of the request.
    pub database: String,
    /// Measurements only; all if empty.
    pub sources: Vec<Source>,
    /// WITH KEY, which only later versions of InfluxDB read.
    pub with_key: Option<TagKeyFilter>,
    /// WHERE.
    pub condition: Option<Expr>,
    /// ORDER BY.
    pub order_by: Option<SortField>,
    /// Keys of a measurement at most; 0 for all.
    pub limit: u64,
    /// Keys that are left out at the beginning.
    pub offset: u64,
    /// Measurements at most; 0 for all.
    pub slimit: u64,
    /// Measurements that are left out at the beginning.
    pub soffset: u64,
}

/// SHOW TAG VALUES.
#[derive(Debug, Clone, PartialEq)]
pub struct ShowTagValues {
    /// The database behind ON, or nothing for the one of the request.
    pub database: String,
    /// Measurements only; all if empty.
    pub sources: Vec<Source>,
    /// WITH KEY.
    pub with_key: TagKeyFilter,
    /// WHERE.
    pub condition: Option<Expr>,
    /// ORDER BY.
    pub order_by: Option<SortField>,
    /// Rows at most; 0 for all.
    pub limit: u64,
    /// Rows that are left out at the beginning.
    pub offset: u64,
}

/// SHOW FIELD KEYS.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ShowFieldKeys {
    /// The database behind ON, or nothing for the one of the request.
    pub database: String,
    /// Measurements only; all if empty.
    pub sources: Vec<Source>,
    /// ORDER BY.
    pub order_by: Option<SortField>,
    /// Rows at most; 0 for all.
    pub limit: u64,
    /// Rows that are left out at the beginning.
    pub offset: u64,
}

/// The statements SHOW … CARDINALITY.
#[derive(Debug, Clone, PartialEq)]
pub struct ShowCardinality {
    /// What is counted.
    pub of: Cardinality,
    /// Whether to count one by one (EXACT) instead of estimating.
    pub exact: bool,
    /// The database behind ON, or nothing for the one of the request.
    pub database: String,
    /// Measurements only; all if empty.
    pub sources: Vec<Source>,
    /// WHERE.
    pub condition: Option<Expr>,
    /// GROUP BY.
    pub dimensions: Vec<Dimension>,
    /// Rows at most; 0 for all.
    pub limit: u64,
    /// Rows that are left out at the beginning.
    pub offset: u64,
}

/// What SHOW … CARDINALITY counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cardinality {
    /// SHOW SERIES CARDINALITY
    Series,
    /// SHOW MEASUREMENT CARDINALITY
    Measurement,
    /// SHOW TAG KEY CARDINALITY
    TagKey,
    /// SHOW TAG VALUES CARDINALITY, of these keys.
    TagValues(TagKeyFilter),
    /// SHOW FIELD KEY CARDINALITY
    FieldKey,
}

/// WITH KEY: selects tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TagKeyFilter {
    /// `= key`
    Eq(String),
    /// `!= key`
    Neq(String),
    /// `=~ /…/`
    Matches(RegexSource),
    /// `!~ /…/`
    MatchesNot(RegexSource),
    /// `IN (key, …)`
    In(Vec<String>),
}

impl fmt::Display for TagKeyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eq(key) => write!(f, "= {}", QuotedIdent(key)),
            Self::Neq(key) => write!(f, "!= {}", QuotedIdent(key)),
            Self::Matches(regex) => write!(f, "=~ {regex}"),
            Self::MatchesNot(regex) => write!(f, "!~ {regex}"),
            Self::In(keys) => {
                f.write_str("IN (")?;
                write_list(f, keys.iter().map(|key| QuotedIdent(key)), ", ")?;
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for ShowSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SHOW SERIES")?;
        print::on(f, &self.database)?;
        print::list(f, "FROM", &self.sources)?;
        print::optional(f, "WHERE", self.condition.as_ref())?;
        print::optional(f, "ORDER BY", self.order_by.as_ref())?;
        print::count(f, "LIMIT", self.limit)?;
        print::count(f, "OFFSET", self.offset)
    }
}

impl fmt::Display for ShowMeasurements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SHOW MEASUREMENTS")?;
        // InfluxDB quotes the database in all other statements.
        print::optional(
            f,
            "ON",
            Some(&self.database).filter(|name| !name.is_empty()),
        )?;
        if let Some(measurement) = &self.measurement {
            let sign = match measurement.name {
                MeasurementName::Name(_) => "=",
                MeasurementName::Regex(_) => "=~",
            };
            write!(f, " WITH MEASUREMENT {sign} {measurement}")?;
        }
        print::optional(f, "WHERE", self.condition.as_ref())?;
        print::optional(f, "ORDER BY", self.order_by.as_ref())?;
        print::count(f, "LIMIT", self.limit)?;
        print::count(f, "OFFSET", self.offset)
    }
}

impl fmt::Display for ShowTagKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SHOW TAG KEYS")?;
        print::on(f, &self.database)?;
        print::list(f, "FROM", &self.sources)?;
        print::optional(f, "WITH KEY", self.with_key.as_ref())?;
        print::optional(f, "WHERE", self.condition.as_ref())?;
        print::optional(f, "ORDER BY", self.order_by.as_ref())?;
        print::count(f, "LIMIT", self.limit)?;
        print::count(f, "OFFSET", self.offset)?;
        print::count(f, "SLIMIT", self.slimit)?;
        print::count(f, "SOFFSET", self.soffset)
    }
}

impl fmt::Display for ShowTagValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SHOW TAG VALUES")?;
        print::on(f, &self.database)?;
        print::list(f, "FROM", &self.sources)?;
        write!(f, " WITH KEY {}", self.with_key)?;
        print::optional(f, "WHERE", self.condition.as_ref())?;
        print::optional(f, "ORDER BY", self.order_by.as_ref())?;
        print::count(f, "LIMIT", self.limit)?;
        print::count(f, "OFFSET", self.offset)
    }
}

impl fmt::Display for ShowFieldKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SHOW FIELD KEYS")?;
        print::on(f, &self.database)?;
        print::list(f, "FROM", &self.sources)?;
        print::optional(f, "ORDER BY", self.order_by.as_ref())?;
        print::count(f, "LIMIT", self.limit)?;
        print::count(f, "OFFSET", self.offset)
    }
}

impl fmt::Display for ShowCardinality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match &self.of {
            Cardinality::Series => "SERIES",
            Cardinality::Measurement => "MEASUREMENT",
            Cardinality::TagKey => "TAG KEY",
            Cardinality::TagValues(_) => "TAG VALUES",
            Cardinality::FieldKey => "FIELD KEY",
        };
        let exact = if self.exact { " EXACT" } else { "" };
        write!(f, "SHOW {of}{exact} CARDINALITY")?;
        print::on(f, &self.database)?;
        print::list(f, "FROM", &self.sources)?;
        if let Cardinality::TagValues(keys) = &self.of {
            write!(f, " WITH KEY {keys}")?;
        }
        print::optional(f, "WHERE", self.condition.as_ref())?;
        print::list(f, "GROUP BY", &self.dimensions)?;
        print::count(f, "LIMIT", self.limit)?;
        print::count(f, "OFFSET", self.offset)
    }
}
