//! Functions of numbers whose answers PostgreSQL and DataFusion disagree on: `to_hex` of a negative
//! INT has eight digits, and `sign` of NaN is 0.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Float64Array, StringArray};
use arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use std::fmt::LowerHex;
use std::sync::Arc;

/// The functions.
pub(super) fn functions() -> [ScalarUDF; 2] {
    let numbers = [DataType::Int32, DataType::Int64, DataType::UInt64];
    let of_numbers = numbers.map(|kind| TypeSignature::Exact(vec![kind]));
    let to_hex = NumberForm {
        function: NumberFunction::ToHex,
        signature: Signature::one_of(of_numbers.into(), Volatility::Immutable),
    };
    let sign = NumberForm {
        function: NumberFunction::Sign,
        signature: Signature::exact(vec![DataType::Float64], Volatility::Immutable),
    };
    [ScalarUDF::from(to_hex), ScalarUDF::from(sign)]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NumberFunction {
    ToHex,
    Sign,
}

/// A function of one number.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NumberForm {
    function: NumberFunction,
    signature: Signature,
}

impl ScalarUDFImpl for NumberForm {
    fn name(&self) -> &'static str {
        match self.function {
            NumberFunction::ToHex => "to_hex",
            NumberFunction::Sign => "sign",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.function {
            NumberFunction::ToHex => DataType::Utf8,
            NumberFunction::Sign => DataType::Float64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(number) = args.args.into_iter().next() else {
            return internal_err!("{} takes one argument", self.name());
        };
        let is_one = matches!(number, ColumnarValue::Scalar(_));
        let numbers = number.into_array(1)?;
        let answers = match self.function {
            NumberFunction::ToHex => hexadecimal(&numbers)?,
            NumberFunction::Sign => sign_of(&numbers)?,
        };
        Ok(if is_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&answers, 0)?)
        } else {
            ColumnarValue::Array(answers)
        })
    }
}

fn hexadecimal(numbers: &ArrayRef) -> Result<ArrayRef> {
    fn texts<T: ArrowPrimitiveType<Native: LowerHex>>(numbers: &ArrayRef) -> ArrayRef {
        let numbers = numbers.as_primitive::<T>().iter();
        let texts: StringArray = numbers.map(|n| n.map(|n| format!("{n:x}"))).collect();
        Arc::new(texts)
    }
    match numbers.data_type() {
        DataType::Int32 => Ok(texts::<Int32Type>(numbers)),
        DataType::Int64 => Ok(texts::<Int64Type>(numbers)),
        DataType::UInt64 => Ok(texts::<UInt64Type>(numbers)),
        other => internal_err!("to_hex of {other}"),
    }
}

fn sign_of(numbers: &ArrayRef) -> Result<ArrayRef> {
    let Some(numbers) = numbers.as_primitive_opt::<Float64Type>() else {
        return internal_err!("sign of {}", numbers.data_type());
    };
    let sign = |number: f64| f64::from(i8::from(number > 0.0) - i8::from(number < 0.0));
    let signs: Float64Array = numbers.iter().map(|n| n.map(sign)).collect();
    Ok(Arc::new(signs))
}
