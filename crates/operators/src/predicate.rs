//! Determines what a predicate says about series and times, before anything is read.
//!
//! A predicate is split into a [`TagFilter`] and a [`TimeRange`] that include every row for which
//! it is true (under SQL's three-valued logic, null is not true). If they include no other row,
//! they are exact and the predicate need not be evaluated again. A predicate over tags alone always
//! becomes exact: whatever no `TagFilter` can express is evaluated once per series.

mod values;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::{Cast, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use marigram_engine::{ColumnBounds, TagFilter};
use marigram_model::{
    DAY_NS, FieldColumn, FieldType, FieldValue, TableSchema, TagType, TagValue, TimeRange,
};

/// A set of rows: those of the series in `tags`, within `range`.
#[derive(Clone, Debug)]
pub struct PredicateRows {
    /// Series.
    pub tags: TagFilter,
    /// Times.
    pub range: TimeRange,
    /// Whether the predicate is true for every row of the set.
    pub exact: bool,
}

/// How to evaluate a predicate.
#[derive(Clone, Debug)]
pub enum PredicateClass {
    /// The set alone decides.
    Exact(PredicateRows),
    /// The predicate is evaluated on the tags of each series.
    PerSeries,
    /// The set, or page statistics, exclude some rows; the predicate must still be evaluated.
    Inexact(PredicateRows),
    /// Nothing is known about the rows.
    Unknown,
}

const EMPTY: TimeRange = TimeRange {
    min: i64::MAX,
    max: i64::MIN,
};

impl PredicateRows {
    const fn all() -> Self {
        Self {
            tags: TagFilter::All,
            range: TimeRange::ALL,
            exact: false,
        }
    }

    const fn none() -> Self {
        Self {
            tags: TagFilter::None,
            range: EMPTY,
            exact: true,
        }
    }

    const fn tags(tags: TagFilter) -> Self {
        Self {
            tags,
            range: TimeRange::ALL,
            exact: true,
        }
    }

    const fn times(range: TimeRange) -> Self {
        Self {
            tags: TagFilter::All,
            range,
            exact: true,
        }
    }

    fn is_all(&self) -> bool {
        matches!(self.tags, TagFilter::All) && self.range == TimeRange::ALL
    }

    fn is_none(&self) -> bool {
        matches!(self.tags, TagFilter::None) || self.range.is_empty()
    }

    fn and(self, other: Self) -> Self {
        let range = self.range.intersect(other.range);
        Self {
            tags: and(self.tags, other.tags),
            range,
            exact: self.exact && other.exact,
        }
    }

