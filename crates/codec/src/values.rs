//! The values of a page, borrowed for encoding and owned after decoding; and the limits of a page.

use crate::error::{CodecError, Result};
use crate::kinds::ValueType;

/// Values of one page without nulls, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum PageValues<'a> {
    /// Truth values.
    Bool(&'a [bool]),
    /// 32-bit integers.
    I32(&'a [i32]),
    /// 64-bit integers; also times and timestamps.
    I64(&'a [i64]),
    /// 64-bit unsigned integers.
    U64(&'a [u64]),
    /// 32-bit floats.
    F32(&'a [f32]),
    /// 64-bit floats.
    F64(&'a [f64]),
    /// Strings and bytes.
    Bytes {
        /// One more entry than there are values, ascending, starting at any offset in `data`.
        offsets: &'a [i32],
        /// The values' bytes.
        data: &'a [u8],
    },
}

impl PageValues<'_> {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Bool(values) => values.len(),
            Self::I32(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::Bytes { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Type of the values.
    pub fn value_type(&self) -> ValueType {
        match self {
            Self::Bool(_) => ValueType::Bool,
            Self::I32(_) => ValueType::I32,
            Self::I64(_) => ValueType::I64,
            Self::U64(_) => ValueType::U64,
            Self::F32(_) => ValueType::F32,
            Self::F64(_) => ValueType::F64,
            Self::Bytes { .. } => ValueType::Bytes,
        }
    }

    /// Bytes that the values take in memory.
    pub fn raw_bytes(&self) -> usize {
        match self {
            Self::Bool(values) => values.len().div_ceil(8),
            Self::I32(values) => size_of_val(*values),
            Self::I64(values) => size_of_val(*values),
            Self::U64(values) => size_of_val(*values),
            Self::F32(values) => size_of_val(*values),
            Self::F64(values) => size_of_val(*values),
            Self::Bytes { offsets, .. } => {
                let bytes = match (offsets.first(), offsets.last()) {
                    (Some(first), Some(last)) => (last - first) as usize,
                    _ => 0,
                };
                bytes + size_of_val(*offsets)
            }
        }
    }
}

/// Decoded values of one page.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedValues {
    /// Truth values, one bit each, least significant bit first.
    Bool {
        /// The bits; those past `len` are 0.
        bits: Vec<u8>,
        /// Number of values.
        len: usize,
    },
    /// 32-bit integers.
    I32(Vec<i32>),
    /// 64-bit integers; also times and timestamps.
    I64(Vec<i64>),
    /// 64-bit unsigned integers.
    U64(Vec<u64>),
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
    /// Strings and bytes.
    Bytes {
        /// One more entry than there are values, ascending from 0 to the length of `data`.
        offsets: Vec<i32>,
        /// The values' bytes.
        data: Vec<u8>,
    },
}

/// What a caller allows in a page, so that damaged bytes cannot make it allocate memory.
#[derive(Clone, Copy, Debug)]
pub struct DecodeLimits {
    /// Most values.
    pub values: usize,
    /// Most bytes of a body after decompression, and of strings after decoding.
    pub bytes: usize,
}

impl DecodeLimits {
    pub(crate) fn check_values(self, claimed: usize) -> Result<()> {
        if claimed > self.values {
            let (claimed, limit) = (claimed as u64, self.values as u64);
            return Err(CodecError::Limit {
                what: "values",
                claimed,
                limit,
            });
        }
        Ok(())
    }

    pub(crate) fn check_bytes(self, claimed: u64) -> Result<usize> {
        if claimed > self.bytes as u64 {
            let limit = self.bytes as u64;
            return Err(CodecError::Limit {
                what: "bytes",
                claimed,
                limit,
            });
        }
        Ok(claimed as usize)
    }
}
