//! Checks a request, and finds out what must be read and computed for its outputs.

use super::request::{
    ExpressionQuery, ExpressionSpec, FillSpec, FilterSetSpec, MetricSpec, TimeSpec,
};
use crate::checked_query::CheckedQuery;
use crate::error::QueryFault;
use crate::formula::Formula;
use crate::query::TsQuery;
use crate::scalar::{Flag, Scalar};
use crate::sub_query::SubQuery;
use std::collections::{BTreeMap, BTreeSet};

/// Metrics, expressions, sets of filters and outputs of a request, each.
const PARTS_MAX: usize = 100;

/// How the series of several variables are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Only those that every variable has.
    Intersection,
    /// All of them. A series that a variable lacks is zero.
    Union,
}

/// A metric to read.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpressionMetric {
    /// The variable that it is.
    pub id: String,
    /// The query that reads it.
    pub query: CheckedQuery,
    /// What stands for a missing value.
    pub fill: f64,
}

/// An expression to compute.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpressionStep {
    /// The variable that it is.
    pub id: String,
    /// How its values are computed.
    pub formula: Formula,
    /// How its variables are joined.
    pub join: JoinKind,
    /// Whether only the tags that filters name are compared.
    pub uses_query_tags: bool,
    /// Whether the names of aggregated tags are compared, too.
    pub includes_aggregate_tags: bool,
    /// What stands for a missing value where another expression uses it.
    pub fill: f64,
}

/// A part of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionOutput {
    /// The metric or expression.
    pub id: String,
    /// What the client calls it.
    pub alias: Option<String>,
}

/// What a request means.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedExpressions {
    /// The metrics that outputs need.
    pub metrics: Vec<ExpressionMetric>,
    /// The expressions that outputs need, each behind those that it uses.
    pub steps: Vec<ExpressionStep>,
    /// The parts of the answer.
    pub outputs: Vec<ExpressionOutput>,
}

impl ExpressionQuery {
    /// What the request means, at the time `now_ms`.
    ///
    /// # Errors
    /// What is wrong with it, in OpenTSDB's words.
    pub fn check(&self, now_ms: i64) -> Result<CheckedExpressions, QueryFault> {
        let time = self.time.as_ref();
        let time = time.ok_or_else(|| QueryFault::new("missing time"))?;
        let metrics = self.metrics.as_deref().unwrap_or_default();
        if metrics.is_empty() {
            return Err(QueryFault::new("missing or empty metrics"));
        }
        let filters = self.filters.as_deref().unwrap_or_default();
        let expressions = self.expressions.as_deref().unwrap_or_default();
        let outputs = self.outputs.as_deref().unwrap_or_default();
        for (what, count) in [
            ("metrics", metrics.len()),
            ("filters", filters.len()),
            ("expressions", expressions.len()),
            ("outputs", outputs.len()),
        ] {
            if count > PARTS_MAX {
                return Err(QueryFault::new(format!(
                    "There are more than {PARTS_MAX} {what}"
                )));
            }
        }
        let filters = checked_filters(filters)?;
        let metrics = checked_metrics(time, metrics, &filters, now_ms)?;
        let steps = checked_steps(expressions, &metrics)?;
        let steps = in_order(steps)?;
        let mut outputs = Vec::with_capacity(outputs.len());
        for output in self.outputs.iter().flatten() {
            let id = output.id.clone().unwrap_or_default();
            // As in OpenTSDB, what nothing is called is left out.
            if metrics.iter().any(|metric| metric.id == id)
                || steps.iter().any(|step| step.id == id)
            {
                let alias = output.alias.clone();
                outputs.push(ExpressionOutput { id, alias });
            }
        }
        if self.outputs.as_ref().is_none_or(Vec::is_empty) {
            let ids: Vec<&Option<String>> = if expressions.is_empty() {
                let specs = self.metrics.iter().flatten();
                specs.map(|metric| &metric.id).collect()
            } else {
                expressions
                    .iter()
                    .map(|expression| &expression.id)
                    .collect()
            };
            outputs.extend(ids.into_iter().flatten().map(|id| ExpressionOutput {
                id: id.clone(),
                alias: None,
            }));
        }
        Ok(needed(metrics, steps, outputs))
    }
}

/// Leaves out what no output needs.
fn needed(
    metrics: Vec<ExpressionMetric>,
    steps: Vec<ExpressionStep>,
    outputs: Vec<ExpressionOutput>,
) -> CheckedExpressions {
    let mut ids: BTreeSet<String> = outputs.iter().map(|output| output.id.clone()).collect();
    for step in steps.iter().rev() {
        if ids.contains(&step.id) {
            ids.extend(step.formula.variables().iter().cloned());
        }
    }
    let metrics = metrics
        .into_iter()
        .filter(|metric| ids.contains(&metric.id));
    let steps = steps.into_iter().filter(|step| ids.contains(&step.id));
    CheckedExpressions {
        metrics: metrics.collect(),
        steps: steps.collect(),
        outputs,
    }
}

