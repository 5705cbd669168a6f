//! The errors of Flux, with their positions.

use std::fmt;

/// A position in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FluxPosition {
    /// Line, from 1.
    pub line: u32,
    /// Character in the line, from 1.
    pub column: u32,
}

impl fmt::Display for FluxPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// What is wrong with a script, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error @{at}: {message}")]
pub struct FluxError {
    /// Where it is wrong.
    pub at: FluxPosition,
    /// What is wrong.
    pub message: String,
}

impl FluxError {
    /// An error at a position.
    pub fn new(at: FluxPosition, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }
}
