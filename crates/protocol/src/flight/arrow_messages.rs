//! Arrow messages from clients: schema, dictionaries and rows.
//!
//! Arrow's reader trusts lengths and offsets. So each message is checked first: its buffers lie
//! within its body, its counts fit its bytes, and nothing is compressed, because a few compressed
//! bytes could ask for any amount of memory.
//!
//! Invariant: no input panics, and what is held is bounded by the bytes that came and by
//! [`ArrowLimits`].

use super::arrow_message_error::ArrowMessageError;
use super::arrow_schema::check_schema;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::{DictionaryBatch, MessageHeader, MetadataVersion, root_as_message};
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

/// Rows of a batch that has no bytes: all its values are null.
const ROWS_WITHOUT_BYTES_MAX: i64 = 10_000;

/// Limits of one stream of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrowLimits {
    /// Bytes of all dictionaries together.
    pub dictionary_bytes: usize,
}

/// What a message was.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrowMessage {
    /// The columns of the rows that follow.
    Schema(SchemaRef),
    /// Nothing that concerns rows yet: a dictionary, or no content.
    Other,
    /// Rows.
    Rows(RecordBatch),
}

/// Reads the messages of one stream, in order.
#[derive(Debug)]
pub struct ArrowMessages {
    limits: ArrowLimits,
    schema: Option<SchemaRef>,
    dictionaries: HashMap<i64, ArrayRef>,
    /// Bytes of each dictionary.
    dictionary_bytes: HashMap<i64, usize>,
}

impl ArrowMessages {
    /// Before the first message.
    #[must_use]
    pub fn new(limits: ArrowLimits) -> Self {
        Self {
            limits,
            schema: None,
            dictionaries: HashMap::new(),
            dictionary_bytes: HashMap::new(),
        }
    }

    /// The columns, once their message came.
    #[must_use]
    pub fn schema(&self) -> Option<&SchemaRef> {
        self.schema.as_ref()
    }

    /// Reads the next message.
    ///
    /// # Errors
    /// If it is damaged, of a kind that is not taken, or beyond a limit.
    pub fn read(&mut self, header: &[u8], body: Bytes) -> Result<ArrowMessage, ArrowMessageError> {
        if header.is_empty() {
            return Ok(ArrowMessage::Other);
        }
        let message =
            root_as_message(header).map_err(|error| ArrowMessageError::Arrow(error.to_string()))?;
        match message.header_type() {
            MessageHeader::NONE => Ok(ArrowMessage::Other),
            MessageHeader::Schema => {
                if self.schema.is_some() {
                    return Err(ArrowMessageError::Malformed("a second schema"));
                }
                let schema = message
                    .header_as_schema()
                    .ok_or(ArrowMessageError::Malformed("an empty schema"))?;
                check_schema(schema)?;
                let schema = Arc::new(arrow_ipc::convert::fb_to_schema(schema));
                self.schema = Some(Arc::clone(&schema));
                Ok(ArrowMessage::Schema(schema))
            }
            MessageHeader::DictionaryBatch => {
                let batch = message
                    .header_as_dictionary_batch()
                    .ok_or(ArrowMessageError::Malformed("an empty dictionary"))?;
                self.read_dictionary(batch, message.version(), body)?;
                Ok(ArrowMessage::Other)
            }
            MessageHeader::RecordBatch => {
                let batch = message
                    .header_as_record_batch()
                    .ok_or(ArrowMessageError::Malformed("an empty batch"))?;
                let schema = self.known_schema()?;
                let kinds = schema.fields().iter().map(|field| field.data_type());
                check_batch(batch, kinds, body.len())?;
                let body = Buffer::from(body);
                let version = message.version();
                let decoder = RecordBatchDecoder::try_new(
                    &body,
                    batch,
                    Arc::clone(schema),
                    &self.dictionaries,
                    &version,
                );
                let rows = decoder.and_then(RecordBatchDecoder::read_record_batch);
                Ok(ArrowMessage::Rows(rows.map_err(unread)?))
            }
            _ => Err(ArrowMessageError::Malformed(
                "it is neither a schema, nor a dictionary, nor rows",
            )),
        }
    }

    fn known_schema(&self) -> Result<&SchemaRef, ArrowMessageError> {
        self.schema
            .as_ref()
            .ok_or(ArrowMessageError::Malformed("it comes before the schema"))
    }

