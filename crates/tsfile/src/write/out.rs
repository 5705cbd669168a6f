//! The destination of a file, and the position in it.

use crate::error::Result;
use std::io::Write;

/// A writer that tracks its position.
pub(super) struct PositionedWriter<W> {
    inner: W,
    position: u64,
}

impl<W: Write> PositionedWriter<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, position: 0 }
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.inner.write_all(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<W> {
        self.inner.flush()?;
        Ok(self.inner)
    }
}
