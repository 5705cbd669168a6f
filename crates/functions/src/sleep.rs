//! `pg_sleep(seconds)`, for each row. A cancelled statement does not wait to the end.

use crate::interrupt;
use crate::refusal::refused;
use arrow::array::{AsArray, StringArray};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use std::time::Duration;

/// How long a statement sleeps before it looks whether it was cancelled.
const STEP: Duration = Duration::from_millis(10);
/// The longest sleep, seconds: a year.
const SECONDS_MAX: f64 = 366.0 * 86_400.0;

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Sleep {
    signature: Signature,
}

/// The function.
pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::from(Sleep {
        signature: Signature::exact(vec![DataType::Float64], Volatility::Volatile),
    })
}

impl ScalarUDFImpl for Sleep {
    fn name(&self) -> &'static str {
        "pg_sleep"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// PostgreSQL's type of no value is shown as an empty text.
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(seconds) = args.args.into_iter().next() else {
            return internal_err!("pg_sleep takes one argument");
        };
        let seconds = seconds.into_array(args.number_rows)?;
        let seconds = seconds.as_primitive::<Float64Type>();
        let mut out = Vec::with_capacity(seconds.len());
        for seconds in seconds {
            out.push(match seconds {
                Some(seconds) => {
                    sleep(seconds)?;
                    Some("")
                }
                None => None,
            });
        }
        Ok(ColumnarValue::Array(Arc::new(StringArray::from(out))))
    }
}

/// Sleeps in short steps.
fn sleep(seconds: f64) -> Result<()> {
    if seconds.is_nan() || seconds > SECONDS_MAX {
        return Err(refused("22003", "pg_sleep sleeps at most a year"));
    }
    let mut left = Duration::from_secs_f64(seconds.max(0.0));
    loop {
        interrupt::check()?;
        let step = left.min(STEP);
        if step.is_zero() {
            return Ok(());
        }
        std::thread::sleep(step);
        left -= step;
    }
}
