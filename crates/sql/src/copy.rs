//! `COPY … TO 'file'` and `COPY … FROM 'file'`.
//!
//! CSV and Parquet are written by DataFusion's own COPY; what is here is TsFile, reading, and the
//! question which files a statement may touch at all.

mod file_access;
mod from;
mod options;
mod to;

pub use file_access::{FileUse, file_url, resolve};
pub use from::{parse_from, run_from};
pub use to::CopyToTsFile;

use crate::error::{SqlError, SqlResult};
use crate::statement::CopyFileFormat;
use std::path::Path;

/// The form by the name that a statement gives it.
fn named(name: &str) -> SqlResult<CopyFileFormat> {
    match name.to_ascii_lowercase().as_str() {
        "csv" => Ok(CopyFileFormat::Csv),
        "parquet" => Ok(CopyFileFormat::Parquet),
        "tsfile" => Ok(CopyFileFormat::TsFile),
        other => Err(SqlError::unsupported(format!(
            "'{other}' is no form of files that COPY knows; it knows csv, parquet and tsfile"
        ))),
    }
}

/// The form as told, or else by the file's ending.
fn form_of(path: &str, told: Option<&str>) -> SqlResult<CopyFileFormat> {
    if let Some(told) = told {
        return named(told);
    }
    match Path::new(path)
        .extension()
        .and_then(|ending| ending.to_str())
    {
        Some(ending) => named(if ending.eq_ignore_ascii_case("pq") {
            "parquet"
        } else {
            ending
        }),
        None => Err(SqlError::syntax(format!(
            "the name '{path}' does not tell the form of the file; end it in .csv, .parquet or \
                 .tsfile, or add FORMAT"
        ))),
    }
}
