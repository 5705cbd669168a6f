//! `date_trunc(unit, value)`. Intervals are truncated as in PostgreSQL; for times the function is
//! DataFusion's.

use crate::refusal::refused;
use crate::value_casts::as_intervals;
use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
    TimeUnit,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions::datetime;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, TypeSignature,
};
use std::sync::Arc;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_NS: i64 = 60 * SECOND_NS;
const HOUR_NS: i64 = 60 * MINUTE_NS;

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DateTrunc {
    other: Arc<ScalarUDF>,
    signature: Signature,
}

/// The function.
pub(crate) fn function() -> ScalarUDF {
    let other = datetime::date_trunc();
    let mut forms = match &other.signature().type_signature {
        TypeSignature::OneOf(forms) => forms.clone(),
        form => vec![form.clone()],
    };
    for span in [INTERVAL, DataType::Duration(TimeUnit::Nanosecond)] {
        forms.push(TypeSignature::Exact(vec![DataType::Utf8, span]));
    }
    let signature = Signature::one_of(forms, other.signature().volatility);
    ScalarUDF::from(DateTrunc { other, signature })
}

fn is_span(kind: &DataType) -> bool {
    matches!(kind, DataType::Interval(_) | DataType::Duration(_))
}

impl ScalarUDFImpl for DateTrunc {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn aliases(&self) -> &[String] {
        self.other.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [_, span] if is_span(span) => Ok(INTERVAL),
            _ => self.other.return_type(types),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [_, span] if is_span(span.data_type()) => {
                Ok(Arc::new(Field::new(self.name(), INTERVAL, true)))
            }
            _ => self.other.return_field_from_args(args),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [units, spans] = &args.args[..] else {
            return self.other.invoke_with_args(args);
        };
        if !is_span(&spans.data_type()) {
            return self.other.invoke_with_args(args);
        }
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = is_one(units) && is_one(spans);
        let rows = if all_one { 1 } else { args.number_rows };
        let units = cast(&units.to_array(rows)?, &DataType::Utf8)?;
        let spans = as_intervals(&spans.to_array(rows)?)?;
        let spans = spans.as_primitive::<IntervalMonthDayNanoType>();
        let rows = units.as_string::<i32>().iter().zip(spans);
        let truncated = rows.map(|row| match row {
            (Some(unit), Some(span)) => truncated(&unit.to_lowercase(), span).map(Some),
            _ => Ok(None),
        });
        let truncated = truncated.collect::<Result<Vec<_>>>()?;
        let truncated: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(truncated));
        Ok(if all_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&truncated, 0)?)
        } else {
            ColumnarValue::Array(truncated)
        })
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        match inputs {
            [_, span] if is_span(&span.range.data_type()) => Ok(SortProperties::Unordered),
            _ => self.other.output_ordering(inputs),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.other.documentation()
    }
}

/// An interval without what is shorter than a unit.
fn truncated(unit: &str, span: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let IntervalMonthDayNano {
        months,
        days,
        nanoseconds: ns,
    } = span;
    let to_months = |width: i32| IntervalMonthDayNano::new(months / width * width, 0, 0);
    let to_ns = |width: i64| IntervalMonthDayNano::new(months, days, ns / width * width);
    Ok(match unit {
        "millennium" | "millennia" | "mil" | "mils" => to_months(12_000),
        "century" | "centuries" | "cent" | "c" => to_months(1200),
        "decade" | "decades" | "dec" | "decs" => to_months(120),
        "year" | "years" | "yr" | "yrs" | "y" => to_months(12),
        "quarter" | "qtr" => to_months(3),
        "month" | "months" | "mon" | "mons" => to_months(1),
        "day" | "days" | "d" => IntervalMonthDayNano::new(months, days, 0),
        "hour" | "hours" | "hr" | "hrs" | "h" => to_ns(HOUR_NS),
        "minute" | "minutes" | "min" | "mins" | "m" => to_ns(MINUTE_NS),
        "second" | "seconds" | "sec" | "secs" | "s" => to_ns(SECOND_NS),
        "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" => to_ns(1_000_000),
        "microsecond" | "microseconds" | "usec" | "usecs" | "us" => to_ns(1000),
        "week" | "weeks" | "w" => {
            let message = "unit \"week\" not supported for type interval: months usually have \
                           fractional weeks";
            return Err(refused("0A000", message));
        }
        other => {
            let message = format!("unit \"{other}\" not recognized for type interval");
            return Err(refused("22023", message));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_truncated_as_in_postgresql() {
        let span = IntervalMonthDayNano::new(1 + 12 * 123, 3, -(26 * HOUR_NS + 90 * SECOND_NS));
        for (unit, expected) in [
            ("century", IntervalMonthDayNano::new(1200, 0, 0)),
            ("decade", IntervalMonthDayNano::new(1440, 0, 0)),
            ("quarter", IntervalMonthDayNano::new(1476, 0, 0)),
            ("month", IntervalMonthDayNano::new(1477, 0, 0)),
            ("day", IntervalMonthDayNano::new(1477, 3, 0)),
            ("hour", IntervalMonthDayNano::new(1477, 3, -26 * HOUR_NS)),
        ] {
            assert_eq!(truncated(unit, span).unwrap(), expected, "{unit}");
        }
        assert!(truncated("week", span).is_err());
        assert!(truncated("fortnight", span).is_err());
    }
}
