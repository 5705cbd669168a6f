//! Apache TsFile: files of version 4 written, of versions 3 and 4 read.
//!
//! [`TsFileReader`] gives the rows of a file, device by device; [`TsFileWriter`] takes the rows of a
//! table in the same order. Both work on what the caller gives them (`Read`, `Seek`, `Write`) and
//! hold a bounded part of it. The format as it is understood here is described in
//! `docs/formats/tsfile.md`.
//!
//! Nothing that is read is believed before it is checked: damage is an error with its offset, never
//! a panic, and no more memory is asked for than the bytes at hand justify.

mod bytes;
mod compress;
mod encoding;
mod error;
mod kinds;
mod read;
mod statistics;
mod values;
mod write;

pub use error::{Result, TsFileError};
pub use kinds::{ChunkCompression, ChunkEncoding, DataType};
pub use read::{FileVersion, TsFileReader};
pub use values::{
    ByteValues, ColumnCategory, ColumnSchema, ColumnValues, DeviceBlock, DeviceColumn, DeviceId,
    TsFileTableSchema,
};
pub use write::TsFileWriter;
