//! `date_part(unit, value)`, which is also `EXTRACT(unit FROM value)`. The parts of intervals and of
//! differences of times are PostgreSQL's; for times the function is DataFusion's.
//!
//! DataFusion counts the whole seconds of an interval twice, returns totals of hours and minutes for a
//! difference, and drops the fraction of its seconds.

use crate::refusal::refused;
use arrow::array::{ArrayRef, AsArray, Float64Array, Int32Array, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, DurationNanosecondType, Field, FieldRef, Int32Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::functions::datetime;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use std::sync::Arc;

const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_NS: i64 = 60 * SECOND_NS;
const HOUR_NS: i64 = 60 * MINUTE_NS;
const DAY_NS: i64 = 24 * HOUR_NS;
/// The length of a year and of a month in `epoch`, seconds.
const YEAR_S: f64 = 365.25 * 86_400.0;
const MONTH_S: f64 = 30.0 * 86_400.0;

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DatePart {
    other: Arc<ScalarUDF>,
}

/// The function.
pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::from(DatePart {
        other: datetime::date_part(),
    })
}

impl ScalarUDFImpl for DatePart {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn aliases(&self) -> &[String] {
        self.other.aliases()
    }

    fn signature(&self) -> &Signature {
        self.other.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.other.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let unit = args.scalar_arguments.first().copied().flatten();
        if unit
            .and_then(text_of)
            .is_some_and(|unit| years_of(unit).is_some())
        {
            return Ok(Arc::new(Field::new(self.name(), DataType::Int32, true)));
        }
        self.other.return_field_from_args(args)
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        if let Some(Expr::Literal(unit, _)) = args.first()
            && text_of(unit).is_some_and(|unit| years_of(unit).is_some())
        {
            return Ok(PreimageResult::None);
        }
        self.other.preimage(args, literal, info)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(unit), value] = &args.args[..] else {
            return self.other.invoke_with_args(args);
        };
        let is_span = matches!(
            value.data_type(),
            DataType::Interval(_) | DataType::Duration(_)
        );
        let (true, Some(Some(unit))) = (is_span, unit.try_as_str()) else {
            return match text_of(unit).and_then(years_of) {
                Some(years) => self.period_of_years(args, years),
                None => self.other.invoke_with_args(args),
            };
        };
        let is_one = matches!(value, ColumnarValue::Scalar(_));
        let values = value.to_array(if is_one { 1 } else { args.number_rows })?;
        let parts = parts(&unit.to_lowercase(), &values, args.return_type())?;
        Ok(if is_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&parts, 0)?)
        } else {
            ColumnarValue::Array(parts)
        })
    }
}

fn text_of(value: &ScalarValue) -> Option<&str> {
    value.try_as_str().flatten()
}

/// The years of a decade, a century or a millennium.
fn years_of(unit: &str) -> Option<i32> {
    Some(match unit.to_lowercase().as_str() {
        "decade" | "decades" | "dec" | "decs" => 10,
        "century" | "centuries" | "cent" | "c" => 100,
        "millennium" | "millennia" | "mil" | "mils" => 1000,
        _ => return None,
    })
}

impl DatePart {
    /// The number of a time's decade, century or millennium. Decades begin with a year that they
    /// divide, the others one year later.
    fn period_of_years(&self, mut args: ScalarFunctionArgs, years: i32) -> Result<ColumnarValue> {
        args.args[0] = ColumnarValue::Scalar(ScalarValue::from("year"));
        let found = self
            .other
            .invoke_with_args(args)?
            .cast_to(&DataType::Int32, None)?;
        let number = |year: i32| match years {
            10 => year.div_euclid(10),
            _ => (year + years - 1).div_euclid(years),
        };
        let is_one = matches!(found, ColumnarValue::Scalar(_));
        let found = found.into_array(1)?;
        let numbers: ArrayRef = Arc::new(
            found
                .as_primitive::<Int32Type>()
                .unary::<_, Int32Type>(number),
        );
        Ok(if is_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&numbers, 0)?)
        } else {
            ColumnarValue::Array(numbers)
        })
    }
}

