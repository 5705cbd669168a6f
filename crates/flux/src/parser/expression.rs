//! Expressions, from the loosest operator to the tightest.

use super::{FluxParser, ScannedText};
use crate::ast::{FluxBinary, FluxExpr, FluxExprKind, FluxTextPart, FluxUnary};
use crate::error::{FluxError, FluxPosition};
use crate::scanner::FluxToken;

impl FluxParser<'_> {
    /// An expression.
    pub(super) fn expression(&mut self) -> Result<FluxExpr, FluxError> {
        self.nested(|parser| {
            if parser.is_word("if") {
                return parser.conditional();
            }
            parser.logical(false)
        })
    }

    fn conditional(&mut self) -> Result<FluxExpr, FluxError> {
        let at = self.at;
        self.advance()?;
        let test = self.expression()?;
        self.expect_word("then")?;
        let then = self.expression()?;
        self.expect_word("else")?;
        let otherwise = self.expression()?;
        let below = test.depth.max(then.depth).max(otherwise.depth);
        let kind = FluxExprKind::Conditional {
            test: Box::new(test),
            then: Box::new(then),
            otherwise: Box::new(otherwise),
        };
        Self::node(at, below, kind)
    }

    /// `or` above `and` above comparisons.
    fn logical(&mut self, is_and: bool) -> Result<FluxExpr, FluxError> {
        let at = self.at;
        let mut operands = Vec::new();
        loop {
            operands.push(if is_and {
                self.negation()?
            } else {
                self.logical(true)?
            });
            if !self.is_word(if is_and { "and" } else { "or" }) {
                break;
            }
            self.advance()?;
        }
        if operands.len() == 1 {
            return operands
                .pop()
                .ok_or_else(|| self.unexpected("an expression"));
        }
        let below = operands.iter().map(|operand| operand.depth).max();
        let kind = FluxExprKind::Logical { is_and, operands };
        Self::node(at, below.unwrap_or(0), kind)
    }

    /// `not` and `exists`.
    fn negation(&mut self) -> Result<FluxExpr, FluxError> {
        let operator = match &self.token {
            FluxToken::Word(word) if word == "not" => FluxUnary::Not,
            FluxToken::Word(word) if word == "exists" => FluxUnary::Exists,
            _ => return self.binary(1),
        };
        self.unary(operator, Self::negation)
    }

    fn unary(
        &mut self,
        operator: FluxUnary,
        operand: fn(&mut Self) -> Result<FluxExpr, FluxError>,
    ) -> Result<FluxExpr, FluxError> {
        let at = self.at;
        self.advance()?;
        let operand = self.nested(operand)?;
        let below = operand.depth;
        let operand = Box::new(operand);
        Self::node(at, below, FluxExprKind::Unary { operator, operand })
    }

    /// Operators that bind as tightly as `tightness`, or more.
    fn binary(&mut self, tightness: u8) -> Result<FluxExpr, FluxError> {
        if tightness > 4 {
            return self.signed();
        }
        let mut left = self.binary(tightness + 1)?;
        while let Some(operator) = self.operator()
            && operator.precedence() == tightness
        {
            let at = self.at;
            self.advance()?;
            let right = self.binary(tightness + 1)?;
            let below = left.depth.max(right.depth);
            let kind = FluxExprKind::Binary {
                operator,
                left: Box::new(left),
                right: Box::new(right),
            };
            left = Self::node(at, below, kind)?;
        }
        Ok(left)
    }

    fn operator(&self) -> Option<FluxBinary> {
        let FluxToken::Symbol(symbol) = self.token else {
            return None;
        };
        Some(match symbol {
            "+" => FluxBinary::Add,
            "-" => FluxBinary::Subtract,
            "*" => FluxBinary::Multiply,
            "/" => FluxBinary::Divide,
            "%" => FluxBinary::Modulo,
            "^" => FluxBinary::Power,
            "==" => FluxBinary::Equal,
            "!=" => FluxBinary::NotEqual,
            "<" => FluxBinary::Less,
            "<=" => FluxBinary::LessOrEqual,
            ">" => FluxBinary::Greater,
            ">=" => FluxBinary::GreaterOrEqual,
            "=~" => FluxBinary::Matches,
            "!~" => FluxBinary::MatchesNot,
            _ => return None,
        })
    }

    fn signed(&mut self) -> Result<FluxExpr, FluxError> {
        match self.token {
            FluxToken::Symbol("-") => self.unary(FluxUnary::Minus, Self::signed),
            FluxToken::Symbol("+") => self.unary(FluxUnary::Plus, Self::signed),
            _ => self.pipe(),
        }
    }

    fn pipe(&mut self) -> Result<FluxExpr, FluxError> {
        let at = self.at;
        let head = self.postfix()?;
        if !self.is_symbol("|>") {
            return Ok(head);
        }
        let (mut below, mut calls) = (head.depth, Vec::new());
        while self.take_symbol("|>")? {
            let call = self.postfix()?;
            if !matches!(call.kind, FluxExprKind::Call { .. }) {
                let message = "what |> pipes into is the call of a function: add ( and )";
                return Err(FluxError::new(call.at, message));
            }
            below = below.max(call.depth);
            calls.push(call);
        }
        let head = Box::new(head);
        Self::node(at, below, FluxExprKind::Pipe { head, calls })
    }

    /// Calls, members and places in arrays.
    fn postfix(&mut self) -> Result<FluxExpr, FluxError> {
        let mut left = self.primary()?;
        loop {
            let at = left.at;
            let below = left.depth;
            left = match self.token {
                FluxToken::Symbol(".") => {
                    self.advance()?;
                    let object = Box::new(left);
                    let name = match &self.token {
                        FluxToken::Word(word) => word.clone(),
                        _ => return Err(self.unexpected("the name of a member")),
                    };
                    self.advance()?;
                    Self::node(at, below, FluxExprKind::Member { object, name })?
                }
                FluxToken::Symbol("[") => {
                    self.advance()?;
                    let index = self.expression()?;
                    self.expect_symbol("]")?;
                    let (below, object) = (below.max(index.depth), Box::new(left));
                    let kind = match index.kind {
                        FluxExprKind::Text(name) => FluxExprKind::Member { object, name },
                        kind => FluxExprKind::Index {
                            object,
                            index: Box::new(FluxExpr { kind, ..index }),
                        },
                    };
                    Self::node(at, below, kind)?
                }
                FluxToken::Symbol("(") => {
                    self.advance()?;
                    let arguments = self.members(")")?;
                    let argued = arguments.iter().map(|(_, value)| value.depth).max();
                    let callee = Box::new(left);
                    let kind = FluxExprKind::Call { callee, arguments };
                    Self::node(at, below.max(argued.unwrap_or(0)), kind)?
                }
                _ => return Ok(left),
            };
        }
    }

    /// `name: value` with commas between, up to a bracket. A name alone is its own value.
    pub(super) fn members(&mut self, end: &str) -> Result<Vec<(String, FluxExpr)>, FluxError> {
        let mut members: Vec<(String, FluxExpr)> = Vec::new();
        while !self.take_symbol(end)? {
            let at = self.at;
            let is_text = matches!(self.token, FluxToken::Text(_));
            let is_name = matches!(self.token, FluxToken::Word(_))
                && matches!(self.peek()?, FluxToken::Symbol(":" | "," | ")" | "}"));
            if !is_text && !is_name {
                return Err(self.unexpected("the name of an argument or member, and :"));
            }
            let name = if is_text {
                self.plain_text()?
            } else {
                self.name()?
            };
            if members.iter().any(|(known, _)| *known == name) {
                return Err(FluxError::new(at, format!("{name} is given twice")));
            }
            let value = if self.take_symbol(":")? {
                self.expression()?
            } else if is_name {
                Self::node(at, 0, FluxExprKind::Name(name.clone()))?
            } else {
                return Err(self.unexpected(":"));
            };
            members.push((name, value));
            if !self.is_symbol(end) {
                self.expect_symbol(",")?;
            }
        }
        Ok(members)
    }

    fn primary(&mut self) -> Result<FluxExpr, FluxError> {
        let at = self.at;
        let kind = match self.token.clone() {
            FluxToken::Integer(value) => FluxExprKind::Integer(value),
            FluxToken::Float(value) => FluxExprKind::Float(value),
            FluxToken::Duration(value) => FluxExprKind::Duration(value),
            FluxToken::Time(value) => FluxExprKind::Time(value),
            FluxToken::Regex(text) => FluxExprKind::Regex(text),
            FluxToken::Text(parts) => {
                self.advance()?;
                return self.text(at, parts);
            }
            FluxToken::Word(_) => {
                let name = self.name()?;
                return Self::node(at, 0, FluxExprKind::Name(name));
            }
            FluxToken::Symbol("[") => return self.nested(Self::array),
            FluxToken::Symbol("{") => return self.nested(Self::record),
            FluxToken::Symbol("(") => return self.nested(Self::parenthesis),
            _ => return Err(self.unexpected("an expression")),
        };
        self.advance()?;
        Self::node(at, 0, kind)
    }

    fn text(&mut self, at: FluxPosition, parts: Vec<ScannedText>) -> Result<FluxExpr, FluxError> {
        if let [ScannedText::Text(text)] = parts.as_slice() {
            return Self::node(at, 0, FluxExprKind::Text(text.clone()));
        }
        let (mut below, mut read) = (0, Vec::with_capacity(parts.len()));
        for part in parts {
            read.push(match part {
                ScannedText::Text(text) => FluxTextPart::Text(text),
                ScannedText::Code(from, to) => {
                    let inner = self.nested(|outer| {
                        let mut parser = FluxParser::new(outer.text, from, to, outer.nesting)?;
                        let inner = parser.expression()?;
                        if parser.token != FluxToken::End {
                            return Err(parser.unexpected("}"));
                        }
                        Ok(inner)
                    })?;
                    below = below.max(inner.depth);
                    FluxTextPart::Expression(inner)
                }
            });
        }
        Self::node(at, below, FluxExprKind::Interpolated(read))
    }

    fn array(&mut self) -> Result<FluxExpr, FluxError> {
        let at = self.at;
        self.advance()?;
        let mut elements = Vec::new();
        while !self.take_symbol("]")? {
            let element = self.expression()?;
            if self.is_symbol(":") {
                let message = "dictionaries are not supported; a record is {name: value}";
                return Err(FluxError::new(self.at, message));
            }
            elements.push(element);
            if !self.is_symbol("]") {
                self.expect_symbol(",")?;
            }
        }
        let below = elements.iter().map(|element| element.depth).max();
        Self::node(at, below.unwrap_or(0), FluxExprKind::Array(elements))
    }

    fn record(&mut self) -> Result<FluxExpr, FluxError> {
        let at = self.at;
        self.advance()?;
        let mut base = None;
        let is_with = matches!(self.token, FluxToken::Word(_))
            && matches!(self.peek()?, FluxToken::Word(word) if word == "with");
        if is_with {
            let at = self.at;
            let name = self.name()?;
            self.expect_word("with")?;
            base = Some(Box::new(Self::node(at, 0, FluxExprKind::Name(name))?));
        }
        let members = self.members("}")?;
        let below = members.iter().map(|(_, value)| value.depth).max();
        let kind = FluxExprKind::Record { base, members };
        Self::node(at, below.unwrap_or(0).max(1), kind)
    }
}
