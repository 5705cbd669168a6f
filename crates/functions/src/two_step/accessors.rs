//! Accessors: the figures of a summary. In SQL they have short names (`average`, `rate`), some of which
//! are also those of aggregates; as functions they begin with `summary_`, and the parser of statements
//! tells them apart.

use super::candlestick::Candlestick;
use super::counter::{Changes, CounterSummary, GaugeSummary};
use super::percentiles::{self, PercentileSketch};
use super::statistics::{Moments, OneVariable, TwoVariables};
use super::summary::{GroupSummary, from_array, summary_type};
use super::time_weight::TimeWeight;
use crate::arguments::{self, TIME};
use crate::duration::parse_interval;
use arrow::array::{ArrayRef, new_empty_array};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Where the summary stands among the arguments of an accessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryPlace {
    /// It is the first argument.
    First,
    /// It is the last argument.
    Last,
}

/// An accessor as it is written: its name, whether an aggregate or another function has this name, and
/// where the summary stands.
pub const ACCESSORS: &[(&str, bool, SummaryPlace)] = {
    use SummaryPlace::{First, Last};
    &[
        ("average", false, First),
        ("average_x", false, First),
        ("average_y", false, First),
        ("sum", true, First),
        ("sum_x", false, First),
        ("sum_y", false, First),
        ("num_vals", false, First),
        ("stddev", true, First),
        ("stddev_x", false, First),
        ("stddev_y", false, First),
        ("variance", true, First),
        ("variance_x", false, First),
        ("variance_y", false, First),
        ("skewness", true, First),
        ("skewness_x", false, First),
        ("skewness_y", false, First),
        ("kurtosis", true, First),
        ("kurtosis_x", false, First),
        ("kurtosis_y", false, First),
        ("slope", false, First),
        ("intercept", false, First),
        ("x_intercept", false, First),
        ("corr", true, First),
        ("covariance", false, First),
        ("determination_coeff", false, First),
        ("integral", true, First),
        ("first_time", false, First),
        ("last_time", false, First),
        ("first_val", false, First),
        ("last_val", false, First),
        ("delta", true, First),
        ("rate", true, First),
        ("time_delta", false, First),
        ("idelta_left", false, First),
        ("idelta_right", false, First),
        ("irate_left", false, First),
        ("irate_right", false, First),
        ("num_elements", false, First),
        ("num_changes", false, First),
        ("num_resets", false, First),
        ("open", false, First),
        ("high", false, First),
        ("low", false, First),
        ("close", false, First),
        ("open_time", false, First),
        ("high_time", false, First),
        ("low_time", false, First),
        ("close_time", false, First),
        ("volume", false, First),
        ("vwap", false, First),
        ("approx_percentile", true, Last),
        ("approx_percentile_rank", false, Last),
        ("mean", true, First),
        ("error", false, First),
    ]
};

/// The name of the function of an accessor; the summary is its first argument.
pub fn accessor_function(accessor: &str) -> String {
    format!("summary_{accessor}")
}

