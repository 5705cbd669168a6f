//! `named_cast(CAST(x AS T))`: a cast whose column is named after the cast.

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

/// The function's name.
pub const NAMED_CAST: &str = "named_cast";

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct NamedCast {
    signature: Signature,
}

impl NamedCast {
    /// Creates the function.
    pub(crate) fn new() -> Self {
        Self {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for NamedCast {
    fn name(&self) -> &'static str {
        NAMED_CAST
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(match args {
            [Expr::Cast(cast)] => {
                let (value, kind) = (cast.expr.schema_name(), cast.field.data_type());
                format!("CAST({value} AS {kind})")
            }
            [value] => value.schema_name().to_string(),
            _ => return internal_err!("{NAMED_CAST} takes one argument"),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [kind] => Ok(kind.clone()),
            _ => internal_err!("{NAMED_CAST} takes one argument"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [field] => Ok(field.clone()),
            _ => internal_err!("{NAMED_CAST} takes one argument"),
        }
    }

    fn simplify(&self, mut args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match (args.pop(), args.is_empty()) {
            (Some(value), true) => ExprSimplifyResult::Simplified(value),
            (last, _) => {
                args.extend(last);
                ExprSimplifyResult::Original(args)
            }
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.into_iter().next() {
            Some(value) => Ok(value),
            None => internal_err!("{NAMED_CAST} takes one argument"),
        }
    }
}
