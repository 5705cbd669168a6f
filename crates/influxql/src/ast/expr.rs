//! Expressions.

use super::literal::Literal;
use crate::quote::{QuotedIdent, write_list};
use std::fmt;
use std::mem;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// Two expressions and the operator between them.
    Binary(Box<Binary>),
    /// A function and its arguments.
    Call(Call),
    /// `DISTINCT name`, without parentheses.
    Distinct(String),
    /// A constant.
    Literal(Literal),
    /// An expression in parentheses.
    Paren(Box<Expr>),
    /// A field or a tag.
    VarRef(VarRef),
    /// `*`.
    Wildcard(Wildcard),
}

/// Two expressions and the operator between them.
pub struct Binary {
    /// The expression before the operator. Chains of operators nest here.
    pub lhs: Expr,
    /// The operator.
    pub op: BinaryOp,
    /// The expression after the operator.
    pub rhs: Expr,
}

/// An operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each operator is its sign, see `sign`")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    And,
    Or,
    Eq,
    Neq,
    EqRegex,
    NeqRegex,
    Lt,
    Lte,
    Gt,
    Gte,
}

impl BinaryOp {
    /// How tightly the operator binds, from 1 to 5. Operators with equal precedence group from the
    /// left.
    pub const fn precedence(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Eq
            | Self::Neq
            | Self::EqRegex
            | Self::NeqRegex
            | Self::Lt
            | Self::Lte
            | Self::Gt
            | Self::Gte => 3,
            Self::Add | Self::Sub | Self::BitwiseOr | Self::BitwiseXor => 4,
            Self::Mul | Self::Div | Self::Mod | Self::BitwiseAnd => 5,
        }
    }

    /// The operator as users write it.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::BitwiseAnd => "&",
            Self::BitwiseOr => "|",
            Self::BitwiseXor => "^",
            Self::And => "AND",
            Self::Or => "OR",
            Self::Eq => "=",
            Self::Neq => "!=",
            Self::EqRegex => "=~",
            Self::NeqRegex => "!~",
            Self::Lt => "<",
            Self::Lte => "<=",
            Self::Gt => ">",
            Self::Gte => ">=",
        }
    }

    /// Whether the operator's result is a boolean.
    pub const fn is_predicate(self) -> bool {
        self.precedence() <= 3
    }

    /// The equivalent comparison with exchanged sides.
    #[must_use]
    pub const fn mirrored(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::Lte => Self::Gte,
            Self::Gt => Self::Lt,
            Self::Gte => Self::Lte,
            other => other,
        }
    }
}

/// A function and its arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The function's name, in lower case.
    pub name: String,
    /// Its arguments.
    pub args: Vec<Expr>,
}

/// A field or a tag.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VarRef {
    /// Its name; segments are joined by points.
    pub name: String,
    /// `::type`, if it is written.
    pub cast: Option<Cast>,
}

/// A type after `::`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cast {
    /// A 64-bit float.
    Float,
    /// A signed 64-bit integer.
    Integer,
    /// An unsigned 64-bit integer.
    Unsigned,
    /// Text.
    String,
    /// A boolean.
    Boolean,
    /// A field of any type.
    Field,
    /// A tag.
    Tag,
}

impl Cast {
    /// The word after `::`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Integer => "integer",
            Self::Unsigned => "unsigned",
            Self::String => "string",
            Self::Boolean => "boolean",
            Self::Field => "field",
            Self::Tag => "tag",
        }
    }
}

/// `*` and its variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wildcard {
    /// `*`
    All,
    /// `*::field`
    Fields,
    /// `*::tag`
    Tags,
}

/// Where a visitor continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walk {
    /// With the parts of this expression.
    Into,
    /// With whatever follows this expression.
    Over,
}

impl Expr {
    /// A field or tag with this name, without a cast.
    pub fn var(name: impl Into<String>) -> Self {
        let name = name.into();
        Self::VarRef(VarRef { name, cast: None })
    }

    /// `lhs op rhs`.
    pub fn binary(lhs: Expr, op: BinaryOp, rhs: Expr) -> Self {
        Self::Binary(Box::new(Binary { lhs, op, rhs }))
    }

    /// The constant, if the expression is one.
    pub fn as_literal(&self) -> Option<&Literal> {
        match self {
            Self::Literal(literal) => Some(literal),
            _ => None,
        }
    }

    /// Whether the expression names the time of a row, in any case.
    pub fn is_time(&self) -> bool {
        matches!(self, Self::VarRef(var) if var.name.eq_ignore_ascii_case("time"))
    }