    fn read_dictionary(
        &mut self,
        batch: DictionaryBatch<'_>,
        version: MetadataVersion,
        body: Bytes,
    ) -> Result<(), ArrowMessageError> {
        if batch.isDelta() {
            return Err(ArrowMessageError::Malformed(
                "dictionaries that grow are not taken; send whole ones",
            ));
        }
        let schema = Arc::clone(self.known_schema()?);
        #[expect(deprecated, reason = "the id is what joins a dictionary to its column")]
        let column = schema
            .fields()
            .iter()
            .find(|field| field.dict_id() == Some(batch.id()));
        let Some(DataType::Dictionary(_, kind)) = column.map(|field| field.data_type()) else {
            return Err(ArrowMessageError::Malformed("no column has the dictionary"));
        };
        let data = batch
            .data()
            .ok_or(ArrowMessageError::Malformed("a dictionary without values"))?;
        check_batch(data, std::iter::once(&**kind), body.len())?;
        self.dictionary_bytes.insert(batch.id(), body.len());
        let limit = self.limits.dictionary_bytes;
        if self.dictionary_bytes.values().sum::<usize>() > limit {
            return Err(ArrowMessageError::TooLarge {
                what: "bytes of dictionaries",
                limit,
            });
        }
        let body = Buffer::from(body);
        read_dictionary(&body, batch, &schema, &mut self.dictionaries, &version).map_err(unread)
    }
}

fn unread(error: arrow_schema::ArrowError) -> ArrowMessageError {
    ArrowMessageError::Arrow(error.to_string())
}

/// Bytes of each value in the second buffer of a column: its offsets, views, indices or values.
fn width_of(kind: &DataType) -> i64 {
    match kind {
        DataType::Utf8 | DataType::Binary => 4,
        DataType::LargeUtf8 | DataType::LargeBinary => 8,
        DataType::Utf8View | DataType::BinaryView => 16,
        DataType::Dictionary(index, _) => width_of(index),
        // At most 32.
        kind => kind.primitive_width().map_or(1, |width| width as i64),
    }
}

/// Checks the counts, lengths and places of a batch whose columns have these types. Arrow panics where
/// the bits of nulls are too few, or a buffer ends within a value.
fn check_batch<'a>(
    batch: arrow_ipc::RecordBatch<'_>,
    kinds: impl Iterator<Item = &'a DataType>,
    body_bytes: usize,
) -> Result<(), ArrowMessageError> {
    if batch.compression().is_some() {
        return Err(ArrowMessageError::Compressed);
    }
    let (Some(nodes), Some(buffers)) = (batch.nodes(), batch.buffers()) else {
        return Err(ArrowMessageError::Malformed("a batch without columns"));
    };
    let rows = batch.length();
    // A value takes a bit at least, unless it is null by its type.
    let rows_max = i64::try_from(body_bytes.saturating_mul(8)).unwrap_or(i64::MAX);
    if rows < 0 || rows > rows_max.max(ROWS_WITHOUT_BYTES_MAX) {
        return Err(ArrowMessageError::Malformed("more rows than bytes"));
    }
    for buffer in buffers {
        let (begin, length) = (buffer.offset(), buffer.length());
        let end = begin.checked_add(length);
        let fits = begin >= 0
            && length >= 0
            && end.is_some_and(|end| usize::try_from(end).is_ok_and(|end| end <= body_bytes));
        if !fits {
            return Err(ArrowMessageError::Malformed("values beyond its body"));
        }
    }
    let fits = |node: &arrow_ipc::FieldNode| {
        node.length() == rows && (0..=rows).contains(&node.null_count())
    };
    if !nodes.iter().all(fits) {
        return Err(ArrowMessageError::Malformed("columns of unequal length"));
    }
    let shape = ArrowMessageError::Malformed("it does not have the columns of the schema");
    let mut variadic = batch.variadicBufferCounts().into_iter().flatten();
    let (mut columns, mut next) = (nodes.iter(), buffers.iter());
    for kind in kinds {
        let column = columns.next().ok_or_else(|| shape.clone())?;
        let count = match kind {
            DataType::Null => continue,
            DataType::Utf8 | DataType::Binary | DataType::LargeUtf8 | DataType::LargeBinary => 3,
            DataType::Utf8View | DataType::BinaryView => {
                let parts = variadic.next().unwrap_or(-1);
                let parts = usize::try_from(parts).ok();
                let parts = parts.filter(|parts| *parts <= buffers.len());
                2 + parts.ok_or(ArrowMessageError::Malformed("views without a count"))?
            }
            _ => 2,
        };
        let validity = next.next().ok_or_else(|| shape.clone())?;
        let values = next.next().ok_or_else(|| shape.clone())?;
        if column.null_count() > 0 && validity.length() < (rows + 7) / 8 {
            return Err(ArrowMessageError::Malformed("nulls without their bits"));
        }
        if values.length() % width_of(kind) != 0 {
            return Err(ArrowMessageError::Malformed("a part of a value"));
        }
        for _ in 2..count {
            next.next().ok_or_else(|| shape.clone())?;
        }
    }
    if columns.next().is_some() || next.next().is_some() || variadic.next().is_some() {
        return Err(shape);
    }
    Ok(())
}
