//! Group keys: expressions over tags, and at most one over time, which must be a bucket.

use super::{GroupingTags, PhysicalExprRef, RecipeBuilder, RecipeKey, replaced};
use crate::rows::OutputColumnSource;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use marigram_functions::zoned::UTC;
use marigram_functions::{TimeBuckets, buckets_of};
use std::sync::Arc;

/// The group keys.
pub(super) struct GroupKeys {
    pub(super) list: Vec<RecipeKey>,
    pub(super) tags: Option<GroupingTags>,
    pub(super) buckets: Option<TimeBuckets>,
}

impl RecipeBuilder<'_> {
    /// Reads the keys; `None` if one is neither over tags alone nor a bucket of time, or if there
    /// are two different buckets.
    pub(super) fn keys(&self, exprs: &[PhysicalExprRef]) -> Result<Option<GroupKeys>> {
        let (mut keys, mut over_tags) = (Vec::new(), Vec::new());
        let mut bucket: Option<(&PhysicalExprRef, TimeBuckets)> = None;
        for expr in exprs {
            if self.is_over_tags(expr)? {
                keys.push(RecipeKey::Tags(over_tags.len()));
                over_tags.push(expr);
                continue;
            }
            keys.push(RecipeKey::Bucket);
            match &bucket {
                Some((known, _)) if *known == expr => {}
                Some(_) => return Ok(None),
                None => match self.buckets(expr) {
                    Some(buckets) => bucket = Some((expr, buckets)),
                    None => return Ok(None),
                },
            }
        }
        let tags = match over_tags.as_slice() {
            [] => None,
            exprs => Some(self.tags(exprs)?),
        };
        Ok(Some(GroupKeys {
            list: keys,
            tags,
            buckets: bucket.map(|(_, buckets)| buckets),
        }))
    }

    /// Whether an expression depends on tags only.
    fn is_over_tags(&self, expr: &PhysicalExprRef) -> Result<bool> {
        let mut only = true;
        expr.apply(|node| {
            let tag = node
                .downcast_ref::<Column>()
                .is_none_or(|column| matches!(self.source(column), OutputColumnSource::Tag(..)));
            only &= tag && !node.is_volatile_node();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(only)
    }

    fn tags(&self, exprs: &[&PhysicalExprRef]) -> Result<GroupingTags> {
        let (mut places, mut ordinals, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for expr in exprs {
            keys.push(replaced(expr, |column| {
                let known = places.iter().position(|place| *place == column.index());
                let place = known.unwrap_or_else(|| {
                    places.push(column.index());
                    if let OutputColumnSource::Tag(ordinal, kind) = self.source(column) {
                        ordinals.push((ordinal, kind));
                    }
                    places.len() - 1
                });
                Ok(Arc::new(Column::new(column.name(), place)))
            })?);
        }
        let schema = Arc::new(self.scan.schema().project(&places)?);
        let fields = keys.iter().enumerate().map(|(at, key)| {
            let kind = key.data_type(&schema)?;
            Ok(Field::new(format!("key {at}"), kind, true))
        });
        let fields = fields.collect::<Result<Vec<_>>>()?;
        Ok(GroupingTags {
            ordinals,
            schema,
            keys,
            keys_schema: Arc::new(Schema::new(fields)),
        })
    }

    /// The buckets defined by an expression of the form `time_bucket(…, time, …)`,
    /// `date_bin(…, time, …)` or `date_trunc(…, time)`.
    fn buckets(&self, expr: &PhysicalExprRef) -> Option<TimeBuckets> {
        let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
        let literal = |at: usize| Some(call.args().get(at)?.downcast_ref::<Literal>()?.value());
        let column = call.args().get(1)?.downcast_ref::<Column>()?;
        if self.source(column) != OutputColumnSource::Time
            || !matches!(call.return_type(), DataType::Timestamp(_, zone) if zone.as_deref().is_none_or(|zone| zone == UTC))
        {
            return None;
        }
        let mut more = Vec::new();
        for at in 2..call.args().len() {
            more.push(literal(at)?.clone());
        }
        buckets_of(call.fun().name(), literal(0)?, &more)
    }
}
