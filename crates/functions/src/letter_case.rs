//! `upper`, `lower` and `initcap`, letter by letter as in PostgreSQL: a text keeps its number of characters,
//! and no letter depends on its neighbours.

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum CaseFunction {
    Upper,
    Lower,
    InitCap,
}

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CaseUdf {
    function: CaseFunction,
    signature: Signature,
}

/// The functions.
pub(crate) fn functions() -> [ScalarUDF; 3] {
    [
        CaseFunction::Upper,
        CaseFunction::Lower,
        CaseFunction::InitCap,
    ]
    .map(|function| {
        ScalarUDF::from(CaseUdf {
            function,
            signature: Signature::string(1, Volatility::Immutable),
        })
    })
}

impl ScalarUDFImpl for CaseUdf {
    fn name(&self) -> &'static str {
        match self.function {
            CaseFunction::Upper => "upper",
            CaseFunction::Lower => "lower",
            CaseFunction::InitCap => "initcap",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(texts) = args.args.into_iter().next() else {
            return internal_err!("{} takes one argument", self.name());
        };
        let is_one = matches!(texts, ColumnarValue::Scalar(_));
        let texts = cast(&texts.into_array(1)?, &DataType::Utf8)?;
        let change: fn(&str) -> String = match self.function {
            CaseFunction::Upper => |text: &str| text.chars().map(upper).collect(),
            CaseFunction::Lower => |text: &str| text.chars().map(lower).collect(),
            CaseFunction::InitCap => initcap,
        };
        let changed = texts.as_string::<i32>().iter();
        let changed: StringArray = changed.map(|text| text.map(change)).collect();
        let changed: ArrayRef = Arc::new(changed);
        Ok(if is_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&changed, 0)?)
        } else {
            ColumnarValue::Array(changed)
        })
    }
}

/// The capital letter, if it is one letter.
fn upper(letter: char) -> char {
    let mut letters = letter.to_uppercase();
    match (letters.next(), letters.next()) {
        (Some(capital), None) => capital,
        // Greek letters with an iota below: their capitals have it beside them.
        _ => match letter {
            '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => {
                char::from_u32(letter as u32 + 8).unwrap_or(letter)
            }
            '\u{1fb3}' | '\u{1fc3}' | '\u{1ff3}' => {
                char::from_u32(letter as u32 + 9).unwrap_or(letter)
            }
            other => other,
        },
    }
}

/// The small letter, without a mark that it needs besides.
fn lower(letter: char) -> char {
    letter.to_lowercase().next().unwrap_or(letter)
}

/// Words with a capital first letter and small others.
fn initcap(text: &str) -> String {
    let mut is_within = false;
    let change = |letter: char| {
        let changed = if is_within {
            lower(letter)
        } else {
            upper(letter)
        };
        is_within = letter.is_alphanumeric();
        changed
    };
    text.chars().map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers are PostgreSQL 15's.
    #[test]
    fn letters_change_one_by_one() {
        let uppered = |text: &str| text.chars().map(upper).collect::<String>();
        let lowered = |text: &str| text.chars().map(lower).collect::<String>();
        assert_eq!(uppered("straße ŉ ﬁ ǆ ᾳ"), "STRAßE ŉ ﬁ Ǆ ᾼ");
        assert_eq!(lowered("İ ΑΣ ÄÖÜ"), "i ασ äöü");
        assert_eq!(
            initcap("hello wORLD foo-bar x_y 1st"),
            "Hello World Foo-Bar X_Y 1st"
        );
        assert_eq!(initcap("éCOLE o'neil"), "École O'Neil");
    }
}
