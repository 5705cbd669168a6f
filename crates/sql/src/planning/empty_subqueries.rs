//! A subquery whose value is used may have no row: its value is NULL then, also if its column is
//! never NULL.
//!
//! DataFusion takes the value to be as nullable as the column, and refuses the NULL when it comes.
//! This rule makes such columns nullable.

use super::subqueries::always_has_a_row;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Subquery, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::{Arc, LazyLock};

/// See the module documentation. The rule runs after [`super::subqueries::SubqueryValues`].
#[derive(Debug)]
pub(crate) struct EmptySubqueries;

impl AnalyzerRule for EmptySubqueries {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut is_changed = false;
        let done = plan.transform_up_with_subqueries(|node| {
            let node = node.map_expressions(|expr| expr.transform_up(nullable_value))?;
            is_changed |= node.transformed;
            // The nodes above a changed one name its columns in schemas of their own.
            if is_changed {
                return Ok(Transformed::yes(node.data.recompute_schema()?));
            }
            Ok(node)
        })?;
        Ok(done.data)
    }

    fn name(&self) -> &'static str {
        "empty_subqueries"
    }
}

fn nullable_value(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarSubquery(subquery) = expr else {
        return Ok(Transformed::no(expr));
    };
    let (qualifier, field) = subquery.subquery.schema().qualified_field(0);
    if field.is_nullable() || always_has_a_row(&subquery.subquery) {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    }
    let column = Expr::Column(Column::from((qualifier, field)));
    let value = ScalarFunction::new_udf(Arc::clone(&OR_NULL), vec![column]);
    let value = Expr::ScalarFunction(value).alias_qualified(qualifier.cloned(), field.name());
    let rows = LogicalPlanBuilder::new_from_arc(Arc::clone(&subquery.subquery));
    Ok(Transformed::yes(Expr::ScalarSubquery(Subquery {
        subquery: Arc::new(rows.project([value])?.build()?),
        ..subquery
    })))
}

/// Returns its argument; its result may be NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OrNull {
    signature: Signature,
}

static OR_NULL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(OrNull {
        signature: Signature::any(1, Volatility::Immutable),
    }))
});

impl ScalarUDFImpl for OrNull {
    fn name(&self) -> &'static str {
        "or_null"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    // A time keeps its role and its zone.
    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = args.arg_fields[0].as_ref().clone();
        Ok(Arc::new(field.with_nullable(true)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args.swap_remove(0))
    }
}
