//! Apache TsFile: writes files of version 4, and reads versions 3 and 4.
//!
//! [`TsFileReader`] returns the rows of a file, device by device; [`TsFileWriter`] takes the rows
//! of a table in the same order. Both work on the caller's streams (`Read`, `Seek`, `Write`) and
//! hold a bounded part of the file in memory. `docs/formats/tsfile.md` describes the format as
//! implemented here.
//!
//! The reader checks all input before it uses it: damage is an error with its offset, never a
//! panic, and no allocation is larger than the available bytes justify.

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
