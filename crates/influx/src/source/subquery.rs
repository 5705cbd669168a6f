//! The rows of a subquery, in the form that the enclosing query needs.

use super::{RowSource, SourceColumn};
use crate::evaluate::holds;
use crate::expression::Expression;
use crate::point::Row;
use crate::prepare::{PreparedSelect, extra_columns};
use crate::series::Narrowing;
use crate::value::{InfluxValueType, Value};
use futures::FutureExt;
use futures::future::BoxFuture;
use marigram_sql::SqlResult;
use std::sync::Arc;

/// The source of a column of the enclosing query.
#[derive(Clone, Debug)]
enum SubqueryColumn {
    /// A column of the subquery, in a type.
    Column(usize, Option<InfluxValueType>),
    /// A tag that the subquery groups by.
    Tag(String),
    /// No column: the value is null.
    Null,
}

/// A subquery's rows, with the requested columns.
pub(crate) struct SubqueryRows {
    source: Box<dyn RowSource>,
    columns: Vec<SubqueryColumn>,
    condition: Option<(Expression, Vec<SubqueryColumn>)>,
    narrowing: Narrowing,
}

fn mapped(inner: &PreparedSelect, name: &str, kind: Option<InfluxValueType>) -> SubqueryColumn {
    let mut place = 0;
    for field in &inner.fields {
        if field.name == name {
            return SubqueryColumn::Column(place, kind);
        }
        place += 1;
        if inner.has_target {
            continue;
        }
        for extra in extra_columns(&field.expression) {
            if extra.name == name {
                return SubqueryColumn::Column(place, None);
            }
            place += 1;
        }
    }
    if inner.dimensions.iter().any(|by| by == name) {
        return SubqueryColumn::Tag(name.to_owned());
    }
    SubqueryColumn::Null
}

fn value(mapped: &SubqueryColumn, row: &Row) -> Value {
    match mapped {
        SubqueryColumn::Column(place, kind) => {
            let value = row.values.get(*place).cloned().unwrap_or_default();
            value.cast_or_keep(*kind)
        }
        SubqueryColumn::Tag(key) => match row.series.tag(key) {
            Some(text) => Value::String(Arc::clone(text)),
            None => Value::Null,
        },
        SubqueryColumn::Null => Value::Null,
    }
}

impl SubqueryRows {
    /// The rows of `inner`, which `source` returns, that satisfy a condition, with the requested
    /// columns and the tags of `keys`.
    pub(crate) fn new(
        inner: &PreparedSelect,
        source: Box<dyn RowSource>,
        columns: &[SourceColumn],
        condition: Option<&Expression>,
        keys: Arc<[Arc<str>]>,
    ) -> Self {
        let condition = condition.map(|condition| {
            let mut found = Vec::new();
            let resolved = condition.replaced(&mut |part| match part {
                Expression::Name(var) => {
                    let kind = var.cast.and_then(InfluxValueType::of_cast);
                    let name = var.name.clone();
                    found.push(match mapped(inner, &name, kind) {
                        SubqueryColumn::Null => SubqueryColumn::Tag(var.name.clone()),
                        other => other,
                    });
                    Some(Expression::Column(found.len() - 1, kind))
                }
                _ => None,
            });
            (resolved, found)
        });
        let columns = columns
            .iter()
            .map(|column| mapped(inner, &column.name, column.kind));
        Self {
            source,
            columns: columns.collect(),
            condition,
            narrowing: Narrowing::new(keys),
        }
    }

    fn take(&mut self, row: &Row) -> Option<Row> {
        if let Some((condition, names)) = &self.condition {
            let values: Vec<Value> = names.iter().map(|name| value(name, row)).collect();
            if !holds(condition, &values) {
                return None;
            }
        }
        let values = self.columns.iter().map(|column| value(column, row));
        Some(Row {
            values: values.collect(),
            series: self.narrowing.narrow(&row.series),
            time: row.time,
        })
    }
}

impl RowSource for SubqueryRows {
    fn next(&mut self) -> BoxFuture<'_, SqlResult<Option<Vec<Row>>>> {
        async move {
            while let Some(rows) = self.source.next().await? {
                let kept: Vec<Row> = rows.iter().filter_map(|row| self.take(row)).collect();
                if !kept.is_empty() {
                    return Ok(Some(kept));
                }
            }
            Ok(None)
        }
        .boxed()
    }
}
