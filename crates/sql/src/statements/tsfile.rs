//! TsFile and Arrow: converts rows of a query to a file, and rows of a file to record batches.
//!
//! `docs/formats/tsfile.md` describes the conversion of types, tags and times.

mod export;
mod import;

pub use export::TsFileExport;
pub use import::{FileRows, TsFileRows};

use crate::error::SqlError;
use marigram_tsfile::TsFileError;

/// The column for the path of a device that does not belong to a table.
pub const DEVICE_TAG: &str = "device";
/// The time column of files that do not name theirs.
pub const TIME_COLUMN: &str = "time";

impl From<TsFileError> for SqlError {
    fn from(error: TsFileError) -> Self {
        let sqlstate = match error {
            TsFileError::Unsupported(_) => "0A000",
            TsFileError::Io(_) => "58030",
            _ => "22000",
        };
        Self::invalid(sqlstate, format!("TsFile: {error}"))
    }
}