/// An identifier has letters and digits, and is no digit.
fn checked_id<'a>(id: Option<&'a String>, what: &str, place: usize) -> Result<&'a str, QueryFault> {
    let invalid = |why: &str| invalid_part(what, place, why);
    let id = id.map(String::as_str).filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| invalid("The ID cannot be null or empty"))?;
    if let Some(char) = id.chars().find(|char| !char.is_alphanumeric()) {
        return Err(invalid(&format!(
            "Invalid id (\"{id:.50}\"): illegal character: {char}"
        )));
    }
    if id.len() == 1 && id.starts_with(|char: char| char.is_ascii_digit()) {
        return Err(invalid("The ID cannot be an integer"));
    }
    Ok(id)
}

fn invalid_part(what: &str, place: usize, why: &str) -> QueryFault {
    QueryFault::new(format!("Invalid {what} at index {place}")).with_details(why)
}

fn named(text: Option<&String>) -> Option<&String> {
    text.filter(|text| !text.is_empty())
}

fn checked_filters(sets: &[FilterSetSpec]) -> Result<BTreeMap<&str, &FilterSetSpec>, QueryFault> {
    let mut filters = BTreeMap::new();
    for (place, set) in sets.iter().enumerate() {
        let id = checked_id(set.id.as_ref(), "filter", place)?;
        if filters.insert(id, set).is_some() {
            return Err(QueryFault::new(format!("duplicated filter id: {id:.50}")));
        }
    }
    Ok(filters)
}

fn checked_metrics(
    time: &TimeSpec,
    specs: &[MetricSpec],
    filters: &BTreeMap<&str, &FilterSetSpec>,
    now_ms: i64,
) -> Result<Vec<ExpressionMetric>, QueryFault> {
    let invalid_time = |why: &str| QueryFault::new("Invalid time").with_details(why);
    let aggregator = named(time.aggregator.as_ref());
    let aggregator = aggregator.ok_or_else(|| invalid_time("Missing or empty aggregator"))?;
    let downsample = match &time.downsampler {
        None => None,
        Some(spec) => {
            if let Some(fill) = &spec.fill_policy {
                fill.checked()?;
            }
            let interval = named(spec.interval.as_ref());
            let interval = interval.ok_or_else(|| invalid_time("Missing or empty interval"))?;
            let function = named(spec.aggregator.as_ref());
            let function = function.ok_or_else(|| invalid_time("Missing or empty aggregator"))?;
            Some(format!("{interval}-{function}"))
        }
    };
    let mut ids = Vec::with_capacity(specs.len());
    let mut queries = Vec::with_capacity(specs.len());
    for (place, spec) in specs.iter().enumerate() {
        let id = checked_id(spec.id.as_ref(), "metric", place)?;
        if ids.iter().any(|(known, _)| known == id) {
            return Err(QueryFault::new(format!("duplicated metric id: {id:.50}")));
        }
        if named(spec.metric.as_ref()).is_none() {
            return Err(invalid_part("metric", place, "missing or empty metric"));
        }
        if let Some(offset) = named(spec.time_offset.as_ref()) {
            let why = format!("timeOffset '{offset:.50}' is not supported");
            return Err(invalid_part("metric", place, &why));
        }
        let fill = spec
            .fill_policy
            .as_ref()
            .map_or(Ok(0.0), FillSpec::checked)?;
        ids.push((id.to_owned(), fill));
        let set = match named(spec.filter.as_ref()) {
            None => None,
            Some(filter) => Some(filters.get(filter.as_str()).ok_or_else(|| {
                QueryFault::new(format!(
                    "unrecognized filter id {filter:.50} in metric {id:.50}"
                ))
            })?),
        };
        queries.push(SubQuery {
            aggregator: Some(
                named(spec.aggregator.as_ref())
                    .unwrap_or(aggregator)
                    .clone(),
            ),
            metric: spec.metric.clone(),
            downsample: downsample.clone(),
            rate: time.rate,
            filters: set.and_then(|set| set.tags.clone()),
            explicit_tags: set.map_or(Flag(false), |set| set.explicit_tags),
            ..SubQuery::default()
        });
    }
    let query = TsQuery {
        start: time.start.clone(),
        end: time.end.clone(),
        timezone: time.timezone.clone(),
        queries,
        ms_resolution: Flag(true),
        ..TsQuery::default()
    };
    let checked = ids.into_iter().zip(query.check(now_ms)?);
    let checked = checked.map(|((id, fill), query)| ExpressionMetric { id, query, fill });
    Ok(checked.collect())
}

