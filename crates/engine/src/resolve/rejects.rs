//! Rows of a batch that cannot be stored, each with its first reason.

/// Rejected rows. It costs nothing while there are none.
#[derive(Debug)]
pub(crate) struct RowRejections {
    rows: usize,
    /// By row; empty while there are none.
    bad: Vec<bool>,
    reasons: Vec<(u32, String)>,
}

impl RowRejections {
    /// No rejections yet, of this many rows.
    pub(crate) fn new(rows: usize) -> Self {
        Self {
            rows,
            bad: Vec::new(),
            reasons: Vec::new(),
        }
    }

    /// Rejects a row; a row that is already rejected keeps its reason.
    pub(crate) fn add(&mut self, row: usize, reason: impl FnOnce() -> String) {
        self.bad.resize(self.rows, false);
        if !std::mem::replace(&mut self.bad[row], true) {
            self.reasons.push((row as u32, reason()));
        }
    }

    /// Whether a row is rejected.
    pub(crate) fn contains(&self, row: usize) -> bool {
        self.bad.get(row).copied().unwrap_or(false)
    }

    /// Whether no row is rejected.
    pub(crate) fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    /// (row, reason), ascending by row.
    pub(crate) fn into_reasons(mut self) -> Vec<(u32, String)> {
        self.reasons.sort_by_key(|(row, _)| *row);
        self.reasons
    }
}
