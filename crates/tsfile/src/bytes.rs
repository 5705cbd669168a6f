//! Numbers and texts in TsFile's encodings: big-endian, LEB128, zigzag.
//!
//! Invariant: no read goes past the end; a truncated part is an error.

use crate::error::{PartError, PartResult};
use marigram_codec::bytes::BoundedReader;

/// Length that represents "no text".
const NO_TEXT: i32 = -1;

/// Bytes not yet read.
pub(crate) type Cursor<'a> = BoundedReader<'a, PartError>;

/// What only TsFile has.
pub(crate) trait TsFileBytes<'a> {
    /// A count of things of which each takes at least a byte of what follows.
    fn list_count(&mut self) -> PartResult<usize>;

    /// Zigzag LEB128 of 32 bits.
    fn ivar(&mut self) -> PartResult<i32>;

    /// Bytes after their length as zigzag; `None` for the length -1.
    fn var_bytes(&mut self) -> PartResult<Option<&'a [u8]>>;

    /// A text that may be absent.
    fn var_text(&mut self) -> PartResult<Option<String>>;

    /// A text that must be there.
    fn var_name(&mut self) -> PartResult<String>;

    /// Bytes after their length as four bytes; a length of -1 is read as nothing.
    fn long_bytes(&mut self) -> PartResult<&'a [u8]>;

    /// A text after its length as four bytes.
    fn long_text(&mut self) -> PartResult<String>;
}

impl<'a> TsFileBytes<'a> for Cursor<'a> {
    fn list_count(&mut self) -> PartResult<usize> {
        let count = self.varint32()? as usize;
        if count > self.remaining() {
            return Err(PartError::Short);
        }
        Ok(count)
    }

    fn ivar(&mut self) -> PartResult<i32> {
        let value = self.varint32()?;
        Ok((value >> 1) as i32 ^ -((value & 1) as i32))
    }

    fn var_bytes(&mut self) -> PartResult<Option<&'a [u8]>> {
        match self.ivar()? {
            NO_TEXT => Ok(None),
            len => match usize::try_from(len) {
                Ok(len) => self.take(len).map(Some),
                Err(_) => Err(PartError::Wrong("a length is negative")),
            },
        }
    }

    fn var_text(&mut self) -> PartResult<Option<String>> {
        self.var_bytes()?.map(text).transpose()
    }

    fn var_name(&mut self) -> PartResult<String> {
        self.var_text()?
            .ok_or(PartError::Wrong("a name is missing"))
    }

    fn long_bytes(&mut self) -> PartResult<&'a [u8]> {
        match self.i32_be()? {
            NO_TEXT => Ok(&[]),
            len => match usize::try_from(len) {
                Ok(len) => self.take(len),
                Err(_) => Err(PartError::Wrong("a length is negative")),
            },
        }
    }

    fn long_text(&mut self) -> PartResult<String> {
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
        assert!(Cursor::new(&[0xff; 9]).varint32().is_err());
        assert_eq!(Cursor::new(&[5, 1]).list_count(), Err(PartError::Short));
    }
}
