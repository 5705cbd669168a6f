//! Expressions over a row, made from InfluxQL's: chains of operators are lists, so that no code
//! recurses along them, and names carry their types.

use crate::schema::compile_regex;
use crate::value::{InfluxValueType, Value};
use marigram_influxql::ast::{BinaryOp, Cast, Expr, Literal, VarRef};
use marigram_sql::{SqlError, SqlResult};
use regex::Regex;
use std::fmt;
use std::sync::Arc;

/// The largest number of operands in a chain of AND: planning looks at each for each.
const AND_MAX: usize = 1024;
/// The largest number of operands in a chain of other operators.
const OPERANDS_MAX: usize = 16_384;

/// An expression. A `Column` is an index into a row; the other names are resolved to columns.
#[derive(Clone, Debug)]
pub(crate) enum Expression {
    /// A constant.
    Value(Value),
    /// An InfluxQL constant that is not a value, kept for its text.
    Literal(Literal),
    /// A regular expression.
    Regex(CompiledRegex),
    /// A field or a tag.
    Name(VarRef),
    /// The value at this place of the row, with its type if it is known.
    Column(usize, Option<InfluxValueType>),
    /// A function and its arguments.
    Call(String, Vec<Expression>),
    /// An expression in parentheses.
    Paren(Box<Expression>),
    /// The first operand, then each operator with the operand after it, from the left.
    Chain(Box<Expression>, Vec<(BinaryOp, Expression)>),
    /// `*`, or anything else without a value.
    Other(Expr),
}

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub(crate) struct CompiledRegex {
    source: Literal,
    regex: Arc<Regex>,
}

impl CompiledRegex {
    /// Whether it matches.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The compiled expression.
    pub(crate) fn regex(&self) -> &Regex {
        &self.regex
    }

    /// Its text for Rust's `regex`.
    pub(crate) fn as_str(&self) -> &str {
        self.regex.as_str()
    }
}

/// Refuses a chain of operators that is too long.
fn check_length(op: BinaryOp, operands: usize) -> SqlResult<()> {
    let most = if op == BinaryOp::And {
        AND_MAX
    } else {
        OPERANDS_MAX
    };
    if operands <= most {
        return Ok(());
    }
    let message = format!(
        "an expression has {operands} operands in a row, and at most {most} are accepted; use a \
         regular expression, or split the query"
    );
    Err(SqlError::invalid("54001", message))
}

impl Expression {
    /// The expression of a syntax tree.
    ///
    /// # Errors
    /// If a regular expression cannot be compiled, or a chain is too long.
    pub(crate) fn new(expr: &Expr) -> SqlResult<Self> {
        Ok(match expr {
            Expr::Binary(binary) => {
                // Operators of one precedence make one chain, so a list of ANDs is seen as such.
                let precedence = binary.op.precedence();
                let (first, links) = binary.chain(|op| op.precedence() == precedence);
                check_length(binary.op, links.len() + 1)?;
                let links = links.into_iter().map(|(op, rhs)| Ok((op, Self::new(rhs)?)));
                Self::Chain(
                    Box::new(Self::new(first)?),
                    links.collect::<SqlResult<_>>()?,
                )
            }
            Expr::Call(call) => {
                let args = call.args.iter().map(Self::new).collect::<SqlResult<_>>()?;
                Self::Call(call.name.clone(), args)
            }
            Expr::Literal(Literal::Regex(source)) => Self::Regex(CompiledRegex {
                regex: Arc::new(compile_regex(source)?),
                source: Literal::Regex(source.clone()),
            }),
            Expr::Literal(literal) => match Value::from(literal) {
                Value::Null => Self::Literal(literal.clone()),
                _ if matches!(literal, Literal::Duration(_)) => Self::Literal(literal.clone()),
                value => Self::Value(value),
            },
            Expr::Paren(inner) => Self::Paren(Box::new(Self::new(inner)?)),
            Expr::VarRef(var) => Self::Name(var.clone()),
            Expr::Distinct(_) | Expr::Wildcard(_) => Self::Other(expr.clone()),
        })
    }

    /// Calls `visit` for every name in the expression, which may change it.
    pub(crate) fn each_name(&mut self, visit: &mut impl FnMut(&mut VarRef)) {
        match self {
            Self::Name(var) => visit(var),
            Self::Call(_, args) => args.iter_mut().for_each(|arg| arg.each_name(visit)),
            Self::Paren(inner) => inner.each_name(visit),
            Self::Chain(first, links) => {
                first.each_name(visit);
                for (_, rhs) in links {
                    rhs.each_name(visit);
                }
            }
            _ => {}
        }
    }

    /// The names in the expression, in the order in which they are written.
    pub(crate) fn names(&self) -> Vec<VarRef> {
        let mut names = Vec::new();
        self.clone().each_name(&mut |var| names.push(var.clone()));
        names
    }

    /// The expression with those names or subexpressions replaced for which `replace` returns
    /// something.
    #[must_use]
    pub(crate) fn replaced(&self, replace: &mut impl FnMut(&Self) -> Option<Self>) -> Self {
        if let Some(other) = replace(self) {
            return other;
        }
        match self {
            Self::Call(name, args) => {
                let args = args.iter().map(|arg| arg.replaced(replace)).collect();
                Self::Call(name.clone(), args)
            }
            Self::Paren(inner) => Self::Paren(Box::new(inner.replaced(replace))),
            Self::Chain(first, links) => {
                let first = Box::new(first.replaced(replace));
                let links = links.iter().map(|(op, rhs)| (*op, rhs.replaced(replace)));
                Self::Chain(first, links.collect())
            }
            other => other.clone(),
        }
    }

    /// Whether it is a constant.
    pub(crate) const fn is_literal(&self) -> bool {
        matches!(self, Self::Value(_) | Self::Literal(_) | Self::Regex(_))
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => write!(f, "{}", literal_of(value)),
            Self::Literal(literal) => write!(f, "{literal}"),
            Self::Regex(regex) => write!(f, "{}", regex.source),
            Self::Name(var) => write!(f, "{var}"),
            Self::Column(place, _) => write!(f, "${place}"),
            Self::Call(name, args) => {
                write!(f, "{name}(")?;
                for (place, arg) in args.iter().enumerate() {
                    write!(f, "{}{arg}", if place == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
            Self::Paren(inner) => write!(f, "({inner})"),
            Self::Chain(first, links) => {
                write!(f, "{first}")?;
                for (op, rhs) in links {
                    write!(f, " {} {rhs}", op.sign())?;
                }
                Ok(())
            }
            Self::Other(expr) => write!(f, "{expr}"),
        }
    }
}

fn literal_of(value: &Value) -> Literal {
    match value {
        Value::Null => Literal::Nil,
        Value::Float(value) => Literal::Number(*value),
        Value::Integer(value) => Literal::Integer(*value),
        Value::Unsigned(value) => Literal::Unsigned(*value),
        Value::Boolean(value) => Literal::Boolean(*value),
        Value::String(text) => Literal::String(text.to_string()),
    }
}

/// The cast that says a type.
pub(crate) const fn cast_of(kind: InfluxValueType) -> Cast {
    match kind {
        InfluxValueType::Float => Cast::Float,
        InfluxValueType::Integer => Cast::Integer,
        InfluxValueType::Unsigned => Cast::Unsigned,
        InfluxValueType::String => Cast::String,
        InfluxValueType::Boolean => Cast::Boolean,
        InfluxValueType::Tag => Cast::Tag,
    }
}