    /// Calls `visit` for every expression in this one: first for itself, then for its parts in the
    /// order of the text.
    pub fn walk<'a>(&'a self, mut visit: impl FnMut(&'a Expr) -> Walk) {
        let mut open = vec![self];
        while let Some(expr) = open.pop() {
            if visit(expr) == Walk::Over {
                continue;
            }
            match expr {
                Self::Binary(binary) => open.extend([&binary.rhs, &binary.lhs]),
                Self::Call(call) => open.extend(call.args.iter().rev()),
                Self::Paren(inner) => open.push(inner),
                Self::Distinct(_) | Self::Literal(_) | Self::VarRef(_) | Self::Wildcard(_) => {}
            }
        }
    }

    /// Whether `is` is true for this expression or one in it.
    pub fn any(&self, mut is: impl FnMut(&Expr) -> bool) -> bool {
        let mut found = false;
        self.walk(|expr| {
            found = found || is(expr);
            if found { Walk::Over } else { Walk::Into }
        });
        found
    }

    /// The name of the kind of expression in InfluxDB's errors.
    pub(crate) const fn kind_name(&self) -> &'static str {
        match self {
            Self::Binary(_) => "*influxql.BinaryExpr",
            Self::Call(_) => "*influxql.Call",
            Self::Distinct(_) => "*influxql.Distinct",
            Self::Paren(_) => "*influxql.ParenExpr",
            Self::VarRef(_) => "*influxql.VarRef",
            Self::Wildcard(_) => "*influxql.Wildcard",
            Self::Literal(literal) => match literal {
                Literal::Boolean(_) => "*influxql.BooleanLiteral",
                Literal::Integer(_) => "*influxql.IntegerLiteral",
                Literal::Unsigned(_) => "*influxql.UnsignedLiteral",
                Literal::Number(_) => "*influxql.NumberLiteral",
                Literal::String(_) => "*influxql.StringLiteral",
                Literal::Duration(_) => "*influxql.DurationLiteral",
                Literal::Regex(_) => "*influxql.RegexLiteral",
                Literal::Time(_) => "*influxql.TimeLiteral",
                Literal::Nil => "*influxql.NilLiteral",
            },
        }
    }
}

impl From<Literal> for Expr {
    fn from(literal: Literal) -> Self {
        Self::Literal(literal)
    }
}

impl Binary {
    /// The chain of operators that ends in this one, from the left: the first operand that
    /// `goes_on` does not enter, then each operator with the operand after it.
    pub fn chain(&self, goes_on: impl Fn(BinaryOp) -> bool) -> (&Expr, Vec<(BinaryOp, &Expr)>) {
        let mut links = vec![(self.op, &self.rhs)];
        let mut first = &self.lhs;
        while let Expr::Binary(binary) = first
            && goes_on(binary.op)
        {
            links.push((binary.op, &binary.rhs));
            first = &binary.lhs;
        }
        links.reverse();
        (first, links)
    }

    fn whole_chain(&self) -> (&Expr, Vec<(BinaryOp, &Expr)>) {
        self.chain(|_| true)
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        let nothing = || Expr::Literal(Literal::Nil);
        let mut next = mem::replace(&mut self.lhs, nothing());
        while let Expr::Binary(mut binary) = next {
            next = mem::replace(&mut binary.lhs, nothing());
        }
    }
}

impl Clone for Binary {
    fn clone(&self) -> Self {
        let (first, links) = self.whole_chain();
        let mut lhs = first.clone();
        for (op, rhs) in &links[..links.len() - 1] {
            lhs = Expr::binary(lhs, *op, (*rhs).clone());
        }
        let (op, rhs) = (self.op, self.rhs.clone());
        Self { lhs, op, rhs }
    }
}

impl PartialEq for Binary {
    fn eq(&self, other: &Self) -> bool {
        self.whole_chain() == other.whole_chain()
    }
}

impl fmt::Debug for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, links) = self.whole_chain();
        write!(f, "Chain({first:?}")?;
        for (op, rhs) in links {
            write!(f, " {} {rhs:?}", op.sign())?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, links) = self.whole_chain();
        write!(f, "{first}")?;
        for (op, rhs) in links {
            write!(f, " {} {rhs}", op.sign())?;
        }
        Ok(())
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binary(binary) => write!(f, "{binary}"),
            Self::Call(call) => write!(f, "{call}"),
            Self::Distinct(name) => write!(f, "DISTINCT {name}"),
            Self::Literal(literal) => write!(f, "{literal}"),
            Self::Paren(inner) => write!(f, "({inner})"),
            Self::VarRef(var) => write!(f, "{var}"),
            Self::Wildcard(wildcard) => write!(f, "{wildcard}"),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        write_list(f, &self.args, ", ")?;
        f.write_str(")")
    }
}

impl fmt::Display for VarRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", QuotedIdent(&self.name))?;
        match self.cast {
            Some(cast) => write!(f, "::{}", cast.name()),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Wildcard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "*",
            Self::Fields => "*::field",
            Self::Tags => "*::tag",
        })
    }
}
