//! The definition of a rollup, read from its query: its source, its keys, its parts, and the
//! columns computed from them.

use super::grouped_aggregate::{GroupedAggregate, GroupedAggregateKey};
use super::part::{RollupFinish, RollupPart, RollupPartSource, RollupParts, StoredMeans};
use crate::dialect::types::{arrow_schema, tag_data_type};
use crate::error::{SqlError, SqlResult};
use crate::name_forms::unmarked;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, TableReference};
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Projection, TableSource,
    Volatility, cast,
};
use marigram_engine::TableSpec;
use marigram_functions::TimeBuckets;
use marigram_model::{ColumnId, DAY_NS, FieldType, Rollup, TableOptions, TableSchema, TagType};
use marigram_operators::gapfill::ConstantEvaluator;
use std::sync::Arc;

/// The approximate number of buckets in a partition.
const PARTITION_BUCKETS: i64 = 1024;
/// The default interval between refreshes, ns.
const REFRESH_NS: i64 = 10_000_000_000;
/// The width of cells if buckets have no fixed width, ns.
const CELL_NS: i64 = 3_600_000_000_000;

/// The parsed query of a rollup.
#[derive(Debug)]
pub(crate) struct RollupDefinition {
    /// The table over which it is defined.
    pub source: Arc<TableSchema>,
    /// Its buckets.
    pub buckets: TimeBuckets,
    bucket: Expr,
    /// The name of the bucket column in the rollup's table.
    pub time_name: String,
    /// The source's tags by which it groups.
    pub tags: Vec<(String, TagType)>,
    /// The conditions that select rows of the source.
    pub conditions: Vec<Expr>,
    /// The stored parts.
    pub parts: RollupParts,
    /// The aggregates, how they are computed from parts, and their types.
    pub calls: Vec<(Expr, RollupFinish, DataType)>,
    /// The view's columns, over those of the rollup's table.
    pub columns: Vec<Expr>,
}

fn unfit(reason: &str) -> SqlError {
    SqlError::unsupported(format!(
        "a materialized view WITH (continuous) is of the form SELECT time_bucket('1 minute', time) \
         AS bucket, tag, …, avg(x), … FROM table [WHERE …] GROUP BY bucket, tag, …: {reason}"
    ))
}

impl RollupDefinition {
    /// Reads the analyzed plan of a query.
    ///
    /// # Errors
    /// If a rollup cannot have its form.
    pub(crate) fn from_plan(
        plan: &LogicalPlan,
        constants: &ConstantEvaluator,
        means: StoredMeans,
    ) -> SqlResult<Self> {
        is_lasting(plan)?;
        let LogicalPlan::Projection(projection) = plan else {
            return Err(unfit("there is more around its aggregates"));
        };
        let LogicalPlan::Aggregate(aggregate) = &*projection.input else {
            return Err(unfit(
                "there is no GROUP BY, or it is followed by a HAVING or a window",
            ));
        };
        let Some(grouped) = GroupedAggregate::from_aggregate(aggregate, constants)? else {
            return Err(unfit(
                "it takes rows from one table, and groups them by one bucket of its time and by \
                 tags alone",
            ));
        };
        let Some((bucket, buckets)) = grouped.bucket.clone() else {
            return Err(unfit("there is no bucket of time in GROUP BY"));
        };
        let source = Arc::clone(&grouped.table);
        if source.rollup.is_some() {
            return Err(unfit("its table is a materialized view itself"));
        }
        let mut tags = Vec::new();
        for name in grouped.tags() {
            if let Some((_, tag)) = source.tag(name)
                && !tags.iter().any(|(known, _)| known == name)
            {
                tags.push((name.to_owned(), tag.kind));
            }
        }
        let schema = DFSchema::try_from(arrow_schema(&source))?;
        let mut calls = Vec::new();
        let mut parts = RollupParts {
            means,
            ..RollupParts::default()
        };
        for call in &grouped.calls {
            let finish = parts.add(call, &schema, &source.time_name)?;
            calls.push((call.clone(), finish, call.get_type(&schema)?));
        }
        let mut time_name = "bucket".to_owned();
        while tags.iter().any(|(tag, _)| *tag == time_name)
            || parts.list.iter().any(|part| part.name == time_name)
        {
            time_name.push('_');
        }
        let mut shape = Self {
            source,
            buckets,
            bucket,
            time_name,
            tags,
            conditions: grouped.conditions.clone(),
            parts,
            calls,
            columns: Vec::new(),
        };
        shape.columns = shape.columns_of(projection, aggregate, &grouped)?;
        Ok(shape)
    }

