//! `x = ANY (array)`, `x > ALL (array)` and the like: functions, one for each operator, to which the
//! dialect rewrites them.
//!
//! The value is compared with each element. ANY is true if a comparison is true, otherwise NULL if one
//! is NULL, otherwise false; ALL is false if a comparison is false, and so on. DataFusion's functions
//! for arrays, with which it plans these operators, lose the third value, and compare with the
//! smallest or largest element only.

use crate::floats::canonical_array;
use crate::interval_arithmetic::lengths;
use crate::refusal::refused;
use crate::type_names::in_sql;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, ListArray, UInt64Array};
use arrow::compute::kernels::cmp::{eq, gt, gt_eq, lt, lt_eq, neq};
use arrow::compute::{cast, take};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use std::sync::Arc;

/// The functions by operator: the operator, the function of ANY, and that of ALL.
pub const ARRAY_COMPARISONS: [(&str, &str, &str); 6] = [
    ("=", "any_equal", "all_equal"),
    ("<>", "any_unequal", "all_unequal"),
    ("<", "any_less", "all_less"),
    ("<=", "any_less_equal", "all_less_equal"),
    (">", "any_greater", "all_greater"),
    (">=", "any_greater_equal", "all_greater_equal"),
];
/// The elements that are compared at once.
const ELEMENTS_AT_ONCE: usize = 8192;

/// See the module documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayComparison {
    operator: &'static str,
    name: &'static str,
    is_any: bool,
    signature: Signature,
}

/// The functions.
pub(crate) fn functions() -> Vec<ScalarUDF> {
    let of = |operator, name, is_any| {
        ScalarUDF::from(ArrayComparison {
            operator,
            name,
            is_any,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    };
    ARRAY_COMPARISONS
        .into_iter()
        .flat_map(|(operator, any, all)| [of(operator, any, true), of(operator, all, false)])
        .collect()
}

/// The type without its dictionary.
fn plain(kind: &DataType) -> &DataType {
    match kind {
        DataType::Dictionary(_, value) => value,
        other => other,
    }
}

/// Intervals as their lengths; other values as they are.
fn by_length(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Interval(_) => lengths(values)?,
        _ => Arc::clone(values),
    })
}

impl ArrayComparison {
    /// The answer if no comparison decides and none is NULL.
    fn otherwise(&self) -> bool {
        !self.is_any
    }

    fn compared(&self, left: &ArrayRef, right: &ArrayRef) -> Result<BooleanArray> {
        let (left, right) = (by_length(left)?, by_length(right)?);
        let (left, right) = (canonical_array(&left), canonical_array(&right));
        Ok(match self.operator {
            "=" => eq(&left, &right),
            "<>" => neq(&left, &right),
            "<" => lt(&left, &right),
            "<=" => lt_eq(&left, &right),
            ">" => gt(&left, &right),
            _ => gt_eq(&left, &right),
        }?)
    }

    /// Compares the values of rows with the elements of their arrays.
    fn answers(&self, values: &ArrayRef, lists: &ListArray) -> Result<BooleanArray> {
        let values = cast(values, &lists.value_type())?;
        let mut answers = Vec::with_capacity(lists.len());
        let mut row = 0;
        while row < lists.len() {
            let first = row;
            let mut places = Vec::new();
            while row < lists.len() && (row == first || places.len() < ELEMENTS_AT_ONCE) {
                let length = if lists.is_null(row) {
                    0
                } else {
                    lists.value_length(row) as usize
                };
                places.extend(std::iter::repeat_n(row as u64, length));
                row += 1;
            }
            let mut elements = Vec::with_capacity(row - first);
            for at in first..row {
                if lists.is_valid(at) {
                    elements.push(lists.value(at));
                }
            }
            let elements: Vec<&dyn Array> = elements.iter().map(AsRef::as_ref).collect();
            let compared = if elements.is_empty() {
                BooleanArray::from(Vec::<bool>::new())
            } else {
                let elements = arrow::compute::concat(&elements)?;
                let values = take(&values, &UInt64Array::from(places), None)?;
                self.compared(&values, &elements)?
            };
            let mut rest = compared.iter();
            for at in first..row {
                if lists.is_null(at) {
                    answers.push(None);
                    continue;
                }
                let (mut is_decided, mut is_unknown) = (false, false);
                for one in rest.by_ref().take(lists.value_length(at) as usize) {
                    match one {
                        Some(one) => is_decided |= one == self.is_any,
                        None => is_unknown = true,
                    }
                }
                answers.push(match (is_decided, is_unknown) {
                    (true, _) => Some(self.is_any),
                    (false, true) => None,
                    (false, false) => Some(self.otherwise()),
                });
            }
        }
        Ok(BooleanArray::from(answers))
    }
}

