//! Expressions as those of DataFusion, with TDengine's types.

pub(crate) mod comparison;
pub(crate) mod json_tag;
pub(crate) mod scalar_function;

use crate::expression::comparison::{balanced, compared, listed};
use crate::expression::scalar_function::kinds::{as_number, common_kind, to_kind};
use crate::expression::scalar_function::{called, is_scalar, row_function};
use crate::moments::{duration, fixed_ns, moment};
use crate::relation::{Relation, RelationColumn, find_column};
use crate::run::{TaosRun, fault, fault_about, unsupported};
use crate::taos_value::{Val, arrow_type};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::conditional_expressions::CaseBuilder;
use datafusion::logical_expr::{Expr, Operator, binary_expr, not, when};
use marigram_sql::SqlResult;
use marigram_tdengine::ast::{TaosExpr, TaosLiteral, TaosOperator};
use marigram_tdengine::{TaosCode, TaosType, TimeSetting};
use std::sync::Arc;

/// An expression with its type.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    /// The expression, in the Arrow type that belongs to the type.
    pub(crate) expr: Expr,
    /// The type.
    pub(crate) kind: TaosType,
}

/// An expression that a stage below has computed.
#[derive(Clone, Debug)]
pub(crate) struct ComputedExpr {
    /// What it is in the statement.
    pub(crate) taos: TaosExpr,
    /// Where it is in the plan.
    pub(crate) typed: Typed,
}

/// What names mean.
pub(crate) struct Scope<'a> {
    pub(crate) run: &'a TaosRun<'a>,
    columns: &'a [RelationColumn],
    known: &'a [ComputedExpr],
    pub(crate) setting: &'a TimeSetting,
}

/// A constant.
pub(crate) fn constant(value: &Val, kind: TaosType) -> Typed {
    Typed {
        expr: Expr::Literal(value.scalar(kind), None),
        kind,
    }
}

/// A text as a constant.
pub(crate) fn text_constant(text: &str) -> Typed {
    let length = u32::try_from(text.len())
        .unwrap_or(u32::MAX)
        .clamp(1, 65_517);
    constant(&Val::of_text(text), TaosType::VarChar(length))
}

impl<'a> Scope<'a> {
    /// The columns of a relation.
    pub(crate) fn for_relation(
        run: &'a TaosRun<'a>,
        relation: &'a Relation,
        setting: &'a TimeSetting,
    ) -> Self {
        Self::with(run, &relation.columns, &[], setting)
    }

    /// Columns, and expressions that are already computed.
    pub(crate) fn with(
        run: &'a TaosRun<'a>,
        columns: &'a [RelationColumn],
        known: &'a [ComputedExpr],
        setting: &'a TimeSetting,
    ) -> Self {
        Self {
            run,
            columns,
            known,
            setting,
        }
    }

    /// Whether an expression is the time by which rows are ordered.
    pub(crate) fn is_time(&self, expr: &TaosExpr) -> bool {
        let TaosExpr::Column { table, name } = expr else {
            return false;
        };
        find_column(self.columns, table.as_deref(), name)
            .is_ok_and(|column| column.role == crate::relation::RelationColumnRole::Time)
    }

    /// A condition: null counts as false.
    pub(crate) fn condition(&self, expr: &TaosExpr) -> SqlResult<Expr> {
        let typed = self.typed(expr)?;
        Ok(match arrow_type(typed.kind) {
            DataType::Boolean => typed.expr,
            _ => to_kind(typed, TaosType::Bool),
        })
    }

    /// An expression as a float.
    pub(crate) fn number(&self, expr: &TaosExpr) -> SqlResult<Expr> {
        let typed = self.typed(expr)?;
        Ok(as_number(typed))
    }

