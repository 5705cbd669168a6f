//! `overlaps(from, to, other_from, other_to)`, which is `(from, to) OVERLAPS (other_from, other_to)`.
//!
//! The ends of a period may come in either order, and one may be NULL: then the other is its begin.
//! A period includes its begin and not its end, unless both are the same.

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Overlaps {
    signature: Signature,
}

/// The function.
pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::from(Overlaps {
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

impl ScalarUDFImpl for Overlaps {
    fn name(&self) -> &'static str {
        "overlaps"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if types.len() != 4 {
            return plan_err!("overlaps takes the ends of two periods");
        }
        let is_clock = |kind: &DataType| matches!(kind, DataType::Time32(_) | DataType::Time64(_));
        let to = if types.iter().any(is_clock) {
            DataType::Time64(TimeUnit::Nanosecond)
        } else {
            DataType::Timestamp(TimeUnit::Nanosecond, None)
        };
        for kind in types {
            let is_end = is_clock(kind)
                || kind.is_string()
                || matches!(
                    kind,
                    DataType::Null
                        | DataType::Date32
                        | DataType::Date64
                        | DataType::Timestamp(_, _)
                );
            if !is_end {
                return plan_err!("overlaps takes times, and no {kind}");
            }
        }
        Ok(vec![to; 4])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ends = |at: usize| -> Result<ArrayRef> {
            let ends = args.args[at].to_array(args.number_rows)?;
            Ok(cast(&ends, &DataType::Int64)?)
        };
        let ends = [ends(0)?, ends(1)?, ends(2)?, ends(3)?];
        let [from, to, other_from, other_to] =
            ends.each_ref().map(AsArray::as_primitive::<Int64Type>);
        let one = from.iter().zip(to).map(|(from, to)| Period::new(from, to));
        let others = other_from.iter().zip(other_to);
        let others = others.map(|(from, to)| Period::new(from, to));
        let answers: BooleanArray = one
            .zip(others)
            .map(|(one, other)| one?.overlaps(other?))
            .collect();
        Ok(ColumnarValue::Array(Arc::new(answers)))
    }
}

/// A period that begins at a time; its end may be unknown.
#[derive(Clone, Copy)]
struct Period {
    from: i64,
    to: Option<i64>,
}

impl Period {
    fn new(one: Option<i64>, other: Option<i64>) -> Option<Self> {
        Some(match (one, other) {
            (Some(one), Some(other)) => Self {
                from: one.min(other),
                to: Some(one.max(other)),
            },
            (one, other) => Self {
                from: one.or(other)?,
                to: None,
            },
        })
    }

    /// Whether two periods overlap; `None` if an unknown end decides.
    fn overlaps(self, other: Self) -> Option<bool> {
        if self.from == other.from {
            return (self.to.is_some() && other.to.is_some()).then_some(true);
        }
        let (first, second) = if self.from < other.from {
            (self, other)
        } else {
            (other, self)
        };
        if second.from < first.to? {
            return Some(true);
        }
        second.to.map(|_| false)
    }
}
