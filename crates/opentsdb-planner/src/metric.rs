//! A metric: its table, and the plan that reads its rows.

use crate::statement::{OpenTsdbRun, no_such_name};
use arrow::array::{Array, AsArray, Float64Array, Int64Array, StringArray};
use arrow::compute::cast as cast_array;
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, TimestampNanosecondType};
use arrow::record_batch::RecordBatch;
use datafusion::common::{Column, DataFusionError, ScalarValue};
use datafusion::logical_expr::{
    Expr, LogicalPlanBuilder, Operator, binary_expr, cast, in_list, lit,
};
use marigram_influx::readable_table;
use marigram_model::{FieldType, TableSchema, TagType};
use marigram_opentsdb::{STORED_FIELD, TagTest, TagValueFilter};
use marigram_service::ServiceError;
use marigram_sql::{SqlError, SqlResult};
use regex::RegexBuilder;
use std::sync::Arc;

/// Bytes of a compiled regular expression.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Nanoseconds of a millisecond.
const MS: i64 = 1_000_000;

/// The table of a metric.
///
/// # Errors
/// If there is no such metric, in OpenTSDB's words.
pub(crate) fn metric_table(run: &OpenTsdbRun<'_>, metric: &str) -> SqlResult<Arc<TableSchema>> {
    let table = readable_table(run.context.engine(), &run.views, run.database(), metric);
    let is_metric = |table: &Arc<TableSchema>| holds_values(table);
    table
        .filter(is_metric)
        .ok_or_else(|| no_such_name("metrics", metric))
}

/// Whether a table has the field of a metric.
pub(crate) fn holds_values(table: &TableSchema) -> bool {
    table.field(STORED_FIELD).is_some_and(|field| {
        matches!(
            field.kind,
            FieldType::F64 | FieldType::F32 | FieldType::I64 | FieldType::I32 | FieldType::U64
        )
    })
}

/// A column by its exact name.
pub(crate) fn column(name: &str) -> Expr {
    Expr::Column(Column::from_name(name))
}

/// The conditions that select times, ms: the first one included, the last one excluded.
pub(crate) fn time_conditions(table: &TableSchema, (from, to): (i64, i64)) -> Vec<Expr> {
    let time = || column(&table.time_name);
    let at = |ms: i64| {
        let ns = Some(ms.saturating_mul(MS));
        Expr::Literal(ScalarValue::TimestampNanosecond(ns, None), None)
    };
    vec![
        time().gt_eq(at(from)),
        time().lt(at(to)),
        column(STORED_FIELD).is_not_null(),
    ]
}

/// The conditions that filters set; `None` if no series can meet them.
///
/// # Errors
/// If a regular expression is wrong.
pub(crate) fn tag_conditions(
    table: &TableSchema,
    filters: &[TagValueFilter],
    explicit_tags: bool,
) -> SqlResult<Option<Vec<Expr>>> {
    let mut conditions = Vec::new();
    for filter in filters {
        let Some((_, tag)) = table.tag(&filter.key) else {
            if filter.test == TagTest::NoKey {
                continue;
            }
            return Ok(None);
        };
        let text = match tag.kind {
            TagType::String => column(&tag.name),
            _ => cast(column(&tag.name), DataType::Utf8),
        };
        conditions.push(condition(column(&tag.name), text, filter)?);
    }
    // As in OpenTSDB, a query without filters names no tags, and so excludes none.
    if explicit_tags && !filters.is_empty() {
        let others = table
            .tags
            .iter()
            .filter(|tag| filters.iter().all(|filter| filter.key != tag.name));
        conditions.extend(others.map(|tag| column(&tag.name).is_null()));
    }
    Ok(Some(conditions))
}

/// The rows that meet all conditions, in one filter: planning recurses into filters that stand on each
/// other.
///
/// # Errors
/// DataFusion's errors.
pub(crate) fn filtered(
    rows: LogicalPlanBuilder,
    conditions: Vec<Expr>,
) -> SqlResult<LogicalPlanBuilder> {
    Ok(match conjunction(conditions) {
        Some(condition) => rows.filter(condition)?,
        None => rows,
    })
}

/// All conditions as one, in a balanced tree: planning recurses into it.
fn conjunction(mut conditions: Vec<Expr>) -> Option<Expr> {
    if conditions.len() < 2 {
        return conditions.pop();
    }
    let right = conditions.split_off(conditions.len() / 2);
    Some(conjunction(conditions)?.and(conjunction(right)?))
}

/// Names of columns that a plan makes. No column of the table begins as they do, so that none of them
/// is taken for another, whatever the tags are called.
pub(crate) struct PlanNames {
    prefix: String,
}

impl PlanNames {
    /// Those of plans that read a table.
    pub(crate) fn new(table: &TableSchema) -> Self {
        let tags = table.tags.iter().map(|tag| tag.name.as_str());
        let fields = table.fields.iter().map(|field| field.name.as_str());
        let columns = tags.chain(fields).chain([table.time_name.as_str()]);
        let mut prefix = "_".to_owned();
        for name in columns {
            while name.starts_with(&prefix) {
                prefix.push('_');
            }
        }
        Self { prefix }
    }

