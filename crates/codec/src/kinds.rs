//! Numbers and names of encodings, compressors and value types; borrowed and owned values.
//!
//! Invariant: a number, once given, keeps its meaning for ever (`docs/formats/encodings.md`).

/// How the values of a page stand in bytes. Numbers without an implementation are reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Encoding {
    /// Values one after the other.
    Plain = 0,
    /// Runs of equal values, Marigram's own form; a constant page is one run.
    Runs = 1,
    /// Reserved: delta-of-delta with bit packing in the form of IoTDB.
    Ts2Diff = 2,
    /// Reserved: XOR of floats (Pelkonen et al. 2015).
    Gorilla = 3,
    /// Distinct values once, and the number of each value's entry; Marigram's own form.
    Entries = 4,
    /// Frame of reference with `FastLanes` bit packing and patched exceptions.
    For = 5,
    /// Differences of neighbours, packed as `For`.
    Delta = 6,
    /// Decimal floats as integers (Afroozeh, Kuffo, Boncz 2023), packed as `For`.
    Alp = 7,
    /// Floats cut into a left part from a small dictionary and packed right bits (same paper).
    AlpRd = 8,
    /// Reserved: Pcodec.
    Pco = 9,
    /// Reserved: fast static symbol table for strings (Boncz, Neumann, Leis 2020).
    Fsst = 10,
    /// Reserved: runs and bit packing, as in Apache `TsFile`.
    Rle = 11,
    /// Reserved: distinct values and their numbers, as in Apache `TsFile`.
    Dictionary = 12,
}

impl Encoding {
    /// Every encoding that has a number, reserved ones too.
    pub const ALL: [Self; 13] = [
        Self::Plain,
        Self::Runs,
        Self::Ts2Diff,
        Self::Gorilla,
        Self::Entries,
        Self::For,
        Self::Delta,
        Self::Alp,
        Self::AlpRd,
        Self::Pco,
        Self::Fsst,
        Self::Rle,
        Self::Dictionary,
    ];

    /// The encoding with this number on disk; `None` for a number that none has.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::Runs => "RUNS",
            Self::Ts2Diff => "TS_2DIFF",
            Self::Gorilla => "GORILLA",
            Self::Entries => "ENTRIES",
            Self::For => "FOR",
            Self::Delta => "DELTA",
            Self::Alp => "ALP",
            Self::AlpRd => "ALP_RD",
            Self::Pco => "PCO",
            Self::Fsst => "FSST",
            Self::Rle => "RLE",
            Self::Dictionary => "DICTIONARY",
        }
    }

    /// The encoding of this name; case does not matter.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|encoding| encoding.name().eq_ignore_ascii_case(name))
    }

    /// Whether values of this type may stand in this encoding.
    pub fn suits(self, kind: ValueType) -> bool {
        let integer = matches!(kind, ValueType::I32 | ValueType::I64 | ValueType::U64);
        let float = matches!(kind, ValueType::F32 | ValueType::F64);
        match self {
            Self::Plain | Self::Runs => true,
            Self::For | Self::Delta => integer,
            Self::Alp | Self::AlpRd => float,
            Self::Pco => integer || float,
            Self::Entries | Self::Fsst | Self::Dictionary => kind == ValueType::Bytes,
            Self::Ts2Diff | Self::Gorilla => (integer || float) && kind != ValueType::U64,
            Self::Rle => kind != ValueType::U64 && kind != ValueType::Bytes,
        }
    }
}

/// What is done to the encoded bytes as a whole. Numbers without an implementation are reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Compressor {
    /// Nothing.
    Uncompressed = 0,
    /// Reserved.
    Snappy = 1,
    /// LZ4, block format without a length.
    Lz4 = 2,
    /// Reserved.
    Gzip = 3,
    /// Zstandard, one frame.
    Zstd = 4,
}

impl Compressor {
    /// Every compressor that has a number, reserved ones too.
    pub const ALL: [Self; 5] = [
        Self::Uncompressed,
        Self::Snappy,
        Self::Lz4,
        Self::Gzip,
        Self::Zstd,
    ];

    /// The compressor with this number on disk; `None` for a number that none has.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uncompressed => "UNCOMPRESSED",
            Self::Snappy => "SNAPPY",
            Self::Lz4 => "LZ4",
            Self::Gzip => "GZIP",
            Self::Zstd => "ZSTD",
        }
    }

    /// The compressor of this name; case does not matter.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|compressor| compressor.name().eq_ignore_ascii_case(name))
    }
}

