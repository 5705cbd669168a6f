//! TODO.

use crate::data::{Source, Stream, Table};

/// TODO.
pub struct Iot;

impl Iot {
    /// TODO.
    pub fn new(_spec: &super::IotSpec, _seed: u64) -> Self {
        Self
    }
}

impl Source for Iot {
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
