//! Reads values out of a frame.

use super::types::{WireFault, WireProtocol, WireType};

/// How deep structures and lists may contain each other. IoTDB's requests need four levels.
const DEPTH_MAX: u32 = 32;

/// Reads the values of a message, in either protocol.
pub struct WireReader<'a> {
    rest: &'a [u8],
    protocol: WireProtocol,
    depth: u32,
    memory_left: usize,
    /// The id of the field before, which the compact protocol counts from.
    last_field: i16,
    /// The value of a boolean field, which the compact protocol writes into its head.
    field_flag: Option<bool>,
}

impl<'a> WireReader<'a> {
    /// A reader of these bytes, whose lists may take `memory_max` bytes beside them.
    pub fn new(bytes: &'a [u8], protocol: WireProtocol, memory_max: usize) -> Self {
        Self {
            rest: bytes,
            protocol,
            depth: 0,
            memory_left: memory_max,
            last_field: 0,
            field_flag: None,
        }
    }

    /// The memory that lists may still take.
    pub fn memory_left(&self) -> usize {
        self.memory_left
    }

    /// Bytes that were not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], WireFault> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or(WireFault::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireFault> {
        let (taken, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(WireFault::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, WireFault> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn varint(&mut self) -> Result<u64, WireFault> {
        let mut value = 0_u64;
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
        Err(WireFault::WrongInteger)
    }

    fn zigzag(&mut self) -> Result<i64, WireFault> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A boolean.
    ///
    /// # Errors
    /// If the message ends.
    pub fn bool(&mut self) -> Result<bool, WireFault> {
        if let Some(flag) = self.field_flag.take() {
            return Ok(flag);
        }
        Ok(self.byte()? == 1)
    }

    /// A byte.
    ///
    /// # Errors
    /// If the message ends.
    pub fn i8(&mut self) -> Result<i8, WireFault> {
        Ok(self.byte()? as i8)
    }

    /// A 16-bit integer.
    ///
    /// # Errors
    /// If the message ends, or the integer is larger.
    pub fn i16(&mut self) -> Result<i16, WireFault> {
        match self.protocol {
            WireProtocol::Binary => Ok(i16::from_be_bytes(self.array()?)),
            WireProtocol::Compact => {
                i16::try_from(self.zigzag()?).map_err(|_| WireFault::WrongInteger)
            }
        }
    }

    /// A 32-bit integer.
    ///
    /// # Errors
    /// If the message ends, or the integer is larger.
    pub fn i32(&mut self) -> Result<i32, WireFault> {
        match self.protocol {
            WireProtocol::Binary => Ok(i32::from_be_bytes(self.array()?)),
            WireProtocol::Compact => {
                i32::try_from(self.zigzag()?).map_err(|_| WireFault::WrongInteger)
            }
        }
    }

    /// A 64-bit integer.
    ///
    /// # Errors
    /// If the message ends.
    pub fn i64(&mut self) -> Result<i64, WireFault> {
        match self.protocol {
            WireProtocol::Binary => Ok(i64::from_be_bytes(self.array()?)),
            WireProtocol::Compact => self.zigzag(),
        }
    }

    /// A 64-bit float.
    ///
    /// # Errors
    /// If the message ends.
    pub fn double(&mut self) -> Result<f64, WireFault> {
        let bytes = self.array()?;
        Ok(match self.protocol {
            WireProtocol::Binary => f64::from_be_bytes(bytes),
            WireProtocol::Compact => f64::from_le_bytes(bytes),
        })
    }

    /// Bytes.
    ///
    /// # Errors
    /// If the message ends, or the length is negative.
    pub fn binary(&mut self) -> Result<&'a [u8], WireFault> {
        let len = match self.protocol {
            WireProtocol::Binary => {
                usize::try_from(self.i32()?).map_err(|_| WireFault::WrongLength)?
            }
            WireProtocol::Compact => self.compact_len()?,
        };
        self.take(len)
    }

    /// Text.
    ///
    /// # Errors
    /// As [`Self::binary`], and if it is not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, WireFault> {
        std::str::from_utf8(self.binary()?).map_err(|_| WireFault::NotUtf8)
    }

    fn compact_len(&mut self) -> Result<usize, WireFault> {
        let len = self.varint()?;
        if len > i32::MAX as u64 {
            return Err(WireFault::WrongLength);
        }
        Ok(len as usize)
    }

