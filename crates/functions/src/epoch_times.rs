//! `to_timestamp(seconds)`: a number of seconds since 1970 that is no time of ours is refused
//! (22008). DataFusion takes the nearest time for a float that is out of range, and 1970 for a NaN.

use crate::refusal::refused;
use arrow::array::{AsArray, TimestampNanosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, TimestampNanosecondType};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::functions::datetime::to_timestamp::ToTimestampFunc;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use std::sync::Arc;

/// Beyond this number of seconds there is no time of ours.
const SECONDS_MAX: f64 = 1e10;

/// `to_timestamp`
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct EpochToTimestamp {
    inner: ToTimestampFunc,
}

impl ScalarUDFImpl for EpochToTimestamp {
    fn name(&self) -> &'static str {
        "to_timestamp"
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = ToTimestampFunc::new_with_config(config);
        Some(ScalarUDF::from(Self { inner }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let kind = args.args.first().map(ColumnarValue::data_type);
        match (kind, args.args.as_slice()) {
            (Some(kind), [seconds]) if kind.is_floating() => {
                from_floats(seconds, args.return_type())
            }
            (Some(kind), [_]) if kind.is_numeric() => {
                let made = self.inner.invoke_with_args(args);
                made.map_err(|error| out_of_range(&error))
            }
            _ => self.inner.invoke_with_args(args),
        }
    }
}

/// The error for whole and decimal numbers: DataFusion refuses only those that are out of range.
fn out_of_range(error: &DataFusionError) -> DataFusionError {
    let reason = error.strip_backtrace();
    refused(
        "22008",
        format!("to_timestamp: the time is out of range ({reason})"),
    )
}

/// The times at these seconds, as values of the type `answer`.
fn from_floats(seconds: &ColumnarValue, answer: &DataType) -> Result<ColumnarValue> {
    let array = seconds.to_array(1)?;
    let floats = cast(&array, &DataType::Float64)?;
    let times: TimestampNanosecondArray =
        floats
            .as_primitive::<Float64Type>()
            .try_unary::<_, TimestampNanosecondType, DataFusionError>(nanoseconds)?;
    let times = match answer {
        DataType::Timestamp(_, zone) => times.with_timezone_opt(zone.clone()),
        _ => times,
    };
    Ok(match seconds {
        ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&times, 0)?),
        ColumnarValue::Array(_) => ColumnarValue::Array(Arc::new(times)),
    })
}

/// The nanoseconds of a number of seconds. The fraction is rounded to microseconds, as PostgreSQL
/// does: doubles of this century are not exact to more.
fn nanoseconds(seconds: f64) -> Result<i64> {
    let whole = seconds.floor();
    let micros = ((seconds - whole) * 1e6).round_ties_even();
    let ns = (whole.abs() < SECONDS_MAX)
        .then(|| i128::from(whole as i64) * 1_000_000_000 + i128::from(micros as i64) * 1_000);
    let ns = ns.and_then(|ns| i64::try_from(ns).ok());
    ns.ok_or_else(|| {
        refused(
            "22008",
            format!(
                "to_timestamp: {seconds:?} seconds since 1970 are out of the range of TIMESTAMP"
            ),
        )
    })
}
