//! PostgreSQL's binary format of COPY: a header, rows with a count of sized values, a trailer
//! (PostgreSQL's manual, COPY, "Binary Format").

use crate::postgres::copy::rows::CopyRows;
use crate::postgres::error::PgError;
use bytes::{Buf, Bytes, BytesMut};

/// The first bytes of the data.
pub(crate) const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// Where in the data the decoder is.
#[derive(Debug, PartialEq, Eq)]
enum BinaryPosition {
    Header,
    Rows,
    End,
}

/// Decodes rows as bytes arrive.
pub(crate) struct BinaryDecoder {
    place: BinaryPosition,
    rest: BytesMut,
    row: u64,
    table: String,
}

impl BinaryDecoder {
    /// A decoder at the beginning of the data for `table`.
    pub(crate) fn new(table: &str) -> Self {
        Self {
            place: BinaryPosition::Header,
            rest: BytesMut::new(),
            row: 0,
            table: table.to_owned(),
        }
    }

    /// Bytes that wait for the rest of their row.
    pub(crate) fn waiting(&self) -> usize {
        self.rest.len()
    }

    /// Adds bytes.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        if self.rest.is_empty() {
            self.rest = BytesMut::from(bytes);
        } else {
            self.rest.extend_from_slice(&bytes);
        }
    }

    /// Decodes until `rows` is full or no complete row is left; returns whether it stopped because
    /// `rows` is full.
    ///
    /// # Errors
    /// The row and column that is malformed.
    pub(crate) fn decode(&mut self, rows: &mut CopyRows) -> Result<bool, PgError> {
        if self.place == BinaryPosition::Header && !self.header()? {
            return Ok(false);
        }
        while self.place == BinaryPosition::Rows {
            if rows.is_full() {
                return Ok(true);
            }
            match self.take_row(rows)? {
                Some(length) => self.rest.advance(length),
                None => break,
            }
        }
        Ok(false)
    }

    /// Checks that the data ended at a valid position.
    ///
    /// # Errors
    /// If it ends within the header or a row.
    pub(crate) fn finish(&self) -> Result<(), PgError> {
        if self.place == BinaryPosition::Header
            || !(self.rest.is_empty() || self.place == BinaryPosition::End)
        {
            let context = format!("COPY {}, row {}", self.table, self.row + 1);
            return Err(PgError::new("22P04", "the data ends within a row").with_context(context));
        }
        Ok(())
    }

    fn header(&mut self) -> Result<bool, PgError> {
        let bad = |message: &str| Err(PgError::new("22P04", message));
        let seen = self.rest.len().min(SIGNATURE.len());
        if self.rest[..seen] != SIGNATURE[..seen] {
            return bad("the data is not in PostgreSQL's binary form: its signature is missing");
        }
        let Some(mut header) = self.rest.get(SIGNATURE.len()..SIGNATURE.len() + 8) else {
            return Ok(false);
        };
        let flags = header.get_u32();
        let extension = header.get_u32() as usize;
        if flags >> 16 != 0 {
            return bad("the data has flags in its header that are not known");
        }
        if extension > 1 << 20 {
            return bad("the extension of the data's header is too long");
        }
        let length = SIGNATURE.len() + 8 + extension;
        if self.rest.len() < length {
            return Ok(false);
        }
        self.rest.advance(length);
        self.place = BinaryPosition::Rows;
        Ok(true)
    }

    /// Decodes the row at the start of `rest`; returns its length, or `None` if it is incomplete.
    fn take_row(&mut self, rows: &mut CopyRows) -> Result<Option<usize>, PgError> {
        let Some(mut head) = self.rest.get(..2) else {
            return Ok(None);
        };
        let count = head.get_i16();
        if count == -1 {
            self.place = BinaryPosition::End;
            self.rest.clear();
            return Ok(None);
        }
        if usize::try_from(count) != Ok(rows.width()) {
            let message = format!(
                "a row has {count} values where {} are expected",
                rows.width()
            );
            return Err(self.error(message, None));
        }
        // Check that the row is complete before anything is appended.
        let mut end = 2_usize;
        for _ in 0..rows.width() {
            let Some(mut size) = self.rest.get(end..end + 4) else {
                return Ok(None);
            };
            end += 4 + usize::try_from(size.get_i32()).unwrap_or(0);
            if end > self.rest.len() {
                return Ok(None);
            }
        }
        let mut at = 2;
        for column in 0..rows.width() {
            let mut size = &self.rest[at..at + 4];
            at += 4;
            match usize::try_from(size.get_i32()) {
                Err(_) => rows.null(column),
                Ok(length) => {
                    if let Err(message) = rows.binary(column, &self.rest[at..at + length]) {
                        return Err(self.error(message, Some(rows.name(column))));
                    }
                    at += length;
                }
            }
        }
        rows.end_row();
        self.row += 1;
        Ok(Some(end))
    }

    fn error(&self, message: String, column: Option<&str>) -> PgError {
        let column = column
            .map(|name| format!(", column {name}"))
            .unwrap_or_default();
        let context = format!("COPY {}, row {}{column}", self.table, self.row + 1);
        PgError::new(if column.is_empty() { "22P04" } else { "22P03" }, message)
            .with_context(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::AsArray;
    use arrow::datatypes::{DataType, Field, Int64Type};
    use bytes::BufMut;
    use proptest::prelude::*;

    fn fields() -> Vec<Field> {
        vec![
            Field::new("n", DataType::Int64, true),
            Field::new("s", DataType::Utf8, true),
        ]
    }

    fn data(rows: i64) -> Vec<u8> {
        let mut out = SIGNATURE.to_vec();
        out.put_u64(0);
        for row in 0..rows {
            out.put_i16(2);
            out.put_i32(8);
            out.put_i64(row);
            if row % 3 == 0 {
                out.put_i32(-1);
            } else {
                out.put_i32(2);
                out.put_slice(b"ab");
            }
        }
        out.put_i16(-1);
        out
    }

    #[test]
    fn rows_come_however_the_bytes_are_cut() {
        let whole = data(10);
        for cut in 1..30 {
            let mut decoder = BinaryDecoder::new("t");
            let mut rows = CopyRows::new(fields()).unwrap();
            for part in whole.chunks(cut) {
                decoder.push(Bytes::copy_from_slice(part));
                assert!(!decoder.decode(&mut rows).unwrap());
            }
            decoder.finish().unwrap();
            let batch = rows.finish().unwrap();
            assert_eq!(batch.num_rows(), 10);
            assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(9), 9);
            assert_eq!(batch.column(1).null_count(), 4);
        }
    }

    #[test]
    fn a_cut_end_is_an_error() {
        let whole = data(2);
        for length in 0..whole.len() - 2 {
            let mut decoder = BinaryDecoder::new("t");
            let mut rows = CopyRows::new(fields()).unwrap();
            decoder.push(Bytes::copy_from_slice(&whole[..length]));
            decoder.decode(&mut rows).unwrap();
            let between = decoder.place == BinaryPosition::Rows && decoder.waiting() == 0;
            assert_eq!(decoder.finish().is_ok(), between, "{length}");
        }
    }

    #[test]
    fn errors_name_row_and_column() {
        let mut bad = data(1);
        bad.truncate(bad.len() - 2);
        bad.put_i16(2);
        bad.put_i32(3);
        bad.put_slice(b"xyz");
        bad.put_i32(-1);
        let mut decoder = BinaryDecoder::new("t");
        decoder.push(Bytes::from(bad));
        let error = decoder
            .decode(&mut CopyRows::new(fields()).unwrap())
            .unwrap_err();
        assert_eq!(error.context.as_deref(), Some("COPY t, row 2, column n"));
        assert_eq!(error.message, "an integer cannot have 3 bytes");
    }

    proptest! {
        #[test]
        fn any_bytes_are_rows_or_an_error(tail: Vec<u8>, cut in 1_usize..40) {
            let mut bytes = data(2);
            let keep = bytes.len().min(19 + tail.len());
            bytes.truncate(keep);
            bytes.extend_from_slice(&tail);
            let mut decoder = BinaryDecoder::new("t");
            let mut rows = CopyRows::new(fields()).unwrap();
            for part in bytes.chunks(cut) {
                decoder.push(Bytes::copy_from_slice(part));
                if decoder.decode(&mut rows).is_err() {
                    break;
                }
            }
        }
    }
}
