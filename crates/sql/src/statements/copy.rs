//! `COPY … TO 'file'` and `COPY … FROM 'file'`.
//!
//! DataFusion's own COPY writes CSV and Parquet; this module handles TsFile, reading, and the
//! question of which files a statement may use.

mod file_access;
mod from;
mod to;

pub use file_access::{FileUse, file_url, resolve};
pub use from::run_from;
pub use to::CopyToTsFile;
