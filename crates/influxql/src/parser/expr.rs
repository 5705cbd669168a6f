//! Parses expressions.

use super::{Parsed, Parser};
use crate::ast::{BinaryOp, Call, Cast, Expr, Literal, RegexSource, VarRef, Wildcard};
use crate::duration::parse_duration;
use crate::error::ParseError;
use crate::go_regex;
use crate::quote::quote_segments;
use crate::scanner::Scanned;
use crate::token::{InfluxQlToken, Keyword};

/// The tokens that may begin an expression, as errors list them.
const OPERAND: [&str; 4] = ["identifier", "string", "number", "bool"];

impl Parser<'_> {
    /// An expression: operands with operators between them.
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        let mut operands = Operands::starting_with(self.operand()?);
        loop {
            let next = self.next();
            let Some(op) = operator(next.token) else {
                self.unscan();
                return Ok(operands.finish());
            };
            let rhs = if matches!(op, BinaryOp::EqRegex | BinaryOp::NeqRegex) {
                Expr::Literal(Literal::Regex(self.required_regex()?))
            } else {
                self.operand()?
            };
            operands.push(op, rhs);
        }
    }

    /// A regular expression that is required.
    pub(super) fn required_regex(&mut self) -> Parsed<RegexSource> {
        match self.regex()? {
            Some(regex) => Ok(regex),
            None => {
                let next = self.next();
                self.unexpected(&next, &["regex"])
            }
        }
    }

    /// An operand: everything except operators between operands.
    fn operand(&mut self) -> Parsed<Expr> {
        let next = self.next();
        let literal = match next.token {
            InfluxQlToken::LeftParen => {
                return self.nested(|parser| {
                    let inner = parser.expr()?;
                    parser.expect(InfluxQlToken::RightParen)?;
                    Ok(Expr::Paren(Box::new(inner)))
                });
            }
            InfluxQlToken::Ident => {
                if self.scan().token == InfluxQlToken::LeftParen {
                    return self.call(&next.text);
                }
                self.unscan();
                self.unscan();
                return self.var_ref();
            }
            InfluxQlToken::Keyword(Keyword::Distinct) => return self.distinct(),
            InfluxQlToken::Mul => return self.wildcard(),
            InfluxQlToken::Add | InfluxQlToken::Sub => {
                return self.signed(next.token == InfluxQlToken::Sub);
            }
            InfluxQlToken::String => Literal::String(next.text),
            InfluxQlToken::Number => self.number(&next)?,
            InfluxQlToken::Integer => self.integer(&next)?,
            InfluxQlToken::Keyword(Keyword::True) => Literal::Boolean(true),
            InfluxQlToken::Keyword(Keyword::False) => Literal::Boolean(false),
            InfluxQlToken::DurationValue => {
                let parsed = parse_duration(&next.text);
                Literal::Duration(parsed.map_err(|error| ParseError::plain(error.to_string()))?)
            }
            InfluxQlToken::Regex => Literal::Regex(self.checked_regex(next)?),
            InfluxQlToken::BoundParam => {
                let name = next.text.strip_prefix('$').unwrap_or(&next.text);
                return Err(ParseError::plain(if name.is_empty() {
                    "empty bound parameter".to_owned()
                } else {
                    format!("missing parameter: {name}")
                }));
            }
            _ => return self.unexpected(&next, &OPERAND),
        };
        Ok(Expr::Literal(literal))
    }

    fn number(&self, scanned: &Scanned) -> Parsed<Literal> {
        match scanned.text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Literal::Number(value)),
            _ => self.message("unable to parse number", scanned),
        }
    }

    fn integer(&self, scanned: &Scanned) -> Parsed<Literal> {
        if let Ok(value) = scanned.text.parse() {
            return Ok(Literal::Integer(value));
        }
        match scanned.text.parse() {
            Ok(value) => Ok(Literal::Unsigned(value)),
            Err(_) => self.message("unable to parse integer", scanned),
        }
    }

    /// Parses what follows a sign.
    fn signed(&mut self, negative: bool) -> Parsed<Expr> {
        let next = self.next();
        let may_follow = [
            InfluxQlToken::Number,
            InfluxQlToken::Integer,
            InfluxQlToken::DurationValue,
            InfluxQlToken::LeftParen,
            InfluxQlToken::Ident,
        ];
        if !may_follow.contains(&next.token) {
            return self.unexpected(&next, &["identifier", "number", "duration", "("]);
        }
        self.unscan();
        let literal = match self.operand()? {
            Expr::Literal(literal) => literal,
            // Anything else is multiplied, which no column name shows.
            expr => {
                let sign = Literal::Integer(if negative { -1 } else { 1 });
                return Ok(Expr::binary(sign.into(), BinaryOp::Mul, expr));
            }
        };
        Ok(Expr::Literal(match literal {
            Literal::Number(value) if negative => Literal::Number(-value),
            Literal::Integer(value) if negative => Literal::Integer(value.wrapping_neg()),
            Literal::Duration(ns) if negative => Literal::Duration(ns.wrapping_neg()),
            Literal::Unsigned(value) if negative => {
                if value != i64::MIN.unsigned_abs() {
                    let message = format!("constant -{value} underflows int64");
                    return Err(ParseError::plain(message));
                }
                Literal::Integer(i64::MIN)
            }
            other => other,
        }))
    }

    /// Parses what follows DISTINCT: a call with parentheses, or only a name.
    fn distinct(&mut self) -> Parsed<Expr> {
        let next = self.scan();
        match next.token {
            InfluxQlToken::LeftParen => self.call("distinct"),
            InfluxQlToken::Whitespace => {
                let name = self.next();
                if name.token == InfluxQlToken::Ident {
                    return Ok(Expr::Distinct(name.text));
                }
                self.unexpected(&name, &["identifier"])
            }
            _ => self.unexpected(&next, &["(", "identifier"]),
        }
    }

    /// What follows `*`.
    fn wildcard(&mut self) -> Parsed<Expr> {
        if self.scan().token != InfluxQlToken::DoubleColon {
            self.unscan();
            return Ok(Expr::Wildcard(Wildcard::All));
        }
        let next = self.scan();
        match next.token {
            InfluxQlToken::Keyword(Keyword::Field) => Ok(Expr::Wildcard(Wildcard::Fields)),
            InfluxQlToken::Keyword(Keyword::Tag) => Ok(Expr::Wildcard(Wildcard::Tags)),
            _ => self.unexpected(&next, &["field", "tag"]),
        }
    }

    /// A field or tag, with its cast.
    fn var_ref(&mut self) -> Parsed<Expr> {
        let name = self.segments()?.join(".");
        if self.scan().token != InfluxQlToken::DoubleColon {
            self.unscan();
            return Ok(Expr::VarRef(VarRef { name, cast: None }));
        }
        let next = self.scan();
        let cast = match next.token {
            InfluxQlToken::Keyword(Keyword::Field) => Cast::Field,
            InfluxQlToken::Keyword(Keyword::Tag) => Cast::Tag,
            InfluxQlToken::Ident => {
                let types = [
                    Cast::Float,
                    Cast::Integer,
                    Cast::Unsigned,
                    Cast::String,
                    Cast::Boolean,
                ];
                let named = |cast: &Cast| cast.name().eq_ignore_ascii_case(&next.text);
                let Some(cast) = types.into_iter().find(named) else {
                    let mut expected: Vec<_> = types.iter().map(|cast| cast.name()).collect();
                    expected.extend(["field", "tag"]);
                    return self.unexpected(&next, &expected);
                };
                cast
            }
            // InfluxDB omits one type here.
            _ => {
                let expected = ["float", "integer", "string", "boolean", "field", "tag"];
                return self.unexpected(&next, &expected);
            }
        };
        let cast = Some(cast);
        Ok(Expr::VarRef(VarRef { name, cast }))
    }

    /// One to three names separated by dots; one in the middle may be missing.
    pub(super) fn segments(&mut self) -> Parsed<Vec<String>> {
        let mut segments = vec![self.ident()?];
        while self.scan().token == InfluxQlToken::Dot {
            match self.reader.peek() {
                // The caller handles what follows.
                '/' | ':' => return self.checked_segments(segments),
                '.' => segments.push(String::new()),
                _ => segments.push(self.ident()?),
            }
        }
        self.unscan();
        self.checked_segments(segments)
    }

    fn checked_segments(&self, segments: Vec<String>) -> Parsed<Vec<String>> {
        if segments.len() <= 3 {
            return Ok(segments);
        }
        let message = format!("too many segments in {}", quote_segments(&segments));
        Err(ParseError::with_position(message, self.reader.position(0)))
    }

    /// A function's arguments, after the opening parenthesis.
    fn call(&mut self, name: &str) -> Parsed<Expr> {
        let name = name.to_lowercase();
        self.nested(|parser| {
            let mut args = Vec::new();
            if let Some(regex) = parser.regex()? {
                args.push(Literal::Regex(regex).into());
            } else {
                if parser.scan().token == InfluxQlToken::RightParen {
                    return Ok(Expr::Call(Call { name, args }));
                }
                parser.unscan();
                args.push(parser.expr()?);
            }
            while parser.next_is(InfluxQlToken::Comma) {
                args.push(match parser.regex()? {
                    Some(regex) => Literal::Regex(regex).into(),
                    None => parser.expr()?,
                });
            }
            let end = parser.scan();
            if end.token != InfluxQlToken::RightParen {
                return parser.unexpected(&end, &[")"]);
            }
            Ok(Expr::Call(Call { name, args }))
        })
    }

    /// A regular expression, if one is next. This reads the text, not tokens that were put back.
    pub(super) fn regex(&mut self) -> Parsed<Option<RegexSource>> {
        if matches!(self.reader.peek(), ' ' | '\t' | '\n') {
            self.skip_whitespace();
        }
        match self.reader.peek() {
            '$' => {
                let token = self.scan().token;
                self.unscan();
                if token != InfluxQlToken::Regex {
                    return Ok(None);
                }
            }
            '/' => {}
            _ => return Ok(None),
        }
        let scanned = self.scan_regex();
        match scanned.token {
            InfluxQlToken::Regex => self.checked_regex(scanned).map(Some),
            // The text is what a string without its end would show.
            InfluxQlToken::BadEscape => {
                self.message(format!("bad escape: {}", scanned.text), &scanned)
            }
            InfluxQlToken::BadRegex => {
                self.message(format!("bad regex: {}", scanned.text), &scanned)
            }
            _ => self.unexpected(&scanned, &["regex"]),
        }
    }

    fn checked_regex(&self, scanned: Scanned) -> Parsed<RegexSource> {
        match go_regex::translate(&scanned.text) {
            Ok(_) => Ok(RegexSource(scanned.text)),
            Err(error) => self.message(error.to_string(), &scanned),
        }
    }

    /// Reads blanks, if they are next.
    pub(super) fn skip_whitespace(&mut self) {
        if self.scan().token != InfluxQlToken::Whitespace {
            self.unscan();
        }
    }
}

