//! `to_regtype`, which clients call when they ask about types, besides PostgreSQL's catalog.

use arrow::array::{AsArray, Int32Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// Names of types, as in SQL and in PostgreSQL's catalog, and their OIDs.
const TYPES: [(&str, i32); 37] = [
    ("bool", 16),
    ("boolean", 16),
    ("bytea", 17),
    ("\"char\"", 18),
    ("name", 19),
    ("int8", 20),
    ("bigint", 20),
    ("int2", 21),
    ("smallint", 21),
    ("int4", 23),
    ("int", 23),
    ("integer", 23),
    ("regproc", 24),
    ("text", 25),
    ("oid", 26),
    ("json", 114),
    ("float4", 700),
    ("real", 700),
    ("float8", 701),
    ("double precision", 701),
    ("bpchar", 1042),
    ("character", 1042),
    ("varchar", 1043),
    ("character varying", 1043),
    ("date", 1082),
    ("time", 1083),
    ("time without time zone", 1083),
    ("timestamp", 1114),
    ("timestamp without time zone", 1114),
    ("timestamptz", 1184),
    ("timestamp with time zone", 1184),
    ("interval", 1186),
    ("numeric", 1700),
    ("decimal", 1700),
    ("regclass", 2205),
    ("regtype", 2206),
    ("uuid", 2950),
];

/// `to_regtype(name)`: the OID of a type; null if no type has that name.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ToRegtype {
    signature: Signature,
}

impl ScalarUDFImpl for ToRegtype {
    fn name(&self) -> &'static str {
        "to_regtype"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let names = args.args[0].to_array(args.number_rows)?;
        let names = cast(&names, &DataType::Utf8)?;
        let oids = names.as_string::<i32>().iter();
        let oids: Int32Array = oids.map(|name| oid_of_type(name?)).collect();
        Ok(ColumnarValue::Array(Arc::new(oids)))
    }
}

fn oid_of_type(name: &str) -> Option<i32> {
    let name = name.trim().to_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let found = TYPES.iter().find(|(known, _)| *known == name);
    found.map(|(_, oid)| *oid)
}

/// The functions.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    vec![ScalarUDF::from(ToRegtype {
        signature: Signature::string(1, Volatility::Stable),
    })]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_several_names() {
        assert_eq!(oid_of_type("int4"), Some(23));
        assert_eq!(oid_of_type(" pg_catalog.INTEGER "), Some(23));
        assert_eq!(oid_of_type("hstore"), None);
    }
}
