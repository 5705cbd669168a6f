//! Variable-length integers and checked reading, for the segment's indexes.
//!
//! Invariant: no read goes past the end, and no count is believed that the bytes left could not
//! hold.

use crate::error::BlockDamage;

/// Reads a block from front to back.
#[derive(Debug)]
pub(crate) struct IndexReader<'a> {
    rest: &'a [u8],
}

const SHORT: &str = "it ends early";

impl<'a> IndexReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], BlockDamage> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(SHORT)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], BlockDamage> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(SHORT)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, BlockDamage> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn varint(&mut self) -> Result<u64, BlockDamage> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(BlockDamage::from("a number is longer than 64 bits"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64, BlockDamage> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, BlockDamage> {
        u32::try_from(self.varint()?)
            .map_err(|_| BlockDamage::from("a number is longer than 32 bits"))
    }

    /// A count of things that take at least `least` bytes each.
    pub(crate) fn count(&mut self, least: usize) -> Result<usize, BlockDamage> {
        let count = self.varint()?;
        if count > (self.rest.len() / least) as u64 {
            return Err(BlockDamage(format!(
                "{count} entries cannot stand in {} bytes",
                self.rest.len()
            )));
        }
        Ok(count as usize)
    }

    pub(crate) fn end(self) -> Result<(), BlockDamage> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(BlockDamage(format!(
            "{} bytes are left over",
            self.rest.len()
        )))
    }
}

pub(crate) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_signed(value: i64, out: &mut Vec<u8>) {
    put_varint(((value << 1) ^ (value >> 63)) as u64, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut bytes = Vec::new();
        let signed = [0, 1, -1, 63, -64, i64::MAX, i64::MIN];
        for value in signed {
            put_signed(value, &mut bytes);
        }
        put_varint(u64::MAX, &mut bytes);
        let mut reader = IndexReader::new(&bytes);
        for value in signed {
            assert_eq!(reader.signed(), Ok(value));
        }
        assert_eq!(reader.varint(), Ok(u64::MAX));
        assert_eq!(reader.end(), Ok(()));
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        assert!(IndexReader::new(&[0xff; 10]).varint().is_err());
        assert!(IndexReader::new(&[0x80]).varint().is_err());
        assert!(IndexReader::new(&[9, 0, 0]).count(1).is_err());
        assert!(
            IndexReader::new(&[0xff, 0xff, 0xff, 0xff, 0x7f])
                .u32()
                .is_err()
        );
    }
}
