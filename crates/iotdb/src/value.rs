//! The types of IoTDB, and values of them.

use crate::status::IotDbFault;
use std::fmt;

/// A type of a timeseries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IotDbType {
    /// True or false.
    Boolean,
    /// A 32-bit integer.
    Int32,
    /// A 64-bit integer.
    Int64,
    /// A 32-bit float.
    Float,
    /// A 64-bit float.
    Double,
    /// A text.
    Text,
    /// A time, ms.
    Timestamp,
    /// A day, as the number `yyyymmdd`.
    Date,
    /// Bytes.
    Blob,
    /// A text.
    String,
}

impl IotDbType {
    /// Every type.
    pub const ALL: [Self; 10] = [
        Self::Boolean,
        Self::Int32,
        Self::Int64,
        Self::Float,
        Self::Double,
        Self::Text,
        Self::Timestamp,
        Self::Date,
        Self::Blob,
        Self::String,
    ];

    /// The type with this number on the wire.
    ///
    /// # Errors
    /// If there is none.
    pub fn from_number(number: i32) -> Result<Self, IotDbFault> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| i32::from(kind.number()) == number)
            .ok_or_else(|| IotDbFault::parameter(format!("there is no data type {number}")))
    }

    /// The type with this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.name().eq_ignore_ascii_case(name))
    }

    /// Its number on the wire.
    pub fn number(self) -> u8 {
        match self {
            Self::Boolean => 0,
            Self::Int32 => 1,
            Self::Int64 => 2,
            Self::Float => 3,
            Self::Double => 4,
            Self::Text => 5,
            Self::Timestamp => 8,
            Self::Date => 9,
            Self::Blob => 10,
            Self::String => 11,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "BOOLEAN",
            Self::Int32 => "INT32",
            Self::Int64 => "INT64",
            Self::Float => "FLOAT",
            Self::Double => "DOUBLE",
            Self::Text => "TEXT",
            Self::Timestamp => "TIMESTAMP",
            Self::Date => "DATE",
            Self::Blob => "BLOB",
            Self::String => "STRING",
        }
    }
}

impl fmt::Display for IotDbType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IotDbValue<'a> {
    /// True or false.
    Boolean(bool),
    /// A 32-bit integer.
    Int32(i32),
    /// A 64-bit integer.
    Int64(i64),
    /// A 32-bit float.
    Float(f32),
    /// A 64-bit float.
    Double(f64),
    /// A text of the types TEXT and STRING.
    Text(&'a str),
    /// A time, ms.
    Timestamp(i64),
    /// A day, as the number `yyyymmdd`.
    Date(i32),
    /// Bytes.
    Blob(&'a [u8]),
}

/// Reads big-endian values out of the binaries of a request.
pub(crate) struct ValueReader<'a> {
    pub(crate) rest: &'a [u8],
}

impl<'a> ValueReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        Some(self.array::<1>()?[0])
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// Bytes behind their length.
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = i32::from_be_bytes(self.array()?);
        self.take(usize::try_from(len).ok()?)
    }

    /// A value of a type; `None` if there are too few bytes, or a text is not UTF-8.
    pub(crate) fn value(&mut self, kind: IotDbType) -> Option<IotDbValue<'a>> {
        Some(match kind {
            IotDbType::Boolean => IotDbValue::Boolean(self.byte()? != 0),
            IotDbType::Int32 => IotDbValue::Int32(i32::from_be_bytes(self.array()?)),
            IotDbType::Int64 => IotDbValue::Int64(self.i64()?),
            IotDbType::Float => IotDbValue::Float(f32::from_be_bytes(self.array()?)),
            IotDbType::Double => IotDbValue::Double(f64::from_be_bytes(self.array()?)),
            IotDbType::Text | IotDbType::String => {
                IotDbValue::Text(std::str::from_utf8(self.bytes()?).ok()?)
            }
            IotDbType::Timestamp => IotDbValue::Timestamp(self.i64()?),
            IotDbType::Date => IotDbValue::Date(i32::from_be_bytes(self.array()?)),
            IotDbType::Blob => IotDbValue::Blob(self.bytes()?),
        })
    }

    /// Passes a value without reading it; `None` if there are too few bytes.
    pub(crate) fn pass(&mut self, kind: IotDbType) -> Option<()> {
        match kind {
            IotDbType::Boolean => self.take(1),
            IotDbType::Int32 | IotDbType::Float | IotDbType::Date => self.take(4),
            IotDbType::Int64 | IotDbType::Double | IotDbType::Timestamp => self.take(8),
            IotDbType::Text | IotDbType::String | IotDbType::Blob => self.bytes(),
        }
        .map(drop)
    }
}
