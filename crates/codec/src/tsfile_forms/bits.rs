//! Bits as `TsFile` packs them: the most significant bit of a value first, the first value highest
//! in its byte.

use crate::error::{CodecError, Result};

/// Appends bits.
pub(super) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    pending: u128,
    filled: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            pending: 0,
            filled: 0,
        }
    }

    /// Appends the low `width` bits of `value`; `width` is at most 64.
    pub(super) fn put(&mut self, value: u64, width: u32) {
        if width == 0 {
            return;
        }
        let value = value & (u64::MAX >> (64 - width));
        self.pending = self.pending << width | u128::from(value);
        self.filled += width;
        if self.filled >= 64 {
            self.filled -= 64;
            let word = (self.pending >> self.filled) as u64;
            self.out.extend_from_slice(&word.to_be_bytes());
        }
    }

    /// Appends the last partial byte, padded with zeros; returns how many bits of it were used.
    pub(super) fn finish(self) -> u32 {
        let last = (self.pending << (64 - self.filled)) as u64;
        let bytes = self.filled.div_ceil(8) as usize;
        self.out.extend_from_slice(&last.to_be_bytes()[..bytes]);
        self.filled % 8
    }
}

/// Bits that have not been read yet.
#[derive(Clone, Copy)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    bit: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, bit: 0 }
    }

    /// The next `width` bits, at most 64.
    pub(super) fn take(&mut self, width: u32) -> Result<u64> {
        if width == 0 {
            return Ok(0);
        }
        let rest = self.bytes.get(self.bit / 8..).unwrap_or_default();
        let shift = (self.bit % 8) as u32;
        let window = if let Some(chunk) = rest.first_chunk::<16>() {
            u128::from_be_bytes(*chunk)
        } else {
            if rest.len() * 8 < (shift + width) as usize {
                return Err(CodecError::Damaged("its bits end early"));
            }
            let mut chunk = [0; 16];
            chunk[..rest.len()].copy_from_slice(rest);
            u128::from_be_bytes(chunk)
        };
        self.bit += width as usize;
        Ok((window << shift >> (128 - width)) as u64)
    }

    /// Number of bits read so far.
    pub(super) fn position(&self) -> usize {
        self.bit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_highest_first() {
        let mut out = Vec::new();
        let mut writer = BitWriter::new(&mut out);
        let widths = [1u32, 7, 64, 3, 0, 33, 63, 64, 5, 64];
        for (at, width) in widths.into_iter().enumerate() {
            writer.put(0x9E37_79B9_7F4A_7C15_u64.rotate_left(at as u32), width);
        }
        assert_eq!(writer.finish(), 304 % 8);
        assert_eq!(out.len(), 38);
        let mut reader = BitReader::new(&out);
        for (at, width) in widths.into_iter().enumerate() {
            let value = 0x9E37_79B9_7F4A_7C15_u64.rotate_left(at as u32);
            let low = value & u64::MAX.checked_shr(64 - width).unwrap_or(0);
            assert_eq!(reader.take(width), Ok(low), "{width} bits");
        }
        assert_eq!(reader.position(), 304);
        assert!(reader.take(1).is_err());

        let mut out = Vec::new();
        let mut writer = BitWriter::new(&mut out);
        for value in [5, 4, 7, 3, 0, 1, 3, 2] {
            writer.put(value, 3);
        }
        writer.finish();
        assert_eq!(out, [0b1011_0011, 0b1011_0000, 0b0101_1010]);
    }
}
