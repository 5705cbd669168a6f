//! Casts of text to times, in all forms that PostgreSQL reads.
//!
//! DataFusion only reads ISO 8601 with seconds. So a function of ours performs each cast of text to
//! a time or a date. A text without a zone is in the session's zone if it becomes a `timestamptz`, otherwise
//! in UTC. The ends of the range that `time_bucket_gapfill` fills have the type of its times.

use crate::error::SqlError;
use crate::planning::zones::SessionZone;
use arrow::array::{
    Array, ArrayRef, AsArray, Date32Array, ListArray, StringArray, TimestampNanosecondArray,
};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::Parser;
use arrow::datatypes::{DataType, Date32Type, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TryCast, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use marigram_functions::marker_functions::{BUCKET, ENDS};
use marigram_functions::replace_in_expressions;
use marigram_functions::zoned::{UTC, relabelled};
use marigram_pgtext::{ReferenceClock, TimeText, TimeTextError, session_zone};
use std::sync::Arc;

/// See the module documentation. The rule runs after DataFusion's type coercion, which adds such
/// casts.
#[derive(Debug)]
pub(crate) struct TimeTexts;

impl AnalyzerRule for TimeTexts {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let zone = SessionZone::name(config);
        let read = |expr: Expr, schema: &DFSchema| read(expr, schema, zone);
        let plan = replace_in_expressions(plan, is_gap_filling, with_ends)?;
        replace_in_expressions(plan, |expr| cast_to_time(expr).is_some(), read)
    }

    fn name(&self) -> &'static str {
        "time_texts"
    }
}

fn is_gap_filling(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.name() == BUCKET)
}

/// Casts the ends of the range that a call fills, if its times are moments and an end names no zone: it is a
/// wall time of the session, and the other rules read it as one.
fn with_ends(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::ScalarFunction(mut call) = expr else {
        return Transformed::no(expr);
    };
    let time = call.args.get(1).and_then(|time| time.get_type(schema).ok());
    let zoned = match time {
        Some(zoned @ DataType::Timestamp(_, Some(_))) if call.name() == BUCKET => zoned,
        _ => return Transformed::no(Expr::ScalarFunction(call)),
    };
    let mut is_cast = false;
    for argument in call.args.iter_mut().skip(2) {
        let Some(end) = end_of_range(argument) else {
            continue;
        };
        let names_no_zone = end.get_type(schema).is_ok_and(|kind| {
            kind.is_string() || matches!(kind, DataType::Timestamp(_, None) | DataType::Date32)
        });
        if names_no_zone {
            let value = std::mem::replace(end, Expr::Literal(ScalarValue::Null, None));
            *end = Expr::Cast(Cast::new(Box::new(value), zoned.clone()));
            is_cast = true;
        }
    }
    Transformed::new_transformed(Expr::ScalarFunction(call), is_cast)
}

/// The value of an argument that is an end of the range: the dialect makes a structure of it.
fn end_of_range(argument: &mut Expr) -> Option<&mut Expr> {
    match argument {
        Expr::Alias(alias) => end_of_range(&mut alias.expr),
        Expr::ScalarFunction(call) if call.name() == "named_struct" => {
            let [Expr::Literal(name, _), value] = call.args.as_mut_slice() else {
                return None;
            };
            let name = name.try_as_str().flatten()?;
            ENDS.contains(&name).then_some(value)
        }
        _ => None,
    }
}

/// What is cast to a time.
fn cast_to_time(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            time_type(field.data_type()).is_some().then_some(expr)
        }
        _ => None,
    }
}

