//! `COPY t FROM STDIN` and `COPY … TO STDOUT`, in text, CSV and binary.
//!
//! A COPY into a table is decoded in batches straight into Arrow columns. A row that is malformed
//! or that the database refuses ends the statement with an error that names its line and column;
//! of the batch with a malformed row nothing is stored, batches before it are. Rows are identified
//! by series and time, so a COPY that failed can be sent again whole.

pub mod binary;
pub mod input;
pub mod output;
pub mod rows;
pub mod syntax;
pub mod text;
