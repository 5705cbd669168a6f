//! The numbers of types, encodings and compressors in files.

use crate::error::{PartError, PartResult};

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataType {
    /// True or false.
    Boolean,
    /// 32-bit integer.
    Int32,
    /// 64-bit integer.
    Int64,
    /// 32-bit float.
    Float,
    /// 64-bit float.
    Double,
    /// UTF-8 text whose statistics have no minimum and maximum.
    Text,
    /// 64-bit time in the file's unit.
    Timestamp,
    /// A day as the number YYYYMMDD.
    Date,
    /// Any bytes.
    Blob,
    /// UTF-8 text.
    String,
}

/// The number of an aligned time column's type.
pub(crate) const VECTOR: u8 = 6;

impl DataType {
    /// The type's number in the file.
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

    pub(crate) fn from_number(number: u8) -> PartResult<Self> {
        Ok(match number {
            0 => Self::Boolean,
            1 => Self::Int32,
            2 => Self::Int64,
            3 => Self::Float,
            4 => Self::Double,
            5 => Self::Text,
            8 => Self::Timestamp,
            9 => Self::Date,
            10 => Self::Blob,
            11 => Self::String,
            other => return Err(PartError::Unsupported(format!("the data type {other}"))),
        })
    }

    /// The representation of its values in memory and in pages.
    pub(crate) fn shape(self) -> ValueShape {
        match self {
            Self::Boolean => ValueShape::Bool,
            Self::Int32 | Self::Date => ValueShape::I32,
            Self::Int64 | Self::Timestamp => ValueShape::I64,
            Self::Float => ValueShape::F32,
            Self::Double => ValueShape::F64,
            Self::Text | Self::Blob | Self::String => ValueShape::Bytes,
        }
    }
}

/// The representation of values in memory and in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueShape {
    Bool,
    I32,
    I64,
    F32,
    F64,
    Bytes,
}

/// Encoding of the values of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChunkEncoding {
    /// Values unencoded.
    Plain,
    /// Each distinct text once, then run-length encoded codes.
    Dictionary,
    /// Runs and bit packing.
    Rle,
    /// Differences, bit packed in blocks.
    Ts2Diff,
    /// XOR with the previous value, as in files before version 3.
    GorillaV1,
    /// XOR with the previous value.
    Gorilla,
    /// Zigzag, with seven bits per byte.
    Zigzag,
}

impl ChunkEncoding {
    /// The encoding's number in the file.
    pub fn number(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Dictionary => 1,
            Self::Rle => 2,
            Self::Ts2Diff => 4,
            Self::GorillaV1 => 6,
            Self::Gorilla => 8,
            Self::Zigzag => 9,
        }
    }

    pub(crate) fn from_number(number: u8) -> PartResult<Self> {
        let name = match number {
            0 => return Ok(Self::Plain),
            1 => return Ok(Self::Dictionary),
            2 => return Ok(Self::Rle),
            4 => return Ok(Self::Ts2Diff),
            6 => return Ok(Self::GorillaV1),
            8 => return Ok(Self::Gorilla),
            9 => return Ok(Self::Zigzag),
            3 => "DIFF",
            5 => "BITMAP",
            7 => "REGULAR",
            10 => "FREQ",
            11 => "CHIMP",
            12 => "SPRINTZ",
            13 => "RLBE",
            14 => "CAMEL",
            other => return Err(PartError::Unsupported(format!("the encoding {other}"))),
        };
        Err(PartError::Unsupported(format!("the encoding {name}")))
    }
}

/// Compressor of the pages of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChunkCompression {
    /// No compression.
    Uncompressed,
    /// Snappy, one block.
    Snappy,
    /// Gzip.
    Gzip,
    /// LZ4, one block without its length.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl ChunkCompression {
    /// The compressor's number in the file.
    pub fn number(self) -> u8 {
        match self {
            Self::Uncompressed => 0,
            Self::Snappy => 1,
            Self::Gzip => 2,
            Self::Lz4 => 7,
            Self::Zstd => 8,
        }
    }

    pub(crate) fn from_number(number: u8) -> PartResult<Self> {
        let name = match number {
            0 => return Ok(Self::Uncompressed),
            1 => return Ok(Self::Snappy),
            2 => return Ok(Self::Gzip),
            7 => return Ok(Self::Lz4),
            8 => return Ok(Self::Zstd),
            3 => "LZO",
            4 => "SDT",
            5 => "PAA",
            6 => "PLA",
            9 => "LZMA2",
            other => return Err(PartError::Unsupported(format!("the compressor {other}"))),
        };
        Err(PartError::Unsupported(format!("the compressor {name}")))
    }
}
