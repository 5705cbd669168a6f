//! Joins the series of an expression's variables by their tags, and computes the expression at each
//! time at which one of them has a point.

use super::check::{ExpressionStep, JoinKind};
use super::table::{ExpressionHead, JoinedSeries, SeriesSet};
use crate::error::QueryFault;
use crate::formula::{Formula, FormulaValue};
use crate::reducer::SeriesPoint;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Values that are looked at before the caller may stop.
const STEPS_MAX: usize = 100_000;

/// A series of a variable is compared by this: the keys and values of its tags, and then the names of
/// its aggregated tags.
type JoinedTags<'a> = Vec<&'a str>;

/// What a variable stands for, and its value where it has none.
#[derive(Clone, Debug)]
pub(super) struct JoinInput {
    source: JoinSource,
    fill: f64,
}

#[derive(Clone, Debug)]
enum JoinSource {
    /// The series of a metric.
    Metric(Arc<SeriesSet>),
    /// The values of another expression.
    Expression(Arc<JoinedSeries>),
}

/// A series of a variable, and how far it was read.
#[derive(Clone, Copy, Debug)]
struct JoinCursor {
    series: usize,
    next: usize,
}

/// Computes the series of an expression.
#[derive(Debug)]
pub struct ExpressionJoin {
    /// `None` for a metric that is shown as it is.
    formula: Option<Formula>,
    inputs: Vec<JoinInput>,
    /// For each series the cursors of the variables; `None` where a variable lacks it.
    cursors: Vec<Option<JoinCursor>>,
    next_time: Option<i64>,
    values: Vec<f64>,
    stack: Vec<FormulaValue>,
}

/// The variables that are known.
#[derive(Clone, Debug, Default)]
pub struct JoinVariables(BTreeMap<String, JoinInput>);

impl JoinVariables {
    /// Adds the series of a metric.
    pub fn add_metric(&mut self, id: &str, series: Arc<SeriesSet>, fill: f64) {
        let source = JoinSource::Metric(series);
        self.0.insert(id.to_owned(), JoinInput { source, fill });
    }

    /// Adds the values of an expression.
    pub fn add_expression(&mut self, id: &str, table: Arc<JoinedSeries>, fill: f64) {
        let source = JoinSource::Expression(table);
        self.0.insert(id.to_owned(), JoinInput { source, fill });
    }
}

impl ExpressionJoin {
    /// Joins the variables of an expression. Returns the table that it fills, which has no times yet.
    ///
    /// # Errors
    /// If no series is left, although there are some.
    pub fn new(
        step: &ExpressionStep,
        variables: &JoinVariables,
    ) -> Result<(Self, JoinedSeries), QueryFault> {
        let names = step.formula.variables();
        let inputs: Vec<JoinInput> = names
            .iter()
            .filter_map(|name| variables.0.get(name).cloned())
            .collect();
        if inputs.len() < names.len() {
            let missing = names.iter().find(|name| !variables.0.contains_key(*name));
            return Err(QueryFault::new(format!(
                "Missing results for variable {}",
                missing.map_or("", String::as_str)
            )));
        }
        // In the order in which the series are first met.
        let mut places: BTreeMap<JoinedTags<'_>, usize> = BTreeMap::new();
        let mut joined: Vec<Vec<Option<usize>>> = Vec::new();
        for (place, input) in inputs.iter().enumerate() {
            for number in 0..input.source.len() {
                let Some(head) = input.source.head(number) else {
                    continue;
                };
                let next = joined.len();
                let at = *places.entry(input.source.key(step, head)).or_insert(next);
                if at == next {
                    joined.push(vec![None; inputs.len()]);
                }
                if let Some(known) = joined.get_mut(at).and_then(|row| row.get_mut(place)) {
                    *known = Some(number);
                }
            }
        }
        let has_series = !joined.is_empty();
        if step.join == JoinKind::Intersection {
            joined.retain(|row| row.iter().all(Option::is_some));
        }
        if has_series && joined.is_empty() {
            return Err(
                QueryFault::new(format!("No intersections found: expression {}", step.id))
                    .with_details("No series has the same tags in all variables"),
            );
        }
        let heads = joined.iter().map(|row| joined_head(&inputs, row)).collect();
        Ok(Self::started(
            Some(step.formula.clone()),
            inputs,
            &joined,
            heads,
        ))
    }

    /// The series of a metric as they are, zero where they have no point.
    pub fn of_metric(series: Arc<SeriesSet>) -> (Self, JoinedSeries) {
        let heads = series.series.iter().map(|(head, _)| head.clone()).collect();
        let rows: Vec<_> = (0..series.series.len())
            .map(|number| vec![Some(number)])
            .collect();
        let source = JoinSource::Metric(series);
        let inputs = vec![JoinInput { source, fill: 0.0 }];
        Self::started(None, inputs, &rows, heads)
    }

