//! Prepares a SELECT with the stored schema: finds sources, expands wildcards, and gives names
//! their types.

use crate::expression::{Expression, cast_of};
use crate::schema::{
    StoredCatalog, StoredMeasurement, compile_regex, field_type, refused, stored_measurements,
};
use crate::typing::{is_open, type_of};
use crate::value::InfluxValueType;
use crate::window::named_zone;
use jiff::tz::TimeZone;
use marigram_influxql::ast::{Cast, Expr, Fill, RegexSource, Select, Source, VarRef};
use marigram_influxql::columns::{
    InfluxFieldType, SourceSchema, column_names, expand_wildcards, field_name,
};
use marigram_influxql::validate::{Interval, SelectAnalysis};
use marigram_sql::SqlResult;
use regex::Regex;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A column of a SELECT.
#[derive(Clone, Debug)]
pub(crate) struct PreparedField {
    /// Its name for an enclosing query: the alias, or a name derived from the expression.
    pub name: String,
    /// The expression to compute. Its names carry their types.
    pub expression: Expression,
}

/// The source of rows.
#[derive(Clone, Debug)]
pub(crate) enum PreparedSource {
    /// A table.
    Measurement(StoredMeasurement),
    /// Another SELECT.
    Subquery(Box<PreparedSelect>),
}

impl PreparedSource {
    /// Whether it reads a materialized view.
    pub(crate) fn reads_view(&self) -> bool {
        match self {
            Self::Measurement(measurement) => measurement.table.rollup.is_some(),
            Self::Subquery(inner) => inner.sources.iter().any(Self::reads_view),
        }
    }

    /// Whether it is another SELECT.
    pub(crate) const fn is_subquery(&self) -> bool {
        matches!(self, Self::Subquery(_))
    }
}

/// A SELECT that can run.
#[derive(Clone, Debug)]
pub(crate) struct PreparedSelect {
    /// The columns but `time`.
    pub fields: Vec<PreparedField>,
    /// The columns' names in an answer, including those that `top` and `bottom` add; without
    /// `time`.
    pub columns: Vec<String>,
    /// The name of the column of times.
    pub time_column: String,
    /// WHERE without its conditions on time. Its names carry their types.
    pub condition: Option<Expression>,
    /// The tags of GROUP BY.
    pub dimensions: Vec<String>,
    /// The sources of rows.
    pub sources: Vec<PreparedSource>,
    /// The groups of time.
    pub interval: Option<Interval>,
    /// The first and last time, both included.
    pub min_ns: i64,
    /// See `min_ns`.
    pub max_ns: i64,
    /// The direction of time.
    pub ascending: bool,
    /// The value of an empty group.
    pub fill: Fill,
    /// The largest number of rows per series, 0 for all, and the number of rows to skip.
    pub limit: (u64, u64),
    /// The largest number of series, 0 for all, and the number of series to skip.
    pub series_limit: (u64, u64),
    /// The zone of the groups of time.
    pub zone: Option<TimeZone>,
    /// Whether the columns are those alone that are written somewhere.
    pub has_target: bool,
}

/// The context in which a SELECT is prepared.
#[derive(Clone, Copy)]
pub(crate) struct Preparation<'a> {
    /// What is stored.
    pub catalog: StoredCatalog<'a>,
}

impl Preparation<'_> {
    /// Prepares a SELECT and its subqueries.
    ///
    /// # Errors
    /// The refusals of InfluxDB, in its words.
    pub(crate) fn select(
        &self,
        select: &Select,
        analysis: &SelectAnalysis,
        outer_zone: Option<&TimeZone>,
    ) -> SqlResult<PreparedSelect> {
        let zone = match &select.time_zone {
            Some(name) => Some(
                named_zone(name)
                    .ok_or_else(|| refused(format!("unable to find time zone {name}")))?,
            ),
            None => outer_zone.cloned(),
        };
        let sources = self.sources(select, analysis, zone.as_ref())?;
        let (fields, tags) = known_names(&sources);
        let failure = RefCell::new(None);
        // Each expression is asked about all names in turn: the last one is kept compiled.
        let last: RefCell<Option<(RegexSource, Regex)>> = RefCell::new(None);
        let matches = |source: &RegexSource, name: &str| {
            if failure.borrow().is_some() {
                return false;
            }
            let mut last = last.borrow_mut();
            if let Some((known, regex)) = &*last
                && known == source
            {
                return regex.is_match(name);
            }
            match compile_regex(source) {
                Ok(regex) => {
                    let matches = regex.is_match(name);
                    *last = Some((source.clone(), regex));
                    matches
                }
                Err(error) => {
                    failure.replace(Some(error));
                    false
                }
            }
        };
        let schema = SourceSchema {
            fields,
            tags,
            matches: &matches,
        };
        let expanded = expand_wildcards(&analysis.fields, &analysis.dimensions, &schema)
            .map_err(|error| refused(error.to_string()))?;
        if let Some(error) = failure.take() {
            return Err(error);
        }
        let is_written = select.target.is_some();
        let fields = expanded.fields.iter().map(|field| {
            Ok(PreparedField {
                name: field_name(field),
                expression: typed(Expression::new(&field.expr)?, &sources),
            })
        });
        let fields: Vec<PreparedField> = fields.collect::<SqlResult<_>>()?;
        // What `top` and `bottom` add is needed as tags of the rows that are written.
        let adds = |field: &PreparedField| !extra_columns(&field.expression).is_empty();
        let has_target = is_written && !fields.iter().any(adds);
        let columns = column_names(&expanded.fields, None, has_target);
        let condition = analysis.condition.as_ref();
        let condition = condition.map(Expression::new).transpose()?;
        let condition = condition.map(|condition| typed(condition, &sources));
        let dimensions = expanded.dimensions.iter().filter_map(|by| match by {
            Expr::VarRef(var) => Some(var.name.clone()),
            _ => None,
        });
        let interval = analysis.interval.filter(|interval| interval.every_ns > 0);
        Ok(PreparedSelect {
            fields,
            columns,
            time_column: analysis.time_column.clone(),
            condition,
            dimensions: dimensions.collect(),
            sources,
            interval,
            min_ns: analysis.min_ns,
            max_ns: analysis.max_ns,
            ascending: analysis.ascending,
            fill: match analysis.fill {
                Fill::Null if is_written => Fill::None,
                fill => fill,
            },
            limit: (select.limit, select.offset),
            series_limit: (select.slimit, select.soffset),
            zone,
            has_target,
        })
    }

    fn sources(
        &self,
        select: &Select,
        analysis: &SelectAnalysis,
        zone: Option<&TimeZone>,
    ) -> SqlResult<Vec<PreparedSource>> {
        let mut subqueries = analysis.subqueries.iter();
        let mut sources = Vec::with_capacity(select.sources.len());
        for source in &select.sources {
            match source {
                Source::Measurement(measurement) => {
                    let stored = stored_measurements(&self.catalog, measurement)?;
                    sources.extend(stored.into_iter().map(PreparedSource::Measurement));
                }
                Source::Subquery(inner) => {
                    let Some(analysis) = subqueries.next() else {
                        return Err(refused("a subquery was not analyzed"));
                    };
                    let inner = self.select(inner, analysis, zone)?;
                    sources.push(PreparedSource::Subquery(Box::new(inner)));
                }
            }
        }
        Ok(sources)
    }
}

