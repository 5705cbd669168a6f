//! Values of formulas, and JEXL's arithmetic with them.

use super::{BinaryOperator, UnaryOperator};
use std::cmp::Ordering;

/// A value: an integer of the formula, a number of a variable, or a truth value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FormulaValue {
    /// An integer that stands in the formula, or is computed of such.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// `true` or `false`, which are 1 and 0.
    Truth(bool),
}

impl FormulaValue {
    /// The number that it is.
    pub(super) fn as_float(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Float(number) => number,
            Self::Truth(truth) => f64::from(u8::from(truth)),
        }
    }

    /// Whether a condition holds: numbers do, except 0 and NaN.
    pub(super) fn is_true(self) -> bool {
        match self {
            Self::Integer(number) => number != 0,
            Self::Float(number) => number != 0.0 && !number.is_nan(),
            Self::Truth(truth) => truth,
        }
    }

    /// The integer that it is; `None` for floats.
    fn as_integer(self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(number),
            Self::Truth(truth) => Some(i64::from(truth)),
            Self::Float(_) => None,
        }
    }

    pub(super) fn unary(self, operator: UnaryOperator) -> Self {
        match operator {
            UnaryOperator::Not => Self::Truth(!self.is_true()),
            UnaryOperator::Negate => match self.as_integer().and_then(i64::checked_neg) {
                Some(number) => Self::Integer(number),
                None => Self::Float(-self.as_float()),
            },
        }
    }

    pub(super) fn binary(self, operator: BinaryOperator, right: Self) -> Self {
        match operator {
            BinaryOperator::And => Self::Truth(self.is_true() && right.is_true()),
            BinaryOperator::Or => Self::Truth(self.is_true() || right.is_true()),
            BinaryOperator::Equal => Self::Truth(self.equals(right)),
            BinaryOperator::NotEqual => Self::Truth(!self.equals(right)),
            BinaryOperator::Less => Self::Truth(self.order(right).is_lt()),
            BinaryOperator::LessOrEqual => Self::Truth(self.order(right).is_le()),
            BinaryOperator::Greater => Self::Truth(self.order(right).is_gt()),
            BinaryOperator::GreaterOrEqual => Self::Truth(self.order(right).is_ge()),
            _ => self.arithmetic(operator, right),
        }
    }

    fn arithmetic(self, operator: BinaryOperator, right: Self) -> Self {
        let integers = self.as_integer().zip(right.as_integer());
        let whole = integers.and_then(|(left, right)| match operator {
            BinaryOperator::Add => left.checked_add(right),
            BinaryOperator::Subtract => left.checked_sub(right),
            BinaryOperator::Multiply => left.checked_mul(right),
            BinaryOperator::Divide => left.checked_div(right),
            // As of Java's large integers: never negative, and nothing by a negative number.
            BinaryOperator::Remainder if right > 0 => left.checked_rem_euclid(right),
            BinaryOperator::Remainder => Some(0),
            _ => None,
        });
        if let Some(number) = whole {
            return Self::Integer(number);
        }
        let (left, right) = (self.as_float(), right.as_float());
        Self::Float(match operator {
            BinaryOperator::Add => left + right,
            BinaryOperator::Subtract => left - right,
            BinaryOperator::Multiply => left * right,
            // As in JEXL, a division by zero is no error and gives zero.
            BinaryOperator::Divide | BinaryOperator::Remainder if right == 0.0 => 0.0,
            BinaryOperator::Divide => left / right,
            BinaryOperator::Remainder => left % right,
            _ => f64::NAN,
        })
    }

    fn equals(self, right: Self) -> bool {
        if matches!((self, right), (Self::Truth(_), _) | (_, Self::Truth(_))) {
            return self.is_true() == right.is_true();
        }
        self.order(right).is_eq()
    }

    /// NaN equals itself, and is less than any other number.
    fn order(self, right: Self) -> Ordering {
        if let Some((left, right)) = self.as_integer().zip(right.as_integer()) {
            return left.cmp(&right);
        }
        let (left, right) = (self.as_float(), right.as_float());
        left.partial_cmp(&right)
            .unwrap_or_else(|| right.is_nan().cmp(&left.is_nan()))
    }
}