    fn started(
        formula: Option<Formula>,
        inputs: Vec<JoinInput>,
        rows: &[Vec<Option<usize>>],
        heads: Vec<ExpressionHead>,
    ) -> (Self, JoinedSeries) {
        let cursors = rows.iter().flatten();
        let cursors = cursors.map(|series| series.map(|series| JoinCursor { series, next: 0 }));
        let mut join = Self {
            formula,
            cursors: cursors.collect(),
            next_time: None,
            values: vec![0.0; inputs.len()],
            inputs,
            stack: Vec::new(),
        };
        let places = join.cursors.iter().enumerate();
        let times = places.filter_map(|(place, cursor)| {
            let input = join.inputs.get(place % join.inputs.len())?;
            Some(input.source.point((*cursor)?)?.time_ms)
        });
        join.next_time = times.min();
        let table = JoinedSeries {
            heads,
            ..JoinedSeries::default()
        };
        (join, table)
    }

    /// Bytes that it holds beside its variables.
    pub fn held_bytes(&self) -> usize {
        self.cursors.capacity() * size_of::<Option<JoinCursor>>()
    }

    /// Adds the values of some of the next times to the table; returns whether there may be more.
    pub fn next_rows(&mut self, table: &mut JoinedSeries) -> bool {
        let width = self.inputs.len().max(1);
        let mut steps = 0;
        while let Some(time_ms) = self.next_time {
            if steps >= STEPS_MAX {
                return true;
            }
            steps += 1 + self.cursors.len();
            table.times.push(time_ms);
            self.next_time = None;
            for row in self.cursors.chunks_mut(width) {
                for ((cursor, input), value) in
                    row.iter_mut().zip(&self.inputs).zip(&mut self.values)
                {
                    let (found, next) = input.value_at(cursor.as_mut(), time_ms);
                    *value = found;
                    self.next_time = self.next_time.into_iter().chain(next).min();
                }
                let value = match &self.formula {
                    Some(formula) => formula.compute(&self.values, &mut self.stack),
                    None => self.values.first().copied().unwrap_or(f64::NAN),
                };
                table.values.push(value);
            }
        }
        false
    }
}

impl JoinInput {
    /// The value at a time, and the time of the next point. Moves on if it is that of the next point.
    fn value_at(&self, cursor: Option<&mut JoinCursor>, time_ms: i64) -> (f64, Option<i64>) {
        let Some(cursor) = cursor else {
            return (0.0, None);
        };
        let Some(point) = self.source.point(*cursor) else {
            return (self.fill, None);
        };
        if point.time_ms > time_ms {
            return (self.fill, Some(point.time_ms));
        }
        cursor.next += 1;
        let next = self.source.point(*cursor).map(|point| point.time_ms);
        let value = if point.value.is_nan() {
            self.fill
        } else {
            point.value
        };
        (value, next)
    }
}

impl JoinSource {
    /// The number of its series.
    fn len(&self) -> usize {
        match self {
            Self::Metric(set) => set.series.len(),
            Self::Expression(table) => table.heads.len(),
        }
    }

    fn head(&self, number: usize) -> Option<&ExpressionHead> {
        match self {
            Self::Metric(set) => set.series.get(number).map(|(head, _)| head),
            Self::Expression(table) => table.heads.get(number),
        }
    }

    fn point(&self, cursor: JoinCursor) -> Option<SeriesPoint> {
        match self {
            Self::Metric(set) => {
                let (_, points) = set.series.get(cursor.series)?;
                points.get(cursor.next).copied()
            }
            Self::Expression(table) => Some(SeriesPoint {
                time_ms: *table.times.get(cursor.next)?,
                value: *table.row(cursor.next).get(cursor.series)?,
            }),
        }
    }

    /// What a series is compared by.
    fn key<'a>(&self, step: &ExpressionStep, head: &'a ExpressionHead) -> JoinedTags<'a> {
        let no_keys = BTreeSet::new();
        let query_keys = match self {
            Self::Metric(set) => &set.query_keys,
            Self::Expression(_) => &no_keys,
        };
        // As in OpenTSDB: a series without tags is compared by nothing.
        if head.tags.is_empty() {
            return Vec::new();
        }
        let tags = head.tags.iter();
        let tags = tags.filter(|(key, _)| !step.uses_query_tags || query_keys.contains(*key));
        let mut key: JoinedTags<'a> = tags
            .flat_map(|(key, value)| [key.as_str(), value.as_str()])
            .collect();
        if step.includes_aggregate_tags {
            key.extend(head.aggregate_tags.iter().map(String::as_str));
        }
        key
    }
}

/// The head of a joined series: all metrics, and the tags of the first variable that has it.
fn joined_head(inputs: &[JoinInput], row: &[Option<usize>]) -> ExpressionHead {
    let mut joined: Option<ExpressionHead> = None;
    for (input, number) in inputs.iter().zip(row) {
        let Some(head) = number.and_then(|number| input.source.head(number)) else {
            continue;
        };
        match &mut joined {
            None => joined = Some(head.clone()),
            Some(joined) => {
                joined.metrics.extend(head.metrics.iter().cloned());
                joined
                    .aggregate_tags
                    .extend(head.aggregate_tags.iter().cloned());
            }
        }
    }
    joined.unwrap_or_default()
}
