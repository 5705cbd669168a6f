//! The checks of a SELECT that InfluxDB makes before it reads the schema, and their results.
//!
//! [`analyze`] refuses what InfluxDB's compiler refuses, in the same order and words, and returns
//! the rest in the form that a planner needs: the condition without its times, the interval of
//! GROUP BY, columns with their constants computed, and the kinds of functions that are used. It
//! knows no schema: the planner determines whether a name is a field or a tag, and its type.

mod condition;
mod dimensions;
mod fields;
mod functions;
mod state;
mod statements;

use crate::ast::{Call, Expr, Field, Fill, Select, Source, VarRef};
use crate::fold::{Folding, fold};
use crate::select_error::SelectError;
use crate::time_range::{
    ConditionTimeRange, TIME_MAX_NS, TIME_MIN_NS, TimeContext, split_condition,
};
use state::IntervalUse;

pub use functions::is_math;
pub use statements::check_statement;

/// The groups of time of GROUP BY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// The length of a group in nanoseconds; not 0, but it may be negative.
    pub every_ns: i64,
    /// The offset of the groups from multiples of their length, in nanoseconds.
    pub offset_ns: i64,
}

/// A SELECT that may run, as far as this can be decided without a schema.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectAnalysis {
    /// The columns, without `time`: constants are computed, `DISTINCT x` is `distinct(x)`.
    pub fields: Vec<Field>,
    /// The name of the column of times.
    pub time_column: String,
    /// WHERE without its conditions on time.
    pub condition: Option<Expr>,
    /// The first and last time, both included. Groups of time end at `now()` unless WHERE gives an
    /// end.
    pub min_ns: i64,
    /// See `min_ns`.
    pub max_ns: i64,
    /// The expressions of GROUP BY besides `time(…)`.
    pub dimensions: Vec<Expr>,
    /// `time(…)` of GROUP BY, or that of the enclosing query.
    pub interval: Option<Interval>,
    /// Whether the interval is that of the enclosing query.
    pub interval_is_inherited: bool,
    /// The number of groups before the first that functions such as `derivative` read.
    pub extra_intervals: u64,
    /// From old to new. A subquery has the direction of the enclosing query.
    pub ascending: bool,
    /// The value of an empty group of time. A subquery that would show null leaves the group out.
    pub fill: Fill,
    /// The kinds of its functions.
    pub functions: FunctionUse,
    /// One for each subquery in FROM, in order.
    pub subqueries: Vec<SelectAnalysis>,
}

/// Which kinds of functions a SELECT uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionUse {
    /// The number of calls, including nested ones, except mathematical ones.
    pub calls: usize,
    /// Whether every function selects rows (`max`, `first`), so that other columns of the row can
    /// be shown.
    pub only_selectors: bool,
    /// Whether `distinct` is alone.
    pub has_distinct: bool,
    /// Whether a field or tag occurs outside functions.
    pub has_bare_columns: bool,
    /// `top` or `bottom`, if one of them is used.
    pub top_bottom: Option<String>,
}

/// Checks and analyzes a SELECT.
///
/// # Errors
/// The refusals of InfluxDB's compiler, in its words.
pub fn analyze(select: &Select, context: &TimeContext<'_>) -> Result<SelectAnalysis, SelectError> {
    let context = context.with_zone(select.time_zone.as_deref());
    let head = SelectHead::read(select, &context)?;
    head.compile(select, &context)
}

/// What a SELECT says besides its columns.
struct SelectHead {
    condition: Option<Expr>,
    time_range: ConditionTimeRange,
    dimensions: Vec<Expr>,
    interval: Option<Interval>,
    interval_is_inherited: bool,
    ascending: bool,
    fill: Fill,
}

impl SelectHead {
    fn read(select: &Select, context: &TimeContext<'_>) -> Result<Self, SelectError> {
        let split = split_condition(select.condition.as_ref(), context)?;
        if let Some(condition) = &split.condition {
            condition::check(condition)?;
        }
        let (interval, dimensions) = dimensions::split(select, context)?;
        let (min_ns, mut max_ns) = (split.time_range.min_ns, split.time_range.max_ns);
        if interval.is_some() {
            max_ns = max_ns.or(Some(context.now_ns));
        }
        Ok(Self {
            condition: split.condition,
            time_range: ConditionTimeRange {
                min_ns: min_ns.or(Some(TIME_MIN_NS)),
                max_ns: max_ns.or(Some(TIME_MAX_NS)),
            },
            dimensions,
            interval,
            interval_is_inherited: false,
            ascending: select.is_ascending(),
            fill: select.fill,
        })
    }

