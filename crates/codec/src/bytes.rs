//! Reads bounded bytes, and variable-length integers.
//!
//! Invariant: no read goes past the end; a truncated input is an error.

use crate::error::{CodecError, Result};

const SHORT: CodecError = CodecError::Damaged("it ends early");

/// Bytes that have not been read yet.
#[derive(Clone, Copy, Debug)]
pub struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    /// A reader of all of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(SHORT)?;
        self.0 = rest;
        Ok(head)
    }

    /// Number of bytes that have not been read yet.
    pub fn remaining(&self) -> usize {
        self.0.len()
    }

    /// The next byte.
    pub fn byte(&mut self) -> Result<u8> {
        let (byte, rest) = self.0.split_first().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*byte)
    }

    /// LEB128: seven bits per byte, lowest first; at most ten bytes.
    pub fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(CodecError::Damaged("a number takes more than 64 bits"))
    }

    /// A varint whose lowest bit is the sign: 0, -1, 1, -2, …
    pub fn signed(&mut self) -> Result<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A varint that counts at most `max` items.
    pub fn count(&mut self, max: usize) -> Result<usize> {
        let count = self.varint()?;
        if count > max as u64 {
            return Err(CodecError::Damaged("a count is larger than what it counts"));
        }
        Ok(count as usize)
    }

    /// Fails unless everything was read.
    pub fn end(self) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(CodecError::Damaged("bytes are left over at its end"))
    }
}

/// Appends what [`ByteReader::varint`] reads.
pub fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends what [`ByteReader::signed`] reads.
pub fn put_signed(value: i64, out: &mut Vec<u8>) {
    put_varint(((value << 1) ^ (value >> 63)) as u64, out);
}

/// Bytes that [`put_signed`] takes.
pub(crate) fn signed_len(value: i64) -> usize {
    let zigzag = ((value << 1) ^ (value >> 63)) as u64;
    (64 - (zigzag | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN, 1 << 40] {
            let mut out = Vec::new();
            put_signed(value, &mut out);
            assert_eq!(out.len(), signed_len(value), "{value}");
            let mut reader = ByteReader::new(&out);
            assert_eq!(reader.signed(), Ok(value));
            assert_eq!(reader.end(), Ok(()));
        }
        assert!(ByteReader::new(&[0xff; 9]).varint().is_err());
        assert!(ByteReader::new(&[0xff; 12]).varint().is_err());
        assert!(
            ByteReader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2])
                .varint()
                .is_err()
        );
    }
}
