//! PostgreSQL's functions on values: `pg_typeof`, `quote_literal`, `quote_nullable`,
//! `width_bucket`; and the function to which `ARRAY(SELECT …)` is rewritten.

use crate::refusal::refused;
use crate::type_names::in_sql;
use arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, ListArray, StringArray, make_comparator, new_empty_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{SortOptions, cast, concat};
use arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::common::cast::as_list_array;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use std::sync::Arc;

/// The function that returns an empty array instead of null.
pub const ARRAY_OR_EMPTY: &str = "array_or_empty";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ValueFunction {
    ArrayOrEmpty,
    TypeOf,
    QuoteLiteral,
    QuoteNullable,
    WidthBucket,
}

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ValueUdf {
    function: ValueFunction,
    signature: Signature,
}

/// All functions of this module.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let of = |function, arguments| {
        ScalarUDF::from(ValueUdf {
            function,
            signature: Signature::any(arguments, Volatility::Immutable),
        })
    };
    vec![
        of(ValueFunction::ArrayOrEmpty, 1),
        of(ValueFunction::TypeOf, 1),
        of(ValueFunction::QuoteLiteral, 1),
        of(ValueFunction::QuoteNullable, 1),
        ScalarUDF::from(ValueUdf {
            function: ValueFunction::WidthBucket,
            signature: Signature::one_of(
                vec![TypeSignature::Any(4), TypeSignature::Any(2)],
                Volatility::Immutable,
            ),
        }),
    ]
}

impl ScalarUDFImpl for ValueUdf {
    fn name(&self) -> &'static str {
        match self.function {
            ValueFunction::ArrayOrEmpty => ARRAY_OR_EMPTY,
            ValueFunction::TypeOf => "pg_typeof",
            ValueFunction::QuoteLiteral => "quote_literal",
            ValueFunction::QuoteNullable => "quote_nullable",
            ValueFunction::WidthBucket => "width_bucket",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match (self.function, types) {
            (ValueFunction::ArrayOrEmpty, [kind @ DataType::List(_)]) => Ok(kind.clone()),
            (ValueFunction::ArrayOrEmpty, _) => exec_err!("ARRAY takes a query of one column"),
            (ValueFunction::WidthBucket, _) => Ok(DataType::Int32),
            _ => Ok(DataType::Utf8),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = args.args.iter().all(is_one);
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let out: ArrayRef = match (self.function, &arrays[..]) {
            (ValueFunction::ArrayOrEmpty, [lists]) => array_or_empty(as_list_array(lists)?)?,
            (ValueFunction::TypeOf, [values]) => {
                let name = type_name(values.data_type());
                let names = std::iter::repeat_n(name, values.len());
                Arc::new(StringArray::from_iter_values(names))
            }
            (ValueFunction::WidthBucket, [values, bounds]) => {
                Arc::new(buckets_between(values, bounds)?)
            }
            (function, [texts]) => {
                let texts = cast(texts, &DataType::Utf8)?;
                let null = || (function == ValueFunction::QuoteNullable).then(|| "NULL".to_owned());
                let quoted = texts.as_string::<i32>().iter();
                let quoted = quoted.map(|text| text.map(quote_literal).or_else(null));
                Arc::new(quoted.collect::<StringArray>())
            }
            (_, [values, lows, highs, counts]) => {
                Arc::new(width_buckets([values, lows, highs, counts])?)
            }
            _ => return exec_err!("{} has the wrong number of arguments", self.name()),
        };
        Ok(if all_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?)
        } else {
            ColumnarValue::Array(out)
        })
    }
}

/// The lists, with empty lists instead of nulls.
fn array_or_empty(lists: &ListArray) -> Result<ArrayRef> {
    let DataType::List(element) = lists.data_type() else {
        return exec_err!("ARRAY takes a query of one column");
    };
    if lists.null_count() == 0 {
        return Ok(Arc::new(lists.clone()));
    }
    let kept: Vec<Option<ArrayRef>> = (0..lists.len())
        .map(|row| lists.is_valid(row).then(|| lists.value(row)))
        .collect();
    let lengths = kept.iter().map(|list| list.as_ref().map_or(0, Array::len));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let kept: Vec<&dyn Array> = kept.iter().flatten().map(AsRef::as_ref).collect();
    let values = if kept.is_empty() {
        new_empty_array(element.data_type())
    } else {
        concat(&kept)?
    };
    Ok(Arc::new(ListArray::try_new(
        Arc::clone(element),
        offsets,
        values,
        None,
    )?))
}

