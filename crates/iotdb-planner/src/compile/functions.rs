//! Scalar functions.

use super::{ExprScope, TypedExpr, double, is_number, is_text};
use crate::listing::answer_type;
use crate::statement::{semantic, unsupported};
use arrow::datatypes::DataType;
use datafusion::functions::math::expr_fn as math;
use datafusion::functions::string::expr_fn as string;
use datafusion::functions::unicode::expr_fn as unicode;
use datafusion::logical_expr::{Expr, cast, lit, not, when};
use marigram_iotdb::{IotDbType, TreeCall, TreeExpr, TreeLiteral};
use marigram_sql::SqlResult;

/// A function of a number, by its name.
type NumericFunction = (&'static str, fn(Expr) -> Expr);

/// The scalar functions of numbers, whose result is a double.
const NUMERIC: &[NumericFunction] = &[
    ("acos", math::acos),
    ("asin", math::asin),
    ("atan", math::atan),
    ("ceil", math::ceil),
    ("cos", math::cos),
    ("cosh", math::cosh),
    ("degrees", math::degrees),
    ("exp", math::exp),
    ("floor", math::floor),
    ("log", math::ln),
    ("log10", math::log10),
    ("radians", math::radians),
    ("sign", math::signum),
    ("sin", math::sin),
    ("sinh", math::sinh),
    ("sqrt", math::sqrt),
    ("tan", math::tan),
    ("tanh", math::tanh),
];

/// The other scalar functions.
const OTHERS: &[&str] = &[
    "abs", "cast", "e", "length", "lower", "pi", "round", "trim", "upper",
];

/// The names of the scalar functions.
pub(crate) fn scalar_names() -> impl Iterator<Item = &'static str> {
    let numeric = NUMERIC.iter().map(|(name, _)| *name);
    numeric.chain(OTHERS.iter().copied())
}

impl ExprScope<'_> {
    /// A function.
    ///
    /// # Errors
    /// If there is no such function, or its arguments do not fit.
    pub(super) fn call(&self, call: &TreeCall, of: &TreeExpr) -> SqlResult<TypedExpr> {
        let typed = |expr: Expr, kind: IotDbType| {
            Ok(TypedExpr {
                expr,
                kind: Some(kind),
            })
        };
        let name = call.name.to_ascii_lowercase();
        let arguments = call.arguments.as_slice();
        if let Some((_, function)) = NUMERIC.iter().find(|(known, _)| *known == name)
            && let [only] = arguments
        {
            return typed(function(self.number(only, of)?), IotDbType::Double);
        }
        match (name.as_str(), arguments) {
            ("pi", []) => typed(lit(std::f64::consts::PI), IotDbType::Double),
            ("e", []) => typed(lit(std::f64::consts::E), IotDbType::Double),
            ("abs", [only]) => {
                let compiled = self.compile(only)?;
                match compiled.kind {
                    Some(kind) if is_number(kind) => typed(math::abs(compiled.expr), kind),
                    _ => typed(math::abs(self.number(only, of)?), IotDbType::Double),
                }
            }
            ("round", [only]) => {
                typed(math::round(vec![self.number(only, of)?]), IotDbType::Double)
            }
            ("round", [value, TreeExpr::Literal(TreeLiteral::Integer(places))]) => {
                let value = self.number(value, of)?;
                let places = lit(i32::try_from(*places).unwrap_or(0));
                typed(math::round(vec![value, places]), IotDbType::Double)
            }
            ("upper", [only]) => typed(string::upper(self.text(only, of)?), IotDbType::Text),
            ("lower", [only]) => typed(string::lower(self.text(only, of)?), IotDbType::Text),
            ("trim", [only]) => typed(string::btrim(vec![self.text(only, of)?]), IotDbType::Text),
            ("length", [only]) => {
                let length = unicode::character_length(self.text(only, of)?);
                typed(cast(length, DataType::Int32), IotDbType::Int32)
            }
            ("cast", [only]) => self.cast(only, call),
            _ => Err(unsupported(format!("the function {call} is not supported"))),
        }
    }

    fn cast(&self, value: &TreeExpr, call: &TreeCall) -> SqlResult<TypedExpr> {
        let wanted = call.attribute("type").and_then(IotDbType::from_name);
        let wanted =
            wanted.ok_or_else(|| semantic(format!("{call}: there is no such data type")))?;
        let compiled = self.compile(value)?;
        let Some(kind) = compiled.kind else {
            return Ok(compiled);
        };
        let value = compiled.expr;
        let whole = matches!(wanted, IotDbType::Int32 | IotDbType::Int64);
        let is_float = matches!(kind, IotDbType::Float | IotDbType::Double);
        let expr = match (kind, wanted) {
            (kind, wanted) if kind == wanted => value,
            (kind, IotDbType::Boolean) if is_number(kind) => double(value).not_eq(lit(0.0)),
            (IotDbType::Boolean, wanted) if is_number(wanted) => {
                let number = when(value.clone(), lit(1)).when(not(value), lit(0)).end()?;
                cast(number, answer_type(wanted))
            }
            (_, _) if whole && is_float => {
                cast(math::floor(double(value) + lit(0.5)), answer_type(wanted))
            }
            (kind, wanted) if is_plain_cast(kind, wanted) => cast(value, answer_type(wanted)),
            _ => {
                return Err(semantic(format!(
                    "{call}: {kind} cannot be cast to {wanted}"
                )));
            }
        };
        Ok(TypedExpr {
            expr,
            kind: Some(wanted),
        })
    }
}

/// Whether a cast of Arrow gives what IoTDB gives.
fn is_plain_cast(from: IotDbType, to: IotDbType) -> bool {
    let is_plain = |kind| is_number(kind) || is_text(kind);
    let with_boolean = |a, b| is_text(a) && b == IotDbType::Boolean;
    (is_plain(from) && is_plain(to)) || with_boolean(from, to) || with_boolean(to, from)
}
