//! Functions whose result depends on the session and its variables.

use crate::statements::session;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use marigram_functions::ConstantFunction;
use marigram_service::Session;

/// `current_setting(name)` in a session.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CurrentSetting {
    signature: Signature,
    settings: Vec<(&'static str, String)>,
}

impl ScalarUDFImpl for CurrentSetting {
    fn name(&self) -> &'static str {
        "current_setting"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(ColumnarValue::Scalar(name)) = args.args.first() else {
            return exec_err!("current_setting takes the name of a session variable");
        };
        let name = name
            .try_as_str()
            .flatten()
            .unwrap_or_default()
            .to_lowercase();
        let found = self.settings.iter().find(|(known, _)| *known == name);
        match found {
            Some((_, value)) => Ok(ColumnarValue::Scalar(ScalarValue::Utf8(Some(
                value.clone(),
            )))),
            None if args.args.len() > 1 => Ok(ColumnarValue::Scalar(ScalarValue::Utf8(None))),
            None => Err(marigram_functions::refused(
                "42704",
                format!("session variable '{name}' does not exist"),
            )),
        }
    }
}

/// `set_config(name, value, is_local)`, for variables that have no effect here.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SetConfig {
    signature: Signature,
}

impl ScalarUDFImpl for SetConfig {
    fn name(&self) -> &'static str {
        "set_config"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(ColumnarValue::Scalar(name)) = args.args.first() else {
            return exec_err!("set_config takes the name of a session variable");
        };
        let name = name.try_as_str().flatten().unwrap_or_default();
        let name = name.to_lowercase();
        if session::KEPT.contains(&name.as_str()) {
            return exec_err!("set_config does not change '{name}'; use SET");
        }
        Ok(args.args[1].clone())
    }
}

/// Functions that psql calls to describe what Marigram does not have, such as collations and operators.
pub(crate) fn describing_functions() -> Vec<ScalarUDF> {
    const VISIBLE: [&str; 9] = [
        "pg_conversion_is_visible",
        "pg_opclass_is_visible",
        "pg_operator_is_visible",
        "pg_opfamily_is_visible",
        "pg_statistics_obj_is_visible",
        "pg_ts_config_is_visible",
        "pg_ts_dict_is_visible",
        "pg_ts_parser_is_visible",
        "pg_ts_template_is_visible",
    ];
    /// PostgreSQL's number of UTF-8.
    const UTF8: i32 = 6;
    let is_visible = |name| ConstantFunction::new(name, &[1], ScalarValue::Boolean(Some(true)));
    let mut functions: Vec<ScalarUDF> = VISIBLE.into_iter().map(is_visible).collect();
    let none = || ScalarValue::Utf8(None);
    let encoding = ScalarValue::Utf8(Some("UTF8".to_owned()));
    functions.extend([
        ConstantFunction::new("getdatabaseencoding", &[0], encoding),
        ConstantFunction::new("pg_char_to_encoding", &[1], ScalarValue::Int32(Some(UTF8))),
        ConstantFunction::new("pg_get_function_sqlbody", &[1], none()),
        ConstantFunction::new("pg_get_ruledef", &[1, 2], none()),
    ]);
    functions
}

/// The functions whose result depends on the session.
pub(crate) fn session_functions(session: &Session) -> [ScalarUDF; 3] {
    use datafusion::logical_expr::TypeSignature;
    let user = ScalarValue::Utf8(Some(session.identity.user.clone()));
    let signature = Signature::one_of(
        vec![TypeSignature::Any(1), TypeSignature::Any(2)],
        Volatility::Stable,
    );
    let settings = CurrentSetting {
        signature,
        settings: session::all(session),
    };
    [
        ConstantFunction::new("session_user", &[0], user),
        ScalarUDF::from(settings),
        ScalarUDF::from(SetConfig {
            signature: Signature::exact(
                vec![DataType::Utf8, DataType::Utf8, DataType::Boolean],
                Volatility::Stable,
            ),
        }),
    ]
}