    /// A name that several columns of the view have, if any.
    pub(crate) fn repeated_name(&self) -> Option<String> {
        let names = self.columns.iter().map(|column| column.qualified_name().1);
        let mut names = names.filter_map(|name| unmarked(&name).map(str::to_owned));
        names.next()
    }

    /// The view's columns: those of its query, with aggregates computed from parts.
    fn columns_of(
        &self,
        projection: &Projection,
        aggregate: &Aggregate,
        grouped: &GroupedAggregate,
    ) -> Result<Vec<Expr>> {
        let mut outputs = Vec::new();
        for key in &grouped.keys {
            outputs.push(self.key(key));
        }
        for (_, finish, kind) in &self.calls {
            outputs.push(finish.to_expr(|part| self.parts.value(part), kind)?);
        }
        let column = |expr: &Expr| -> Result<Expr> {
            let made = expr.clone().transform_down(|expr| {
                let Expr::Column(column) = &expr else {
                    return Ok(Transformed::no(expr));
                };
                let at = aggregate.schema.index_of_column(column)?;
                let made = outputs[at].clone();
                Ok(Transformed::new(made, true, TreeNodeRecursion::Jump))
            })?;
            let (_, name) = expr.qualified_name();
            Ok(made.data.unalias_nested().data.alias(name))
        };
        projection.expr.iter().map(column).collect()
    }

    /// How to compute an aggregate that the query does not contain from the existing parts.
    ///
    /// # Errors
    /// DataFusion's errors.
    pub(crate) fn made_of(&self, call: &Expr) -> Result<Option<RollupFinish>> {
        let schema = DFSchema::try_from(arrow_schema(&self.source))?;
        let mut parts = self.parts.clone();
        let finish = parts.add(call, &schema, &self.source.time_name).ok();
        Ok(finish.filter(|_| parts.list.len() == self.parts.list.len()))
    }

    /// A key, as a column of the rollup's table.
    pub(crate) fn key(&self, key: &GroupedAggregateKey) -> Expr {
        Expr::Column(Column::new_unqualified(match key {
            GroupedAggregateKey::Bucket => &self.time_name,
            GroupedAggregateKey::Tag(tag) => tag,
        }))
    }

    /// The table that stores the parts.
    pub(crate) fn table(&self, name: &str, query: &str) -> TableSpec {
        let partition_ns = match self.buckets.fixed_ns() {
            Some(width) => (width.saturating_mul(PARTITION_BUCKETS) / DAY_NS).clamp(1, 3650),
            None => 365,
        };
        TableSpec {
            name: name.to_owned(),
            time_name: Some(self.time_name.clone()),
            tags: self.tags.clone(),
            fields: self.fields(),
            options: TableOptions {
                partition_ns: partition_ns * DAY_NS,
                // The buckets of a TIMESTAMPTZ are times with a zone, too.
                zoned: match self.source.options.zoned.first() {
                    Some(&ColumnId::TIME) => vec![ColumnId::TIME],
                    _ => Vec::new(),
                },
                ..TableOptions::default()
            },
            rollup: Some(Rollup {
                source: self.source.id,
                query: query.to_owned(),
                cell_ns: self.buckets.fixed_ns().unwrap_or(CELL_NS),
                cell_origin_ns: self.buckets.origin_ns(),
                refresh_ns: REFRESH_NS,
                lag_ns: 0,
            }),
            ..TableSpec::default()
        }
    }

    fn fields(&self) -> Vec<(String, FieldType)> {
        let parts = self.parts.list.iter();
        parts.map(|part| (part.name.clone(), part.kind)).collect()
    }

