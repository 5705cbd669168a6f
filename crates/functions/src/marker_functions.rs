//! Marker functions: `time_bucket_gapfill`, `locf`, `interpolate` and `fill_value`, and the marker
//! of an `ASOF JOIN`. Rules remove their calls from a plan before it is evaluated.
//!
//! This module defines only their argument types and result types.

use super::time_bucket::TimeBucket;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The name of the bucket function for gap filling.
pub const BUCKET: &str = "time_bucket_gapfill";
/// The name of the function that carries values forward.
pub const LOCF: &str = "locf";
/// The name of the function that interpolates linearly.
pub const INTERPOLATE: &str = "interpolate";
/// The name of the function that fills in a constant.
pub const VALUE: &str = "fill_value";
/// The names of the two ends of a range.
pub const ENDS: [&str; 2] = ["start", "finish"];
/// The name of the function that wraps the match condition of an `ASOF JOIN`.
pub const AS_OF: &str = "asof_match";

/// The functions.
pub fn functions() -> [ScalarUDF; 5] {
    [BUCKET, LOCF, INTERPOLATE, VALUE, AS_OF].map(|name| ScalarUDF::from(MarkerFunction::new(name)))
}

/// `time_bucket`, for building calls.
pub fn time_bucket() -> ScalarUDF {
    ScalarUDF::from(TimeBucket::new())
}

/// A function that has a type but no value.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MarkerFunction {
    name: &'static str,
    signature: Signature,
}

impl MarkerFunction {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for MarkerFunction {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match (self.name, types) {
            (BUCKET, types) => bucket(types),
            (AS_OF, _) => Ok(vec![DataType::Boolean]),
            (VALUE, [value, DataType::Null]) => Ok(vec![value.clone(), value.clone()]),
            (VALUE, [value, fill]) if arrow::compute::can_cast_types(fill, value) => {
                Ok(vec![value.clone(), value.clone()])
            }
            (VALUE, _) => plan_err!(
                "fill_value takes a value and a constant of its type: fill_value(avg(x), 0)"
            ),
            (LOCF, [value]) => Ok(vec![value.clone()]),
            (LOCF, [value, DataType::Boolean | DataType::Null]) => {
                Ok(vec![value.clone(), DataType::Boolean])
            }
            (INTERPOLATE, [value]) => Ok(vec![number(value)?]),
            (INTERPOLATE, [value, DataType::Boolean | DataType::Null]) => {
                Ok(vec![number(value)?, DataType::Boolean])
            }
            (name, _) => plan_err!(
                "{name} takes a value, and whether nulls are missing values: \
                 {name}(value [, treat_null_as_missing => true])"
            ),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match (self.name, types) {
            (BUCKET, [_, time @ DataType::Timestamp(..), ..]) => Ok(time.clone()),
            (BUCKET, _) => Ok(DataType::Timestamp(TimeUnit::Nanosecond, None)),
            (_, [value, ..]) => Ok(value.clone()),
            (name, []) => plan_err!("{name} takes a value"),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!(
            "{} can only be evaluated in a SELECT that is planned as a whole",
            self.name
        )
    }
}

/// The argument types of `time_bucket`, with the ends of the range as structs among them (the
/// dialect makes these structs from named arguments).
fn bucket(types: &[DataType]) -> Result<Vec<DataType>> {
    let is_end = |kind: &DataType| matches!(kind, DataType::Struct(_));
    let plain: Vec<DataType> = types.iter().filter(|t| !is_end(t)).cloned().collect();
    if plain.len() < 2 || types.iter().take(2).any(is_end) {
        return plan_err!(
            "time_bucket_gapfill takes a width and a time, where its buckets begin, and the range \
             to fill: time_bucket_gapfill(width, time [, origin] [, offset] [, zone] \
             [, start => …, finish => …])"
        );
    }
    let mut plain = TimeBucket::new().coerce_types(&plain)?.into_iter();
    let coerced = types.iter().map(|kind| {
        if is_end(kind) {
            Some(kind.clone())
        } else {
            plain.next()
        }
    });
    Ok(coerced.flatten().collect())
}

/// The type of numbers between which `interpolate` computes.
fn number(kind: &DataType) -> Result<DataType> {
    Ok(match kind {
        DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::Null
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => DataType::Float64,
        DataType::Int32
        | DataType::Int64
        | DataType::UInt64
        | DataType::Float32
        | DataType::Float64 => kind.clone(),
        other => return plan_err!("interpolate takes numbers, not {other}; locf takes any type"),
    })
}
