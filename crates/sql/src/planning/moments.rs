//! `read_moment(text)`: a text as a `timestamptz`, in the session's zone if it names none.
//!
//! The planner evaluates the arguments of functions in FROM before any rule of ours sees them. So the dialect
//! calls this function there instead of a cast, which would read the text in UTC.

use crate::dialect::timescale::readings::READ_MOMENT;
use crate::planning::time_texts::error_of;
use crate::planning::zones::SessionZone;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use marigram_functions::zoned::{UTC, zoned_type};
use marigram_pgtext::{ReferenceClock, TimeText, session_zone};

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ReadMoment {
    signature: Signature,
}

/// The function.
pub(crate) fn read_moment() -> ScalarUDF {
    ScalarUDF::from(ReadMoment {
        signature: Signature::string(1, Volatility::Stable),
    })
}

impl ScalarUDFImpl for ReadMoment {
    fn name(&self) -> &'static str {
        READ_MOMENT
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(zoned_type())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let text = match args.args.first() {
            Some(ColumnarValue::Scalar(text)) => text.try_as_str().flatten(),
            _ => None,
        };
        let moment = text.map(|text| {
            let zone = SessionZone::name(&args.config_options);
            moment_ns(text, zone)
        });
        Ok(ColumnarValue::Scalar(ScalarValue::TimestampNanosecond(
            moment.transpose()?,
            Some(UTC.into()),
        )))
    }
}

/// The value of a call that could not be evaluated, or why it could not; `None` for other expressions.
pub(crate) fn called_moment(expr: &Expr, zone: &str) -> Option<Result<ScalarValue>> {
    let Expr::ScalarFunction(call) = expr else {
        return None;
    };
    let [Expr::Literal(text, _)] = call.args.as_slice() else {
        return None;
    };
    let text = text
        .try_as_str()
        .flatten()
        .filter(|_| call.name() == READ_MOMENT)?;
    let moment = |ns| ScalarValue::TimestampNanosecond(Some(ns), Some(UTC.into()));
    Some(moment_ns(text, zone).map(moment))
}

/// A text as a moment, ns since 1970.
fn moment_ns(text: &str, zone: &str) -> Result<i64> {
    let read = session_zone(zone).and_then(|(_, zone)| {
        let clock = ReferenceClock { now: None, zone };
        TimeText::parse(text, &clock)?.utc_ns(&clock)
    });
    read.map_err(|error| error_of(&error))
}

#[cfg(test)]
mod tests {
    use super::moment_ns;

    #[test]
    fn a_text_without_a_zone_is_in_the_sessions() {
        let moment = |text: &str, zone: &str| moment_ns(text, zone).ok();
        let midnight = moment("2024-01-02", "UTC");
        assert!(midnight.is_some());
        assert_eq!(moment("2024-01-02 01:00", "Europe/Berlin"), midnight);
        assert_eq!(moment("2024-01-02 02:00+02", "Europe/Berlin"), midnight);
        assert_eq!(moment("nonsense", "UTC"), None);
    }
}
