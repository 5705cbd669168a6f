//! Apache TsFile, read and written.