/// The functions.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let functions = ACCESSORS.iter().map(|(accessor, _, _)| {
        ScalarUDF::from(SummaryAccessor {
            name: accessor_function(accessor),
            accessor,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    });
    functions.collect()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SummaryAccessor {
    name: String,
    accessor: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for SummaryAccessor {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let Some((summary @ DataType::Struct(_), rest)) = types.split_first() else {
            return plan_err!(
                "{} takes a summary, as in {}(stats_agg(value))",
                self.accessor,
                self.accessor
            );
        };
        let mut coerced = vec![summary.clone()];
        for argument in rest {
            let kind = arguments::plain(argument);
            coerced.push(if kind.is_string() || kind.is_null() {
                DataType::Utf8
            } else {
                arguments::number(self.accessor, argument).map(|_| DataType::Float64)?
            });
        }
        Ok(coerced)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.accessor {
            "first_time" | "last_time" | "open_time" | "high_time" | "low_time" | "close_time" => {
                TIME
            }
            "num_vals" | "num_elements" | "num_changes" | "num_resets" => DataType::Int64,
            _ => DataType::Float64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let kind = SummaryKind::of_type(arrays[0].data_type(), self.accessor)?;
        if arrays[0].is_empty() {
            return Ok(ColumnarValue::Array(new_empty_array(args.return_type())));
        }
        let figures = (0..arrays[0].len()).map(|row| {
            let figure = kind.figure(self.accessor, &arrays, row)?;
            figure.scalar(args.return_type())
        });
        let figures = ScalarValue::iter_to_array(figures.collect::<Result<Vec<_>>>()?)?;
        Ok(ColumnarValue::Array(figures))
    }
}

/// A figure.
enum Figure {
    Missing,
    Float(f64),
    Time(i64),
    Count(i64),
}

impl Figure {
    fn from_option(float: Option<f64>) -> Self {
        float.map_or(Self::Missing, Self::Float)
    }

    fn scalar(self, kind: &DataType) -> Result<ScalarValue> {
        match self {
            Self::Missing => ScalarValue::try_from(kind),
            Self::Float(float) => Ok(ScalarValue::Float64(Some(float))),
            Self::Time(ns) => Ok(ScalarValue::TimestampNanosecond(Some(ns), None)),
            Self::Count(count) => Ok(ScalarValue::Int64(Some(count))),
        }
    }
}

/// What a summary is of.
#[derive(Clone, Copy)]
enum SummaryKind {
    One,
    Two,
    Weight,
    Counter,
    Gauge,
    Candlestick,
    Sketch,
}

impl SummaryKind {
    fn of_type(kind: &DataType, accessor: &str) -> Result<Self> {
        let known = [
            (summary_type::<OneVariable>(), Self::One),
            (summary_type::<TwoVariables>(), Self::Two),
            (summary_type::<TimeWeight>(), Self::Weight),
            (summary_type::<CounterSummary>(), Self::Counter),
            (summary_type::<GaugeSummary>(), Self::Gauge),
            (summary_type::<Candlestick>(), Self::Candlestick),
            (DataType::Struct(percentiles::fields()), Self::Sketch),
        ];
        match known.into_iter().find(|(known, _)| known == kind) {
            Some((_, kind)) => Ok(kind),
            None => exec_err!("{accessor} takes a summary, not a value of another type"),
        }
    }

    /// The figure of the summary in a row.
    fn figure(self, accessor: &str, arguments: &[ArrayRef], row: usize) -> Result<Figure> {
        fn figure_of<S: GroupSummary>(
            arguments: &[ArrayRef],
            row: usize,
            figure: impl FnOnce(&S) -> Result<Option<Figure>>,
        ) -> Result<Option<Figure>> {
            match from_array::<S>(&arguments[0], row)? {
                Some(summary) => figure(&summary),
                None => Ok(Some(Figure::Missing)),
            }
        }
        let extra = ExtraArguments { arguments, row };
        let found = match self {
            Self::One => {
                figure_of::<OneVariable>(arguments, row, |one| moment(&one.0, accessor, &extra))
            }
            Self::Two => {
                figure_of::<TwoVariables>(arguments, row, |two| pair(two, accessor, &extra))
            }
            Self::Weight => {
                figure_of::<TimeWeight>(arguments, row, |weight| weighted(weight, accessor, &extra))
            }
            Self::Counter => {
                figure_of::<CounterSummary>(arguments, row, |it| Ok(changed(it, accessor)))
            }
            Self::Gauge => figure_of::<GaugeSummary>(arguments, row, |it| {
                Ok(changed(it, accessor).filter(|_| accessor != "num_resets"))
            }),
            Self::Candlestick => {
                figure_of::<Candlestick>(arguments, row, |candle| Ok(traded(candle, accessor)))
            }
            Self::Sketch => match percentiles::from_array(&arguments[0], row)? {
                Some(sketch) => estimated(&sketch, accessor, &extra),
                None => Ok(Some(Figure::Missing)),
            },
        };
        match found? {
            Some(figure) => Ok(figure),
            None => exec_err!("{accessor} is no figure of this summary"),
        }
    }
}

/// The arguments after the summary.
struct ExtraArguments<'a> {
    arguments: &'a [ArrayRef],
    row: usize,
}

impl ExtraArguments<'_> {
    fn get(&self) -> Result<Option<ScalarValue>> {
        let Some(argument) = self.arguments.get(1) else {
            return Ok(None);
        };
        let value = ScalarValue::try_from_array(argument, self.row)?;
        Ok((!value.is_null()).then_some(value))
    }

    fn float(&self, accessor: &str) -> Result<f64> {
        match self.get()? {
            Some(ScalarValue::Float64(Some(float))) => Ok(float),
            _ => exec_err!("{accessor} takes a number and a summary"),
        }
    }

    /// Whether the method is that of a population; a sample is usual.
    fn is_population(&self, accessor: &str) -> Result<bool> {
        match self.get()? {
            None => Ok(false),
            Some(ScalarValue::Utf8(Some(method))) => match method.to_ascii_lowercase().as_str() {
                "pop" | "population" => Ok(true),
                "sample" => Ok(false),
                _ => exec_err!("{accessor}: the method is 'sample' or 'population'"),
            },
            _ => exec_err!("{accessor}: the method is 'sample' or 'population'"),
        }
    }
}

fn moment(moments: &Moments, accessor: &str, extra: &ExtraArguments<'_>) -> Result<Option<Figure>> {
    let is_population = || extra.is_population(accessor);
    Ok(Some(match accessor {
        "average" | "mean" => Figure::Float(moments.mean),
        "sum" => Figure::Float(moments.mean * moments.count),
        "num_vals" => Figure::Count(moments.count as i64),
        "variance" => Figure::from_option(moments.variance(is_population()?)),
        "stddev" => {
            let variance = moments.variance(is_population()?);
            Figure::from_option(variance.map(f64::sqrt))
        }
        "skewness" => Figure::from_option(moments.skewness(is_population()?)),
        "kurtosis" => Figure::from_option(moments.kurtosis(is_population()?)),
        _ => return Ok(None),
    }))
}

