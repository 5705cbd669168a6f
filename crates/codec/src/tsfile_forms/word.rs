//! The integers that `TsFile` packs: 32 and 64 bits wide, with wrapping arithmetic.

/// A signed integer of 32 or 64 bits.
pub(super) trait TsFileInteger: Copy + PartialEq + PartialOrd {
    const BITS: u32;
    const MAX: Self;
    /// The end mark of a page of `GORILLA` integers.
    const GORILLA_END: Self;
    /// The bits, unsigned.
    fn wide(self) -> u64;
    /// The low bits of `value`.
    fn narrow(value: u64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    /// Appends all bytes, big-endian.
    fn put(self, out: &mut Vec<u8>);
    /// Appends the low `bytes` bytes, in the byte order of a run's value.
    fn put_short(self, bytes: usize, out: &mut Vec<u8>);
    /// Reads what [`TsFileInteger::put_short`] appends.
    fn read_short(bytes: &[u8]) -> Self;
}

impl TsFileInteger for i32 {
    const BITS: u32 = 32;
    const MAX: Self = i32::MAX;
    const GORILLA_END: Self = i32::MIN;
    fn wide(self) -> u64 {
        u64::from(self as u32)
    }
    fn narrow(value: u64) -> Self {
        value as Self
    }
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }
    fn put_short(self, bytes: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes()[..bytes]);
    }
    fn read_short(bytes: &[u8]) -> Self {
        let fold = |value, byte: &u8| value << 8 | i32::from(*byte);
        bytes.iter().rev().fold(0, fold)
    }
}

impl TsFileInteger for i64 {
    const BITS: u32 = 64;
    const MAX: Self = i64::MAX;
    const GORILLA_END: Self = i64::MIN;
    fn wide(self) -> u64 {
        self as u64
    }
    fn narrow(value: u64) -> Self {
        value as Self
    }
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }
    fn put_short(self, bytes: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes()[8 - bytes..]);
    }
    fn read_short(bytes: &[u8]) -> Self {
        let fold = |value, byte: &u8| value << 8 | i64::from(*byte);
        bytes.iter().fold(0, fold)
    }
}