impl ScalarUDFImpl for ArrayComparison {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let word = if self.is_any { "ANY" } else { "ALL" };
        let [value, array] = types else {
            return internal_err!("{} takes two arguments", self.name);
        };
        let element = match array {
            DataType::List(field)
            | DataType::LargeList(field)
            | DataType::FixedSizeList(field, _) => field.data_type(),
            DataType::Null => &DataType::Null,
            _ => {
                let message = format!("op {word} (array) requires array on right side");
                return Err(refused("42809", message));
            }
        };
        let (wanted, element) = (plain(value), plain(element));
        let common = match (wanted, element) {
            (DataType::Null, kind) | (kind, DataType::Null) => Some(kind.clone()),
            _ => comparison_coercion(wanted, element),
        };
        let is_known = common.as_ref().is_some_and(|common| !common.is_nested());
        let Some(common) = common.filter(|_| is_known) else {
            let message = format!(
                "operator does not exist: {} {} {word} ({}[])",
                in_sql(&wanted.to_string()),
                self.operator,
                in_sql(&element.to_string()),
            );
            return Err(refused("42883", message));
        };
        // A tag stays as it is, so that the index of series can answer the comparison.
        let value = match value {
            DataType::Dictionary(..) if *wanted == common => value.clone(),
            _ => common.clone(),
        };
        Ok(vec![value, DataType::new_list(common, true)])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    /// Whether a value is among constants is a list, which scans understand.
    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let is_member = matches!((self.operator, self.is_any), ("=", true) | ("<>", false));
        let [value, array] = args.as_slice() else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        let elements = match array {
            Expr::Literal(array, _) if array.is_null() => {
                let null = lit(ScalarValue::Boolean(None));
                return Ok(ExprSimplifyResult::Simplified(null));
            }
            Expr::Literal(ScalarValue::List(list), _) if list.len() == 1 => {
                let elements = list.value(0);
                let elements =
                    (0..elements.len()).map(|at| ScalarValue::try_from_array(&elements, at));
                elements.collect::<Result<Vec<_>>>()?
            }
            _ => return Ok(ExprSimplifyResult::Original(args)),
        };
        if elements.is_empty() {
            return Ok(ExprSimplifyResult::Simplified(lit(self.otherwise())));
        }
        if !is_member {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let key = match info.get_data_type(value)? {
            // A list would compare their parts.
            DataType::Interval(_) => return Ok(ExprSimplifyResult::Original(args)),
            DataType::Dictionary(key, _) => Some(key),
            _ => None,
        };
        let literal = |element: ScalarValue| {
            lit(match &key {
                Some(key) => ScalarValue::Dictionary(key.clone(), Box::new(element)),
                None => element,
            })
        };
        Ok(ExprSimplifyResult::Simplified(Expr::InList(InList {
            expr: Box::new(value.clone()),
            list: elements.into_iter().map(literal).collect(),
            negated: !self.is_any,
        })))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = args.args.iter().all(is_one);
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [values, lists] = &arrays[..] else {
            return internal_err!("{} takes two arguments", self.name);
        };
        let answers: ArrayRef = Arc::new(self.answers(values, lists.as_list::<i32>())?);
        Ok(if all_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&answers, 0)?)
        } else {
            ColumnarValue::Array(answers)
        })
    }
}

/// The value and the array of such a call.
pub fn compared_with_array(call: &ScalarFunction) -> Option<(&Expr, &Expr)> {
    let is_ours = call
        .func
        .inner()
        .downcast_ref::<ArrayComparison>()
        .is_some();
    match call.args.as_slice() {
        [value, array] if is_ours => Some((value, array)),
        _ => None,
    }
}