/// Operands that wait for an operator that binds less tightly than the preceding one.
struct Operands {
    waiting: Vec<Expr>,
    operators: Vec<BinaryOp>,
    last: Expr,
}

impl Operands {
    fn starting_with(first: Expr) -> Self {
        Self {
            waiting: Vec::new(),
            operators: Vec::new(),
            last: first,
        }
    }

    fn push(&mut self, op: BinaryOp, rhs: Expr) {
        self.reduce(op.precedence());
        self.operators.push(op);
        self.waiting.push(std::mem::replace(&mut self.last, rhs));
    }

    /// Joins the operands of operators with at least this precedence.
    fn reduce(&mut self, precedence: u8) {
        while let Some(op) = self.operators.pop_if(|op| op.precedence() >= precedence)
            && let Some(lhs) = self.waiting.pop()
        {
            let rhs = std::mem::replace(&mut self.last, Literal::Nil.into());
            self.last = Expr::binary(lhs, op, rhs);
        }
    }

    fn finish(mut self) -> Expr {
        self.reduce(0);
        self.last
    }
}

fn operator(token: InfluxQlToken) -> Option<BinaryOp> {
    Some(match token {
        InfluxQlToken::Add => BinaryOp::Add,
        InfluxQlToken::Sub => BinaryOp::Sub,
        InfluxQlToken::Mul => BinaryOp::Mul,
        InfluxQlToken::Div => BinaryOp::Div,
        InfluxQlToken::Mod => BinaryOp::Mod,
        InfluxQlToken::BitwiseAnd => BinaryOp::BitwiseAnd,
        InfluxQlToken::BitwiseOr => BinaryOp::BitwiseOr,
        InfluxQlToken::BitwiseXor => BinaryOp::BitwiseXor,
        InfluxQlToken::Keyword(Keyword::And) => BinaryOp::And,
        InfluxQlToken::Keyword(Keyword::Or) => BinaryOp::Or,
        InfluxQlToken::Eq => BinaryOp::Eq,
        InfluxQlToken::Neq => BinaryOp::Neq,
        InfluxQlToken::EqRegex => BinaryOp::EqRegex,
        InfluxQlToken::NeqRegex => BinaryOp::NeqRegex,
        InfluxQlToken::Lt => BinaryOp::Lt,
        InfluxQlToken::Lte => BinaryOp::Lte,
        InfluxQlToken::Gt => BinaryOp::Gt,
        InfluxQlToken::Gte => BinaryOp::Gte,
        _ => return None,
    })
}