/// What an automatic choice is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Goal {
    /// Data that is written and read often: fast encodings.
    #[default]
    Fast,
    /// Data that has gone cold: small ones.
    Small,
}

/// How values are to be stored; `None` leaves it to their content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Choice {
    /// Encoding.
    pub encoding: Option<Encoding>,
    /// Compressor.
    pub compressor: Option<Compressor>,
    /// What is wanted of an encoding that is chosen.
    pub goal: Goal,
}

/// Type of a page's values, as far as encodings care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// Truth values.
    Bool,
    /// 32-bit integers.
    I32,
    /// 64-bit integers, times, timestamps.
    I64,
    /// 64-bit unsigned integers.
    U64,
    /// 32-bit floats.
    F32,
    /// 64-bit floats.
    F64,
    /// Strings and bytes.
    Bytes,
}

impl ValueType {
    /// Name, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "truth values",
            Self::I32 => "32-bit integers",
            Self::I64 => "64-bit integers",
            Self::U64 => "unsigned 64-bit integers",
            Self::F32 => "32-bit floats",
            Self::F64 => "64-bit floats",
            Self::Bytes => "strings and bytes",
        }
    }
}

/// Values of one page without nulls, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// Truth values.
    Bool(&'a [bool]),
    /// 32-bit integers.
    I32(&'a [i32]),
    /// 64-bit integers; also times and timestamps.
    I64(&'a [i64]),
    /// 64-bit unsigned integers.
    U64(&'a [u64]),
    /// 32-bit floats.
    F32(&'a [f32]),
    /// 64-bit floats.
    F64(&'a [f64]),
    /// Strings and bytes.
    Bytes {
        /// One more entry than there are values, ascending, starting at any position of `data`.
        offsets: &'a [i32],
        /// The values' bytes.
        data: &'a [u8],
    },
}

impl Values<'_> {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Bool(values) => values.len(),
            Self::I32(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::Bytes { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Type of the values.
    pub fn value_type(&self) -> ValueType {
        match self {
            Self::Bool(_) => ValueType::Bool,
            Self::I32(_) => ValueType::I32,
            Self::I64(_) => ValueType::I64,
            Self::U64(_) => ValueType::U64,
            Self::F32(_) => ValueType::F32,
            Self::F64(_) => ValueType::F64,
            Self::Bytes { .. } => ValueType::Bytes,
        }
    }

    /// Bytes that the values take in memory.
    pub fn raw_bytes(&self) -> usize {
        match self {
            Self::Bool(values) => values.len().div_ceil(8),
            Self::I32(values) => size_of_val(*values),
            Self::I64(values) => size_of_val(*values),
            Self::U64(values) => size_of_val(*values),
            Self::F32(values) => size_of_val(*values),
            Self::F64(values) => size_of_val(*values),
            Self::Bytes { offsets, .. } => {
                let bytes = match (offsets.first(), offsets.last()) {
                    (Some(first), Some(last)) => (last - first) as usize,
                    _ => 0,
                };
                bytes + size_of_val(*offsets)
            }
        }
    }
}

/// Decoded values of one page.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedValues {
    /// Truth values, one bit each, lowest bit first.
    Bool {
        /// The bits; those past `len` are 0.
        bits: Vec<u8>,
        /// Number of values.
        len: usize,
    },
    /// 32-bit integers.
    I32(Vec<i32>),
    /// 64-bit integers; also times and timestamps.
    I64(Vec<i64>),
    /// 64-bit unsigned integers.
    U64(Vec<u64>),
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
    /// Strings and bytes.
    Bytes {
        /// One more entry than there are values, ascending from 0 to the length of `data`.
        offsets: Vec<i32>,
        /// The values' bytes.
        data: Vec<u8>,
    },
}

/// What a caller lets a page hold, so that damaged bytes cannot ask for memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Values, at most.
    pub values: usize,
    /// Bytes of a body after decompression, and of strings after decoding, at most.
    pub bytes: usize,
}

impl Limits {
    pub(crate) fn check_bytes(self, claimed: u64) -> crate::error::Result<usize> {
        if claimed > self.bytes as u64 {
            let limit = self.bytes as u64;
            return Err(crate::error::CodecError::Limit {
                what: "bytes",
                claimed,
                limit,
            });
        }
        Ok(claimed as usize)
    }
}
