//! Functions of the values of one row.
//!
//! They compute value by value: what DataFusion has under the same name differs from TDengine in types,
//! rounding and errors. Comparisons and arithmetic, which conditions consist of, are DataFusion's own.

pub(crate) mod kinds;
pub(crate) mod math_functions;
pub(crate) mod text_functions;
pub(crate) mod time_functions;

use crate::expression::scalar_function::kinds::{common_kind, to_kind};
use crate::expression::scalar_function::math_functions::{math, same_type};
use crate::expression::{Scope, Typed, constant, text_constant};
use crate::run::{fault_about, unsupported};
use crate::taos_value::{TEXT_LENGTH, Val, ValColumn, array_of, arrow_type};

use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use marigram_sql::SqlResult;
use marigram_tdengine::ast::TaosCall;
use marigram_tdengine::{TaosCode, TaosType};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Computes the value of a row from those of the arguments.
pub(crate) type RowFunction = Arc<dyn Fn(&[Val]) -> Val + Send + Sync>;

/// A function over rows as DataFusion calls it. Two are the same if their names and keys are.
struct RowUdf {
    name: String,
    /// What the function captures, as text.
    key: String,
    kind: TaosType,
    signature: Signature,
    function: RowFunction,
}

impl fmt::Debug for RowUdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.name, self.key)
    }
}

impl PartialEq for RowUdf {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.key == other.key && self.kind == other.kind
    }
}

impl Eq for RowUdf {}

impl Hash for RowUdf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.key.hash(state);
        self.kind.hash(state);
    }
}

impl ScalarUDFImpl for RowUdf {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(arrow_type(self.kind))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = args
            .args
            .iter()
            .all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_one { 1 } else { args.number_rows };
        let mut columns = Vec::with_capacity(args.args.len());
        for arg in &args.args {
            columns.push(ValColumn::new(&arg.to_array(rows)?)?);
        }
        let mut values = Vec::with_capacity(rows);
        let mut row_values = Vec::with_capacity(columns.len());
        for row in 0..rows {
            row_values.clear();
            row_values.extend(columns.iter().map(|column| column.get(row)));
            values.push((self.function)(&row_values));
        }
        let array = array_of(&values, self.kind);
        Ok(if is_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)
        } else {
            ColumnarValue::Array(array)
        })
    }
}

/// A call of a function over rows.
pub(crate) fn row_function(
    name: &str,
    arguments: Vec<Typed>,
    kind: TaosType,
    key: String,
    function: RowFunction,
) -> Typed {
    let types: Vec<String> = arguments
        .iter()
        .map(|typed| typed.kind.to_string())
        .collect();
    let signature = if arguments.is_empty() {
        Signature::nullary(Volatility::Immutable)
    } else {
        Signature::any(arguments.len(), Volatility::Immutable)
    };
    let udf = ScalarUDF::from(RowUdf {
        // Expressions with the same name must be the same.
        name: format!("{name}[{key}]"),
        key: types.join(","),
        kind,
        signature,
        function,
    });
    let arguments = arguments.into_iter().map(|typed| typed.expr).collect();
    Typed {
        expr: udf.call(arguments),
        kind,
    }
}

/// What a function is.
pub(crate) struct RowFunctionSpec {
    /// How many arguments it takes.
    pub(crate) arity: (usize, usize),
    /// The type of its values.
    pub(crate) kind: TaosType,
    /// What it computes.
    pub(crate) function: RowFunction,
}

/// Functions without arguments, and those whose type depends on their arguments.
const OTHERS: [&str; 24] = [
    "server_version",
    "client_version",
    "server_status",
    "database",
    "current_user",
    "user",
    "timezone",
    "pi",
    "now",
    "if",
    "ifnull",
    "nvl",
    "nvl2",
    "nullif",
    "coalesce",
    "isnull",
    "isnotnull",
    "greatest",
    "least",
    "abs",
    "ceil",
    "floor",
    "round",
    "mod",
];

/// Whether there is such a function.
pub(crate) fn is_scalar(name: &str) -> bool {
    OTHERS.contains(&name)
        || math(name).is_some()
        || text_functions::spec(name).is_some()
        || time_functions::is_known(name)
}

