//! `COPY … TO 'file'` and `COPY … FROM 'file'`.
//!
//! DataFusion's own COPY writes CSV and Parquet; this module handles TsFile, reading, and the
//! question of which files a statement may use.

mod file_access;
mod from;
mod to;

pub use file_access::file_url;
pub(crate) use file_access::{FileUse, resolve};
pub(crate) use from::run_from;
pub(crate) use to::CopyToTsFile;
