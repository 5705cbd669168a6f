//! Reads and writes bits, most significant first.

use crate::error::{PartError, PartResult};

/// Bits that have not been read yet.
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn bit(&mut self) -> PartResult<bool> {
        Ok(self.bits(1)? == 1)
    }

    /// Reads the next `count` bits, at most 64.
    pub(super) fn bits(&mut self, count: u32) -> PartResult<u64> {
        let mut value = 0u64;
        let mut left = count as usize;
        if left > self.bytes.len() * 8 - self.at {
            return Err(PartError::Short);
        }
        while left > 0 {
            let in_byte = 8 - self.at % 8;
            let taken = in_byte.min(left);
            let byte = u64::from(self.bytes[self.at / 8]);
            let bits = (byte >> (in_byte - taken)) & ((1 << taken) - 1);
            value = (value << taken) | bits;
            self.at += taken;
            left -= taken;
        }
        Ok(value)
    }
}

/// Appends bits to bytes.
pub(super) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Unused bits of the last byte.
    free: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, free: 0 }
    }

    /// Appends the lowest `count` bits of `value`.
    pub(super) fn put(&mut self, value: u64, count: u32) {
        let mut left = count;
        while left > 0 {
            if self.free == 0 {
                self.out.push(0);
                self.free = 8;
            }
            let taken = self.free.min(left);
            let bits = (value >> (left - taken)) & ((1 << taken) - 1);
            if let Some(last) = self.out.last_mut() {
                *last |= (bits << (self.free - taken)) as u8;
            }
            self.free -= taken;
            left -= taken;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back() {
        let mut out = Vec::new();
        let mut writer = BitWriter::new(&mut out);
        let values = [(5, 3), (u64::MAX, 64), (0, 1), (0x1234, 13), (1, 1)];
        for (value, count) in values {
            writer.put(value, count);
        }
        let mut reader = BitReader::new(&out);
        for (value, count) in values {
            let mask = u64::MAX >> (64 - count);
            assert_eq!(reader.bits(count), Ok(value & mask));
        }
        assert_eq!(reader.bits(8), Err(PartError::Short));
    }
}
