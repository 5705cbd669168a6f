//! `repeated_key(x, n)`: the value of x. An expression by which a query groups again has another name so,
//! and stays apart from the first one.

use arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The function's name.
pub const REPEATED_KEY: &str = "repeated_key";

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RepeatedKey {
    signature: Signature,
}

/// The function. Nothing simplifies its calls: two equal keys would be one.
pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::from(RepeatedKey {
        signature: Signature::any(2, Volatility::Immutable),
    })
}

impl ScalarUDFImpl for RepeatedKey {
    fn name(&self) -> &'static str {
        REPEATED_KEY
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [kind, _] => Ok(kind.clone()),
            _ => internal_err!("{REPEATED_KEY} takes two arguments"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(value) => Ok(value),
            None => internal_err!("{REPEATED_KEY} takes two arguments"),
        }
    }
}
