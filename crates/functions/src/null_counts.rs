//! `num_nulls(…)` and `num_nonnulls(…)`: how many of the arguments are NULL, or are not.

use arrow::array::{Array, Int32Array};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NullCount {
    name: &'static str,
    counts_nulls: bool,
    signature: Signature,
}

/// The functions.
pub(crate) fn functions() -> [ScalarUDF; 2] {
    [("num_nulls", true), ("num_nonnulls", false)].map(|(name, counts_nulls)| {
        ScalarUDF::from(NullCount {
            name,
            counts_nulls,
            signature: Signature::variadic_any(Volatility::Immutable),
        })
    })
}

impl ScalarUDFImpl for NullCount {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_scalar = args.args.iter().all(is_scalar);
        let rows = if all_scalar { 1 } else { args.number_rows };
        let mut counts = vec![0_i32; rows];
        for arg in &args.args {
            let values = arg.to_array(rows)?;
            let nulls = values.logical_nulls();
            for (row, count) in counts.iter_mut().enumerate() {
                let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                *count += i32::from(is_null == self.counts_nulls);
            }
        }
        let counts = Int32Array::from(counts);
        Ok(if all_scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&counts, 0)?)
        } else {
            ColumnarValue::Array(Arc::new(counts))
        })
    }
}
