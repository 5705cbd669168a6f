//! The protocols, the types of values, and what can be wrong with a message.

use thiserror::Error;

/// How structures become bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireProtocol {
    /// Thrift's binary protocol.
    Binary,
    /// Thrift's compact protocol.
    Compact,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireType {
    /// A boolean.
    Bool,
    /// A byte.
    I8,
    /// A 16-bit integer.
    I16,
    /// A 32-bit integer.
    I32,
    /// A 64-bit integer.
    I64,
    /// A 64-bit float.
    Double,
    /// Bytes or text.
    Binary,
    /// A structure.
    Struct,
    /// A map.
    Map,
    /// A set.
    Set,
    /// A list.
    List,
}

impl WireType {
    /// The type that the binary protocol writes as this number.
    pub(super) fn from_binary(number: u8) -> Result<Self, WireFault> {
        Ok(match number {
            2 => Self::Bool,
            3 => Self::I8,
            4 => Self::Double,
            6 => Self::I16,
            8 => Self::I32,
            10 => Self::I64,
            11 => Self::Binary,
            12 => Self::Struct,
            13 => Self::Map,
            14 => Self::Set,
            15 => Self::List,
            _ => return Err(WireFault::UnknownType(number)),
        })
    }

    /// The number of the type in the binary protocol.
    pub(super) fn binary_number(self) -> u8 {
        match self {
            Self::Bool => 2,
            Self::I8 => 3,
            Self::Double => 4,
            Self::I16 => 6,
            Self::I32 => 8,
            Self::I64 => 10,
            Self::Binary => 11,
            Self::Struct => 12,
            Self::Map => 13,
            Self::Set => 14,
            Self::List => 15,
        }
    }

    /// The type that the compact protocol writes as this number.
    pub(super) fn from_compact(number: u8) -> Result<Self, WireFault> {
        Ok(match number {
            1 | 2 => Self::Bool,
            3 => Self::I8,
            4 => Self::I16,
            5 => Self::I32,
            6 => Self::I64,
            7 => Self::Double,
            8 => Self::Binary,
            9 => Self::List,
            10 => Self::Set,
            11 => Self::Map,
            12 => Self::Struct,
            _ => return Err(WireFault::UnknownType(number)),
        })
    }

    /// The number of the type in the compact protocol; that of `true` for booleans.
    pub(super) fn compact_number(self) -> u8 {
        match self {
            Self::Bool => 1,
            Self::I8 => 3,
            Self::I16 => 4,
            Self::I32 => 5,
            Self::I64 => 6,
            Self::Double => 7,
            Self::Binary => 8,
            Self::List => 9,
            Self::Set => 10,
            Self::Map => 11,
            Self::Struct => 12,
        }
    }
}

/// What is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireFault {
    /// It ends within a value.
    #[error("the message ends within a value")]
    Truncated,
    /// It begins neither as the binary nor as the compact protocol does.
    #[error("the message is in neither the binary nor the compact protocol of Thrift")]
    UnknownProtocol,
    /// It has a type that does not exist.
    #[error("the message has a value of the unknown type {0}")]
    UnknownType(u8),
    /// A length is negative, or does not fit.
    #[error("the message has a length that cannot be right")]
    WrongLength,
    /// An integer takes too many bytes.
    #[error("the message has an integer of too many bytes")]
    WrongInteger,
    /// Structures and lists contain each other too often.
    #[error("the message is nested too deeply")]
    TooDeep,
    /// Its lists need more memory than the reader allows.
    #[error("the message has too many values for its size")]
    TooManyValues,
    /// A text is not UTF-8.
    #[error("the message has a text that is not UTF-8")]
    NotUtf8,
    /// A structure lacks a field.
    #[error("{structure} lacks its field {field}")]
    MissingField {
        /// The structure.
        structure: &'static str,
        /// The field.
        field: &'static str,
    },
}
