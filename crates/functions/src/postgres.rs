//! Functions that PostgreSQL's clients call, with the answers that are true for Marigram.

use crate::refusal::refused;
use arrow::array::{Array, StringArray};
use arrow::datatypes::DataType;
use datafusion::common::cast::as_int64_array;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The version of PostgreSQL that Marigram reports to its clients.
pub const POSTGRES_VERSION: &str = "16.6";

/// A function with any arguments and one constant result.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ConstantFunction {
    name: &'static str,
    signature: Signature,
    answer: ScalarValue,
}

impl ConstantFunction {
    #[expect(
        clippy::new_ret_no_self,
        reason = "the wrapping function is what is registered"
    )]
    /// A function called `name`; `arguments` lists the numbers of arguments that it takes.
    pub fn new(name: &'static str, arguments: &[usize], answer: ScalarValue) -> ScalarUDF {
        use datafusion::logical_expr::TypeSignature;
        let signatures = arguments.iter().map(|count| match count {
            0 => TypeSignature::Nullary,
            count => TypeSignature::Any(*count),
        });
        let signature = Signature::one_of(signatures.collect(), Volatility::Stable);
        ScalarUDF::from(Self {
            name,
            signature,
            answer,
        })
    }
}

impl ScalarUDFImpl for ConstantFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.answer.data_type())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.answer.clone()))
    }
}

/// `pg_size_pretty(bytes)`
#[derive(Debug, PartialEq, Eq, Hash)]
struct SizePretty {
    signature: Signature,
}

impl ScalarUDFImpl for SizePretty {
    fn name(&self) -> &'static str {
        "pg_size_pretty"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = args.args[0].to_array(args.number_rows)?;
        let sizes = as_int64_array(&array)?;
        let texts: StringArray = sizes.iter().map(|size| size.map(size_pretty)).collect();
        Ok(ColumnarValue::Array(Arc::new(texts)))
    }
}

/// A size as PostgreSQL writes it: up to 10 of a unit, it uses the next smaller unit.
fn size_pretty(bytes: i64) -> String {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size.abs() >= 10_240.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{} {}", size.round() as i64, UNITS[unit])
}

/// `named_oid(kind, name, oid)`, which is `'name'::regclass` and the like: the oid, or an error that
/// says what does not exist.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NamedOid {
    signature: Signature,
}

impl ScalarUDFImpl for NamedOid {
    fn name(&self) -> &'static str {
        "named_oid"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[2].clone())
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let oids = args.args.swap_remove(2);
        let is_null = match &oids {
            ColumnarValue::Scalar(oid) => oid.is_null(),
            ColumnarValue::Array(oids) => oids.null_count() > 0,
        };
        let [ColumnarValue::Scalar(kind), ColumnarValue::Scalar(name)] = &args.args[..] else {
            return Ok(oids);
        };
        match (kind.try_as_str(), name.try_as_str()) {
            (Some(Some(kind)), Some(Some(name))) if is_null => {
                let (code, kind) = match kind {
                    "regclass" => ("42P01", "relation"),
                    "regtype" => ("42704", "type"),
                    "regproc" => ("42883", "function"),
                    _ => ("3F000", "schema"),
                };
                Err(refused(code, format!("{kind} \"{name}\" does not exist")))
            }
            _ => Ok(oids),
        }
    }
}

/// Functions that say what a user may do with objects that every user may use, and what objects of the
/// catalog are.
fn described() -> Vec<ScalarUDF> {
    const MAY: [&str; 7] = [
        "has_column_privilege",
        "has_function_privilege",
        "has_language_privilege",
        "has_parameter_privilege",
        "has_sequence_privilege",
        "has_tablespace_privilege",
        "has_type_privilege",
    ];
    let text = |text: &str| ScalarValue::Utf8(Some(text.to_owned()));
    let none = || ScalarValue::Utf8(None);
    let is_true = || ScalarValue::Boolean(Some(true));
    let may = |name| ConstantFunction::new(name, &[2, 3, 4], is_true());
    let mut functions: Vec<ScalarUDF> = MAY.into_iter().map(may).collect();
    let time = || ScalarValue::TimestampMicrosecond(None, Some("UTC".into()));
    let number = || ScalarValue::Int64(None);
    functions.extend([
        ConstantFunction::new("pg_has_role", &[2, 3], is_true()),
        ConstantFunction::new("pg_describe_object", &[3], none()),
        ConstantFunction::new("pg_client_encoding", &[0], text("UTF8")),
        ConstantFunction::new("pg_encoding_to_char", &[1], text("UTF8")),
        ConstantFunction::new("pg_get_userbyid", &[1], text("postgres")),
        ConstantFunction::new("pg_postmaster_start_time", &[0], time()),
        ConstantFunction::new("pg_conf_load_time", &[0], time()),
        ConstantFunction::new("pg_get_functiondef", &[1], none()),
        ConstantFunction::new("pg_get_statisticsobjdef", &[1], none()),
        ConstantFunction::new("pg_get_partition_constraintdef", &[1], none()),
        // The engine's sizes are those of segments, which tables share.
        ConstantFunction::new("pg_tablespace_size", &[1], number()),
        ConstantFunction::new("pg_relation_size", &[1, 2], number()),
        ConstantFunction::new("pg_total_relation_size", &[1], number()),
        ConstantFunction::new("pg_column_size", &[1], ScalarValue::Int32(None)),
        ConstantFunction::new("txid_current_if_assigned", &[0], number()),
    ]);
    functions
}

