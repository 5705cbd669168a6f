//! Describes an aggregate over a table, independent of the names of relations.

use crate::dialect::types::arrow_schema;
use crate::tables::table::SeriesTable;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::datasource::DefaultTableSource;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, TableScan};
use marigram_functions::{TimeBuckets, buckets_of};
use marigram_model::TableSchema;
use marigram_operators::gapfill::{ConstantEvaluator, column};
use std::sync::Arc;

/// A key by which rows are grouped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GroupedAggregateKey {
    /// A tag, by name.
    Tag(String),
    /// The bucket of time.
    Bucket,
}

/// An aggregate over one of our tables. Columns have no qualifiers.
#[derive(Debug)]
pub(super) struct GroupedAggregate {
    /// The table.
    pub table: Arc<TableSchema>,
    /// The keys in order.
    pub keys: Vec<GroupedAggregateKey>,
    /// The bucket, if there is one: its expression and its meaning.
    pub bucket: Option<(Expr, TimeBuckets)>,
    /// Conditions on rows, which must all be true.
    pub conditions: Vec<Expr>,
    /// Calls of aggregate functions, without aliases.
    pub calls: Vec<Expr>,
}

impl GroupedAggregate {
    /// Reads an aggregate; `None` if its table is not ours, or if other nodes are between the two.
    ///
    /// # Errors
    /// If a constant cannot be evaluated.
    pub(super) fn from_aggregate(
        aggregate: &Aggregate,
        constants: &ConstantEvaluator,
    ) -> Result<Option<Self>> {
        let mut conditions = Vec::new();
        let Some(table) = read(&aggregate.input, &mut conditions)? else {
            return Ok(None);
        };
        let schema = Arc::new(DFSchema::try_from(arrow_schema(&table))?);
        for condition in &mut conditions {
            *condition = constants.simplified(std::mem::take(condition), &schema)?;
        }
        let (mut keys, mut bucket) = (Vec::new(), None);
        for expr in &aggregate.group_expr {
            let expr = without_qualifiers(expr)?;
            if let Expr::Column(column) = &expr
                && table.tag(&column.name).is_some()
            {
                keys.push(GroupedAggregateKey::Tag(column.name.clone()));
                continue;
            }
            if bucket.is_some() {
                return Ok(None);
            }
            let Some(buckets) = buckets(&expr, &table.time_name, constants)? else {
                return Ok(None);
            };
            keys.push(GroupedAggregateKey::Bucket);
            bucket = Some((expr, buckets));
        }
        let calls = aggregate.aggr_expr.iter().map(without_qualifiers);
        Ok(Some(Self {
            keys,
            bucket,
            conditions,
            calls: calls.collect::<Result<_>>()?,
            table,
        }))
    }

    /// The tags among the keys.
    pub(super) fn tags(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().filter_map(|key| match key {
            GroupedAggregateKey::Tag(tag) => Some(tag.as_str()),
            GroupedAggregateKey::Bucket => None,
        })
    }
}

/// The table below filters; adds their conditions to `conditions`.
fn read(plan: &LogicalPlan, conditions: &mut Vec<Expr>) -> Result<Option<Arc<TableSchema>>> {
    match plan {
        LogicalPlan::Filter(filter) => {
            let parts = split_conjunction_owned(filter.predicate.clone());
            for part in &parts {
                conditions.push(without_qualifiers(part)?);
            }
            read(&filter.input, conditions)
        }
        LogicalPlan::SubqueryAlias(alias) => read(&alias.input, conditions),
        LogicalPlan::TableScan(scan) => {
            for filter in &scan.filters {
                conditions.push(without_qualifiers(filter)?);
            }
            Ok(table_of(scan).filter(|_| scan.fetch.is_none()))
        }
        _ => Ok(None),
    }
}

/// The table of a scan, if it is ours and a rollup may replace it.
fn table_of(scan: &TableScan) -> Option<Arc<TableSchema>> {
    let source = scan.source.downcast_ref::<DefaultTableSource>()?;
    let table = source.table_provider.downcast_ref::<SeriesTable>()?;
    table
        .may_be_rolled_up()
        .then(|| Arc::clone(table.table_schema()))
}

/// An expression without aliases, whose columns have no qualifiers.
///
/// # Errors
/// None that can occur.
pub(super) fn without_qualifiers(expr: &Expr) -> Result<Expr> {
    let bare = expr.clone().unalias_nested().data;
    let plain = bare.transform(|expr| {
        Ok(match expr {
            Expr::Column(Column {
                relation: Some(_),
                name,
                ..
            }) => Transformed::yes(Expr::Column(Column::new_unqualified(name))),
            other => Transformed::no(other),
        })
    })?;
    Ok(plain.data)
}

/// The buckets that an expression defines.
fn buckets(expr: &Expr, time: &str, constants: &ConstantEvaluator) -> Result<Option<TimeBuckets>> {
    let Expr::ScalarFunction(call) = expr else {
        return Ok(None);
    };
    let is_time = |expr: &Expr| column(expr).is_some_and(|column| column.name == time);
    if !call.args.get(1).is_some_and(is_time) {
        return Ok(None);
    }
    let mut values = Vec::new();
    for (at, argument) in call.args.iter().enumerate() {
        if at == 1 {
            continue;
        }
        match constants.value(argument)? {
            Some(value) => values.push(value),
            None => return Ok(None),
        }
    }
    Ok(values
        .split_first()
        .and_then(|(first, more)| buckets_of(call.name(), first, more)))
}