impl PreparedSelect {
    /// Checks the types of the columns.
    ///
    /// # Errors
    /// If an operator does not accept its operands.
    pub(crate) fn check_types(&self) -> SqlResult<()> {
        for field in &self.fields {
            type_of(&field.expression)?;
        }
        Ok(())
    }

    /// What a name is for the query around this one.
    fn type_of(&self, name: &str) -> Option<InfluxValueType> {
        for field in &self.fields {
            if field.name == name {
                return type_of(&field.expression).ok().flatten();
            }
            let named = extra_columns(&field.expression)
                .into_iter()
                .find(|var| var.name == name);
            if let Some(var) = named {
                return var.cast.and_then(InfluxValueType::of_cast);
            }
        }
        let groups = self.dimensions.iter().any(|by| by == name);
        groups.then_some(InfluxValueType::Tag)
    }
}

/// The columns that `top` and `bottom` add after their own.
pub(crate) fn extra_columns(expression: &Expression) -> Vec<&VarRef> {
    let Expression::Call(name, args) = expression else {
        return Vec::new();
    };
    if !matches!(name.as_str(), "top" | "bottom") || args.len() < 3 {
        return Vec::new();
    }
    let middle = &args[1..args.len() - 1];
    middle
        .iter()
        .filter_map(|arg| match arg {
            Expression::Name(var) => Some(var),
            _ => None,
        })
        .collect()
}

impl PreparedSource {
    /// What a name is in this source.
    pub(crate) fn type_of(&self, name: &str) -> Option<InfluxValueType> {
        match self {
            Self::Measurement(measurement) => measurement.type_of(name),
            Self::Subquery(inner) => inner.type_of(name),
        }
    }
}

/// Fields with their types, and tags, of all sources.
fn known_names(sources: &[PreparedSource]) -> (Vec<(String, InfluxFieldType)>, Vec<String>) {
    let mut fields: BTreeMap<String, InfluxValueType> = BTreeMap::new();
    let mut tags: Vec<String> = Vec::new();
    let mut note = |name: &str, kind: InfluxValueType| {
        let known = fields.entry(name.to_owned()).or_insert(kind);
        *known = (*known).min(kind);
    };
    for source in sources {
        match source {
            PreparedSource::Measurement(measurement) => {
                measurement
                    .fields()
                    .for_each(|(name, kind)| note(name, kind));
                let own = measurement.table.tags.iter();
                tags.extend(own.map(|tag| tag.name.clone()));
            }
            PreparedSource::Subquery(inner) => {
                for field in &inner.fields {
                    if let Ok(Some(kind)) = type_of(&field.expression) {
                        note(&field.name, kind);
                    }
                }
                tags.extend(inner.dimensions.iter().cloned());
            }
        }
    }
    tags.sort();
    tags.dedup();
    let fields = fields.into_iter();
    (
        fields
            .map(|(name, kind)| (name, field_type(kind)))
            .collect(),
        tags,
    )
}

/// The expression with a type for each name that has none.
fn typed(mut expression: Expression, sources: &[PreparedSource]) -> Expression {
    expression.each_name(&mut |var| {
        if !is_open(var.cast) {
            return;
        }
        let kinds = sources
            .iter()
            .filter_map(|source| source.type_of(&var.name));
        match (kinds.min(), var.cast) {
            (Some(InfluxValueType::Tag), Some(Cast::Field)) => {}
            (kind, _) => var.cast = kind.map(cast_of),
        }
    });
    expression
}