/// The parts of intervals or differences.
fn parts(unit: &str, values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let spans: Vec<Option<IntervalMonthDayNano>> = match values.data_type() {
        DataType::Duration(_) => {
            let values = cast(values, &DataType::Duration(TimeUnit::Nanosecond))?;
            let values = values.as_primitive::<DurationNanosecondType>();
            values
                .iter()
                .map(|value| value.map(of_difference))
                .collect()
        }
        _ => {
            let values = cast(values, &DataType::Interval(IntervalUnit::MonthDayNano))?;
            values
                .as_primitive::<IntervalMonthDayNanoType>()
                .iter()
                .collect()
        }
    };
    Ok(match to {
        DataType::Float64 => {
            let seconds = spans.iter().map(|span| span.map(seconds_in));
            Arc::new(seconds.collect::<Float64Array>())
        }
        DataType::Int64 | DataType::Int32 => {
            let parts = spans.iter().map(|span| span.map(|span| part(unit, span)));
            let parts = parts.map(Option::transpose);
            let parts = parts.collect::<Result<Int64Array>>()?;
            match to {
                DataType::Int64 => Arc::new(parts),
                // Only counts of years, which an interval has in 32 bits, come near the limit.
                _ => {
                    let parts = parts.iter().map(|part| part.map(|part| part as i32));
                    Arc::new(parts.collect::<Int32Array>())
                }
            }
        }
        other => return internal_err!("a part of an interval is no {other}"),
    })
}

/// A difference of times as PostgreSQL has it: days of 24 hours, and the rest.
pub(crate) fn of_difference(ns: i64) -> IntervalMonthDayNano {
    // A difference of 64 bits has at most 106,752 days.
    IntervalMonthDayNano::new(0, (ns / DAY_NS) as i32, ns % DAY_NS)
}

fn seconds_in(span: IntervalMonthDayNano) -> f64 {
    let (years, months) = (span.months / 12, span.months % 12);
    let days = f64::from(years) * YEAR_S + f64::from(months) * MONTH_S;
    let whole = i64::from(span.days) * 86_400 + span.nanoseconds / SECOND_NS;
    days + whole as f64 + (span.nanoseconds % SECOND_NS) as f64 / SECOND_NS as f64
}

fn part(unit: &str, span: IntervalMonthDayNano) -> Result<i64> {
    let IntervalMonthDayNano {
        months,
        days,
        nanoseconds: ns,
    } = span;
    if let Some(years) = years_of(unit) {
        return Ok(i64::from(months / 12 / years));
    }
    Ok(match unit {
        "year" | "years" | "yr" | "yrs" | "y" => i64::from(months / 12),
        "quarter" | "qtr" => i64::from(months % 12 / 3 + 1),
        "month" | "months" | "mon" | "mons" => i64::from(months % 12),
        "week" | "weeks" | "w" => i64::from(days / 7),
        "day" | "days" | "d" => i64::from(days),
        "hour" | "hours" | "hr" | "hrs" | "h" => ns / HOUR_NS,
        "minute" | "minutes" | "min" | "mins" | "m" => ns % HOUR_NS / MINUTE_NS,
        "second" | "seconds" | "sec" | "secs" | "s" => ns % MINUTE_NS / SECOND_NS,
        "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" => ns % MINUTE_NS / 1_000_000,
        "microsecond" | "microseconds" | "usec" | "usecs" | "us" => ns % MINUTE_NS / 1_000,
        "nanosecond" | "nanoseconds" | "nsec" | "nsecs" | "ns" => ns % MINUTE_NS,
        unit => {
            let message = format!("unit \"{unit}\" not supported for type interval");
            return Err(refused("0A000", message));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_postgresql() {
        let span = IntervalMonthDayNano::new(26, 3, 29 * HOUR_NS + 30 * MINUTE_NS + 15_750_000_000);
        let of = |unit| part(unit, span).unwrap();
        let all = [
            ("year", 2),
            ("quarter", 1),
            ("month", 2),
            ("day", 3),
            ("hour", 29),
            ("minute", 30),
            ("second", 15),
            ("nanosecond", 15_750_000_000),
        ];
        for (unit, expected) in all {
            assert_eq!(of(unit), expected, "{unit}");
        }
        assert!(part("dow", span).is_err());
        let difference = of_difference(DAY_NS + 5 * HOUR_NS + 750_000_000);
        assert_eq!(part("day", difference).unwrap(), 1);
        assert_eq!(part("hour", difference).unwrap(), 5);
        let seconds = seconds_in(difference);
        assert!((seconds - 104_400.75).abs() < 1e-9, "{seconds}");
    }
}
