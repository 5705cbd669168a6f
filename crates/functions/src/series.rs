//! `generate_series(start, stop, step)` with the types that PostgreSQL gives its arguments: a text takes
//! the type of the others, a date is a time, and the step of times is an interval.
//!
//! DataFusion's function makes the values, except for numbers with a fraction.

use crate::arguments::TIME;
use crate::interrupt;
use crate::refusal::refused;
use crate::zoned::zoned_type;
use arrow::array::{Array, ArrayRef, AsArray, Float64Builder, ListArray, ListBuilder};
use arrow::datatypes::{DataType, Field, Float64Type, IntervalUnit};
use datafusion::common::{Result, ScalarValue};
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
        let is_fraction = |kind: &DataType| kind.is_numeric();
        if all(&is_fraction) && step.is_none_or(|kind| is_fraction(kind) || is_text(kind)) {
            return Ok(vec![DataType::Float64; types.len()]);
        }
        Err(refused(
            "42883",
            "generate_series takes numbers, or times and an interval",
        ))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Float64, ..] => {
                let item = Field::new_list_field(DataType::Float64, true);
                Ok(DataType::List(Arc::new(item)))
            }
            _ => self.other.return_type(types),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if args.args[0].data_type() != DataType::Float64 {
            return self.other.invoke_with_args(args).map_err(|error| {
                if error.to_string().contains("Step cannot be zero") {
                    return refused("22023", "step size cannot equal zero");
                }
                error
            });
        }
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = args.args.iter().all(is_one);
        let rows = if all_one { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let series: ArrayRef = Arc::new(fractions(&arrays)?);
        Ok(if all_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&series, 0)?)
        } else {
            ColumnarValue::Array(series)
        })
    }
}

/// The number of the smallest steps, of numbers with a fraction, that make one.
const FRACTION_UNITS: f64 = 1e9;

/// Series of numbers with a fraction; steps of `0.1` lead to `0.3`, as in PostgreSQL.
fn fractions(arguments: &[ArrayRef]) -> Result<ListArray> {
    /// The part of a step that rounding may cost.
    const ROUNDING: f64 = 1e-9;
    let mut series = ListBuilder::new(Float64Builder::new());
    for row in 0..arguments.first().map_or(0, Array::len) {
        let number = |at: usize| {
            let numbers = arguments.get(at)?.as_primitive_opt::<Float64Type>()?;
            numbers.is_valid(row).then(|| numbers.value(row))
        };
        let step = if arguments.len() > 2 {
            number(2)
        } else {
            Some(1.0)
        };
        let (Some(start), Some(stop), Some(step)) = (number(0), number(1), step) else {
            series.append_null();
            continue;
        };
        if [start, stop, step].iter().any(|number| !number.is_finite()) {
            let message = "the bounds and the step of generate_series must be finite";
            return Err(refused("22023", message));
        }
        if step == 0.0 {
            return Err(refused("22023", "step size cannot equal zero"));
        }
        if step.abs() * FRACTION_UNITS < 1.0 {
            let message = "the step of generate_series is at least 0.000000001";
            return Err(refused("22023", message));
        }
        let steps = ((stop - start) / step + ROUNDING).floor();
        // A double has 15 decimal digits, whatever was added.
        let scale = start.abs().max(stop.abs()).max(step.abs());
        let places = (14.0 - scale.log10().floor()).clamp(0.0, 17.0) as usize;
        let mut at = 0.0;
        while at <= steps {
            interrupt::check()?;
            let exact = start + at * step;
            let rounded = format!("{exact:.places$}").parse::<f64>();
            // Zero has no sign.
            series.values().append_value(rounded.unwrap_or(exact) + 0.0);
            at += 1.0;
        }
        series.append(true);
    }
    Ok(series.finish())
}