    /// Whether a table stores these parts.
    pub(crate) fn is_held_by(&self, table: &TableSchema) -> bool {
        let fields = table.fields.iter();
        let tags = table.tags.iter();
        fields.map(|f| (f.name.clone(), f.kind)).eq(self.fields())
            && tags.map(|t| (t.name.clone(), t.kind)).eq(self.tags.clone())
            && table.time_name == self.time_name
    }

    /// The view's rows, computed from rows of parts.
    ///
    /// # Errors
    /// DataFusion's errors.
    pub(crate) fn view(&self, name: &str, partials: Arc<dyn TableSource>) -> Result<LogicalPlan> {
        LogicalPlanBuilder::scan(TableReference::bare(name), partials, None)?
            .project(self.columns.clone())?
            .build()
    }

    /// Rows of parts in the form of the rollup's table, computed from the rows of the source for
    /// which `conditions` are true. `source` is its provider.
    ///
    /// # Errors
    /// DataFusion's errors.
    pub(crate) fn partials(
        &self,
        source: Arc<dyn TableSource>,
        conditions: impl IntoIterator<Item = Expr>,
    ) -> Result<LogicalPlan> {
        let name = TableReference::bare(self.source.name.as_str());
        let mut plan = LogicalPlanBuilder::scan(name, source, None)?;
        for condition in self.conditions.iter().cloned().chain(conditions) {
            plan = plan.filter(condition)?;
        }
        let mut keys = vec![self.bucket.clone()];
        let tag = |(name, _): &(String, TagType)| Expr::Column(Column::new_unqualified(name));
        keys.extend(self.tags.iter().map(tag));
        // DataFusion gives two expressions that differ only in a cast the same name.
        let named = |part: &RollupPart| Some(part.call()?.clone().alias(part.name.as_str()));
        let calls = self.parts.list.iter().filter_map(named);
        let plan = plan.aggregate(keys, calls.collect::<Vec<_>>())?;
        let schema = Arc::clone(plan.schema());
        let output = |at: usize| Expr::Column(Column::from(schema.qualified_field(at)));
        let mut columns = vec![output(0).alias(self.time_name.as_str())];
        for (at, (name, kind)) in self.tags.iter().enumerate() {
            columns.push(cast(output(at + 1), tag_data_type(*kind)).alias(name.as_str()));
        }
        let mut next = 1 + self.tags.len();
        let mut places = Vec::new();
        for part in &self.parts.list {
            let value = match part.of {
                RollupPartSource::Call(_) => {
                    next += 1;
                    output(next - 1)
                }
                // The part to which it refers precedes it.
                RollupPartSource::IsThere(other) => Expr::clone(&places[other]).is_not_null(),
            };
            places.push(value.clone());
            columns.push(cast(value, part.kind.data_type()).alias(part.name.as_str()));
        }
        plan.project(columns)?.build()
    }
}

impl RollupPart {
    /// The aggregate over the source that defines the part.
    fn call(&self) -> Option<&Expr> {
        match &self.of {
            RollupPartSource::Call(call) => Some(call),
            RollupPartSource::IsThere(_) => None,
        }
    }
}

/// Refuses queries whose result may differ tomorrow.
fn is_lasting(plan: &LogicalPlan) -> SqlResult<()> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                let lasts = match part {
                    Expr::ScalarFunction(call) => {
                        call.func.signature().volatility == Volatility::Immutable
                    }
                    Expr::AggregateFunction(call) => {
                        call.func.signature().volatility == Volatility::Immutable
                    }
                    Expr::Placeholder(_)
                    | Expr::ScalarSubquery(_)
                    | Expr::Exists(_)
                    | Expr::InSubquery(_)
                    | Expr::SetComparison(_) => false,
                    _ => true,
                };
                if !lasts {
                    found.get_or_insert_with(|| part.human_display().to_string());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    match found {
        Some(what) => Err(unfit(&format!("{what} does not stay the same"))),
        None => Ok(()),
    }
}
