//! Statements and expressions.
//!
//! The parser recurses once for each level of nesting, up to `NESTING_MAX` levels. A tree is at most
//! `DEPTH_MAX` high, so that whoever walks it may recurse. `and`, `or` and pipes are lists, so that
//! long ones are not deep.

mod expression;
mod function;

use crate::ast::{FluxExpr, FluxExprKind, FluxFile, FluxStatement};
use crate::error::{FluxError, FluxPosition};
use crate::scanner::{FluxToken, ScannedText, Scanner};

/// The bytes that a script may have.
pub const FLUX_TEXT_BYTES_MAX: usize = 1 << 20;

/// The levels of nesting.
const NESTING_MAX: usize = 60;

/// The height of a tree.
const DEPTH_MAX: u16 = 200;

/// The statements of a script or a block.
const STATEMENTS_MAX: usize = 1000;

/// Words that are no names.
const KEYWORDS: [&str; 14] = [
    "and", "or", "not", "exists", "import", "package", "option", "if", "then", "else", "return",
    "builtin", "testcase", "test",
];

/// Reads a script.
///
/// # Errors
/// What is wrong with it, and where.
pub fn parse_flux(text: &str) -> Result<FluxFile, FluxError> {
    let begin = FluxPosition { line: 1, column: 1 };
    if text.len() > FLUX_TEXT_BYTES_MAX {
        let message = format!("a script has at most {FLUX_TEXT_BYTES_MAX} bytes");
        return Err(FluxError::new(begin, message));
    }
    let mut parser = FluxParser::new(text, 0, text.len(), 0)?;
    let statements = parser.statements(&FluxToken::End)?;
    Ok(FluxFile { statements })
}

pub(crate) struct FluxParser<'a> {
    text: &'a str,
    scanner: Scanner<'a>,
    token: FluxToken,
    at: FluxPosition,
    /// The token behind `token`, if it was looked at.
    ahead: Option<(FluxToken, FluxPosition)>,
    nesting: usize,
}

impl<'a> FluxParser<'a> {
    fn new(text: &'a str, from: usize, to: usize, nesting: usize) -> Result<Self, FluxError> {
        let mut scanner = Scanner::new(text, from, to);
        let (token, at) = scanner.next()?;
        Ok(Self {
            text,
            scanner,
            token,
            at,
            ahead: None,
            nesting,
        })
    }

    /// Steps to the next token, and gives the one before.
    fn advance(&mut self) -> Result<FluxToken, FluxError> {
        let (token, at) = match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.scanner.next()?,
        };
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    /// The token behind the current one.
    fn peek(&mut self) -> Result<&FluxToken, FluxError> {
        if self.ahead.is_none() {
            self.ahead = Some(self.scanner.next()?);
        }
        Ok(self
            .ahead
            .as_ref()
            .map_or(&FluxToken::End, |(token, _)| token))
    }

    fn is_symbol(&self, symbol: &str) -> bool {
        matches!(&self.token, FluxToken::Symbol(found) if *found == symbol)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.token, FluxToken::Word(found) if found == word)
    }

    fn take_symbol(&mut self, symbol: &str) -> Result<bool, FluxError> {
        let found = self.is_symbol(symbol);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect_symbol(&mut self, symbol: &str) -> Result<(), FluxError> {
        if self.take_symbol(symbol)? {
            return Ok(());
        }
        Err(self.unexpected(symbol))
    }

    fn expect_word(&mut self, word: &str) -> Result<(), FluxError> {
        if self.is_word(word) {
            self.advance()?;
            return Ok(());
        }
        Err(self.unexpected(word))
    }

    fn unexpected(&self, wanted: &str) -> FluxError {
        let message = format!("found {}, expected {wanted}", self.token.shown());
        FluxError::new(self.at, message)
    }

    fn name(&mut self) -> Result<String, FluxError> {
        match &self.token {
            FluxToken::Word(word) if !KEYWORDS.contains(&word.as_str()) => {
                let word = word.clone();
                self.advance()?;
                Ok(word)
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    /// A text without expressions in it.
    fn plain_text(&mut self) -> Result<String, FluxError> {
        if let FluxToken::Text(parts) = &self.token
            && let [ScannedText::Text(text)] = parts.as_slice()
        {
            let text = text.clone();
            self.advance()?;
            return Ok(text);
        }
        Err(self.unexpected("a text"))
    }

    /// Runs `parse` one level deeper.
    fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, FluxError>,
    ) -> Result<T, FluxError> {
        if self.nesting >= NESTING_MAX {
            let message = format!("an expression has at most {NESTING_MAX} levels");
            return Err(FluxError::new(self.at, message));
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    /// A node above others, of which the highest is `below`.
    fn node(at: FluxPosition, below: u16, kind: FluxExprKind) -> Result<FluxExpr, FluxError> {
        if below >= DEPTH_MAX {
            let message = format!("an expression has at most {DEPTH_MAX} operators in a row");
            return Err(FluxError::new(at, message));
        }
        Ok(FluxExpr {
            at,
            depth: below + 1,
            kind,
        })
    }

    fn statements(&mut self, end: &FluxToken) -> Result<Vec<FluxStatement>, FluxError> {
        let mut statements = Vec::new();
        while self.token != *end {
            if statements.len() >= STATEMENTS_MAX {
                let message = format!("there are at most {STATEMENTS_MAX} statements");
                return Err(FluxError::new(self.at, message));
            }
            statements.extend(self.statement()?);
        }
        Ok(statements)
    }

    fn statement(&mut self) -> Result<Option<FluxStatement>, FluxError> {
        let at = self.at;
        let word = match &self.token {
            FluxToken::Word(word) => word.clone(),
            _ => return Ok(Some(FluxStatement::Expression(self.expression()?))),
        };
        match word.as_str() {
            "package" => {
                self.advance()?;
                self.name()?;
                Ok(None)
            }
            "import" => {
                self.advance()?;
                let name = match &self.token {
                    FluxToken::Word(_) => Some(self.name()?),
                    _ => None,
                };
                let path = self.plain_text()?;
                Ok(Some(FluxStatement::Import { at, name, path }))
            }
            "option" => {
                self.advance()?;
                let mut name = self.name()?;
                let mut package = None;
                if self.take_symbol(".")? {
                    package = Some(std::mem::replace(&mut name, self.name()?));
                }
                self.expect_symbol("=")?;
                let value = self.expression()?;
                Ok(Some(FluxStatement::Option {
                    at,
                    package,
                    name,
                    value,
                }))
            }
            "return" => {
                self.advance()?;
                Ok(Some(FluxStatement::Return(self.expression()?)))
            }
            "builtin" | "testcase" | "test" if !matches!(self.peek()?, FluxToken::Symbol(_)) => {
                let message = format!("{word} statements are not supported");
                Err(FluxError::new(at, message))
            }
            _ if *self.peek()? == FluxToken::Symbol("=") => {
                let name = self.name()?;
                self.expect_symbol("=")?;
                let value = self.expression()?;
                Ok(Some(FluxStatement::Assignment { at, name, value }))
            }
            _ => Ok(Some(FluxStatement::Expression(self.expression()?))),
        }
    }
}
