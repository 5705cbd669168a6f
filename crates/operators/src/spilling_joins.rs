//! Joins that spill: a join of two large inputs sorts and merges them instead of holding one of them
//! in a hash table.
//!
//! DataFusion's hash join cannot spill, so it fails if one of its inputs exceeds the memory of
//! queries. Its sort-merge join needs little memory, because sorts spill. It is slower, and so it is
//! used only where the smaller input is estimated to need more than a part of that memory. Where
//! nothing is known about the number of rows, the hash join stays.
//!
//! This rule runs after DataFusion has chosen the smaller input as the left one, and before it adds
//! sorts and exchanges.

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinType, Result};
use datafusion::config::ConfigOptions;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::CastExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use std::sync::Arc;

/// A key of the left input, and the key of the right one that must equal it.
type KeyPair = (Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>);

/// The hash table of a join may be estimated to take one of this many parts of the memory of
/// queries: other operators need some, and estimates may be too low.
const HASHED_PART: usize = 3;
/// Bytes of a row in the hash table besides its values.
const HASHED_ROW_BYTES: usize = 24;
/// Bytes assumed for a value without a fixed width.
const TEXT_BYTES: usize = 32;

/// See the module documentation.
#[derive(Debug)]
pub struct SpillingJoins {
    pool: Arc<dyn MemoryPool>,
}

impl SpillingJoins {
    /// Creates the rule for statements whose memory comes from `pool`.
    #[must_use]
    pub fn new(pool: Arc<dyn MemoryPool>) -> Self {
        Self { pool }
    }
}

impl PhysicalOptimizerRule for SpillingJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let MemoryLimit::Finite(limit) = self.pool.memory_limit() else {
            return Ok(plan);
        };
        plan.transform_up(|node| {
            let Some(join) = node.downcast_ref::<HashJoinExec>() else {
                return Ok(Transformed::no(node));
            };
            if hashed_bytes(join)? <= limit / HASHED_PART {
                return Ok(Transformed::no(node));
            }
            Ok(match mergeable_keys(join)? {
                Some(keys) => Transformed::yes(merged(join, keys)?),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "spilling_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The keys of a sort-merge join that gives the same rows; `None` if there is none.
fn mergeable_keys(join: &HashJoinExec) -> Result<Option<Vec<KeyPair>>> {
    let is_marking = matches!(join.join_type(), JoinType::LeftMark | JoinType::RightMark);
    if is_marking || join.null_aware || join.projection.is_some() {
        return Ok(None);
    }
    let (left_schema, right_schema) = (join.left().schema(), join.right().schema());
    let mut keys = Vec::with_capacity(join.on().len());
    for (left, right) in join.on() {
        let left = mergeable_key(left, &left_schema)?;
        let right = mergeable_key(right, &right_schema)?;
        let (Some(left), Some(right)) = (left, right) else {
            return Ok(None);
        };
        keys.push((left, right));
    }
    Ok(Some(keys))
}

/// A key in a type that has an order. The values of tags are in dictionaries, which the merge does
/// not know.
fn mergeable_key(
    key: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    Ok(match key.data_type(schema)? {
        DataType::Dictionary(_, kind) if is_ordered(&kind) => {
            Some(Arc::new(CastExpr::new(Arc::clone(key), *kind, None)))
        }
        kind if is_ordered(&kind) => Some(Arc::clone(key)),
        _ => None,
    })
}

/// Whether equal values of a type are equal in its order, too, and the merge knows the type. Of
/// floats, -0.0 and 0.0 are not.
fn is_ordered(kind: &DataType) -> bool {
    matches!(
        kind,
        DataType::Boolean
            | DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::UInt64
            | DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::Decimal128(..)
            | DataType::Timestamp(_, None)
            | DataType::Date32
            | DataType::Date64
    )
}

/// The estimated size of the table that a join would hold; 0 if nothing is known.
fn hashed_bytes(join: &HashJoinExec) -> Result<usize> {
    let held = join.left();
    let statistics = StatisticsContext::new().compute(&**held, &StatisticsArgs::new())?;
    let rows = statistics.num_rows.get_value().copied().unwrap_or(0);
    let values = match statistics.total_byte_size.get_value() {
        Some(bytes) => *bytes,
        None => rows.saturating_mul(row_bytes(&held.schema())),
    };
    Ok(values.saturating_add(rows.saturating_mul(HASHED_ROW_BYTES)))
}

fn row_bytes(schema: &Schema) -> usize {
    let widths = schema.fields().iter().map(|field| {
        let width = field.data_type().primitive_width();
        width.unwrap_or(TEXT_BYTES)
    });
    widths.sum()
}

/// The sort-merge join with the rows of a hash join.
fn merged(join: &HashJoinExec, keys: Vec<KeyPair>) -> Result<Arc<dyn ExecutionPlan>> {
    let orders = vec![SortOptions::default(); keys.len()];
    Ok(Arc::new(SortMergeJoinExec::try_new(
        Arc::clone(join.left()),
        Arc::clone(join.right()),
        keys,
        join.filter().cloned(),
        *join.join_type(),
        orders,
        join.null_equality(),
    )?))
}