    /// An expression and its type.
    pub(crate) fn typed(&self, expr: &TaosExpr) -> SqlResult<Typed> {
        if let Some(known) = self.known.iter().find(|known| known.taos == *expr) {
            return Ok(known.typed.clone());
        }
        match expr {
            TaosExpr::Literal(literal) => self.literal(literal),
            TaosExpr::Column { table, name } => {
                let column = find_column(self.columns, table.as_deref(), name)?;
                Ok(Typed {
                    expr: column.expr.clone(),
                    kind: column.kind,
                })
            }
            TaosExpr::Star(_) => Err(fault_about(TaosCode::SyntaxError, "*")),
            TaosExpr::Call(call) => {
                if !is_scalar(&call.name) {
                    return Err(unknown_call(&call.name));
                }
                called(self, call)
            }
            TaosExpr::Negative(inner) => {
                let value = self.number(inner)?;
                Ok(Typed {
                    expr: Expr::Negative(Box::new(value)),
                    kind: TaosType::Double,
                })
            }
            TaosExpr::Not(inner) => Ok(truth(not(self.condition(inner)?))),
            TaosExpr::Binary {
                operator,
                left,
                right,
            } => self.binary(*operator, left, right),
            TaosExpr::All(list) => self.chain(list, true),
            TaosExpr::Any(list) => self.chain(list, false),
            TaosExpr::Between {
                value,
                bounds,
                negated,
            } => {
                let low = compared(self, TaosOperator::GreaterEqual, value, &bounds.0)?;
                let high = compared(self, TaosOperator::LessEqual, value, &bounds.1)?;
                let both = low.and(high);
                Ok(truth(if *negated { not(both) } else { both }))
            }
            TaosExpr::In {
                value,
                list,
                negated,
            } => Ok(truth(listed(self, value, list, *negated)?)),
            TaosExpr::IsNull { value, negated } => {
                let value = self.typed(value)?.expr;
                Ok(truth(if *negated {
                    value.is_not_null()
                } else {
                    value.is_null()
                }))
            }
            TaosExpr::Case {
                operand,
                branches,
                otherwise,
            } => self.case(operand.as_deref(), branches, otherwise.as_deref()),
            TaosExpr::Cast { value, kind } => self.cast(value, *kind),
        }
    }

    fn literal(&self, literal: &TaosLiteral) -> SqlResult<Typed> {
        Ok(match literal {
            TaosLiteral::Null => constant(&Val::Null, TaosType::Null),
            TaosLiteral::Bool(value) => constant(&Val::Bool(*value), TaosType::Bool),
            TaosLiteral::Integer(value) => match i64::try_from(*value) {
                Ok(number) => constant(&Val::Int(number), TaosType::BigInt),
                Err(_) => match u64::try_from(*value) {
                    Ok(number) => constant(&Val::UInt(number), TaosType::UBigInt),
                    Err(_) => return Err(fault(TaosCode::ValueOutOfRange)),
                },
            },
            TaosLiteral::Float(value) => constant(&Val::Float(*value), TaosType::Double),
            TaosLiteral::Text(text) => text_constant(text),
            TaosLiteral::Duration(duration) => {
                let ns = fixed_ns(*duration)?;
                constant(
                    &Val::Int(self.setting.precision.ticks(ns)),
                    TaosType::BigInt,
                )
            }
            TaosLiteral::Time(_) | TaosLiteral::Now | TaosLiteral::Today => {
                let expr = TaosExpr::Literal(literal.clone());
                let at = moment(&expr, self.setting)?;
                constant(&at.map_or(Val::Null, Val::Time), TaosType::Timestamp)
            }
        })
    }

    fn chain(&self, list: &[TaosExpr], all: bool) -> SqlResult<Typed> {
        let mut parts = Vec::with_capacity(list.len());
        for part in list {
            parts.push(self.condition(part)?);
        }
        let operator = if all { Operator::And } else { Operator::Or };
        balanced(parts, operator)
            .map(truth)
            .ok_or_else(|| fault(TaosCode::SyntaxError))
    }

    fn binary(
        &self,
        operator: TaosOperator,
        left: &TaosExpr,
        right: &TaosExpr,
    ) -> SqlResult<Typed> {
        let arithmetic = match operator {
            TaosOperator::Add => Operator::Plus,
            TaosOperator::Subtract => Operator::Minus,
            TaosOperator::Multiply => Operator::Multiply,
            TaosOperator::Divide => Operator::Divide,
            TaosOperator::Remainder => Operator::Modulo,
            TaosOperator::BitAnd => return self.bits(Operator::BitwiseAnd, left, right),
            TaosOperator::BitOr => return self.bits(Operator::BitwiseOr, left, right),
            TaosOperator::JsonValue => {
                return json_tag::json_value(self, left, right);
            }
            TaosOperator::JsonContains => {
                return json_tag::json_contains(self, left, right);
            }
            _ => return Ok(truth(compared(self, operator, left, right)?)),
        };
        let is_sum = matches!(arithmetic, Operator::Plus | Operator::Minus);
        if is_sum && let Some(time) = self.time_sum(arithmetic, left, right)? {
            return Ok(time);
        }
        let (a, b) = (self.number(left)?, self.number(right)?);
        let expr = match arithmetic {
            Operator::Divide | Operator::Modulo => {
                let zero = Expr::Literal(ScalarValue::Float64(Some(0.0)), None);
                let none = Expr::Literal(ScalarValue::Float64(None), None);
                let divided = binary_expr(a, arithmetic, b.clone());
                when(b.eq(zero), none).otherwise(divided)?
            }
            _ => binary_expr(a, arithmetic, b),
        };
        Ok(Typed {
            expr,
            kind: TaosType::Double,
        })
    }