/// A call.
pub(crate) fn called(scope: &Scope<'_>, call: &TaosCall) -> SqlResult<Typed> {
    if let Some(server) = server_function(scope, call) {
        return Ok(server);
    }
    if time_functions::is_known(&call.name) {
        return time_functions::called(scope, call);
    }
    let mut arguments = Vec::with_capacity(call.arguments.len());
    for argument in &call.arguments {
        arguments.push(scope.typed(argument)?);
    }
    if let Some(choice) = chosen(call, &arguments)? {
        return Ok(choice);
    }
    let spec = math(&call.name)
        .or_else(|| same_type(&call.name, &arguments))
        .or_else(|| text_functions::spec(&call.name));
    let Some(spec) = spec else {
        // A function whose type is that of its argument has none that fits.
        let code = if arguments.is_empty() {
            TaosCode::ParameterCount
        } else {
            TaosCode::ParameterType
        };
        return Err(fault_about(code, &call.name));
    };
    if !(spec.arity.0..=spec.arity.1).contains(&arguments.len()) {
        return Err(fault_about(TaosCode::ParameterCount, &call.name));
    }
    if math(&call.name).is_some() {
        let is_number = |typed: &Typed| typed.kind.is_number() || typed.kind == TaosType::Null;
        if !arguments
            .iter()
            .all(|typed| is_number(typed) || typed.kind == TaosType::Bool)
        {
            return Err(fault_about(TaosCode::ParameterType, &call.name));
        }
    }
    let name = format!("taos_{}", call.name);
    Ok(row_function(
        &name,
        arguments,
        spec.kind,
        String::new(),
        spec.function,
    ))
}

/// What the server says of itself.
fn server_function(scope: &Scope<'_>, call: &TaosCall) -> Option<Typed> {
    if !call.arguments.is_empty() {
        return None;
    }
    Some(match call.name.as_str() {
        "server_version" | "client_version" => text_constant(crate::SERVER_VERSION),
        "server_status" => constant(&Val::Int(1), TaosType::Int),
        "database" => match scope.run.current_database() {
            "" => constant(&Val::Null, TaosType::VarChar(64)),
            name => text_constant(name),
        },
        "current_user" | "user" => text_constant(&scope.run.context.session().identity.user),
        "timezone" => text_constant(&time_functions::zone_text(scope)),
        "pi" => constant(&Val::Float(std::f64::consts::PI), TaosType::Double),
        _ => return None,
    })
}

/// Functions that choose one of their arguments.
fn chosen(call: &TaosCall, arguments: &[Typed]) -> SqlResult<Option<Typed>> {
    let count = arguments.len();
    let wrong = || fault_about(TaosCode::ParameterCount, &call.name);
    let (needed, function): (bool, RowFunction) = match call.name.as_str() {
        "if" => (
            count == 3,
            Arc::new(|values: &[Val]| {
                values[if values[0].truth() == Some(true) {
                    1
                } else {
                    2
                }]
                .clone()
            }),
        ),
        "nvl2" => (
            count == 3,
            Arc::new(|values: &[Val]| values[if values[0].is_null() { 2 } else { 1 }].clone()),
        ),
        "ifnull" | "nvl" | "coalesce" => (
            count >= 1,
            Arc::new(|values: &[Val]| {
                let mut values = values.iter();
                values
                    .find(|value| !value.is_null())
                    .cloned()
                    .unwrap_or(Val::Null)
            }),
        ),
        "nullif" => (
            count == 2,
            Arc::new(|values: &[Val]| {
                if values[0].order(&values[1]).is_eq() {
                    Val::Null
                } else {
                    values[0].clone()
                }
            }),
        ),
        "greatest" | "least" => {
            let greatest = call.name == "greatest";
            (
                count >= 1,
                Arc::new(move |values: &[Val]| {
                    if values.iter().any(Val::is_null) {
                        return Val::Null;
                    }
                    let values = values.iter();
                    let found = if greatest {
                        values.max_by(|a, b| a.order(b))
                    } else {
                        values.min_by(|a, b| a.order(b))
                    };
                    found.cloned().unwrap_or(Val::Null)
                }),
            )
        }
        "isnull" | "isnotnull" => {
            let [value] = arguments else {
                return Err(wrong());
            };
            let value = value.expr.clone();
            let is_null = call.name == "isnull";
            let test = if is_null {
                value.is_null()
            } else {
                value.is_not_null()
            };
            return Ok(Some(crate::expression::truth(test)));
        }
        _ => return Ok(None),
    };
    if !needed {
        return Err(wrong());
    }
    let skipped = usize::from(matches!(call.name.as_str(), "if" | "nvl2"));
    let kind = common_kind(arguments.iter().skip(skipped).map(|typed| typed.kind));
    let mut same = arguments[..skipped].to_vec();
    for typed in &arguments[skipped..] {
        let expr = to_kind(typed.clone(), kind);
        same.push(Typed { expr, kind });
    }
    let name = format!("taos_{}", call.name);
    Ok(Some(row_function(
        &name,
        same,
        kind,
        String::new(),
        function,
    )))
}

/// The type of texts whose length is unknown.
pub(crate) const SOME_TEXT: TaosType = TaosType::VarChar(TEXT_LENGTH);

/// The error for a form of a function that this server does not have.
pub(crate) fn other_form(name: &str) -> marigram_sql::SqlError {
    unsupported(&format!("this form of {name}"))
}