    fn or(self, other: Self) -> Self {
        if self.is_none() && self.exact {
            return other;
        }
        if other.is_none() && other.exact {
            return self;
        }
        let joined = |a: TimeRange, b: TimeRange| {
            a.overlaps(b)
                || a.max.checked_add(1) == Some(b.min)
                || b.max.checked_add(1) == Some(a.min)
        };
        let any_series = |part: &Self| matches!(part.tags, TagFilter::All);
        let one_range = self.range == other.range
            || (any_series(&self) && any_series(&other) && joined(self.range, other.range));
        let exact = self.exact && other.exact && one_range;
        let tags = if any_series(&self) || any_series(&other) {
            TagFilter::All
        } else {
            TagFilter::Or(vec![self.tags, other.tags])
        };
        Self {
            tags,
            range: self.range.union(other.range),
            exact,
        }
    }
}

fn and(a: TagFilter, b: TagFilter) -> TagFilter {
    match (a, b) {
        (TagFilter::All, other) | (other, TagFilter::All) => other,
        (TagFilter::None, _) | (_, TagFilter::None) => TagFilter::None,
        (a, b) => TagFilter::And(vec![a, b]),
    }
}

/// Classifies a predicate that is part of a conjunction.
pub fn classify(expr: &Expr, schema: &TableSchema) -> PredicateClass {
    let part = truth(expr, true, schema);
    if part.exact {
        return PredicateClass::Exact(part);
    }
    if is_of_tags(expr, schema) {
        return PredicateClass::PerSeries;
    }
    if !part.is_all() || !bounds(expr, schema).is_empty() {
        return PredicateClass::Inexact(part);
    }
    PredicateClass::Unknown
}

/// Whether a predicate can be evaluated on the tags of a series alone.
pub fn is_of_tags(expr: &Expr, schema: &TableSchema) -> bool {
    let mut columns = 0;
    let mut fit = true;
    let visited = expr.apply(|node| {
        match node {
            Expr::Column(column) => {
                columns += 1;
                fit &= schema.tag(&column.name).is_some();
            }
            Expr::ScalarSubquery(_)
            | Expr::Exists(_)
            | Expr::InSubquery(_)
            | Expr::SetComparison(_)
            | Expr::OuterReferenceColumn(..)
            | Expr::Placeholder(_)
            | Expr::AggregateFunction(_)
            | Expr::WindowFunction(_) => fit = false,
            _ => {}
        }
        Ok(if fit {
            TreeNodeRecursion::Continue
        } else {
            TreeNodeRecursion::Stop
        })
    });
    visited.is_ok() && fit && columns > 0 && !expr.is_volatile()
}

/// The rows for which `expr` has the value `wanted` (true or false, and not null).
fn truth(expr: &Expr, wanted: bool, schema: &TableSchema) -> PredicateRows {
    match expr {
        Expr::Alias(alias) => truth(&alias.expr, wanted, schema),
        Expr::Not(inner) => truth(inner, !wanted, schema),
        Expr::Literal(ScalarValue::Boolean(value), _) => match value {
            Some(value) if *value == wanted => PredicateRows {
                exact: true,
                ..PredicateRows::all()
            },
            _ => PredicateRows::none(),
        },
        Expr::Column(column) => boolean_tag(column, wanted, schema),
        Expr::IsNull(inner) => nullness(inner, wanted, schema),
        Expr::IsNotNull(inner) => nullness(inner, !wanted, schema),
        Expr::InList(list) => in_list(list, wanted, schema),
        Expr::Like(pattern) => values::like(pattern, wanted, schema),
        Expr::Between(between) => {
            let low = compare(&between.expr, Operator::GtEq, &between.low, schema);
            let high = compare(&between.expr, Operator::LtEq, &between.high, schema);
            if wanted == between.negated {
                PredicateRows::all()
            } else {
                low.and(high)
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And | Operator::Or => {
                let (left, right) = (truth(left, wanted, schema), truth(right, wanted, schema));
                if (*op == Operator::And) == wanted {
                    left.and(right)
                } else {
                    left.or(right)
                }
            }
            _ => match if wanted { Some(*op) } else { op.negate() } {
                Some(op) => compare(left, op, right, schema),
                None => PredicateRows::all(),
            },
        },
        _ => PredicateRows::all(),
    }
}

fn boolean_tag(column: &Column, wanted: bool, schema: &TableSchema) -> PredicateRows {
    match schema.tag(&column.name) {
        Some((ordinal, tag)) if tag.kind == TagType::Bool => {
            PredicateRows::tags(TagFilter::In(ordinal, vec![TagValue::Bool(wanted)]))
        }
        _ => PredicateRows::all(),
    }
}

fn nullness(expr: &Expr, is_null: bool, schema: &TableSchema) -> PredicateRows {
    let Some(name) = column_name(expr) else {
        return PredicateRows::all();
    };
    if let Some((ordinal, _)) = schema.tag(name) {
        let filter = if is_null {
            TagFilter::IsNull(ordinal)
        } else {
            TagFilter::IsNotNull(ordinal)
        };
        return PredicateRows::tags(filter);
    }
    if name == schema.time_name {
        return if is_null {
            PredicateRows::none()
        } else {
            PredicateRows {
                exact: true,
                ..PredicateRows::all()
            }
        };
    }
    PredicateRows::all()
}

fn in_list(list: &InList, wanted: bool, schema: &TableSchema) -> PredicateRows {
    let negated = list.negated == wanted;
    let Some((ordinal, kind)) = tag_of(&list.expr, schema) else {
        if negated {
            return PredicateRows::all();
        }
        let parts = list
            .list
            .iter()
            .map(|item| compare(&list.expr, Operator::Eq, item, schema));
        return parts
            .reduce(PredicateRows::or)
            .unwrap_or_else(PredicateRows::all);
    };
    let mut values = Vec::with_capacity(list.list.len());
    for item in &list.list {
        match literal(item).map(|scalar| tag_value(scalar, kind)) {
            Some(PredicateLiteral::Value(value)) => values.push(value),
            // `x NOT IN (…, NULL)` is never true; `x IN (…, NULL)` is true for the others.
            Some(PredicateLiteral::Null) if negated => return PredicateRows::none(),
            Some(PredicateLiteral::Null) => {}
            _ => return PredicateRows::all(),
        }
    }
    PredicateRows::tags(equality(ordinal, values, negated))
}

fn equality(ordinal: u16, values: Vec<TagValue>, negated: bool) -> TagFilter {
    let within = TagFilter::In(ordinal, values);
    if negated {
        TagFilter::And(vec![
            TagFilter::Not(Box::new(within)),
            TagFilter::IsNotNull(ordinal),
        ])
    } else {
        within
    }
}

fn compare(left: &Expr, op: Operator, right: &Expr, schema: &TableSchema) -> PredicateRows {
    let (column, op, scalar) = match (literal(left), literal(right)) {
        (None, Some(scalar)) => (left, op, scalar),
        (Some(scalar), None) => match op.swap() {
            Some(op) => (right, op, scalar),
            None => return PredicateRows::all(),
        },
        _ => return PredicateRows::all(),
    };
    if let Some((ordinal, kind)) = tag_of(column, schema) {
        return match tag_value(scalar, kind) {
            PredicateLiteral::Value(value) => values::compare(ordinal, op, value),
            PredicateLiteral::Null => compare_null(column, op, schema),
            PredicateLiteral::Other => PredicateRows::all(),
        };
    }
    compare_time(column, op, scalar, schema).unwrap_or_else(PredicateRows::all)
}

/// A comparison of a tag or the time with NULL: only `IS [NOT] DISTINCT FROM` is ever true.
fn compare_null(column: &Expr, op: Operator, schema: &TableSchema) -> PredicateRows {
    let column = match column {
        Expr::Cast(Cast { expr, .. }) => expr,
        other => other,
    };
    match op {
        Operator::IsDistinctFrom => nullness(column, false, schema),
        Operator::IsNotDistinctFrom => nullness(column, true, schema),
        _ => PredicateRows::none(),
    }
}

fn compare_time(
    column: &Expr,
    op: Operator,
    scalar: &ScalarValue,
    schema: &TableSchema,
) -> Option<PredicateRows> {
    let (unit, inner) = time_unit(column)?;
    if column_name(inner)? != schema.time_name {
        return None;
    }
    if scalar.is_null() {
        return Some(compare_null(inner, op, schema));
    }
    // `first..=last` are the times that the literal denotes: one time, or the times of a day.
    let (first, last) = match (unit, scalar) {
        (TimeCastUnit::Nanosecond, ScalarValue::TimestampNanosecond(Some(ns), _)) => (*ns, *ns),
        (TimeCastUnit::Day, ScalarValue::Date32(Some(day))) => {
            let first = i64::from(*day).checked_mul(DAY_NS)?;
            (first, first.checked_add(DAY_NS - 1)?)
        }
        _ => return None,
    };
    let range = match op {
        Operator::Eq => TimeRange {
            min: first,
            max: last,
        },
        Operator::Lt => first
            .checked_sub(1)
            .map_or(EMPTY, |max| TimeRange { min: i64::MIN, max }),
        Operator::LtEq => TimeRange {
            min: i64::MIN,
            max: last,
        },
        Operator::Gt => last
            .checked_add(1)
            .map_or(EMPTY, |min| TimeRange { min, max: i64::MAX }),
        Operator::GtEq => TimeRange {
            min: first,
            max: i64::MAX,
        },
        _ => return None,
    };
    Some(PredicateRows::times(range))
}

/// The unit of a cast of the time column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeCastUnit {
    Nanosecond,
    Day,
}

fn time_unit(expr: &Expr) -> Option<(TimeCastUnit, &Expr)> {
    let Expr::Cast(Cast { expr: inner, field }) = expr else {
        return Some((TimeCastUnit::Nanosecond, expr));
    };
    match field.data_type() {
        DataType::Date32 => Some((TimeCastUnit::Day, inner)),
        DataType::Timestamp(TimeUnit::Nanosecond, zone)
            if zone
                .as_deref()
                .is_none_or(|zone| ["UTC", "+00:00", "Z"].contains(&zone)) =>
        {
            Some((TimeCastUnit::Nanosecond, inner))
        }
        _ => None,
    }
}

fn column_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(column) => Some(&column.name),
        Expr::Alias(alias) => column_name(&alias.expr),
        _ => None,
    }
}

