//! TODO.

use crate::data::{Source, Stream, Table};

/// TODO.
pub struct SetS;

impl SetS {
    /// TODO.
    pub fn new(_devices: usize, _rows: usize, _seed: u64) -> Self {
        Self
    }
}

impl Source for SetS {
    fn tables(&self) -> &[Table] {
        &[]
    }

    fn rows(&self) -> u64 {
        0
    }

    fn span_ns(&self) -> (i64, i64) {
        (0, 0)
    }

    fn stream(&self, _client: usize, _clients: usize, _batch_rows: usize) -> Stream<'_> {
        Box::new(std::iter::empty())
    }
}