fn checked_steps(
    specs: &[ExpressionSpec],
    metrics: &[ExpressionMetric],
) -> Result<Vec<ExpressionStep>, QueryFault> {
    let mut ids: BTreeSet<&str> = metrics.iter().map(|metric| metric.id.as_str()).collect();
    let mut steps = Vec::with_capacity(specs.len());
    for (place, spec) in specs.iter().enumerate() {
        let id = checked_id(spec.id.as_ref(), "expression", place)?;
        if !ids.insert(id) {
            return Err(QueryFault::new(format!(
                "Duplicated variable or expression id: {id:.50}"
            )));
        }
        let text = named(spec.expr.as_ref());
        let text =
            text.ok_or_else(|| invalid_part("expression", place, "missing or empty expr"))?;
        let join = spec.join.clone();
        let join = join.unwrap_or_default();
        let kind = match join
            .operator
            .as_deref()
            .map(str::to_ascii_lowercase)
            .as_deref()
        {
            Some("union") => JoinKind::Union,
            Some("intersection") => JoinKind::Intersection,
            None if spec.join.is_none() => JoinKind::Union,
            None => return Err(QueryFault::new("The set operator cannot be null")),
            Some(other) => {
                return Err(QueryFault::new(format!(
                    "Unrecognized set operator: {other:.50}"
                )));
            }
        };
        let fill = spec.fill_policy.as_ref();
        steps.push(ExpressionStep {
            id: id.to_owned(),
            formula: Formula::parse(text)?,
            join: kind,
            uses_query_tags: join.use_query_tags.0,
            includes_aggregate_tags: join.include_agg_tags.0,
            fill: fill.map_or(Ok(f64::NAN), FillSpec::checked)?,
        });
    }
    for (spec, step) in specs.iter().zip(&steps) {
        let mut variables = step.formula.variables().iter();
        if let Some(missing) = variables.find(|name| !ids.contains(name.as_str())) {
            let text: String = spec
                .expr
                .iter()
                .flat_map(|text| text.chars())
                .take(200)
                .collect();
            return Err(QueryFault::new(format!(
                "Expression [{text}] was missing input {missing:.50}"
            )));
        }
    }
    Ok(steps)
}

/// The expressions, each behind those that it uses.
fn in_order(mut steps: Vec<ExpressionStep>) -> Result<Vec<ExpressionStep>, QueryFault> {
    let own = |step: &&ExpressionStep| step.formula.variables().contains(&step.id);
    if let Some(step) = steps.iter().find(own) {
        return Err(QueryFault::new(format!(
            "Self referencing expression found: {}",
            step.id
        )));
    }
    let mut ordered: Vec<ExpressionStep> = Vec::with_capacity(steps.len());
    while !steps.is_empty() {
        let waiting: BTreeSet<&str> = steps.iter().map(|step| step.id.as_str()).collect();
        let waits = |step: &ExpressionStep| {
            let mut variables = step.formula.variables().iter();
            variables.any(|name| waiting.contains(name.as_str()))
        };
        let Some(ready) = steps.iter().position(|step| !waits(step)) else {
            let id = steps.first().map(|step| step.id.as_str());
            return Err(QueryFault::new(format!(
                "Circular reference found: {}",
                id.unwrap_or_default()
            )));
        };
        ordered.push(steps.remove(ready));
    }
    Ok(ordered)
}

impl FillSpec {
    /// The value that stands for a missing one.
    fn checked(&self) -> Result<f64, QueryFault> {
        let value = match &self.value {
            None => None,
            Some(Scalar::Integer(number)) => Some(*number as f64),
            Some(Scalar::Float(number)) => Some(*number),
            Some(Scalar::Text(text)) => Some(text.trim().parse().map_err(|_| {
                QueryFault::new(format!("Invalid value of a fill policy: {text:.50}"))
            })?),
        };
        let policy = named(self.policy.as_ref()).map(|policy| policy.to_ascii_lowercase());
        let is_none = value.is_none_or(|value| value == 0.0 || value.is_nan());
        match policy.as_deref() {
            None | Some("scalar") => Ok(value.unwrap_or(0.0)),
            Some("zero") if value.is_none_or(|value| value == 0.0) => Ok(0.0),
            Some("zero") => Err(QueryFault::new("The value for ZERO must be 0")),
            Some("nan" | "none" | "null") if is_none => Ok(f64::NAN),
            Some("nan" | "none") => Err(QueryFault::new("The value for NONE and NAN must be NaN")),
            Some("null") => Err(QueryFault::new("The value for NULL must be 0")),
            Some(other) => Err(QueryFault::new(format!(
                "Unrecognized fill policy: {other:.50}"
            ))),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
