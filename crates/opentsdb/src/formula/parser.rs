//! Reads formulas by descent. Operators of one rank are read in a loop; only parentheses, `?:` and signs
//! before a value nest, and their depth is bounded.

use super::tokens::{FormulaToken, fault_at, tokens};
use super::{BinaryOperator, FormulaValue, Step, UnaryOperator};
use crate::error::QueryFault;

/// Bytes of a formula.
const TEXT_BYTES_MAX: usize = 4096;
/// How deep parentheses, `?:` and signs before a value may nest.
const DEPTH_MAX: usize = 64;

/// The operators by rank, those that bind least first.
const RANKS: [&[(&str, BinaryOperator)]; 6] = [
    &[("||", BinaryOperator::Or)],
    &[("&&", BinaryOperator::And)],
    &[
        ("==", BinaryOperator::Equal),
        ("!=", BinaryOperator::NotEqual),
    ],
    &[
        ("<", BinaryOperator::Less),
        ("<=", BinaryOperator::LessOrEqual),
        (">", BinaryOperator::Greater),
        (">=", BinaryOperator::GreaterOrEqual),
    ],
    &[("+", BinaryOperator::Add), ("-", BinaryOperator::Subtract)],
    &[
        ("*", BinaryOperator::Multiply),
        ("/", BinaryOperator::Divide),
        ("%", BinaryOperator::Remainder),
    ],
];

/// The ranks whose operators do not follow each other: `a < b < c` means nothing.
const SINGLE_RANKS: [usize; 2] = [2, 3];

/// Reads one formula.
pub(super) struct FormulaParser<'a> {
    text: &'a str,
    tokens: Vec<(usize, FormulaToken<'a>)>,
    next: usize,
    depth: usize,
    steps: Vec<Step>,
    variables: Vec<String>,
}

impl<'a> FormulaParser<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, QueryFault> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(QueryFault::new(format!(
                "An expression has more than {TEXT_BYTES_MAX} bytes"
            )));
        }
        Ok(Self {
            text,
            tokens: tokens(text)?,
            next: 0,
            depth: 0,
            steps: Vec::new(),
            variables: Vec::new(),
        })
    }

    /// The steps of the formula, and its variables.
    pub(super) fn formula(mut self) -> Result<(Vec<Step>, Vec<String>), QueryFault> {
        self.choice()?;
        match self.tokens.get(self.next) {
            None => Ok((self.steps, self.variables)),
            Some(_) => Err(self.fault("an operator is missing")),
        }
    }

    fn fault(&self, what: &str) -> QueryFault {
        let at = self.tokens.get(self.next).map(|(at, _)| *at);
        fault_at(self.text, at.unwrap_or(self.text.len()), what)
    }

    fn takes(&mut self, sign: &str) -> bool {
        let token = self.tokens.get(self.next);
        let is_next = matches!(token, Some((_, FormulaToken::Sign(next))) if *next == sign);
        self.next += usize::from(is_next);
        is_next
    }

    /// What nests, with its depth counted.
    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), QueryFault>,
    ) -> Result<(), QueryFault> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.fault("it nests too deep"));
        }
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    /// `condition ? a : b`, `a ?: b`, or what binds more.
    fn choice(&mut self) -> Result<(), QueryFault> {
        self.operation(0)?;
        if self.takes("?:") {
            self.nested(Self::choice)?;
            self.steps.push(Step::FirstTrue);
        } else if self.takes("?") {
            self.nested(Self::choice)?;
            if !self.takes(":") {
                return Err(self.fault("':' is missing"));
            }
            self.nested(Self::choice)?;
            self.steps.push(Step::Choose);
        }
        Ok(())
    }

    /// Operators of a rank, and of those that bind more.
    fn operation(&mut self, rank: usize) -> Result<(), QueryFault> {
        let Some(operators) = RANKS.get(rank) else {
            return self.operand();
        };
        self.operation(rank + 1)?;
        loop {
            let mut known = operators.iter();
            let Some((_, operator)) = known.find(|(sign, _)| self.takes(sign)) else {
                return Ok(());
            };
            self.operation(rank + 1)?;
            self.steps.push(Step::Binary(*operator));
            if SINGLE_RANKS.contains(&rank) {
                return Ok(());
            }
        }
    }

    fn operand(&mut self) -> Result<(), QueryFault> {
        for (sign, operator) in [("-", UnaryOperator::Negate), ("!", UnaryOperator::Not)] {
            if self.takes(sign) {
                self.nested(Self::operand)?;
                self.steps.push(Step::Unary(operator));
                return Ok(());
            }
        }
        if self.takes("(") {
            self.nested(Self::choice)?;
            if !self.takes(")") {
                return Err(self.fault("')' is missing"));
            }
            return Ok(());
        }
        let step = match self.tokens.get(self.next) {
            Some((_, FormulaToken::Number(value))) => Step::Constant(*value),
            Some((_, FormulaToken::Name("true"))) => Step::Constant(FormulaValue::Truth(true)),
            Some((_, FormulaToken::Name("false"))) => Step::Constant(FormulaValue::Truth(false)),
            Some((_, FormulaToken::Name(name))) => {
                let known = self.variables.iter().position(|known| known == name);
                Step::Variable(known.unwrap_or_else(|| {
                    self.variables.push((*name).to_owned());
                    self.variables.len() - 1
                }))
            }
            _ => return Err(self.fault("a number or a variable is missing")),
        };
        self.next += 1;
        if self.takes("(") {
            self.next -= 1;
            return Err(self.fault("there are no functions"));
        }
        self.steps.push(step);
        Ok(())
    }
}
