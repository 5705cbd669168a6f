//! Long constants, which operators write out for each row of a batch.
//!
//! A constant of one megabyte, written or folded, takes eight gigabytes in a batch of 8,192 rows. A
//! function supplies each constant that is long enough to matter, and refuses the statement if its
//! rows do not fit.

use super::{OFFSETS_MAX, reserve, too_large};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Longer constants are bounded, bytes.
const LONG_BYTES: usize = 4 << 10;
/// The name of the function in plans.
const NAME: &str = "long_constant";

/// The rule; it runs last, when constants have been folded.
#[derive(Debug)]
pub struct BoundConstants {
    function: Arc<ScalarUDF>,
}

impl BoundConstants {
    /// Creates the rule, which takes its bound from a memory pool.
    pub fn new(pool: Arc<dyn MemoryPool>) -> Self {
        // Volatile, so that it is not folded again.
        let signature = Signature::any(1, Volatility::Volatile);
        let function = Arc::new(ScalarUDF::from(LongConstant { signature, pool }));
        Self { function }
    }
}

impl OptimizerRule for BoundConstants {
    fn name(&self) -> &'static str {
        "bound_constants"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        // Conditions compare constants without writing them out.
        let writes_out = matches!(
            plan,
            LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)
        );
        if !writes_out {
            return Ok(Transformed::no(plan));
        }
        plan.map_expressions(|expr| self.bound(expr))
    }
}

impl BoundConstants {
    /// Bounds the constants that an expression may return unchanged. Functions have their own
    /// bounds, or take a constant without writing it out.
    fn bound(&self, expr: Expr) -> Result<Transformed<Expr>> {
        match expr {
            Expr::Literal(ref value, _) if value.size() > LONG_BYTES => {
                Ok(Transformed::yes(self.function.call(vec![expr])))
            }
            Expr::Alias(_)
            | Expr::Case(_)
            | Expr::Cast(_)
            | Expr::AggregateFunction(_)
            | Expr::WindowFunction(_) => expr.map_children(|child| self.bound(child)),
            other => Ok(Transformed::no(other)),
        }
    }
}

struct LongConstant {
    signature: Signature,
    pool: Arc<dyn MemoryPool>,
}

impl ScalarUDFImpl for LongConstant {
    fn name(&self) -> &str {
        NAME
    }

    /// Displays the call as the constant.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [constant] => Ok(constant.schema_name().to_string()),
            _ => internal_err!("a constant is one argument"),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [constant] => Ok(constant.clone()),
            _ => internal_err!("a constant is one argument"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let mut values = args.args.into_iter();
        let Some(ColumnarValue::Scalar(value)) = values.next() else {
            return internal_err!("a constant has no rows");
        };
        let bytes = value.size().saturating_mul(rows);
        if bytes > OFFSETS_MAX && rows > 1 {
            return Err(too_large("a long constant", bytes, rows, &self.pool));
        }
        drop(reserve("a long constant", bytes, rows, &self.pool)?);
        Ok(ColumnarValue::Scalar(value))
    }
}

impl fmt::Debug for LongConstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LongConstant").finish_non_exhaustive()
    }
}

impl PartialEq for LongConstant {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LongConstant {}

impl Hash for LongConstant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NAME.hash(state);
    }
}
