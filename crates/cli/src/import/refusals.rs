//! Reports refused lines and why: the first ones individually, the others as counts.

use crate::terminal;
use std::collections::BTreeMap;

/// Refused lines of a file.
#[derive(Debug, Default)]
pub(super) struct RefusedLines {
    named_max: usize,
    named: Vec<(u64, String)>,
    by_reason: BTreeMap<String, u64>,
    count: u64,
}

/// Distinct reasons that are counted apart; further ones share one count.
const REASONS_MAX: usize = 20;

impl RefusedLines {
    /// No lines yet; `named_max` of them will be named.
    pub(super) fn new(named_max: usize) -> Self {
        Self {
            named_max,
            ..Self::default()
        }
    }

    /// Adds lines with their reasons.
    pub(super) fn extend(&mut self, refused: impl IntoIterator<Item = (u64, String)>) {
        for (line, reason) in refused {
            self.count += 1;
            let kind = kind_of(&reason);
            if self.by_reason.len() < REASONS_MAX || self.by_reason.contains_key(&kind) {
                *self.by_reason.entry(kind).or_default() += 1;
            } else {
                *self
                    .by_reason
                    .entry("other reasons".to_owned())
                    .or_default() += 1;
            }
            if self.named.len() < self.named_max {
                self.named.push((line, reason));
            }
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Prints them to stderr.
    pub(super) fn print(&mut self) {
        if self.count == 0 {
            return;
        }
        erroutln!("{} refused:", terminal::counted(self.count, "row"));
        self.named.sort();
        for (line, reason) in &self.named {
            erroutln!("  line {line}: {reason}");
        }
        if self.count > self.named.len() as u64 {
            erroutln!("  … in all:");
            for (reason, count) in &self.by_reason {
                erroutln!("  {} × {reason}", terminal::count(*count));
            }
        }
    }
}

/// A reason without the values in it, so that equal kinds are counted together.
fn kind_of(reason: &str) -> String {
    let mut kind = String::new();
    for (at, part) in reason.split('\'').enumerate() {
        let in_quotes = at % 2 == 1;
        // Column names are short and worth keeping; so is the first quoted word.
        if at == 1 || !in_quotes {
            let quote = if in_quotes { "'" } else { "" };
            kind.push_str(&[quote, part, quote].concat());
        } else {
            kind.push_str("'…'");
        }
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_reasons_are_counted_together() {
        let mut refusals = RefusedLines::new(1);
        refusals.extend([
            (7, "column 'a': 'x' is not DOUBLE".to_owned()),
            (9, "column 'a': 'y' is not DOUBLE".to_owned()),
        ]);
        assert_eq!(refusals.count(), 2);
        assert_eq!(refusals.named.len(), 1);
        let expected = BTreeMap::from([("column 'a': '…' is not DOUBLE".to_owned(), 2)]);
        assert_eq!(refusals.by_reason, expected);
    }
}
