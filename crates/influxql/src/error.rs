//! The parser's errors, in InfluxDB's words: clients compare these texts.

use std::borrow::Cow;
use std::fmt;

/// The prefix that InfluxDB's HTTP interface puts before the text of a [`ParseError`].
pub const PARSE_ERROR_PREFIX: &str = "error parsing query: ";

/// The position of an error in the text of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorPosition {
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 1. The end of the text may count as two characters, as it does
    /// in InfluxDB.
    pub char: usize,
    /// Byte in the text, from 0; at most the text's length.
    pub byte: usize,
}

/// Why a text is not InfluxQL. Prints as InfluxDB prints it, without [`PARSE_ERROR_PREFIX`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    kind: ParseErrorKind,
    position: Option<ErrorPosition>,
}

/// The two forms of a parse error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The grammar does not allow this token here.
    Unexpected {
        /// The token that was found.
        found: String,
        /// The tokens that are allowed.
        expected: Vec<Cow<'static, str>>,
    },
    /// Anything else.
    Message(String),
}

impl ParseError {
    pub(crate) fn unexpected(
        found: impl Into<String>,
        expected: Vec<Cow<'static, str>>,
        position: ErrorPosition,
    ) -> Self {
        let kind = ParseErrorKind::Unexpected {
            found: found.into(),
            expected,
        };
        Self {
            kind,
            position: Some(position),
        }
    }

    pub(crate) fn with_position(message: impl Into<String>, position: ErrorPosition) -> Self {
        Self {
            kind: ParseErrorKind::Message(message.into()),
            position: Some(position),
        }
    }

    /// An error that InfluxDB reports without its position.
    pub(crate) fn plain(message: impl Into<String>) -> Self {
        Self {
            kind: ParseErrorKind::Message(message.into()),
            position: None,
        }
    }

    /// What is wrong.
    pub fn kind(&self) -> &ParseErrorKind {
        &self.kind
    }

    /// The position, if the text of the error contains it.
    pub fn position(&self) -> Option<ErrorPosition> {
        self.position
    }

    /// The text with [`PARSE_ERROR_PREFIX`], as `/query` returns it with status 400.
    pub fn to_wire(&self) -> String {
        format!("{PARSE_ERROR_PREFIX}{self}")
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ParseErrorKind::Unexpected { found, expected } => {
                write!(f, "found {found}, expected {}", expected.join(", "))?;
            }
            ParseErrorKind::Message(message) => f.write_str(message)?,
        }
        match self.position {
            Some(ErrorPosition { line, char, .. }) => write!(f, " at line {line}, char {char}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ParseError {}
