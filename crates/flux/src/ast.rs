//! The syntax tree.

use crate::error::FluxPosition;
use crate::literal::FluxDuration;
use std::sync::Arc;

/// A script.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FluxFile {
    /// The statements, in order.
    pub statements: Vec<FluxStatement>,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum FluxStatement {
    /// `import name "path"`
    Import {
        /// Where it begins.
        at: FluxPosition,
        /// The name, if it is written.
        name: Option<String>,
        /// The path.
        path: String,
    },
    /// `option name = value`, or `option package.name = value`
    Option {
        /// Where it begins.
        at: FluxPosition,
        /// The package, if it is written.
        package: Option<String>,
        /// The option.
        name: String,
        /// Its value.
        value: FluxExpr,
    },
    /// `name = value`
    Assignment {
        /// Where it begins.
        at: FluxPosition,
        /// The variable.
        name: String,
        /// Its value.
        value: FluxExpr,
    },
    /// An expression, whose streams are results.
    Expression(FluxExpr),
    /// `return value`, the last statement of a block.
    Return(FluxExpr),
}

/// An expression, and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct FluxExpr {
    /// Where it begins; of an operator or a call, where that is.
    pub at: FluxPosition,
    /// The height of its tree.
    pub(crate) depth: u16,
    /// What it is.
    pub kind: FluxExprKind,
}

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum FluxExprKind {
    /// `1`
    Integer(i64),
    /// `1.5`
    Float(f64),
    /// `"text"`
    Text(String),
    /// `"text ${expression}"`
    Interpolated(Vec<FluxTextPart>),
    /// `1h30m`
    Duration(FluxDuration),
    /// `2024-01-01T00:00:00Z`, in nanoseconds.
    Time(i64),
    /// `/expression/`, as Go writes it.
    Regex(String),
    /// A variable.
    Name(String),
    /// `[a, b]`
    Array(Vec<FluxExpr>),
    /// `{a: 1}`, `{r with a: 1}`
    Record {
        /// The record that it extends.
        base: Option<Box<FluxExpr>>,
        /// Names and values.
        members: Vec<(String, FluxExpr)>,
    },
    /// `(a, b=1) => …`
    Function(Arc<FluxFunction>),
    /// `f(a: 1)`
    Call {
        /// The function.
        callee: Box<FluxExpr>,
        /// Names and values of the arguments.
        arguments: Vec<(String, FluxExpr)>,
    },
    /// `a |> f() |> g()`
    Pipe {
        /// The first value.
        head: Box<FluxExpr>,
        /// The calls through which it passes.
        calls: Vec<FluxExpr>,
    },
    /// `a.b`, `a["b"]`
    Member {
        /// The record.
        object: Box<FluxExpr>,
        /// The member's name.
        name: String,
    },
    /// `a[1]`
    Index {
        /// The array.
        object: Box<FluxExpr>,
        /// The place in it.
        index: Box<FluxExpr>,
    },
    /// `-a`, `not a`, `exists a`
    Unary {
        /// The operator.
        operator: FluxUnary,
        /// Its operand.
        operand: Box<FluxExpr>,
    },
    /// `a + b`, `a == b`
    Binary {
        /// The operator.
        operator: FluxBinary,
        /// The operand before it.
        left: Box<FluxExpr>,
        /// The operand behind it.
        right: Box<FluxExpr>,
    },
    /// `a and b and c`, `a or b or c`
    Logical {
        /// Whether it is `and`.
        is_and: bool,
        /// The operands, at least two.
        operands: Vec<FluxExpr>,
    },
    /// `if a then b else c`
    Conditional {
        /// The condition.
        test: Box<FluxExpr>,
        /// The value if it holds.
        then: Box<FluxExpr>,
        /// The value otherwise.
        otherwise: Box<FluxExpr>,
    },
}

/// A part of a text with expressions in it.
#[derive(Debug, Clone, PartialEq)]
pub enum FluxTextPart {
    /// Text.
    Text(String),
    /// An expression, shown as text.
    Expression(FluxExpr),
}

/// A function literal.
#[derive(Debug, Clone, PartialEq)]
pub struct FluxFunction {
    /// The parameters.
    pub parameters: Vec<FluxParameter>,
    /// The body.
    pub body: FluxBody,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct FluxParameter {
    /// Its name.
    pub name: String,
    /// Its default, if it has one.
    pub default: Option<FluxExpr>,
    /// Whether it takes what is piped in (`<-`).
    pub is_piped: bool,
}

/// The body of a function.
#[derive(Debug, Clone, PartialEq)]
pub enum FluxBody {
    /// An expression.
    Expression(FluxExpr),
    /// Statements, of which the last is `return`.
    Block(Vec<FluxStatement>),
}

/// An operator before its operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FluxUnary {
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `not`
    Not,
    /// `exists`
    Exists,
}

/// An operator between two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FluxBinary {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
    /// `^`
    Power,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `=~`
    Matches,
    /// `!~`
    MatchesNot,
}

impl FluxBinary {
    /// The operator as it is written.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            Self::Power => "^",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Matches => "=~",
            Self::MatchesNot => "!~",
        }
    }

    /// How tightly it binds, from 1 to 4.
    pub(crate) const fn precedence(self) -> u8 {
        match self {
            Self::Add | Self::Subtract => 2,
            Self::Multiply | Self::Divide | Self::Modulo => 3,
            Self::Power => 4,
            _ => 1,
        }
    }
}
