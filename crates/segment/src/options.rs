//! Settings of segments, and the layout of a table in them.

use marigram_codec::EncodingChoice;

/// Settings of segments of all tables.
#[derive(Clone, Debug)]
pub struct SegmentOptions {
    /// Approximate maximum of rows in a row group; also the maximum of rows in a page.
    pub row_group_rows: usize,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self {
            row_group_rows: 1 << 20,
        }
    }
}

/// How the rows of a table are split into pages, and how pages are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLayout {
    /// Size of a page: bytes of values of 8 bytes each, so that it has this number / 8 rows at
    /// most. The pages of all columns of a row group share their boundaries; one of strings has
    /// about four times as many bytes at most.
    pub page_bytes: u32,
    /// How times are stored.
    pub time: EncodingChoice,
    /// How the values of each column are stored, in the order of the columns.
    pub columns: Vec<EncodingChoice>,
}

impl TableLayout {
    /// Pages of `page_bytes` for `columns` columns, each with the encoding that suits its values.
    #[must_use]
    pub fn auto(page_bytes: u32, columns: usize) -> Self {
        Self {
            page_bytes,
            time: EncodingChoice::default(),
            columns: vec![EncodingChoice::default(); columns],
        }
    }
}

/// Where pages end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageLimits {
    /// Rows, at most.
    pub(crate) rows: usize,
    /// Bytes of strings of one column, about at most.
    pub(crate) text_bytes: usize,
}

impl PageLimits {
    pub(crate) fn new(page_bytes: u32, options: &SegmentOptions) -> Self {
        let rows = page_bytes as usize / 8;
        Self {
            rows: rows.min(options.row_group_rows).max(1),
            text_bytes: page_bytes as usize * 4,
        }
    }
}
