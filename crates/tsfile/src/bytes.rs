//! Numbers and texts in TsFile's encodings: big-endian, LEB128, zigzag.
//!
//! Invariant: no read goes past the end; a truncated part is an error.

use crate::error::{PartError, PartResult};

/// Length that represents "no text".
const NO_TEXT: i32 = -1;

/// Bytes that have not been read yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            len: bytes.len(),
        }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Number of bytes read.
    pub(crate) fn position(&self) -> usize {
        self.len - self.rest.len()
    }

    pub(crate) fn take(&mut self, len: usize) -> PartResult<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(PartError::Short)?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> PartResult<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(PartError::Short)?;
        self.rest = rest;
        Ok(*head)
    }

    pub(crate) fn byte(&mut self) -> PartResult<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn i32(&mut self) -> PartResult<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> PartResult<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// LEB128 of at most 32 bits.
    pub(crate) fn uvar(&mut self) -> PartResult<u32> {
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value)
                    .map_err(|_| PartError::Wrong("a number takes over 32 bits"));
            }
        }
        Err(PartError::Wrong("a number takes over 32 bits"))
    }

    /// A count of items, each of which takes at least one of the following bytes.
    pub(crate) fn count(&mut self) -> PartResult<usize> {
        let count = self.uvar()? as usize;
        if count > self.rest.len() {
            return Err(PartError::Short);
        }
        Ok(count)
    }

    /// LEB128 of at most 64 bits.
    pub(crate) fn uvar64(&mut self) -> PartResult<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(PartError::Wrong("a number takes over 64 bits"))
    }

    /// Zigzag LEB128.
    pub(crate) fn ivar(&mut self) -> PartResult<i32> {
        let value = self.uvar()?;
        Ok((value >> 1) as i32 ^ -((value & 1) as i32))
    }

    /// Bytes preceded by their length as zigzag; `None` for length -1.
    pub(crate) fn var_bytes(&mut self) -> PartResult<Option<&'a [u8]>> {
        match self.ivar()? {
            NO_TEXT => Ok(None),
            len => match usize::try_from(len) {
                Ok(len) => self.take(len).map(Some),
                Err(_) => Err(PartError::Wrong("a length is negative")),
            },
        }
    }

    /// An optional text.
    pub(crate) fn var_text(&mut self) -> PartResult<Option<String>> {
        self.var_bytes()?.map(text).transpose()
    }

    /// A required text.
    pub(crate) fn var_name(&mut self) -> PartResult<String> {
        self.var_text()?
            .ok_or(PartError::Wrong("a name is missing"))
    }

    /// Bytes preceded by their length in four bytes; length -1 is read as empty.
    pub(crate) fn long_bytes(&mut self) -> PartResult<&'a [u8]> {
        match self.i32()? {
            NO_TEXT => Ok(&[]),
            len => match usize::try_from(len) {
                Ok(len) => self.take(len),
                Err(_) => Err(PartError::Wrong("a length is negative")),
            },
        }
    }

    /// A text preceded by its length in four bytes.
    pub(crate) fn long_text(&mut self) -> PartResult<String> {
        text(self.long_bytes()?)
    }
}

fn text(bytes: &[u8]) -> PartResult<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| PartError::Wrong("a text is not UTF-8"))
}

pub(crate) fn put_uvar(mut value: u32, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_ivar(value: i32, out: &mut Vec<u8>) {
    put_uvar(((value << 1) ^ (value >> 31)) as u32, out);
}

/// The lengths always fit, because they come from values that fit into a page or a name.
pub(crate) fn put_var_bytes(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    match bytes {
        Some(bytes) => {
            put_ivar(bytes.len() as i32, out);
            out.extend_from_slice(bytes);
        }
        None => put_ivar(NO_TEXT, out),
    }
}

pub(crate) fn put_var_text(text: &str, out: &mut Vec<u8>) {
    put_var_bytes(Some(text.as_bytes()), out);
}

pub(crate) fn put_i32(value: i32, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(crate) fn put_i64(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(crate) fn put_long_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_i32(bytes.len() as i32, out);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_come_back() {
        let mut out = Vec::new();
        for value in [0, 1, -1, i32::MAX, i32::MIN] {
            put_ivar(value, &mut out);
        }
        put_var_text("ü", &mut out);
        put_var_bytes(None, &mut out);
        put_long_bytes(b"ab", &mut out);
        let mut cursor = Cursor::new(&out);
        for value in [0, 1, -1, i32::MAX, i32::MIN] {
            assert_eq!(cursor.ivar(), Ok(value));
        }
        assert_eq!(cursor.var_text(), Ok(Some("ü".to_owned())));
        assert_eq!(cursor.var_text(), Ok(None));
        assert_eq!(cursor.long_text(), Ok("ab".to_owned()));
        assert!(cursor.is_empty());
        assert_eq!(cursor.byte(), Err(PartError::Short));
        assert!(Cursor::new(&[0xff; 9]).uvar().is_err());
        assert!(Cursor::new(&[0xff; 12]).uvar64().is_err());
        assert_eq!(Cursor::new(&[5, 1]).count(), Err(PartError::Short));
    }
}