    /// The time.
    pub(crate) fn time(&self) -> String {
        format!("{}t", self.prefix)
    }

    /// The value.
    pub(crate) fn value(&self) -> String {
        format!("{}v", self.prefix)
    }

    /// The text of a tag.
    pub(crate) fn tag(&self, place: usize) -> String {
        format!("{}k{place}", self.prefix)
    }

    /// A tag as rows are sorted by it.
    pub(crate) fn sorted_tag(&self, place: usize) -> String {
        format!("{}s{place}", self.prefix)
    }
}

fn condition(tag: Expr, text: Expr, filter: &TagValueFilter) -> SqlResult<Expr> {
    let one_of = |values: &[String], negated: bool| {
        let values = values.iter().map(|value| lit(value.as_str())).collect();
        in_list(text.clone(), values, negated)
    };
    let pattern = match filter.pattern() {
        Some(pattern) => {
            check_pattern(&pattern)?;
            Some(pattern)
        }
        None => None,
    };
    let matched = |operator: Operator| {
        let pattern = pattern.as_deref().unwrap_or_default();
        binary_expr(text.clone(), operator, lit(pattern))
    };
    Ok(match &filter.test {
        TagTest::OneOf(values) => one_of(values, false),
        TagTest::NoneOf(values) => tag.is_not_null().and(one_of(values, true)),
        TagTest::NoKey => tag.is_null(),
        TagTest::NoneOfAnyCase(_) => tag.is_not_null().and(matched(Operator::RegexNotMatch)),
        TagTest::Wildcard(form) if form == "*" => tag.is_not_null(),
        TagTest::OneOfAnyCase(_)
        | TagTest::Wildcard(_)
        | TagTest::WildcardAnyCase(_)
        | TagTest::Regexp(_) => matched(Operator::RegexMatch),
    })
}

fn check_pattern(pattern: &str) -> SqlResult<()> {
    let compiled = RegexBuilder::new(pattern)
        .size_limit(REGEX_BYTES_MAX)
        .build();
    compiled.map(drop).map_err(|error| {
        SqlError::invalid("2201B", format!("the regular expression is wrong: {error}"))
    })
}

/// The columns of a batch: the times in milliseconds, the values, and the tags.
pub(crate) struct MetricColumns {
    /// The times, ns.
    times: Int64Array,
    values: Float64Array,
    tags: Vec<StringArray>,
}

impl MetricColumns {
    /// Reads a batch with the columns of time, value and tags that have these names.
    ///
    /// # Errors
    /// If a column is missing or cannot be converted: an error of the plan.
    pub(crate) fn new(batch: &RecordBatch, names: &PlanNames, tag_count: usize) -> SqlResult<Self> {
        let converted = |name: &str, kind: &DataType| {
            let column = batch.column_by_name(name).ok_or_else(|| {
                SqlError::from(ServiceError::Internal(format!(
                    "a scan gave no column {name}"
                )))
            })?;
            Ok::<_, SqlError>(cast_array(column, kind).map_err(DataFusionError::from)?)
        };
        let times = converted(
            &names.time(),
            &DataType::Timestamp(TimeUnit::Nanosecond, None),
        )?;
        let times = times.as_primitive::<TimestampNanosecondType>();
        let values = converted(&names.value(), &DataType::Float64)?;
        let mut tags = Vec::with_capacity(tag_count);
        for place in 0..tag_count {
            let texts = converted(&names.tag(place), &DataType::Utf8)?;
            tags.push(texts.as_string::<i32>().clone());
        }
        Ok(Self {
            times: times.reinterpret_cast::<Int64Type>(),
            values: values.as_primitive::<Float64Type>().clone(),
            tags,
        })
    }

    /// The time of a row, ms.
    pub(crate) fn time_ms(&self, row: usize) -> i64 {
        self.times.value(row).div_euclid(MS)
    }

    /// The value of a row.
    pub(crate) fn value(&self, row: usize) -> f64 {
        if self.values.is_null(row) {
            f64::NAN
        } else {
            self.values.value(row)
        }
    }

    /// The value of a tag in a row; `None` if the series has none.
    pub(crate) fn tag(&self, place: usize, row: usize) -> Option<&str> {
        let texts = self.tags.get(place)?;
        (!texts.is_null(row)).then(|| texts.value(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How deep conditions nest, and how many there are.
    fn depth_and_count(condition: &Expr) -> (usize, usize) {
        match condition {
            Expr::BinaryExpr(both) if both.op == Operator::And => {
                let (left, right) = (depth_and_count(&both.left), depth_and_count(&both.right));
                (1 + left.0.max(right.0), left.1 + right.1)
            }
            _ => (0, 1),
        }
    }

    #[test]
    fn many_conditions_nest_a_few_levels_deep() {
        assert_eq!(conjunction(Vec::new()), None);
        for count in [1, 2, 3, 259, 4000] {
            let conditions = (0..count).map(|at| column(&format!("c{at}")).is_null());
            let all = conjunction(conditions.collect()).unwrap();
            let (depth, found) = depth_and_count(&all);
            assert_eq!(found, count);
            assert!(depth <= 12, "{depth}");
        }
    }
}