    /// Runs `read` one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, WireFault>,
    ) -> Result<T, WireFault> {
        if self.depth >= DEPTH_MAX {
            return Err(WireFault::TooDeep);
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Counts the memory of `len` values of `size` bytes, before they are read.
    pub(super) fn charge(&mut self, len: usize, size: usize) -> Result<(), WireFault> {
        // Every value takes a byte of the message at least.
        if len > self.rest.len() {
            return Err(WireFault::Truncated);
        }
        let bytes = len.saturating_mul(size);
        self.memory_left = self
            .memory_left
            .checked_sub(bytes)
            .ok_or(WireFault::TooManyValues)?;
        Ok(())
    }

    /// The head of a list or set: the type of its elements, and their number.
    pub(super) fn list_head(&mut self) -> Result<(Option<WireType>, usize), WireFault> {
        match self.protocol {
            WireProtocol::Binary => {
                let number = self.byte()?;
                let len = usize::try_from(self.i32()?).map_err(|_| WireFault::WrongLength)?;
                // Writers give an empty list whatever type they like.
                let element = (len > 0).then(|| WireType::from_binary(number));
                Ok((element.transpose()?, len))
            }
            WireProtocol::Compact => {
                let head = self.byte()?;
                let len = match head >> 4 {
                    15 => self.compact_len()?,
                    short => usize::from(short),
                };
                let element = (len > 0).then(|| WireType::from_compact(head & 15));
                Ok((element.transpose()?, len))
            }
        }
    }

    /// The head of a map: the types of keys and values, and the number of entries.
    pub(super) fn map_head(&mut self) -> Result<(Option<(WireType, WireType)>, usize), WireFault> {
        match self.protocol {
            WireProtocol::Binary => {
                let (key, value) = (self.byte()?, self.byte()?);
                let len = usize::try_from(self.i32()?).map_err(|_| WireFault::WrongLength)?;
                if len == 0 {
                    return Ok((None, 0));
                }
                let types = (WireType::from_binary(key)?, WireType::from_binary(value)?);
                Ok((Some(types), len))
            }
            WireProtocol::Compact => {
                let len = self.compact_len()?;
                if len == 0 {
                    return Ok((None, 0));
                }
                let types = self.byte()?;
                let key = WireType::from_compact(types >> 4)?;
                Ok((Some((key, WireType::from_compact(types & 15)?)), len))
            }
        }
    }

    /// Reads a structure: hands each field to `take`, with its id and type. `take` returns whether it
    /// read the value; what it did not read is skipped.
    ///
    /// # Errors
    /// If the message is malformed, and those of `take`.
    pub fn fields(
        &mut self,
        mut take: impl FnMut(&mut Self, i16, WireType) -> Result<bool, WireFault>,
    ) -> Result<(), WireFault> {
        self.nested(|reader| {
            let outer = std::mem::take(&mut reader.last_field);
            while let Some((id, kind)) = reader.field_head()? {
                if !take(reader, id, kind)? {
                    reader.skip(kind)?;
                }
                reader.field_flag = None;
            }
            reader.last_field = outer;
            Ok(())
        })
    }

    fn field_head(&mut self) -> Result<Option<(i16, WireType)>, WireFault> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        if self.protocol == WireProtocol::Binary {
            let kind = WireType::from_binary(head)?;
            return Ok(Some((self.i16()?, kind)));
        }
        let id = match head >> 4 {
            0 => self.i16()?,
            step => self.last_field.wrapping_add(i16::from(step)),
        };
        self.last_field = id;
        let kind = WireType::from_compact(head & 15)?;
        if kind == WireType::Bool {
            self.field_flag = Some(head & 15 == 1);
        }
        Ok(Some((id, kind)))
    }

    /// Skips a value.
    ///
    /// # Errors
    /// If the message is malformed.
    pub fn skip(&mut self, kind: WireType) -> Result<(), WireFault> {
        match kind {
            WireType::Bool => self.bool().map(drop),
            WireType::I8 => self.i8().map(drop),
            WireType::I16 => self.i16().map(drop),
            WireType::I32 => self.i32().map(drop),
            WireType::I64 => self.i64().map(drop),
            WireType::Double => self.double().map(drop),
            WireType::Binary => self.binary().map(drop),
            WireType::Struct => self.fields(|_, _, _| Ok(false)),
            WireType::List | WireType::Set => {
                let (element, len) = self.list_head()?;
                self.charge(len, 0)?;
                self.nested(|reader| {
                    let elements = element.into_iter();
                    let mut elements = elements.flat_map(|kind| std::iter::repeat_n(kind, len));
                    elements.try_for_each(|kind| reader.skip(kind))
                })
            }
            WireType::Map => {
                let (types, len) = self.map_head()?;
                self.charge(len, 0)?;
                self.nested(|reader| {
                    let entries = types.into_iter();
                    let mut entries = entries.flat_map(|types| std::iter::repeat_n(types, len));
                    entries.try_for_each(|(key, value)| {
                        reader.skip(key)?;
                        reader.skip(value)
                    })
                })
            }
        }
    }
}
