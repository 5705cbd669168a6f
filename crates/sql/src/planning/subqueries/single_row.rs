//! Checks that a subquery whose value is used has only one row.

use arrow::array::BooleanArray;
use arrow::datatypes::DataType;
use datafusion::common::cast::as_int64_array;
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

/// Returns whether a number of rows is one; an error if it is greater.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SingleRow {
    signature: Signature,
}

static SINGLE_ROW: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(SingleRow {
        signature: Signature::exact(vec![DataType::Int64], Volatility::Immutable),
    }))
});

/// Whether there is one row; evaluating it fails if there are more.
pub(super) fn single_row(rows: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&SINGLE_ROW), vec![rows]))
}

impl ScalarUDFImpl for SingleRow {
    fn name(&self) -> &'static str {
        "single_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.args[0].to_array(args.number_rows)?;
        let mut is_there = Vec::with_capacity(rows.len());
        for count in as_int64_array(&rows)? {
            match count {
                None | Some(0) => is_there.push(false),
                Some(1) => is_there.push(true),
                Some(_) => return exec_err!("Scalar subquery returned more than one row"),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(is_there))))
    }
}
