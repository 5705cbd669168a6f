//! `generate_series(start, stop, step)` with the types that PostgreSQL gives its arguments: a text takes
//! the type of the others, a date is a time, and the step of times is an interval.
//!
//! DataFusion's function makes the values.

use crate::arguments::TIME;
use crate::refusal::refused;
use crate::zoned::zoned_type;
use arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::Result;
use datafusion::functions_nested::range::gen_series_udf;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct GenerateSeries {
    other: Arc<ScalarUDF>,
    signature: Signature,
}

/// The function.
pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::from(GenerateSeries {
        other: gen_series_udf(),
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

impl ScalarUDFImpl for GenerateSeries {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let ([start, stop] | [start, stop, _]) = types else {
            return Err(refused(
                "42883",
                "generate_series takes a start, a stop and, for times, a step",
            ));
        };
        let ends = [start, stop];
        let is_date = |kind: &DataType| matches!(kind, DataType::Date32 | DataType::Date64);
        let is_zoned = |kind: &DataType| matches!(kind, DataType::Timestamp(_, Some(_)));
        let is_time = |kind: &DataType| matches!(kind, DataType::Timestamp(..)) || is_date(kind);
        let is_text = |kind: &DataType| kind.is_string() || kind.is_null();
        let all = |is_one: &dyn Fn(&DataType) -> bool| {
            ends.iter().all(|kind| is_one(kind) || is_text(kind))
        };
        let step = types.get(2);
        if ends.into_iter().any(is_time) && all(&is_time) {
            let is_interval =
                step.is_some_and(|kind| matches!(kind, DataType::Interval(_)) || is_text(kind));
            if !is_interval {
                return Err(refused(
                    "42883",
                    "generate_series of times takes an interval as its third argument",
                ));
            }
            // PostgreSQL has no series of dates, and prefers times with a zone to those without.
            let is_plain = ends
                .iter()
                .any(|kind| matches!(kind, DataType::Timestamp(_, None)));
            let kind = if ends.into_iter().any(is_zoned) || !is_plain {
                zoned_type()
            } else {
                TIME
            };
            let interval = DataType::Interval(IntervalUnit::MonthDayNano);
            return Ok(vec![kind.clone(), kind, interval]);
        }
        let is_number = |kind: &DataType| kind.is_integer();
        if all(&is_number) && step.is_none_or(|kind| is_number(kind) || is_text(kind)) {
            return Ok(vec![DataType::Int64; types.len()]);
        }
        Err(refused(
            "42883",
            "generate_series takes whole numbers, or times and an interval",
        ))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.other.return_type(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.other.invoke_with_args(args)
    }
}