fn pair(two: &TwoVariables, accessor: &str, extra: &ExtraArguments<'_>) -> Result<Option<Figure>> {
    let figure = match accessor {
        "num_vals" => Figure::Count(two.x.count as i64),
        "slope" => Figure::from_option(two.slope()),
        "intercept" => Figure::from_option(two.intercept()),
        "x_intercept" => Figure::from_option(two.x_intercept()),
        "corr" => Figure::from_option(two.correlation()),
        "determination_coeff" => {
            let correlation = two.correlation();
            Figure::from_option(correlation.map(|correlation| correlation * correlation))
        }
        "covariance" => Figure::from_option(two.covariance(extra.is_population(accessor)?)),
        other => {
            return match (other.strip_suffix("_x"), other.strip_suffix("_y")) {
                (Some(of_x), _) => moment(&two.x, of_x, extra),
                (_, Some(of_y)) => moment(&two.y, of_y, extra),
                _ => Ok(None),
            };
        }
    };
    Ok(Some(figure))
}

fn weighted(
    weight: &TimeWeight,
    accessor: &str,
    extra: &ExtraArguments<'_>,
) -> Result<Option<Figure>> {
    Ok(Some(match accessor {
        "average" => Figure::from_option(weight.average()),
        "integral" => {
            let unit_ns = match extra.get()? {
                None => Some(1_000_000_000),
                Some(ScalarValue::Utf8(Some(unit))) => unit_ns(&unit),
                Some(_) => None,
            };
            let Some(unit_ns) = unit_ns else {
                return exec_err!(
                    "integral: the unit is a length of time, as in 'hour' or '1 hour'"
                );
            };
            Figure::Float(weight.area_ns / unit_ns as f64)
        }
        "first_time" => Figure::Time(weight.first.0),
        "first_val" => Figure::Float(weight.first.1),
        "last_time" => Figure::Time(weight.last.0),
        "last_val" => Figure::Float(weight.last.1),
        _ => return Ok(None),
    }))
}

/// A unit of time by its name or as an interval, ns.
fn unit_ns(unit: &str) -> Option<i64> {
    let interval = parse_interval(unit).or_else(|_| parse_interval(&format!("1 {unit}")));
    interval.ok()?.fixed_ns().filter(|ns| *ns > 0)
}

fn changed<const IS_COUNTER: bool>(
    changes: &Changes<IS_COUNTER>,
    accessor: &str,
) -> Option<Figure> {
    Some(match accessor {
        "delta" => Figure::Float(changes.delta()),
        "rate" => Figure::from_option(changes.rate()),
        "time_delta" => Figure::Float(changes.time_delta()),
        "idelta_left" => Figure::Float(changes.edge_delta(true)),
        "idelta_right" => Figure::Float(changes.edge_delta(false)),
        "irate_left" => Figure::from_option(changes.edge_rate(true)),
        "irate_right" => Figure::from_option(changes.edge_rate(false)),
        "num_elements" => Figure::Count(changes.count),
        "num_changes" => Figure::Count(changes.change_count),
        "num_resets" => Figure::Count(changes.resets),
        "first_time" => Figure::Time(changes.first.0),
        "first_val" => Figure::Float(changes.first.1),
        "last_time" => Figure::Time(changes.last.0),
        "last_val" => Figure::Float(changes.last.1),
        _ => return None,
    })
}

fn traded(candle: &Candlestick, accessor: &str) -> Option<Figure> {
    Some(match accessor {
        "open" => Figure::Float(candle.open.1),
        "high" => Figure::Float(candle.high.1),
        "low" => Figure::Float(candle.low.1),
        "close" => Figure::Float(candle.close.1),
        "open_time" => Figure::Time(candle.open.0),
        "high_time" => Figure::Time(candle.high.0),
        "low_time" => Figure::Time(candle.low.0),
        "close_time" => Figure::Time(candle.close.0),
        "volume" => Figure::Float(candle.volume),
        "vwap" => Figure::from_option(candle.vwap()),
        _ => return None,
    })
}

fn estimated(
    sketch: &PercentileSketch,
    accessor: &str,
    extra: &ExtraArguments<'_>,
) -> Result<Option<Figure>> {
    Ok(Some(match accessor {
        "approx_percentile" => {
            let fraction = extra.float(accessor)?;
            if !(0.0..=1.0).contains(&fraction) {
                return exec_err!("approx_percentile: a percentile is from 0 to 1, not {fraction}");
            }
            Figure::from_option(sketch.percentile(fraction))
        }
        "approx_percentile_rank" => Figure::from_option(sketch.rank(extra.float(accessor)?)),
        "num_vals" => Figure::Count(sketch.count()),
        "mean" | "average" => Figure::from_option(sketch.mean()),
        "error" => Figure::Float(sketch.error()),
        _ => return Ok(None),
    }))
}
