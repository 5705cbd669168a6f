//! What runs inline: on the thread that asks for it, which may be one that serves connections.
//!
//! Handing work to another thread and being woken at its end takes 50 to 100 µs, several times as
//! long as most short statements and most small encodings. Work that takes less than that runs
//! inline; everything else runs on threads of its own, so that it holds up nobody. Counts decide,
//! and not time, so that the same work runs in the same place each time.
//!
//! All limits stand in [`InlinePolicy::DEFAULT`]. A statement runs inline if its plan is cached and
//! every check passes: before it is planned for the current data ([`InlinePolicy::selection`]), and
//! by its operators ([`InlinePolicy::scan`], [`InlinePolicy::aggregate`]). An aggregate that must
//! read more than [`InlinePolicy::pages`] allows moves to other threads while it runs. `EXPLAIN
//! ANALYZE` shows the outcome.

use std::fmt;

/// Whether work runs inline, or why not.
pub type InlineDecision = Result<(), InlineRefusal>;

/// Why work does not run inline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InlineRefusal {
    /// There is too much of something.
    TooMany {
        /// What is counted.
        what: &'static str,
        /// How much there is.
        count: u64,
        /// The limit.
        max: u64,
    },
    /// Its kind never runs inline.
    Kind(&'static str),
}

impl fmt::Display for InlineRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { what, count, max } => write!(f, "{count} {what}, at most {max}"),
            Self::Kind(kind) => f.write_str(kind),
        }
    }
}

/// The series and rows of a scan, as the planner estimates them.
#[derive(Clone, Copy, Debug)]
pub struct ScanSize {
    /// The partitions in which it is read.
    pub partitions: u64,
    /// The series that are read.
    pub series: u64,
    /// About how many rows they have within the times that are read.
    pub rows: u64,
}

/// The limits of inline work. Each was measured as the size at which the work takes about as long
/// as handing it over.
#[derive(Clone, Copy, Debug)]
pub struct InlinePolicy {
    /// Bytes of a statement that is parsed inline.
    pub statement_bytes_max: usize,
    /// Series of a table in which any condition on tags may select series. Conditions that the
    /// series index answers by a lookup may select from tables of any size.
    pub table_series_max: u64,
    /// Series of a scan.
    pub scan_series_max: u64,
    /// Rows of a scan whose statement runs inline as a whole.
    pub scan_rows_max: u64,
    /// The first rows of any scan of [`scan_series_max`](Self::scan_series_max) series, which are
    /// read by the thread that polls the scan.
    pub first_rows: usize,
    /// Series of an aggregate whose statement runs inline as a whole, if it has several groups.
    pub aggregate_series_max: u64,
    /// Series of an aggregate with several groups that begins on the thread that polls it: it
    /// looks their groups up.
    pub begin_series_max: u64,
    /// Steps of an aggregate: a step reads at most one page.
    pub steps_max: usize,
    /// Sources of a partition whose steps are short: each source is looked at for each series.
    pub sources_max: usize,
    /// Rows of a chunk in memory that is read in one step.
    pub chunk_rows_max: usize,
    /// Pages that an aggregate reads.
    pub pages_max: u64,
    /// If an aggregate has at most this many rows, late ones may be spread over many segments, with
    /// a few in a page of each. Then the next limit holds.
    pub few_rows_max: u64,
    /// Pages that an aggregate of few rows reads: they are nearly empty.
    pub pages_of_few_rows_max: u64,
    /// Groups and buckets of an aggregate whose result is made by the thread that polls it.
    pub slots_max: usize,
    /// Bytes of a request's body that is parsed, and of an answer that is compressed, by the thread
    /// that serves the connection.
    pub body_inline_bytes: usize,
    /// Rows of a part of an answer over HTTP that is formatted there.
    pub formatted_rows_max: usize,
    /// Values of a batch for the PostgreSQL wire that is encoded there.
    pub encoded_values_max: usize,
    /// Values of a whole answer that are encoded there, batch by batch. A longer answer is worth
    /// another thread, and its first rows have been sent.
    pub answer_values_max: usize,
}

