//! Sends rows to a server as lines, in requests of bounded size, and finds the row of each refused line.
//!
//! Invariant: a report counts each row of its batch once, as stored or as refused.

use anyhow::Result;
use marigram_service::{RejectedRow, WriteReport};
use serde::Deserialize;

/// Lines of a request: the server can name all of them.
const LINES_MAX: usize = 10_000;

/// Bytes of a request, after which it is sent.
const BODY_BYTES: usize = 4 << 20;

/// The answer of `/api/v1/write` when lines were refused.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PartialWrite {
    /// Refused lines, also those that are not named.
    pub rejected: usize,
    /// The refused lines.
    pub lines: Vec<RefusedLine>,
}

/// A line that the server refused.
#[derive(Debug, Deserialize)]
pub(crate) struct RefusedLine {
    /// Its number in the body, from 1; of its first line if a text in it has line breaks.
    pub line: usize,
    /// Why.
    pub message: String,
}

/// Collects lines, and what became of them.
#[derive(Default)]
pub(crate) struct LineSender {
    /// The lines that are not sent yet.
    pub body: String,
    /// One report for each batch.
    pub reports: Vec<WriteReport>,
    /// First line (from 1), batch and row of each line of the body.
    rows: Vec<(usize, usize, usize)>,
    lines: usize,
    measured: usize,
}

impl LineSender {
    /// Has nothing to send yet; there will be `batches` reports.
    pub(crate) fn new(batches: usize) -> Self {
        Self {
            reports: vec![WriteReport::default(); batches],
            ..Self::default()
        }
    }

    /// Notes that row `(batch, row)` was appended to the body, and sends the body if it is long.
    pub(crate) fn pushed(
        &mut self,
        (batch, row): (usize, usize),
        send: &dyn Fn(&str) -> Result<PartialWrite>,
    ) -> Result<()> {
        self.rows.push((self.lines + 1, batch, row));
        let added = &self.body.as_bytes()[self.measured..];
        // A text may have line breaks of its own.
        self.lines += added.iter().filter(|byte| **byte == b'\n').count();
        self.measured = self.body.len();
        if self.rows.len() >= LINES_MAX || self.body.len() >= BODY_BYTES {
            self.flush(send)?;
        }
        Ok(())
    }

    /// Sends what is left.
    pub(crate) fn flush(&mut self, send: &dyn Fn(&str) -> Result<PartialWrite>) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let refused = send(&self.body)?;
        let rows = std::mem::take(&mut self.rows);
        self.body.clear();
        (self.lines, self.measured) = (0, 0);
        let mut is_refused = vec![false; rows.len()];
        let mut unnamed = refused.rejected;
        for bad in refused.lines {
            let at = rows.partition_point(|(line, ..)| *line <= bad.line);
            let Some(at) = at.checked_sub(1).filter(|at| !is_refused[*at]) else {
                continue;
            };
            is_refused[at] = true;
            unnamed = unnamed.saturating_sub(1);
            let (_, batch, row) = rows[at];
            let reason = bad.message;
            self.reports[batch]
                .rejected
                .push(RejectedRow { row, reason });
        }
        // Of very many the server names only the first: the others follow the last of those.
        let last = is_refused.iter().rposition(|is| *is).map_or(0, |at| at + 1);
        for (_, batch, _) in rows.iter().skip(last).take(unnamed) {
            let reason = "refused by the server, which named only the first ones".to_owned();
            let row = usize::MAX;
            self.reports[*batch]
                .rejected
                .push(RejectedRow { row, reason });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(lines: &[&str], answer: &str) -> WriteReport {
        let mut sender = LineSender::new(1);
        let send = |_: &str| Ok(serde_json::from_str(answer)?);
        for (row, line) in lines.iter().enumerate() {
            sender.body.push_str(line);
            sender.pushed((0, row), &send).unwrap();
        }
        sender.flush(&send).unwrap();
        sender.reports.remove(0)
    }

    #[test]
    fn refused_lines_are_found_behind_texts_of_several_lines() {
        let lines = ["m s=\"a\nb\nc\" 1\n", "m s=\"d\" 2\n", "m s=\"e\" 3\n"];
        let answer = r#"{"stored":2,"rejected":1,"lines":[{"line":4,"message":"no"}]}"#;
        let report = pushed(&lines, answer);
        assert_eq!(report.rejected.len(), 1);
        assert_eq!(
            (report.rejected[0].row, &*report.rejected[0].reason),
            (1, "no")
        );
    }

    #[test]
    fn lines_that_are_only_counted_count() {
        let answer = r#"{"stored":1,"rejected":2,"lines":[{"line":1,"message":"no"}]}"#;
        let report = pushed(&["m v=1 1\n", "m v=1 2\n", "m v=1 3\n"], answer);
        assert_eq!(report.rejected.len(), 2);
    }
}
