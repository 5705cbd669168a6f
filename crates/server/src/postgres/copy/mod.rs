//! `COPY t FROM STDIN` and `COPY … TO STDOUT`, in text, CSV and binary.
//!
//! COPY into a table decodes batches directly into Arrow columns. A row that is malformed, or that
//! the database refuses, ends the statement with an error that names its line and column. Batches
//! before the one with the malformed row are stored; of that batch nothing is. Rows are identified
//! by series and time, so the whole of a failed COPY can be sent again.

pub(super) mod binary;
pub(super) mod input;
pub(super) mod output;
pub(super) mod rows;
pub(super) mod syntax;
pub(super) mod text;
