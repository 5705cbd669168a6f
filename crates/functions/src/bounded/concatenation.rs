//! `||` of texts as a function, so that it is bounded as functions are: a text that is doubled
//! thirty times takes a gigabyte. A chain of operators becomes one call, which has the depth of one
//! call and writes each text once.

use arrow::array::{Array, ArrayRef, GenericStringBuilder, OffsetSizeTrait, cast::AsArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The name of the function in plans.
pub(crate) const NAME: &str = "text_concatenation";

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Concatenation {
    signature: Signature,
}

impl Concatenation {
    /// Creates the function.
    pub(crate) fn new() -> Self {
        let signature = Signature::variadic_any(Volatility::Immutable);
        Self { signature }
    }

    /// Whether the function concatenates texts of this type.
    pub(crate) fn takes(text: &DataType) -> bool {
        matches!(text, DataType::Utf8 | DataType::LargeUtf8)
    }
}

impl ScalarUDFImpl for Concatenation {
    fn name(&self) -> &str {
        NAME
    }

    /// Displays the call as the operator.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names: Vec<String> = args
            .iter()
            .map(|operand| operand.schema_name().to_string())
            .collect();
        Ok(names.join(" || "))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        match arg_types {
            [first, ..] => Ok(first.clone()),
            [] => internal_err!("|| has operands"),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = args
            .args
            .iter()
            .all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if is_one { 1 } else { args.number_rows };
        let joined = match args.return_type() {
            DataType::LargeUtf8 => joined::<i64>(&args.args, rows)?,
            _ => joined::<i32>(&args.args, rows)?,
        };
        Ok(if is_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&joined, 0)?)
        } else {
            ColumnarValue::Array(joined)
        })
    }
}

/// The texts of an operand: one for all rows, or one for each row; `None` for NULL.
enum OperandTexts<'a, O: OffsetSizeTrait> {
    One(Option<&'a str>),
    Each(&'a arrow::array::GenericStringArray<O>),
}

impl<O: OffsetSizeTrait> OperandTexts<'_, O> {
    fn get(&self, row: usize) -> Option<&str> {
        match self {
            Self::One(text) => *text,
            Self::Each(texts) => texts.is_valid(row).then(|| texts.value(row)),
        }
    }
}

fn joined<O: OffsetSizeTrait>(operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
    let mut texts = Vec::with_capacity(operands.len());
    for operand in operands {
        texts.push(match operand {
            ColumnarValue::Scalar(value) => match value.try_as_str() {
                Some(text) => OperandTexts::One(text),
                None if value.is_null() => OperandTexts::One(None),
                None => return internal_err!("|| takes texts, not {}", value.data_type()),
            },
            ColumnarValue::Array(array) => match array.as_string_opt::<O>() {
                Some(array) => OperandTexts::Each(array),
                None => return internal_err!("|| takes texts, not {}", array.data_type()),
            },
        });
    }
    let mut builder = GenericStringBuilder::<O>::new();
    let (mut text, mut bytes) = (String::new(), 0);
    for row in 0..rows {
        text.clear();
        let is_null = texts.iter().any(|texts| match texts.get(row) {
            Some(part) => {
                text.push_str(part);
                false
            }
            None => true,
        });
        if is_null {
            builder.append_null();
            continue;
        }
        bytes += text.len();
        if O::from_usize(bytes).is_none() {
            return exec_err!("the texts of {rows} rows are longer than an array can be");
        }
        builder.append_value(&text);
    }
    Ok(Arc::new(builder.finish()))
}
