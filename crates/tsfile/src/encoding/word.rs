//! The two integer widths that the encodings support.

use crate::bytes::Cursor;
use crate::error::PartResult;

/// A 32-bit or 64-bit integer.
pub(super) trait EncodedInteger: Copy + Default + Eq + Ord {
    /// Its width.
    const BITS: u32;
    /// Bits that encode a number of leading zeros.
    const LEADING_BITS: u32;
    /// Its bits, with the upper bits of 64 clear.
    fn to_bits(self) -> u64;
    /// Converts from the lower bits.
    fn from_bits(bits: u64) -> Self;
    /// Reads it, big-endian.
    fn read(cursor: &mut Cursor<'_>) -> PartResult<Self>;
    /// Appends it, big-endian.
    fn put(self, out: &mut Vec<u8>);
}

impl EncodedInteger for i32 {
    const BITS: u32 = 32;
    const LEADING_BITS: u32 = 5;

    fn to_bits(self) -> u64 {
        u64::from(self as u32)
    }

    fn from_bits(bits: u64) -> Self {
        bits as u32 as i32
    }

    fn read(cursor: &mut Cursor<'_>) -> PartResult<Self> {
        cursor.i32()
    }

    fn put(self, out: &mut Vec<u8>) {
        crate::bytes::put_i32(self, out);
    }
}

impl EncodedInteger for i64 {
    const BITS: u32 = 64;
    const LEADING_BITS: u32 = 6;

    fn to_bits(self) -> u64 {
        self as u64
    }

    fn from_bits(bits: u64) -> Self {
        bits as i64
    }

    fn read(cursor: &mut Cursor<'_>) -> PartResult<Self> {
        cursor.i64()
    }

    fn put(self, out: &mut Vec<u8>) {
        crate::bytes::put_i64(self, out);
    }
}