/// The type of the times that a type consists of: itself, or that of its elements.
fn time_type(kind: &DataType) -> Option<&DataType> {
    match kind {
        DataType::Timestamp(..) | DataType::Date32 => Some(kind),
        DataType::List(element) => match element.data_type() {
            time @ (DataType::Timestamp(..) | DataType::Date32) => Some(time),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an expression is a cast of text, or of an array of texts, to times.
fn reads_time(expr: &Expr, schema: &DFSchema) -> bool {
    let is_text = |kind: DataType| match kind {
        DataType::Dictionary(_, value) => value.is_string(),
        DataType::List(element) => element.data_type().is_string(),
        other => other.is_string(),
    };
    cast_to_time(expr).is_some_and(|value| value.get_type(schema).is_ok_and(is_text))
}

fn read(expr: Expr, schema: &DFSchema, zone: &str) -> Transformed<Expr> {
    if !reads_time(&expr, schema) {
        return Transformed::no(expr);
    }
    let (value, kind, gives_null) = match expr {
        Expr::Cast(Cast { expr, field }) => (expr, field, false),
        Expr::TryCast(TryCast { expr, field }) => (expr, field, true),
        other => return Transformed::no(other),
    };
    let function = ReadTime {
        signature: Signature::any(1, Volatility::Immutable),
        zone: match time_type(kind.data_type()) {
            Some(DataType::Timestamp(_, Some(_))) => zone.to_owned(),
            _ => UTC.to_owned(),
        },
        kind,
        gives_null,
    };
    let function = Arc::new(ScalarUDF::from(function));
    let call = ScalarFunction::new_udf(function, vec![*value]);
    Transformed::yes(Expr::ScalarFunction(call))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ReadTime {
    signature: Signature,
    kind: FieldRef,
    /// The zone of texts that name none.
    zone: String,
    /// Whether a text that is not a time becomes NULL.
    gives_null: bool,
}

/// The error for a text that is no time.
pub(super) fn error_of(error: &TimeTextError) -> DataFusionError {
    let sqlstate = match error {
        TimeTextError::Form(_) | TimeTextError::Moment(_) => "22007",
        TimeTextError::Range(..) => "22008",
        TimeTextError::Zone(_) => "22023",
    };
    let error = SqlError::invalid(sqlstate, error.to_string());
    DataFusionError::External(Box::new(error))
}

/// A text as a time, ns since 1970.
fn time_ns(text: &str, clock: &ReferenceClock) -> Result<i64, TimeTextError> {
    TimeText::parse(text, clock)?.utc_ns(clock)
}

/// A text as a date, in days since 1970: that of its clocks, whatever their zone.
fn date_days(text: &str, clock: &ReferenceClock) -> Result<i32, TimeTextError> {
    const DAY_NS: i64 = 86_400_000_000_000;
    let local_ns = TimeText::parse(text, clock).and_then(|time| time.local_ns());
    local_ns.map_or_else(
        |error| {
            // A plain date may lie outside the range of times.
            let plain = text.trim();
            let is_plain = plain.len() <= "2026-01-01".len() || plain.starts_with(['+', '-']);
            let days = is_plain.then(|| Date32Type::parse(plain)).flatten();
            days.ok_or(error)
        },
        |local_ns| Ok(local_ns.div_euclid(DAY_NS) as i32),
    )
}

impl ScalarUDFImpl for ReadTime {
    fn name(&self) -> &'static str {
        "read_time"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.kind.data_type().clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.into_iter().next() else {
            return internal_err!("read_time takes one argument");
        };
        let clock = ReferenceClock {
            now: None,
            zone: session_zone(&self.zone)
                .map_err(|error| error_of(&error))?
                .1,
        };
        let is_one = matches!(value, ColumnarValue::Scalar(_));
        let values = value.into_array(1)?;
        let times = match (values.data_type(), self.kind.data_type()) {
            (DataType::List(_), DataType::List(element)) => {
                let lists = values.as_list::<i32>();
                let times = self.times(lists.values(), element.data_type(), &clock)?;
                let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
                let times = ListArray::try_new(Arc::clone(element), offsets, times, nulls)?;
                Arc::new(times) as ArrayRef
            }
            (_, kind) => self.times(&values, kind, &clock)?,
        };
        Ok(if is_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&times, 0)?)
        } else {
            ColumnarValue::Array(times)
        })
    }
}

impl ReadTime {
    /// The values of texts.
    fn read<T>(
        &self,
        texts: &StringArray,
        value: impl Fn(&str) -> Result<T, TimeTextError>,
    ) -> Result<Vec<Option<T>>> {
        let mut values = Vec::with_capacity(texts.len());
        for text in texts {
            values.push(match text.map(&value) {
                None => None,
                Some(Ok(value)) => Some(value),
                Some(Err(_)) if self.gives_null => None,
                Some(Err(error)) => return Err(error_of(&error)),
            });
        }
        Ok(values)
    }

    /// Texts as times of a type.
    fn times(&self, texts: &ArrayRef, kind: &DataType, clock: &ReferenceClock) -> Result<ArrayRef> {
        let texts = cast(texts, &DataType::Utf8)?;
        let texts = texts.as_string::<i32>();
        if *kind == DataType::Date32 {
            let days = self.read(texts, |text| date_days(text, clock))?;
            return Ok(Arc::new(Date32Array::from(days)));
        }
        let times = self.read(texts, |text| time_ns(text, clock))?;
        let times: ArrayRef = Arc::new(TimestampNanosecondArray::from(times).with_timezone(UTC));
        // The same moment, in the type's unit and zone.
        match kind {
            DataType::Timestamp(unit, _) => {
                let in_unit = cast(&times, &DataType::Timestamp(*unit, Some(UTC.into())))?;
                Ok(relabelled(&in_unit, kind)?)
            }
            other => internal_err!("read_time gives times, not {other}"),
        }
    }
}
