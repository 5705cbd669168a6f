//! What is known of the columns of a SELECT while they are looked at.

use super::FunctionUse;

/// Whether there are groups of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IntervalUse {
    /// There are none.
    None,
    /// GROUP BY asks for them.
    Own,
    /// Those of the query around this one.
    Inherited,
}

/// What is known of the columns.
#[derive(Debug)]
pub(super) struct ColumnState {
    pub(super) functions: FunctionUse,
    /// Groups before the first that functions look at.
    pub(super) extra_intervals: u64,
    /// Columns but `time`.
    pub(super) count: usize,
    pub(super) interval: IntervalUse,
    /// LIMIT, 0 for none.
    pub(super) limit: u64,
    /// The answer is written somewhere.
    pub(super) has_target: bool,
    /// A wildcard may stand here: not behind an operator.
    pub(super) wildcard_allowed: bool,
}

impl ColumnState {
    /// Whether there are groups of time, own or inherited.
    pub(super) fn has_interval(&self) -> bool {
        self.interval != IntervalUse::None
    }

    /// Notes a transformation that needs groups of time before the first.
    pub(super) fn looks_back(&mut self, intervals: u64) {
        self.functions.only_selectors = false;
        self.extra_intervals = self.extra_intervals.max(intervals);
    }

    /// Counts a tag named in `top` or `bottom` as a column, unless the answer is written somewhere.
    pub(super) fn named_in_top_bottom(&mut self) {
        if !self.has_target {
            self.count += 1;
            self.functions.has_bare_columns = true;
        }
    }
}