impl InlinePolicy {
    /// The limits in use.
    pub const DEFAULT: Self = Self {
        statement_bytes_max: 4 << 10,
        table_series_max: 4096,
        scan_series_max: 64,
        scan_rows_max: 4096,
        first_rows: 16 << 10,
        aggregate_series_max: 1024,
        begin_series_max: 4096,
        steps_max: 1024,
        sources_max: 32,
        chunk_rows_max: 16 << 10,
        pages_max: 4,
        few_rows_max: 16 << 10,
        pages_of_few_rows_max: 32,
        slots_max: 4096,
        body_inline_bytes: 16 << 10,
        formatted_rows_max: 256,
        encoded_values_max: 8 << 10,
        answer_values_max: 64 << 10,
    };

    /// Whether series may be selected from a table with this many. `is_lookup`: the series index
    /// finds them without comparing.
    ///
    /// # Errors
    /// Why not.
    pub fn selection(&self, table_series: u64, is_lookup: bool) -> InlineDecision {
        if is_lookup {
            return Ok(());
        }
        at_most("series in the table", table_series, self.table_series_max)
    }

    /// Whether a statement that reads rows runs inline.
    ///
    /// # Errors
    /// Why not.
    pub fn scan(&self, size: ScanSize) -> InlineDecision {
        at_most("partitions", size.partitions, 1)?;
        at_most("series", size.series, self.scan_series_max)?;
        at_most("rows", size.rows, self.scan_rows_max)
    }

    /// The rows of a scan of this many series that the thread that polls it reads.
    pub fn first_rows_of(&self, series: u64) -> usize {
        if series <= self.scan_series_max {
            self.first_rows
        } else {
            0
        }
    }

    /// Whether a statement that aggregates this many series into several groups runs inline.
    /// `knows_last` tells whether the last rows that it may need are in memory.
    ///
    /// # Errors
    /// Why not.
    pub fn aggregate(&self, series: u64, knows_last: impl FnOnce() -> bool) -> InlineDecision {
        at_most("series", series, self.aggregate_series_max)?;
        self.begin(series, knows_last)
    }

    /// Whether such an aggregate begins on the thread that polls it.
    ///
    /// # Errors
    /// Why not.
    pub fn begin(&self, series: u64, knows_last: impl FnOnce() -> bool) -> InlineDecision {
        at_most("series", series, self.begin_series_max)?;
        if knows_last() {
            Ok(())
        } else {
            Err(InlineRefusal::Kind("last rows are not in memory"))
        }
    }

    /// The pages that an aggregate over about this many rows reads inline.
    pub fn pages(&self, rows: u64) -> u64 {
        if rows <= self.few_rows_max {
            self.pages_of_few_rows_max
        } else {
            self.pages_max
        }
    }
}

fn at_most(what: &'static str, count: u64, max: u64) -> InlineDecision {
    if count <= max {
        Ok(())
    } else {
        Err(InlineRefusal::TooMany { what, count, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_included_and_refusals_say_what_is_too_much() {
        let policy = InlinePolicy::DEFAULT;
        let size = |partitions, series, rows| ScanSize {
            partitions,
            series,
            rows,
        };
        assert_eq!(policy.scan(size(1, 64, 4096)), Ok(()));
        let why = |decision: InlineDecision| decision.map_err(|why| why.to_string());
        for (size, expected) in [
            (size(2, 1, 1), "2 partitions, at most 1"),
            (size(1, 65, 1), "65 series, at most 64"),
            (size(1, 1, 4097), "4097 rows, at most 4096"),
        ] {
            assert_eq!(why(policy.scan(size)), Err(expected.to_owned()));
        }
        assert_eq!(policy.selection(4096, false), Ok(()));
        assert_eq!(policy.selection(1_000_000, true), Ok(()));
        let many = "4097 series in the table, at most 4096";
        assert_eq!(why(policy.selection(4097, false)), Err(many.to_owned()));
        assert_eq!(policy.aggregate(1024, || true), Ok(()));
        assert!(policy.aggregate(1025, || true).is_err());
        assert_eq!(policy.begin(1025, || true), Ok(()));
        let unknown = "last rows are not in memory";
        assert_eq!(why(policy.begin(1, || false)), Err(unknown.to_owned()));
        assert_eq!(
            (policy.pages(16 << 10), policy.pages((16 << 10) + 1)),
            (32, 4)
        );
        assert_eq!(
            (policy.first_rows_of(64), policy.first_rows_of(65)),
            (16 << 10, 0)
        );
    }
}
