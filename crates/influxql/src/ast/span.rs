//! Parts of the text.

/// A part of the text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SourceSpan {
    /// Its first byte.
    pub start: usize,
    /// The byte after it.
    pub end: usize,
}
