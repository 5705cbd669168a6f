//! Integers that are stored as times: each must be a plausible time in one unit.

use crate::error::SqlError;
use arrow::array::{Array, ArrayRef, AsArray, TimestampNanosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, TimeUnit};
use datafusion::common::{DataFusionError, Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use marigram_functions::TIME;
use marigram_functions::zoned::relabelled;
use marigram_pgtext::integer_time;
use std::sync::Arc;

/// Creates a call of the function.
pub(super) fn time_of_integer(value: Expr, kind: &DataType) -> Expr {
    let function = TimeOfInteger {
        signature: Signature::any(1, Volatility::Immutable),
        kind: kind.clone(),
    };
    Arc::new(ScalarUDF::from(function)).call(vec![value])
}

/// Converts integers to a type of times.
///
/// # Errors
/// At the first integer that is not a plausible time.
pub(crate) fn times_of_integers(values: &ArrayRef, kind: &DataType) -> Result<ArrayRef> {
    // Wide enough for all integers.
    let wide = cast(values, &DataType::Decimal128(38, 0))?;
    let mut times = Vec::with_capacity(wide.len());
    for value in wide.as_primitive::<Decimal128Type>() {
        times.push(match value.map(integer_time) {
            None => None,
            Some(Ok(ns)) => Some(ns),
            Some(Err(error)) => {
                let error = SqlError::invalid("42804", error.to_string());
                return Err(DataFusionError::External(Box::new(error)));
            }
        });
    }
    let times: ArrayRef = Arc::new(TimestampNanosecondArray::from(times));
    Ok(match kind {
        DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => relabelled(&times, kind)?,
        kind if *kind == TIME => times,
        kind => cast(&times, kind)?,
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeOfInteger {
    signature: Signature,
    kind: DataType,
}

impl ScalarUDFImpl for TimeOfInteger {
    fn name(&self) -> &'static str {
        "time_of_integer"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.kind.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.into_iter().next() else {
            return internal_err!("time_of_integer takes one argument");
        };
        let is_one = matches!(value, ColumnarValue::Scalar(_));
        let times = times_of_integers(&value.into_array(1)?, &self.kind)?;
        Ok(if is_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&times, 0)?)
        } else {
            ColumnarValue::Array(times)
        })
    }
}
