//! `COPY … TO STDOUT`: rows as `CopyData` messages.

use crate::postgres::copy::binary::SIGNATURE;
use crate::postgres::copy::syntax::{CopyDataFormat, CopyHeader, CopyOptions};
use crate::postgres::encode::{RowWriter, ValueEncoder, encodable};
use crate::postgres::error::PgError;
use crate::postgres::messages::BackendMessages;
use crate::postgres::types::column_type;
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use bytes::{BufMut, Bytes, BytesMut};

/// Appends the header as a message of its own. Returns the bytes that belong into the message of
/// the first row (or of the tail), where drivers look for the header of binary data.
pub(crate) fn write_head(
    options: &CopyOptions,
    schema: &Schema,
    out: &mut BackendMessages,
) -> Bytes {
    if options.form == CopyDataFormat::Binary {
        let mut head = BytesMut::from(&SIGNATURE[..]);
        head.put_u64(0);
        return head.freeze();
    }
    if options.header != CopyHeader::None {
        out.message(b'd', |body| {
            for (at, field) in schema.fields().iter().enumerate() {
                if at > 0 {
                    body.put_u8(options.delimiter);
                }
                write_value(options, field.name().as_bytes(), body);
            }
            body.put_u8(b'\n');
        });
    }
    Bytes::new()
}

/// Appends a batch, one message per row, with `head` before the first. CPU-bound.
///
/// # Errors
/// If a column cannot be encoded.
pub(crate) fn write_rows(
    options: &CopyOptions,
    head: &[u8],
    batch: &RecordBatch,
    out: &mut BackendMessages,
) -> Result<(), PgError> {
    if options.form == CopyDataFormat::Binary {
        return write_binary(head, batch, out);
    }
    let encoders: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| ValueEncoder::new(column, false))
        .collect::<Result<_, _>>()?;
    let mut value = BytesMut::new();
    for row in 0..batch.num_rows() {
        out.message(b'd', |body| {
            if row == 0 {
                body.put_slice(head);
            }
            for (at, encoder) in encoders.iter().enumerate() {
                if at > 0 {
                    body.put_u8(options.delimiter);
                }
                if encoder.is_null(row) {
                    body.put_slice(options.null.as_bytes());
                    continue;
                }
                value.clear();
                encoder.write(row, &mut value);
                write_value(options, &value, body);
            }
            body.put_u8(b'\n');
        });
    }
    Ok(())
}

fn write_binary(
    head: &[u8],
    batch: &RecordBatch,
    out: &mut BackendMessages,
) -> Result<(), PgError> {
    let schema = batch.schema();
    let fields = batch.columns().iter().zip(schema.fields());
    let arrays = fields.map(|(array, field)| encodable(array, column_type(field).0, true));
    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
    let arrays = arrays.iter().map(|array| (array, true));
    RowWriter::new(arrays, batch.num_rows())?.write(b'd', head, &mut out.bytes);
    Ok(())
}

/// Appends the bytes after the rows.
pub(crate) fn write_tail(options: &CopyOptions, head: &[u8], out: &mut BackendMessages) {
    if options.form == CopyDataFormat::Binary {
        out.message(b'd', |body| {
            body.put_slice(head);
            body.put_i16(-1);
        });
    }
}

/// Appends a value with the escapes or quotes that it needs.
fn write_value(options: &CopyOptions, value: &[u8], body: &mut BytesMut) {
    if options.form == CopyDataFormat::Csv {
        let special = |byte: &u8| {
            matches!(*byte, b'\n' | b'\r')
                || [options.delimiter, options.quote, options.escape].contains(byte)
        };
        if value != options.null.as_bytes() && value != b"\\." && !value.iter().any(special) {
            body.put_slice(value);
            return;
        }
        body.put_u8(options.quote);
        for byte in value {
            if *byte == options.quote || *byte == options.escape {
                body.put_u8(options.escape);
            }
            body.put_u8(*byte);
        }
        body.put_u8(options.quote);
        return;
    }
    for byte in value {
        let escaped = match *byte {
            8 => b'b',
            9 => b't',
            10 => b'n',
            11 => b'v',
            12 => b'f',
            13 => b'r',
            b'\\' => b'\\',
            other if other == options.delimiter => other,
            other => {
                body.put_u8(other);
                continue;
            }
        };
        body.put_slice(&[b'\\', escaped]);
    }
}
