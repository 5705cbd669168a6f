//! Passwords, which must not appear in any log.

use std::fmt;

/// A password in clear text. Prints as `[REDACTED]`.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub(crate) String);

impl Password {
    /// The password itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[REDACTED]")
    }
}