    /// A sum with a time: time and duration, or the ticks between two times.
    fn time_sum(
        &self,
        operator: Operator,
        left: &TaosExpr,
        right: &TaosExpr,
    ) -> SqlResult<Option<Typed>> {
        let is_moment = |expr: &TaosExpr| {
            matches!(
                expr,
                TaosExpr::Literal(TaosLiteral::Now | TaosLiteral::Today | TaosLiteral::Time(_))
            )
        };
        if duration(left).is_some() && duration(right).is_some() {
            return Ok(None);
        }
        if (is_moment(left) && duration(right).is_some())
            || (is_moment(right) && duration(left).is_some())
        {
            let whole = TaosExpr::Binary {
                operator: if operator == Operator::Plus {
                    TaosOperator::Add
                } else {
                    TaosOperator::Subtract
                },
                left: Box::new(left.clone()),
                right: Box::new(right.clone()),
            };
            let at = moment(&whole, self.setting)?;
            return Ok(at.map(|at| constant(&Val::Time(at), TaosType::Timestamp)));
        }
        let (a, b) = (self.typed(left)?, self.typed(right)?);
        let times = (a.kind == TaosType::Timestamp, b.kind == TaosType::Timestamp);
        let minus = operator == Operator::Minus;
        let tick = self.setting.precision.tick_ns();
        let sign = if minus { -1 } else { 1 };
        let key = format!("{tick}{sign}");
        let kind = match times {
            (false, false) => return Ok(None),
            (true, true) => TaosType::BigInt,
            _ => TaosType::Timestamp,
        };
        let sum = Arc::new(move |values: &[Val]| {
            let scaled = |value: &Val| {
                let number = value.integer()?;
                match value {
                    Val::Time(_) => Some(number),
                    _ => number.checked_mul(tick),
                }
            };
            let added = scaled(&values[0]).zip(scaled(&values[1]));
            let ns = added.and_then(|(a, b)| a.checked_add(b.checked_mul(sign)?));
            match (ns, kind) {
                (None, _) => Val::Null,
                (Some(ns), TaosType::Timestamp) => Val::Time(ns),
                (Some(ns), _) => Val::Int(ns.div_euclid(tick)),
            }
        });
        Ok(Some(row_function(
            "taos_time_sum",
            vec![a, b],
            kind,
            key,
            sum,
        )))
    }

    fn bits(&self, operator: Operator, left: &TaosExpr, right: &TaosExpr) -> SqlResult<Typed> {
        let kind = TaosType::BigInt;
        let a = to_kind(self.typed(left)?, kind);
        let b = to_kind(self.typed(right)?, kind);
        Ok(Typed {
            expr: binary_expr(a, operator, b),
            kind,
        })
    }

    fn case(
        &self,
        operand: Option<&TaosExpr>,
        branches: &[(TaosExpr, TaosExpr)],
        otherwise: Option<&TaosExpr>,
    ) -> SqlResult<Typed> {
        let mut results = Vec::new();
        for result in branches.iter().map(|(_, then)| then).chain(otherwise) {
            results.push(self.typed(result)?);
        }
        let kind = common_kind(results.iter().map(|result| result.kind));
        let mut case: Option<CaseBuilder> = None;
        for ((condition, _), result) in branches.iter().zip(&results) {
            let condition = match operand {
                Some(operand) => compared(self, TaosOperator::Equal, operand, condition)?,
                None => self.condition(condition)?,
            };
            let value = to_kind(result.clone(), kind);
            case = Some(match case {
                None => when(condition, value),
                Some(mut open) => open.when(condition, value),
            });
        }
        let mut case = case.ok_or_else(|| fault(TaosCode::SyntaxError))?;
        let last = match otherwise.and_then(|_| results.last()) {
            Some(last) => to_kind(last.clone(), kind),
            None => Expr::Literal(Val::Null.scalar(kind), None),
        };
        Ok(Typed {
            expr: case.otherwise(last)?,
            kind,
        })
    }

    fn cast(&self, value: &TaosExpr, kind: TaosType) -> SqlResult<Typed> {
        if kind == TaosType::Json || matches!(kind, TaosType::Geometry(_)) {
            return Err(unsupported("CAST to this type"));
        }
        let setting = self.setting.clone();
        let typed = self.typed(value)?;
        let key = format!("{kind}{:?}", setting.precision);
        let convert = Arc::new(move |values: &[Val]| {
            crate::conversion::cast_value(&values[0], kind, &setting)
        });
        Ok(row_function("taos_cast", vec![typed], kind, key, convert))
    }
}

/// A condition.
pub(crate) fn truth(expr: Expr) -> Typed {
    Typed {
        expr,
        kind: TaosType::Bool,
    }
}

/// Why a call is none here.
fn unknown_call(name: &str) -> marigram_sql::SqlError {
    if crate::call_class::is_known(name) {
        return fault_about(TaosCode::IllegalAggregate, name);
    }
    fault_about(TaosCode::InvalidFunction, name)
}