/// The tag that an expression refers to, possibly through a cast of its dictionary to text.
fn tag_of<'a>(expr: &Expr, schema: &'a TableSchema) -> Option<(u16, TagType)> {
    let inner = match expr {
        Expr::Cast(Cast { expr, field }) if is_text(field.data_type()) => expr,
        other => other,
    };
    let (ordinal, tag): (u16, &'a _) = schema.tag(column_name(inner)?)?;
    let cast = !std::ptr::eq(inner, expr);
    (!cast || tag.kind == TagType::String).then_some((ordinal, tag.kind))
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(scalar, _) => Some(scalar),
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}

enum PredicateLiteral {
    Value(TagValue),
    Null,
    Other,
}

fn tag_value(scalar: &ScalarValue, kind: TagType) -> PredicateLiteral {
    if scalar.is_null() {
        return PredicateLiteral::Null;
    }
    match (scalar, kind) {
        (ScalarValue::Dictionary(_, inner), _) => tag_value(inner, kind),
        (
            ScalarValue::Utf8(Some(text))
            | ScalarValue::LargeUtf8(Some(text))
            | ScalarValue::Utf8View(Some(text)),
            TagType::String,
        ) => PredicateLiteral::Value(TagValue::String(text.clone())),
        (ScalarValue::Int64(Some(number)), TagType::I64) => {
            PredicateLiteral::Value(TagValue::I64(*number))
        }
        (ScalarValue::Boolean(Some(truth)), TagType::Bool) => {
            PredicateLiteral::Value(TagValue::Bool(*truth))
        }
        _ => PredicateLiteral::Other,
    }
}

/// Bounds on fields that hold whenever `expr` is true, for pruning pages by their statistics.
pub fn bounds(expr: &Expr, schema: &TableSchema) -> Vec<ColumnBounds> {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And,
            right,
        }) => {
            let mut all = bounds(left, schema);
            all.extend(bounds(right, schema));
            all
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            field_bound(left, *op, right, schema).into_iter().collect()
        }
        Expr::Between(between) if !between.negated => [
            field_bound(&between.expr, Operator::GtEq, &between.low, schema),
            field_bound(&between.expr, Operator::LtEq, &between.high, schema),
        ]
        .into_iter()
        .flatten()
        .collect(),
        _ => Vec::new(),
    }
}

