//! What a COPY says besides its table and its file.

use crate::error::{SqlError, SqlResult};

/// Options by their names in lower case; taken one by one, so that what is left is unknown.
#[derive(Clone, Debug, Default)]
pub struct StatementOptions(Vec<(String, String)>);

impl StatementOptions {
    pub fn new(options: impl IntoIterator<Item = (String, String)>) -> Self {
        let lower = |(name, value): (String, String)| (name.to_lowercase(), value);
        Self(options.into_iter().map(lower).collect())
    }

    /// Adds an option.
    pub fn push(&mut self, name: &str, value: String) {
        self.0.push((name.to_lowercase(), value));
    }

    /// The value of an option; it is not there again.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(at).1)
    }

    /// Nanoseconds of a unit of the times of a TsFile: `precision`, milliseconds if it is not there.
    pub fn take_unit_ns(&mut self) -> SqlResult<i64> {
        match self.take("precision").as_deref() {
            None | Some("ms") => Ok(1_000_000),
            Some("s") => Ok(1_000_000_000),
            Some("us") => Ok(1_000),
            Some("ns") => Ok(1),
            Some(other) => Err(SqlError::syntax(format!(
                "'{other}' is no precision of times; use s, ms, us or ns"
            ))),
        }
    }

    /// Refuses what was not taken.
    pub fn end(&self) -> SqlResult<()> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(SqlError::syntax(format!(
                "COPY has no option '{name}' for this form of file"
            ))),
        }
    }
}
