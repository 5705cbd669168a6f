//! The texts of expressions, which are the names of columns.

use super::ast::{TreeCall, TreeExpr, TreeLiteral};
use crate::mapping::java_double;
use std::fmt::{self, Write};

impl fmt::Display for TreeLiteral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Integer(value) | Self::Time(value) => write!(f, "{value}"),
            Self::Float(value) => f.write_str(&java_double(*value)),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Bytes(bytes) => {
                f.write_str("X'")?;
                for byte in bytes {
                    write!(f, "{byte:02x}")?;
                }
                f.write_char('\'')
            }
        }
    }
}

impl fmt::Display for TreeCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        let is_cast = self.name.eq_ignore_ascii_case("cast");
        let mut separator = "";
        for argument in &self.arguments {
            write!(f, "{separator}{argument}")?;
            separator = ", ";
        }
        for (name, value) in &self.attributes {
            if is_cast {
                write!(f, " AS {}", value.to_uppercase())?;
            } else {
                write!(f, "{separator}\"{name}\"=\"{value}\"")?;
            }
            separator = ", ";
        }
        f.write_char(')')
    }
}

/// How closely the parts of an expression are bound; operands with less stand in parentheses.
fn rank(expr: &TreeExpr) -> u8 {
    use super::ast::TreeArithmetic::{Minus, Plus};
    match expr {
        TreeExpr::Or(_) => 1,
        TreeExpr::And(_) => 2,
        TreeExpr::Not(_) => 3,
        TreeExpr::Compare(..)
        | TreeExpr::Between(..)
        | TreeExpr::In(..)
        | TreeExpr::IsNull(_)
        | TreeExpr::Like(..)
        | TreeExpr::Regexp(..) => 4,
        TreeExpr::Arithmetic(_, Plus | Minus, _) => 5,
        TreeExpr::Arithmetic(..) => 6,
        TreeExpr::Negate(_) => 7,
        TreeExpr::Time | TreeExpr::Path(_) | TreeExpr::Literal(_) | TreeExpr::Call(_) => 8,
    }
}

/// Writes an operand, in parentheses unless it is bound at least as closely as `least`.
fn operand(expr: &TreeExpr, least: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if rank(expr) < least {
        return write!(f, "({expr})");
    }
    write!(f, "{expr}")
}

fn joined(parts: &[TreeExpr], word: &str, least: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (place, part) in parts.iter().enumerate() {
        if place > 0 {
            write!(f, " {word} ")?;
        }
        operand(part, least, f)?;
    }
    Ok(())
}

impl fmt::Display for TreeExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time => f.write_str("Time"),
            Self::Path(path) => write!(f, "{path}"),
            Self::Literal(value) => write!(f, "{value}"),
            Self::Negate(inner) => {
                f.write_char('-')?;
                operand(inner, 7, f)
            }
            Self::Not(inner) => {
                f.write_char('!')?;
                operand(inner, 7, f)
            }
            Self::Arithmetic(left, operator, right) => {
                let own = rank(self);
                operand(left, own, f)?;
                write!(f, " {} ", operator.sign())?;
                operand(right, own + 1, f)
            }
            Self::And(parts) => joined(parts, "&", 3, f),
            Self::Or(parts) => joined(parts, "|", 2, f),
            Self::Compare(left, comparison, right) => {
                operand(left, 5, f)?;
                write!(f, " {} ", comparison.sign())?;
                operand(right, 5, f)
            }
            Self::Between(inner, low, high) => {
                operand(inner, 5, f)?;
                f.write_str(" BETWEEN ")?;
                operand(low, 5, f)?;
                f.write_str(" AND ")?;
                operand(high, 5, f)
            }
            Self::In(inner, values) => {
                operand(inner, 5, f)?;
                f.write_str(" IN (")?;
                for (place, value) in values.iter().enumerate() {
                    let separator = if place > 0 { "," } else { "" };
                    write!(f, "{separator}{value}")?;
                }
                f.write_char(')')
            }
            Self::IsNull(inner) => {
                operand(inner, 5, f)?;
                f.write_str(" IS NULL")
            }
            Self::Like(inner, pattern) => {
                operand(inner, 5, f)?;
                write!(f, " LIKE '{pattern}'")
            }
            Self::Regexp(inner, pattern) => {
                operand(inner, 5, f)?;
                write!(f, " REGEXP '{pattern}'")
            }
            Self::Call(call) => write!(f, "{call}"),
        }
    }
}