fn field_bound(
    left: &Expr,
    op: Operator,
    right: &Expr,
    schema: &TableSchema,
) -> Option<ColumnBounds> {
    let (column, op, scalar) = match (literal(left), literal(right)) {
        (None, Some(scalar)) => (left, op, scalar),
        (Some(scalar), None) => (right, op.swap()?, scalar),
        _ => return None,
    };
    let (field, widened) = field_of(column, schema)?;
    let value = |down| bound_value(scalar, field.kind, widened, down);
    let (min, max) = match op {
        Operator::Eq => (Some(value(true)?), Some(value(false)?)),
        Operator::Gt | Operator::GtEq => (Some(value(true)?), None),
        Operator::Lt | Operator::LtEq => (None, Some(value(false)?)),
        _ => return None,
    };
    Some(ColumnBounds {
        column: field.id,
        min,
        max,
    })
}

/// The field that an expression refers to, and whether it is a 32-bit float widened to 64 bits.
fn field_of<'a>(expr: &Expr, schema: &'a TableSchema) -> Option<(&'a FieldColumn, bool)> {
    match expr {
        Expr::Cast(Cast { expr, field }) if *field.data_type() == DataType::Float64 => {
            let inner = schema.field(column_name(expr)?)?;
            (inner.kind == FieldType::F32).then_some((inner, true))
        }
        _ => Some((schema.field(column_name(expr)?)?, false)),
    }
}

/// A literal as a bound: rounding never raises a lower bound (`down`) and never lowers an upper
/// bound. Zeros take the sign that includes the other zero.
fn bound_value(
    scalar: &ScalarValue,
    kind: FieldType,
    widened: bool,
    down: bool,
) -> Option<FieldValue> {
    let zero = if down { -0.0 } else { 0.0 };
    match (scalar, kind) {
        (ScalarValue::Boolean(Some(v)), FieldType::Bool) => Some(FieldValue::Bool(*v)),
        (ScalarValue::Int32(Some(v)), FieldType::I32) => Some(FieldValue::I32(*v)),
        (ScalarValue::Int64(Some(v)), FieldType::I64) => Some(FieldValue::I64(*v)),
        (ScalarValue::UInt64(Some(v)), FieldType::U64) => Some(FieldValue::U64(*v)),
        (ScalarValue::Float64(Some(v)), FieldType::F64) if !v.is_nan() => {
            Some(FieldValue::F64(if *v == 0.0 { zero } else { *v }))
        }
        (ScalarValue::Float32(Some(v)), FieldType::F32) if !v.is_nan() => {
            Some(FieldValue::F32(if *v == 0.0 { zero as f32 } else { *v }))
        }
        (ScalarValue::Float64(Some(v)), FieldType::F32) if widened && !v.is_nan() => {
            let near = *v as f32;
            let exact = f64::from(near);
            Some(FieldValue::F32(match down {
                _ if exact == 0.0 && *v == 0.0 => zero as f32,
                true if exact > *v => near.next_down(),
                false if exact < *v => near.next_up(),
                _ => near,
            }))
        }
        (ScalarValue::TimestampNanosecond(Some(v), _), FieldType::Timestamp) => {
            Some(FieldValue::Timestamp(*v))
        }
        (
            ScalarValue::Utf8(Some(v))
            | ScalarValue::LargeUtf8(Some(v))
            | ScalarValue::Utf8View(Some(v)),
            FieldType::String,
        ) => Some(FieldValue::String(v.clone())),
        (ScalarValue::Binary(Some(v)), FieldType::Bytes) => Some(FieldValue::Bytes(v.clone())),
        _ => None,
    }
}

#[cfg(test)]
#[path = "predicate/tests.rs"]
mod tests;
