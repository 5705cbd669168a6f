//! `COPY … TO 'file'` and `COPY … FROM 'file'`.
//!
//! CSV and Parquet are written by DataFusion's own COPY; what is here is TsFile, reading, and the
//! question which files a statement may touch at all.

mod file_access;
mod from;
mod to;

pub use file_access::{FileUse, file_url, resolve};
pub use from::run_from;
pub use to::CopyToTsFile;
