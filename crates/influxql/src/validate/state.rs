//! The state of checking the columns of a SELECT.

use super::FunctionUse;

/// Whether there are groups of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IntervalUse {
    /// There are none.
    None,
    /// GROUP BY specifies them.
    Own,
    /// They are those of the enclosing query.
    Inherited,
}

/// The facts about the columns so far.
#[derive(Debug)]
pub(super) struct ColumnState {
    pub(super) functions: FunctionUse,
    /// The number of groups before the first that functions read.
    pub(super) extra_intervals: u64,
    /// The number of columns except `time`.
    pub(super) count: usize,
    pub(super) interval: IntervalUse,
    /// LIMIT, 0 for none.
    pub(super) limit: u64,
    /// Whether the answer is written to a target.
    pub(super) has_target: bool,
    /// Whether a wildcard is allowed here: not after an operator.
    pub(super) wildcard_allowed: bool,
}

impl ColumnState {
    /// Whether there are groups of time, own or inherited.
    pub(super) fn has_interval(&self) -> bool {
        self.interval != IntervalUse::None
    }

    /// Records a transformation that needs groups of time before the first.
    pub(super) fn looks_back(&mut self, intervals: u64) {
        self.functions.only_selectors = false;
        self.extra_intervals = self.extra_intervals.max(intervals);
    }

    /// Counts a tag named in `top` or `bottom` as a column, unless the answer is written to a
    /// target.
    pub(super) fn named_in_top_bottom(&mut self) {
        if !self.has_target {
            self.count += 1;
            self.functions.has_bare_columns = true;
        }
    }
}