/// The functions.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let text = |text: &str| ScalarValue::Utf8(Some(text.to_owned()));
    let none = || ScalarValue::Utf8(None);
    let version = format!(
        "PostgreSQL {POSTGRES_VERSION} (Marigram {})",
        env!("CARGO_PKG_VERSION")
    );
    let mut functions = described();
    functions.extend([
        ConstantFunction::new("version", &[0], text(&version)),
        ConstantFunction::new("obj_description", &[1, 2], none()),
        ConstantFunction::new("col_description", &[2], none()),
        ConstantFunction::new("shobj_description", &[2], none()),
        ConstantFunction::new("pg_get_indexdef", &[1, 2, 3], none()),
        ConstantFunction::new("pg_get_viewdef", &[1, 2], none()),
        ConstantFunction::new("pg_get_triggerdef", &[1, 2], none()),
        ConstantFunction::new("pg_get_serial_sequence", &[2], none()),
        ConstantFunction::new("pg_tablespace_location", &[1], none()),
        ConstantFunction::new("pg_is_in_recovery", &[0], ScalarValue::Boolean(Some(false))),
        ConstantFunction::new(
            "pg_function_is_visible",
            &[1],
            ScalarValue::Boolean(Some(true)),
        ),
        ConstantFunction::new(
            "pg_collation_is_visible",
            &[1],
            ScalarValue::Boolean(Some(true)),
        ),
        // No table has constraints.
        ConstantFunction::new("pg_get_constraintdef", &[1, 2], none()),
        ConstantFunction::new("pg_type_is_visible", &[1], ScalarValue::Boolean(Some(true))),
        ConstantFunction::new("pg_my_temp_schema", &[0], ScalarValue::Int32(Some(0))),
        ConstantFunction::new(
            "pg_is_other_temp_schema",
            &[1],
            ScalarValue::Boolean(Some(false)),
        ),
        ConstantFunction::new("pg_database_size", &[1], ScalarValue::Int64(None)),
        ConstantFunction::new("pg_table_size", &[1], ScalarValue::Int64(None)),
        ConstantFunction::new("pg_indexes_size", &[1], ScalarValue::Int64(None)),
        ConstantFunction::new("pg_get_function_result", &[1], none()),
        ConstantFunction::new("pg_get_function_arguments", &[1], none()),
        ConstantFunction::new("pg_get_function_identity_arguments", &[1], none()),
        ScalarUDF::from(NamedOid {
            signature: Signature::any(3, Volatility::Stable),
        }),
        ScalarUDF::from(SizePretty {
            signature: Signature::exact(vec![DataType::Int64], Volatility::Immutable),
        }),
        ConstantFunction::new("txid_current", &[0], ScalarValue::Int64(Some(1))),
        ConstantFunction::new("pg_current_xact_id", &[0], ScalarValue::Int64(Some(1))),
        // There are no advisory locks; asyncpg's pool releases all of them before it reuses a
        // connection.
        ConstantFunction::new("pg_advisory_unlock_all", &[0], text("")),
        ConstantFunction::new("inet_server_addr", &[0], none()),
        ConstantFunction::new("inet_server_port", &[0], ScalarValue::Int32(None)),
        ConstantFunction::new("inet_client_port", &[0], ScalarValue::Int32(None)),
        ConstantFunction::new("inet_client_addr", &[0], none()),
    ]);
    functions
}
