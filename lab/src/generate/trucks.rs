//! TODO.

use crate::data::{Source, Stream, Table};

/// TODO.
pub struct Trucks;

impl Trucks {
    /// TODO.
    pub fn new(_trucks: usize, _steps: usize, _step_s: u32, _seed: u64) -> Self {
        Self
    }
}

impl Source for Trucks {
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
