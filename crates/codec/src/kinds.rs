//! Numbers and names of encodings, compressors and value types, and the options of callers.
//!
//! Invariant: an assigned number keeps its meaning for ever (`docs/formats/encodings.md`).

/// How the values of a page are represented in bytes.
///
/// `TS_2DIFF`, `GORILLA`, `RLE` and `DICTIONARY` are compatible with Apache `TsFile`; the others
/// are Marigram's own, or those of the named crates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Encoding {
    /// Values one after another.
    Plain = 0,
    /// Runs of equal values; a constant page is one run.
    Runs = 1,
    /// Differences of neighbours in blocks of 128, bit-packed.
    Ts2Diff = 2,
    /// XOR of neighbours (Pelkonen et al. 2015).
    Gorilla = 3,
    /// Distinct values once, and for each value the index of its entry.
    Entries = 4,
    /// Frame of reference with `FastLanes` bit packing and patched exceptions.
    For = 5,
    /// Differences of neighbours, packed like `For`.
    Delta = 6,
    /// Decimal floats as integers (Afroozeh, Kuffo, Boncz 2023), packed like `For`.
    Alp = 7,
    /// Floats cut into a left part from a small dictionary and packed right bits (same paper).
    AlpRd = 8,
    /// Pcodec: numbers in latent bins (Loncaric, Jeppesen, Zinberg 2025).
    Pco = 9,
    /// Fast static symbol table for strings (Boncz, Neumann, Leis 2020).
    Fsst = 10,
    /// Runs and bit-packed groups of eight, mixed.
    Rle = 11,
    /// Distinct strings once, and their indices as `Rle`.
    Dictionary = 12,
    /// Decimal floats as integers, packed like `Delta`.
    AlpDelta = 13,
    /// Integers that ascend along a grid: one bit for each of its places.
    Grid = 14,
}

impl Encoding {
    /// All encodings, by number.
    pub const ALL: [Self; 15] = [
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
        Self::AlpDelta,
        Self::Grid,
    ];

    /// The encoding with this number on disk; `None` for an unknown number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The encoding with this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let is_named = |encoding: &Self| encoding.name().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(is_named)
    }

    /// Name in SQL.
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
            Self::AlpDelta => "ALP_DELTA",
            Self::Grid => "GRID",
        }
    }

    /// Whether this encoding supports values of this type. (`RLE` and `TS_2DIFF` hold only some
    /// floats, and `GRID` only ascending integers; a page that they cannot hold becomes `PLAIN`.)
    pub fn suits(self, kind: ValueType) -> bool {
        use ValueType::{Bool, Bytes, F32, F64, I32, I64, U64};
        match self {
            Self::Plain | Self::Runs | Self::Entries => true,
            Self::Ts2Diff | Self::Gorilla | Self::Pco => !matches!(kind, Bool | Bytes),
            Self::For | Self::Delta => matches!(kind, I32 | I64 | U64),
            Self::Alp | Self::AlpDelta | Self::AlpRd => matches!(kind, F32 | F64),
            Self::Grid => kind == I64,
            Self::Rle => kind != Bytes,
            Self::Fsst | Self::Dictionary => kind == Bytes,
        }
    }
}

/// Compression of the encoded bytes as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Compressor {
    /// No compression.
    Uncompressed = 0,
    /// Snappy, raw format (the length first, without frames).
    Snappy = 1,
    /// LZ4, block format without a length.
    Lz4 = 2,
    /// One gzip member (RFC 1952).
    Gzip = 3,
    /// Zstandard, one frame.
    Zstd = 4,
}

impl Compressor {
    /// All compressors, by number.
    pub const ALL: [Self; 5] = [
        Self::Uncompressed,
        Self::Snappy,
        Self::Lz4,
        Self::Gzip,
        Self::Zstd,
    ];

    /// The compressor with this number on disk; `None` for an unknown number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The compressor with this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let is_named = |compressor: &Self| compressor.name().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(is_named)
    }

    /// Name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uncompressed => "UNCOMPRESSED",
            Self::Snappy => "SNAPPY",
            Self::Lz4 => "LZ4",
            Self::Gzip => "GZIP",
            Self::Zstd => "ZSTD",
        }
    }
}

/// Type of a page's values, as encodings distinguish them.
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
    /// All types.
    pub const ALL: [Self; 7] = [
        Self::Bool,
        Self::I32,
        Self::I64,
        Self::U64,
        Self::F32,
        Self::F64,
        Self::Bytes,
    ];

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

/// The goal of the automatic choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EncodingGoal {
    /// Small, and fast to write and to read: for data that is arriving and queried.
    #[default]
    Fast,
    /// As small as possible: for data that is written once more and seldom read. Pcodec and
    /// stronger compression may be used.
    Small,
}

/// The caller's options for [`encode`](crate::encode): an encoding and a compressor, or a choice by
/// content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EncodingChoice {
    /// The encoding; `None` chooses one that suits the values.
    pub encoding: Option<Encoding>,
    /// The compressor; `None` chooses one that suits the encoded bytes.
    pub compressor: Option<Compressor>,
    /// The goal of the automatic choice.
    pub goal: EncodingGoal,
}