/// PostgreSQL's name of a type.
fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Dictionary(_, values) => type_name(values),
        DataType::List(element) => format!("{}[]", type_name(element.data_type())),
        DataType::Timestamp(_, None) => "timestamp without time zone".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "bytea".to_owned(),
        DataType::UInt64 => "numeric".to_owned(),
        exact if exact.is_decimal() => "numeric".to_owned(),
        other => in_sql(&other.to_string()),
    }
}

/// A text as a literal; with a leading `E` if it contains a backslash.
fn quote_literal(text: &str) -> String {
    let escape = if text.contains('\\') { "E" } else { "" };
    let text = text.replace('\\', "\\\\").replace('\'', "''");
    format!("{escape}'{text}'")
}

/// The number of bounds, in ascending order, that are at or below each row's value.
fn buckets_between(values: &ArrayRef, bounds: &ArrayRef) -> Result<Int32Array> {
    let DataType::List(element) = bounds.data_type() else {
        return Err(refused(
            "42883",
            "width_bucket takes a value and an array of bounds",
        ));
    };
    let kind = match (values.data_type(), element.data_type()) {
        (value, element) if value.is_signed_integer() && element.is_signed_integer() => {
            DataType::Int64
        }
        (value, element) if value.is_numeric() && element.is_numeric() => DataType::Float64,
        (_, element) => element.clone(),
    };
    let values = cast(values, &kind)?;
    let item = Arc::new(Field::new_list_field(kind, true));
    let bounds = cast(bounds, &DataType::List(item))?;
    let bounds = as_list_array(&bounds)?;
    let compare = make_comparator(&values, bounds.values(), SortOptions::default())?;
    let offsets = bounds.value_offsets();
    let mut buckets = Vec::with_capacity(values.len());
    for row in 0..values.len() {
        if values.is_null(row) || bounds.is_null(row) {
            buckets.push(None);
            continue;
        }
        let elements = offsets[row] as usize..offsets[row + 1] as usize;
        if elements.clone().any(|at| bounds.values().is_null(at)) {
            let message = "thresholds array must not contain NULLs";
            return Err(refused("22004", message));
        }
        let below = elements.filter(|at| compare(row, *at).is_ge()).count();
        buckets.push(Some(i32::try_from(below).unwrap_or(i32::MAX)));
    }
    Ok(Int32Array::from(buckets))
}

/// The bucket of each row's value.
fn width_buckets(arrays: [&ArrayRef; 4]) -> Result<Int32Array> {
    let floats = arrays.map(|array| cast(array, &DataType::Float64));
    let [values, lows, highs, counts] = floats;
    let (values, lows, highs, counts) = (values?, lows?, highs?, counts?);
    let number = |array: &ArrayRef, row: usize| {
        let array = array.as_primitive::<Float64Type>();
        array.is_valid(row).then(|| array.value(row))
    };
    let mut buckets = Vec::with_capacity(values.len());
    for row in 0..values.len() {
        let all = (
            number(&values, row),
            number(&lows, row),
            number(&highs, row),
            number(&counts, row),
        );
        buckets.push(match all {
            (Some(value), Some(low), Some(high), Some(count)) => {
                Some(width_bucket(value, low, high, count)?)
            }
            _ => None,
        });
    }
    Ok(Int32Array::from(buckets))
}

/// The bucket of a value among `count` buckets of equal width from `low` to `high`, counted from 1;
/// 0 below `low` and `count + 1` from `high` on.
fn width_bucket(value: f64, low: f64, high: f64, count: f64) -> Result<i32> {
    let refused = |message: &str| Err(refused("2201G", message));
    if !(1.0..2_147_483_647.0).contains(&count) {
        return refused("count must be greater than zero");
    }
    if value.is_nan() || low.is_nan() || high.is_nan() {
        return refused("operand, lower bound, and upper bound cannot be NaN");
    }
    if low == high || !low.is_finite() || !high.is_finite() {
        return refused("lower bound cannot equal upper bound, and both must be finite");
    }
    let part = if low < high {
        (value - low) / (high - low)
    } else {
        (low - value) / (low - high)
    };
    Ok(if part < 0.0 {
        0
    } else if part >= 1.0 {
        count as i32 + 1
    } else {
        (part * count) as i32 + 1
    })
}
