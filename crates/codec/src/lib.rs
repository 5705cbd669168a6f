//! Encodings and compressors of the values of a page, and the framing of records in logs.
//!
//! [`encode`] takes the values of one page without nulls, chooses their encoding ([`choose`]), and
//! reports it; [`decode`] returns the values. Pages of integers and decimal floats are packed in
//! blocks of 1,024 that decode with a few vector instructions per value.
//! `docs/formats/encodings.md` describes the bytes.
//!
//! Nothing here does I/O. No encoding is lossy. Decoders never panic on any input and never
//! allocate more than the caller's [`DecodeLimits`] allow.

mod alp;
mod alp_rd;
mod bitpack;
mod block;
mod body;
pub mod bytes;
mod checksum;
mod choose;
mod compress;
mod entries;
mod error;
pub mod frame;
mod fsst;
mod grid;
mod integer;
mod kinds;
mod pco;
mod plain;
mod progressions;
mod repeats;
mod runs;
mod smallest;
pub mod tsfile_forms;
mod values;

pub use body::{
    BodyHeader, RegularIntegers, decode, decode_part, decode_regular, decode_within, encode,
    encode_as, encode_times,
};
pub use checksum::{ChecksummedPrefix, crc32c};
pub use choose::choose;
pub use error::{CodecError, Result};
pub use grid::{GridPart, NumberGrids};
pub use kinds::{Compressor, Encoding, EncodingChoice, EncodingGoal, ValueType};
pub use progressions::Progression;
pub use values::{DecodeLimits, OwnedValues, PageValues};
