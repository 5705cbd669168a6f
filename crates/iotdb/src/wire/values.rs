//! Values of Rust as values of Thrift.

use super::reader::WireReader;
use super::types::{WireFault, WireType};
use super::writer::WireWriter;

/// A value that can be read out of a message.
pub trait WireRead<'a>: Sized {
    /// Its type.
    const TYPE: WireType;

    /// Reads one.
    ///
    /// # Errors
    /// If the message is malformed.
    fn read(reader: &mut WireReader<'a>) -> Result<Self, WireFault>;
}

/// A value that can be written into a message.
pub trait WireWrite {
    /// Its type.
    const TYPE: WireType;

    /// Writes it.
    fn write(&self, writer: &mut WireWriter);

    /// The value of a boolean, which the compact protocol writes into the head of a field.
    fn field_flag(&self) -> Option<bool> {
        None
    }
}

impl WireWriter {
    /// Writes a field.
    pub fn field<T: WireWrite>(&mut self, id: i16, value: &T) {
        if self.field_head(id, T::TYPE, value.field_flag()) {
            value.write(self);
        }
    }
}

macro_rules! plain_value {
    ($($kind:ty: $wire:ident $method:ident,)*) => {
        $(impl WireRead<'_> for $kind {
            const TYPE: WireType = WireType::$wire;

            fn read(reader: &mut WireReader<'_>) -> Result<Self, WireFault> {
                reader.$method()
            }
        }

        impl WireWrite for $kind {
            const TYPE: WireType = WireType::$wire;

            fn write(&self, writer: &mut WireWriter) {
                writer.$method(*self);
            }
        })*
    };
}

plain_value! {
    i8: I8 i8,
    i16: I16 i16,
    i32: I32 i32,
    i64: I64 i64,
    f64: Double double,
}

impl WireRead<'_> for bool {
    const TYPE: WireType = WireType::Bool;

    fn read(reader: &mut WireReader<'_>) -> Result<Self, WireFault> {
        reader.bool()
    }
}

impl WireWrite for bool {
    const TYPE: WireType = WireType::Bool;

    fn write(&self, writer: &mut WireWriter) {
        writer.bool(*self);
    }

    fn field_flag(&self) -> Option<bool> {
        Some(*self)
    }
}

impl<'a> WireRead<'a> for &'a str {
    const TYPE: WireType = WireType::Binary;

    fn read(reader: &mut WireReader<'a>) -> Result<Self, WireFault> {
        reader.text()
    }
}

impl WireWrite for &str {
    const TYPE: WireType = WireType::Binary;

    fn write(&self, writer: &mut WireWriter) {
        writer.binary(self.as_bytes());
    }
}

impl<'a> WireRead<'a> for &'a [u8] {
    const TYPE: WireType = WireType::Binary;

    fn read(reader: &mut WireReader<'a>) -> Result<Self, WireFault> {
        reader.binary()
    }
}

impl WireWrite for &[u8] {
    const TYPE: WireType = WireType::Binary;

    fn write(&self, writer: &mut WireWriter) {
        writer.binary(self);
    }
}

impl<'a, T: WireRead<'a>> WireRead<'a> for Vec<T> {
    const TYPE: WireType = WireType::List;

    fn read(reader: &mut WireReader<'a>) -> Result<Self, WireFault> {
        let (element, len) = reader.list_head()?;
        reader.charge(len, size_of::<T>())?;
        if element.is_some_and(|element| element != T::TYPE) {
            return Err(WireFault::UnknownType(
                element.map_or(0, WireType::binary_number),
            ));
        }
        reader.nested(|reader| (0..len).map(|_| T::read(reader)).collect())
    }
}

impl<T: WireWrite> WireWrite for Vec<T> {
    const TYPE: WireType = WireType::List;

    fn write(&self, writer: &mut WireWriter) {
        writer.list_head(T::TYPE, self.len());
        for value in self {
            value.write(writer);
        }
    }
}

/// The entries of a map, in the order in which they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireMap<K, V>(pub Vec<(K, V)>);

impl<'a, K: WireRead<'a>, V: WireRead<'a>> WireRead<'a> for WireMap<K, V> {
    const TYPE: WireType = WireType::Map;

    fn read(reader: &mut WireReader<'a>) -> Result<Self, WireFault> {
        let (types, len) = reader.map_head()?;
        reader.charge(len, size_of::<(K, V)>())?;
        if let Some((key, value)) = types
            && (key, value) != (K::TYPE, V::TYPE)
        {
            return Err(WireFault::UnknownType(value.binary_number()));
        }
        reader.nested(|reader| {
            let entries = (0..len).map(|_| Ok((K::read(reader)?, V::read(reader)?)));
            entries.collect::<Result<_, _>>().map(Self)
        })
    }
}

impl<K: WireWrite, V: WireWrite> WireWrite for WireMap<K, V> {
    const TYPE: WireType = WireType::Map;

    fn write(&self, writer: &mut WireWriter) {
        writer.map_head((K::TYPE, V::TYPE), self.0.len());
        for (key, value) in &self.0 {
            key.write(writer);
            value.write(writer);
        }
    }
}
