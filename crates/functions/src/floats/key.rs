//! Keys that give floats a single zero and a single NaN.

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

/// A float type that has several zeros and NaNs with different bits.
pub trait CanonicalFloat: Copy {
    /// The canonical float that is equal to this one.
    fn canonical(self) -> Self;
}

macro_rules! canonical {
    ($float:ty) => {
        impl CanonicalFloat for $float {
            #[inline(always)]
            fn canonical(self) -> Self {
                // The sum of the two zeros is 0.0.
                if self.is_nan() { Self::NAN } else { self + 0.0 }
            }
        }
    };
}
canonical!(f32);
canonical!(f64);

/// See `CanonicalFloat`.
pub fn canonical<F: CanonicalFloat>(value: F) -> F {
    value.canonical()
}

/// A column with canonical floats; a column of another type is returned unchanged.
pub fn canonical_array(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float32 => {
            let made: Float32Array = column.as_primitive::<Float32Type>().unary(canonical);
            Arc::new(made)
        }
        DataType::Float64 => {
            let made: Float64Array = column.as_primitive::<Float64Type>().unary(canonical);
            Arc::new(made)
        }
        _ => Arc::clone(column),
    }
}

/// The same for a single value.
pub(super) fn canonical_scalar(value: ScalarValue) -> ScalarValue {
    match value {
        ScalarValue::Float32(Some(value)) => ScalarValue::Float32(Some(canonical(value))),
        ScalarValue::Float64(Some(value)) => ScalarValue::Float64(Some(canonical(value))),
        other => other,
    }
}

/// Whether a type is a float type whose order this module defines.
pub(super) fn is_float(kind: &DataType) -> bool {
    matches!(kind, DataType::Float32 | DataType::Float64)
}

/// The function that wraps expressions by which a plan sorts, groups or joins.
#[derive(Debug, PartialEq, Eq, Hash)]
struct FloatKey {
    signature: Signature,
}

static KEY: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::from(FloatKey { signature }))
});

/// Wraps an expression of floats, so that it has canonical values; a constant stays a constant.
pub(super) fn key(expr: Expr) -> Expr {
    match expr {
        Expr::Literal(value, metadata) => Expr::Literal(canonical_scalar(value), metadata),
        other if is_key(&other) => other,
        other => Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&KEY), vec![other])),
    }
}

/// Whether an expression was made by [`key`].
pub(super) fn is_key(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_key(&alias.expr),
        Expr::ScalarFunction(call) => call.func.inner().downcast_ref::<FloatKey>().is_some(),
        _ => false,
    }
}

impl ScalarUDFImpl for FloatKey {
    fn name(&self) -> &'static str {
        "float_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match args.args.into_iter().next() {
            Some(ColumnarValue::Array(array)) => ColumnarValue::Array(canonical_array(&array)),
            Some(ColumnarValue::Scalar(value)) => ColumnarValue::Scalar(canonical_scalar(value)),
            None => return internal_err!("float_key has no argument"),
        })
    }
}
