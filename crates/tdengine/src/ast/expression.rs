//! Expressions.

use crate::duration::TaosDuration;
use crate::types::TaosType;

/// A value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum TaosLiteral {
    /// `NULL`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// An integer.
    Integer(i128),
    /// A float.
    Float(f64),
    /// A text.
    Text(String),
    /// `TIMESTAMP '…'`
    Time(String),
    /// `10s`
    Duration(TaosDuration),
    /// `now`, `now()`
    Now,
    /// `today()`
    Today,
}

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaosOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `=`
    Equal,
    /// `<>`, `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `LIKE`
    Like,
    /// `NOT LIKE`
    NotLike,
    /// `MATCH`
    Match,
    /// `NMATCH`
    NotMatch,
    /// `->`, the value of a key of JSON
    JsonValue,
    /// `CONTAINS`
    JsonContains,
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct TaosCall {
    /// The name, in lower case.
    pub name: String,
    /// The arguments.
    pub arguments: Vec<TaosExpr>,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum TaosExpr {
    /// A value.
    Literal(TaosLiteral),
    /// A column, tag or pseudo column, perhaps of a named table.
    Column {
        /// The table or its alias.
        table: Option<String>,
        /// The name.
        name: String,
    },
    /// `*` or `t.*`
    Star(Option<String>),
    /// A function.
    Call(TaosCall),
    /// `- x`
    Negative(Box<TaosExpr>),
    /// `NOT x`
    Not(Box<TaosExpr>),
    /// Two operands.
    Binary {
        /// The operator.
        operator: TaosOperator,
        /// The first operand.
        left: Box<TaosExpr>,
        /// The second operand.
        right: Box<TaosExpr>,
    },
    /// Conditions joined by AND.
    All(Vec<TaosExpr>),
    /// Conditions joined by OR.
    Any(Vec<TaosExpr>),
    /// `x BETWEEN low AND high`
    Between {
        /// The value.
        value: Box<TaosExpr>,
        /// The bounds, both included.
        bounds: Box<(TaosExpr, TaosExpr)>,
        /// Whether NOT stands before.
        negated: bool,
    },
    /// `x IN (…)`
    In {
        /// The value.
        value: Box<TaosExpr>,
        /// The list.
        list: Vec<TaosExpr>,
        /// Whether NOT stands before.
        negated: bool,
    },
    /// `x IS NULL`
    IsNull {
        /// The value.
        value: Box<TaosExpr>,
        /// Whether NOT stands before.
        negated: bool,
    },
    /// `CASE … END`
    Case {
        /// The value after CASE.
        operand: Option<Box<TaosExpr>>,
        /// WHEN … THEN …
        branches: Vec<(TaosExpr, TaosExpr)>,
        /// ELSE.
        otherwise: Option<Box<TaosExpr>>,
    },
    /// `CAST(x AS type)`; the type is as it is written, with its length where it has one.
    Cast {
        /// The value.
        value: Box<TaosExpr>,
        /// The type.
        kind: TaosType,
    },
}

impl TaosExpr {
    /// A column of the only table.
    #[must_use]
    pub fn column(name: &str) -> Self {
        Self::Column {
            table: None,
            name: name.to_owned(),
        }
    }

    /// The expressions directly within this one.
    pub fn children(&self) -> Vec<&Self> {
        match self {
            Self::Literal(_) | Self::Column { .. } | Self::Star(_) => Vec::new(),
            Self::Call(call) => call.arguments.iter().collect(),
            Self::Negative(inner) | Self::Not(inner) => vec![inner],
            Self::Binary { left, right, .. } => vec![left, right],
            Self::All(list) | Self::Any(list) => list.iter().collect(),
            Self::Between { value, bounds, .. } => vec![value, &bounds.0, &bounds.1],
            Self::In { value, list, .. } => std::iter::once(&**value).chain(list).collect(),
            Self::IsNull { value, .. } | Self::Cast { value, .. } => vec![value],
            Self::Case {
                operand,
                branches,
                otherwise,
            } => {
                let branches = branches.iter().flat_map(|(when, then)| [when, then]);
                let ends = operand.iter().chain(otherwise).map(|inner| &**inner);
                ends.chain(branches).collect()
            }
        }
    }
}