    fn compile(
        self,
        select: &Select,
        context: &TimeContext<'_>,
    ) -> Result<SelectAnalysis, SelectError> {
        let interval = match self.interval {
            None => IntervalUse::None,
            Some(_) if self.interval_is_inherited => IntervalUse::Inherited,
            Some(_) => IntervalUse::Own,
        };
        let columns = fields::check(select, interval, self.fill)?;
        let mut subqueries = Vec::new();
        for source in &select.sources {
            if let Source::Subquery(subquery) = source {
                subqueries.push(self.subquery(subquery, context)?);
            }
        }
        let time = |select: &Select| {
            let time = select
                .fields
                .iter()
                .rev()
                .find(|field| is_plain_time(&field.expr))?;
            Some(time.alias.clone()).filter(|alias| !alias.is_empty())
        };
        Ok(SelectAnalysis {
            fields: compiled_fields(select),
            time_column: time(select).unwrap_or_else(|| "time".to_owned()),
            condition: self.condition,
            min_ns: self.time_range.min_ns.unwrap_or(TIME_MIN_NS),
            max_ns: self.time_range.max_ns.unwrap_or(TIME_MAX_NS),
            dimensions: self.dimensions,
            interval: self.interval,
            interval_is_inherited: self.interval_is_inherited,
            extra_intervals: columns.extra_intervals,
            ascending: self.ascending,
            fill: self.fill,
            functions: columns.functions,
            subqueries,
        })
    }

    /// Checks a subquery, which inherits what it does not specify itself.
    fn subquery(
        &self,
        select: &Select,
        context: &TimeContext<'_>,
    ) -> Result<SelectAnalysis, SelectError> {
        let context = context.with_zone(select.time_zone.as_deref());
        let mut head = Self::read(select, &context)?;
        if select.order_by.is_some() && head.ascending != self.ascending {
            return Err(SelectError::SubqueryOrder);
        }
        head.ascending = self.ascending;
        head.time_range = head.time_range.intersect(self.time_range);
        if head.interval.is_some() && head.fill == Fill::Null {
            head.fill = Fill::None;
        }
        if self.interval.is_some() && head.interval.is_none() {
            head.interval = self.interval;
            head.interval_is_inherited = true;
        }
        head.compile(select, &context)
    }
}

/// Whether a column is `time`, which is always present: only its name counts.
fn is_plain_time(expr: &Expr) -> bool {
    matches!(expr, Expr::VarRef(var) if var.name == "time")
}

/// A column with its constants computed.
fn folded(field: &Field) -> Expr {
    let folding = Folding {
        math: true,
        ..Folding::default()
    };
    fold(&field.expr, folding)
}

/// The columns except `time`, with constants computed and `DISTINCT x` as a call.
fn compiled_fields(select: &Select) -> Vec<Field> {
    let named = select
        .fields
        .iter()
        .filter(|field| !is_plain_time(&field.expr));
    named
        .map(|field| Field {
            expr: match folded(field) {
                Expr::Call(mut call) => {
                    for arg in &mut call.args {
                        if let Expr::Distinct(name) = arg {
                            *arg = Expr::Call(distinct_call(name));
                        }
                    }
                    Expr::Call(call)
                }
                Expr::Distinct(name) => Expr::Call(distinct_call(&name)),
                other => other,
            },
            alias: field.alias.clone(),
            span: field.span,
        })
        .collect()
}

/// `DISTINCT name` as a call.
fn distinct_call(name: &str) -> Call {
    let arg = Expr::VarRef(VarRef {
        name: name.to_owned(),
        cast: None,
    });
    Call {
        name: "distinct".to_owned(),
        args: vec![arg],
    }
}

#[cfg(test)]
mod tests;
