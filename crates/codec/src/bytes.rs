//! The bounded reader of bytes that every format reads with, and variable-length integers.
//!
//! A crate that reads a format names the reader with its own error
//! (`type RecordReader<'a> = BoundedReader<'a, MalformedRecord>`), so that `?` needs no conversion.
//!
//! Invariant: no read goes past the end, and no count is believed that the bytes left could not hold.

use crate::error::CodecError;
pub use crate::error::ReadError;
use std::marker::PhantomData;

/// Bytes not yet read. Errors are of the type that the format has for them.
pub struct BoundedReader<'a, E> {
    rest: &'a [u8],
    error: PhantomData<fn() -> E>,
}

/// A reader of encoded values.
pub type ByteReader<'a> = BoundedReader<'a, CodecError>;

impl<E> Clone for BoundedReader<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for BoundedReader<'_, E> {}

impl<E> std::fmt::Debug for BoundedReader<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BoundedReader").field(&self.rest).finish()
    }
}

fn malformed<T, E: From<ReadError>>(reason: &'static str) -> Result<T, E> {
    Err(ReadError::Malformed(reason).into())
}

impl<'a, E: From<ReadError>> BoundedReader<'a, E> {
    /// A reader of all of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            error: PhantomData,
        }
    }

    /// Bytes not yet read, which stay unread.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Number of bytes not yet read.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Fails unless everything was read.
    pub fn end(self) -> Result<(), E> {
        if self.rest.is_empty() {
            return Ok(());
        }
        malformed("bytes are left over at its end")
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], E> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(ReadError::Short)?;
        self.rest = rest;
        Ok(head)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], E> {
        let chunk = self.rest.split_first_chunk::<N>();
        let (head, rest) = chunk.ok_or(ReadError::Short)?;
        self.rest = rest;
        Ok(*head)
    }

    /// The next byte.
    pub fn byte(&mut self) -> Result<u8, E> {
        let (byte, rest) = self.rest.split_first().ok_or(ReadError::Short)?;
        self.rest = rest;
        Ok(*byte)
    }

    /// A truth value: one byte, 0 or 1.
    pub fn flag(&mut self) -> Result<bool, E> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => malformed("a flag is neither 0 nor 1"),
        }
    }

    /// Two bytes, lowest first.
    pub fn u16(&mut self) -> Result<u16, E> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Four bytes, lowest first.
    pub fn u32(&mut self) -> Result<u32, E> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes, lowest first.
    pub fn u64(&mut self) -> Result<u64, E> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Eight bytes, lowest first.
    pub fn i64(&mut self) -> Result<i64, E> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// Four bytes, highest first.
    pub fn i32_be(&mut self) -> Result<i32, E> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// Eight bytes, highest first.
    pub fn i64_be(&mut self) -> Result<i64, E> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// LEB128, seven bits a byte, lowest first; at most ten bytes.
    pub fn varint(&mut self) -> Result<u64, E> {
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
        malformed("a number takes more than 64 bits")
    }

    /// A varint of at most 32 bits.
    pub fn varint32(&mut self) -> Result<u32, E> {
        match u32::try_from(self.varint()?) {
            Ok(value) => Ok(value),
            Err(_) => malformed("a number takes more than 32 bits"),
        }
    }

    /// A varint whose lowest bit is the sign: 0, -1, 1, -2, …
    pub fn signed(&mut self) -> Result<i64, E> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A varint that counts things; the count is at most `max`.
    pub fn count(&mut self, max: usize) -> Result<usize, E> {
        let count = self.varint()?;
        if count > max as u64 {
            return malformed("a count is larger than what it counts");
        }
        Ok(count as usize)
    }

    /// A varint that counts things that follow, of at least `item_bytes` each.
    pub fn varint_count(&mut self, item_bytes: usize) -> Result<usize, E> {
        let count = self.varint()?;
        if count > (self.rest.len() / item_bytes) as u64 {
            return malformed("a list is longer than the bytes that are left");
        }
        Ok(count as usize)
    }

    /// A `u32` that counts things that follow, of at least `item_bytes` each.
    pub fn u32_count(&mut self, item_bytes: usize) -> Result<usize, E> {
        let count = self.u32()? as usize;
        if count > self.rest.len() / item_bytes {
            return malformed("a list is longer than the bytes that are left");
        }
        Ok(count)
    }

    /// Bytes behind their length (`u32`), to be read on their own.
    pub fn part(&mut self) -> Result<Self, E> {
        let len = self.u32_count(1)?;
        Ok(Self::new(self.take(len)?))
    }

    /// A text behind its length (`u32`).
    pub fn text(&mut self) -> Result<String, E> {
        match str::from_utf8(self.part()?.rest) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => malformed("a text is not UTF-8"),
        }
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
        assert_eq!(
            BoundedReader::<ReadError>::new(&[0xff; 9]).varint(),
            Err(ReadError::Short)
        );
        assert!(ByteReader::new(&[0xff; 12]).varint().is_err());
        assert!(
            ByteReader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2])
                .varint()
                .is_err()
        );
    }

    #[test]
    fn what_cannot_be_is_an_error_and_takes_no_memory() {
        type Reader<'a> = BoundedReader<'a, ReadError>;
        let short = Err(ReadError::Short);
        assert_eq!(Reader::new(&[1, 2]).take(3), Err(ReadError::Short));
        assert_eq!(Reader::new(&[1, 2, 3]).u32(), short);
        assert!(Reader::new(&[9, 0, 0]).varint_count(1).is_err());
        assert_eq!(Reader::new(&[2, 0, 0]).varint_count(1), Ok(2));
        assert!(Reader::new(&[2, 0, 0]).varint_count(2).is_err());
        assert!(
            Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x7f])
                .varint32()
                .is_err()
        );
        assert!(Reader::new(&[255, 255, 255, 255, 0]).u32_count(1).is_err());
        assert!(Reader::new(&[2, 0, 0, 0, b'a']).text().is_err());
        assert!(Reader::new(&[1, 0, 0, 0, 0xff]).text().is_err());
        assert!(Reader::new(&[2]).flag().is_err());
        assert!(Reader::new(&[2]).end().is_err());
        let mut reader = Reader::new(&[0, 0, 1, 0, 1, 0, 0, 0, b'x', 7]);
        assert_eq!(reader.i32_be(), Ok(256));
        assert_eq!(reader.text().as_deref(), Ok("x"));
        assert_eq!((reader.rest(), reader.remaining()), (&[7][..], 1));
    }
}
