//! Writes values as a frame's bytes.

use super::types::{WireProtocol, WireType};

/// Writes the values of a message, in either protocol.
pub struct WireWriter {
    bytes: Vec<u8>,
    protocol: WireProtocol,
    last_field: i16,
}

impl WireWriter {
    /// A writer without anything written.
    pub fn new(protocol: WireProtocol) -> Self {
        Self {
            bytes: Vec::new(),
            protocol,
            last_field: 0,
        }
    }

    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn zigzag(&mut self, value: i64) {
        self.varint(((value << 1) ^ (value >> 63)) as u64);
    }

    /// A boolean that is no field.
    pub fn bool(&mut self, value: bool) {
        self.bytes.push(match (self.protocol, value) {
            (_, true) => 1,
            (WireProtocol::Binary, false) => 0,
            (WireProtocol::Compact, false) => 2,
        });
    }

    /// A byte.
    pub fn i8(&mut self, value: i8) {
        self.bytes.push(value as u8);
    }

    /// A 16-bit integer.
    pub fn i16(&mut self, value: i16) {
        match self.protocol {
            WireProtocol::Binary => self.raw(&value.to_be_bytes()),
            WireProtocol::Compact => self.zigzag(i64::from(value)),
        }
    }

    /// A 32-bit integer.
    pub fn i32(&mut self, value: i32) {
        match self.protocol {
            WireProtocol::Binary => self.raw(&value.to_be_bytes()),
            WireProtocol::Compact => self.zigzag(i64::from(value)),
        }
    }

    /// A 64-bit integer.
    pub fn i64(&mut self, value: i64) {
        match self.protocol {
            WireProtocol::Binary => self.raw(&value.to_be_bytes()),
            WireProtocol::Compact => self.zigzag(value),
        }
    }

    /// A 64-bit float.
    pub fn double(&mut self, value: f64) {
        match self.protocol {
            WireProtocol::Binary => self.raw(&value.to_be_bytes()),
            WireProtocol::Compact => self.raw(&value.to_le_bytes()),
        }
    }

    /// Bytes. Callers bound the length of a frame, so it fits.
    pub fn binary(&mut self, value: &[u8]) {
        self.len(value.len());
        self.raw(value);
    }

    /// A length.
    fn len(&mut self, len: usize) {
        match self.protocol {
            WireProtocol::Binary => self.raw(&(len as u32).to_be_bytes()),
            WireProtocol::Compact => self.varint(len as u64),
        }
    }

    pub(super) fn list_head(&mut self, element: WireType, len: usize) {
        match self.protocol {
            WireProtocol::Binary => {
                self.bytes.push(element.binary_number());
                self.len(len);
            }
            WireProtocol::Compact if len < 15 => {
                self.bytes.push((len as u8) << 4 | element.compact_number());
            }
            WireProtocol::Compact => {
                self.bytes.push(0xf0 | element.compact_number());
                self.varint(len as u64);
            }
        }
    }

    pub(super) fn map_head(&mut self, (key, value): (WireType, WireType), len: usize) {
        match self.protocol {
            WireProtocol::Binary => {
                self.bytes.push(key.binary_number());
                self.bytes.push(value.binary_number());
                self.len(len);
            }
            WireProtocol::Compact => {
                self.varint(len as u64);
                if len > 0 {
                    let (key, value) = (key.compact_number(), value.compact_number());
                    self.bytes.push(key << 4 | value);
                }
            }
        }
    }

    /// Writes a structure, whose fields `fields` writes.
    pub fn structure(&mut self, fields: impl FnOnce(&mut Self)) {
        let outer = std::mem::take(&mut self.last_field);
        fields(self);
        self.bytes.push(0);
        self.last_field = outer;
    }

    /// The head of a field; `flag` is its value if it is a boolean. Returns whether the value is still
    /// to be written.
    pub(super) fn field_head(&mut self, id: i16, kind: WireType, flag: Option<bool>) -> bool {
        if self.protocol == WireProtocol::Binary {
            self.bytes.push(kind.binary_number());
            self.i16(id);
            return true;
        }
        let number = match flag {
            Some(false) => 2,
            _ => kind.compact_number(),
        };
        let step = id.wrapping_sub(self.last_field);
        if (1..=15).contains(&step) {
            self.bytes.push((step as u8) << 4 | number);
        } else {
            self.bytes.push(number);
            self.i16(id);
        }
        self.last_field = id;
        flag.is_none()
    }
}
