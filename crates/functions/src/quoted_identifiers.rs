//! `quote_ident(name)`: a name as SQL must write it to mean the same.

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The key words of PostgreSQL 15 that no unquoted name may be everywhere:
/// `SELECT word FROM pg_get_keywords() WHERE catcode <> 'U' ORDER BY word`.
const KEYWORDS: &str = "
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit
    boolean both case cast char character check coalesce collate collation column concurrently
    constraint create cross current_catalog current_date current_role current_schema current_time
    current_timestamp current_user dec decimal default deferrable desc distinct do else end except
    exists extract false fetch float for foreign freeze from full grant greatest group grouping
    having ilike in initially inner inout int integer intersect interval into is isnull join
    lateral leading least left like limit localtime localtimestamp national natural nchar none
    normalize not notnull null nullif numeric offset on only or order out outer overlaps overlay
    placing position precision primary real references returning right row select session_user
    setof similar smallint some substring symmetric table tablesample then time timestamp to
    trailing treat trim true union unique user using values varchar variadic verbose when where
    window with xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse
    xmlpi xmlroot xmlserialize xmltable
";

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct QuoteIdent {
    signature: Signature,
}

/// The function.
pub(crate) fn function() -> ScalarUDF {
    ScalarUDF::from(QuoteIdent {
        signature: Signature::string(1, Volatility::Immutable),
    })
}

impl ScalarUDFImpl for QuoteIdent {
    fn name(&self) -> &'static str {
        "quote_ident"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(names) = args.args.into_iter().next() else {
            return internal_err!("quote_ident takes one argument");
        };
        let is_scalar = matches!(names, ColumnarValue::Scalar(_));
        let names = cast(&names.into_array(1)?, &DataType::Utf8)?;
        let names = names.as_string::<i32>().iter();
        let quoted: StringArray = names.map(|name| name.map(quoted)).collect();
        let quoted: ArrayRef = Arc::new(quoted);
        Ok(if is_scalar {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&quoted, 0)?)
        } else {
            ColumnarValue::Array(quoted)
        })
    }
}

/// A name, in quotes unless it means the same without them.
fn quoted(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let bytes = name.as_bytes();
    let is_name = bytes.iter().copied().all(is_plain)
        && bytes.first().is_some_and(|first| !first.is_ascii_digit());
    if is_name && !KEYWORDS.split_whitespace().any(|word| word == name) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_are_quoted_as_postgresql_quotes_them() {
        for (name, expected) in [
            ("foo_1", "foo_1"),
            ("_x", "_x"),
            ("Foo", "\"Foo\""),
            ("1a", "\"1a\""),
            ("foo$", "\"foo$\""),
            ("é", "\"é\""),
            ("", "\"\""),
            ("a\"b", "\"a\"\"b\""),
            ("\"x\"", "\"\"\"x\"\"\""),
            ("select", "\"select\""),
            ("order", "\"order\""),
            ("between", "\"between\""),
            ("abort", "abort"),
        ] {
            assert_eq!(quoted(name), expected);
        }
    }
}
