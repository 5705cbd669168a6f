//! The Arrow rows of a `DoPut`, message by message.

use super::call::FlightCall;
use super::fault::FlightFault;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow_flight::{FlightData, FlightDescriptor};
use futures::StreamExt;
use marigram_protocol::flight::{ArrowLimits, ArrowMessage, ArrowMessageError, ArrowMessages};
use tonic::{Code, Status, Streaming};

/// Bytes of a message up to which it is read on the thread that serves the connection.
const BYTES_INLINE: usize = 64 << 10;

/// The rows of a `DoPut`.
pub(super) struct IncomingRows {
    messages: Streaming<FlightData>,
    /// The first message, which named what the rows are for.
    first: Option<FlightData>,
    reader: Option<ArrowMessages>,
}

impl IncomingRows {
    /// Reads the first message of a stream, which says what the rows are for.
    ///
    /// # Errors
    /// If there is none, or it does not say it.
    pub(super) async fn begin(
        mut messages: Streaming<FlightData>,
        dictionary_bytes: usize,
    ) -> Result<(FlightDescriptor, Self), FlightFault> {
        let first = match messages.next().await {
            Some(first) => first.map_err(of_stream)?,
            None => return Err(FlightFault::malformed("the stream of DoPut is empty")),
        };
        let Some(descriptor) = first.flight_descriptor.clone() else {
            return Err(FlightFault::malformed(
                "the first message of DoPut has no descriptor",
            ));
        };
        let rows = Self {
            messages,
            first: Some(first),
            reader: Some(ArrowMessages::new(ArrowLimits { dictionary_bytes })),
        };
        Ok((descriptor, rows))
    }

    /// The next message; the memory of those before it is given back.
    ///
    /// # Errors
    /// If the client goes away, or the message is too large.
    pub(super) async fn message(
        &mut self,
        call: &FlightCall,
    ) -> Result<Option<FlightData>, FlightFault> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        call.memory.release();
        self.messages.next().await.transpose().map_err(of_stream)
    }

    /// The columns, once their message came.
    pub(super) fn schema(&self) -> Option<&SchemaRef> {
        self.reader.as_ref()?.schema()
    }

    /// The next rows.
    ///
    /// # Errors
    /// As [`message`](Self::message), and if a message is damaged.
    pub(super) async fn next(
        &mut self,
        call: &FlightCall,
    ) -> Result<Option<RecordBatch>, FlightFault> {
        while let Some(message) = self.message(call).await? {
            if let ArrowMessage::Rows(rows) = self.read(message).await? {
                return Ok(Some(rows));
            }
        }
        Ok(None)
    }

    async fn read(&mut self, message: FlightData) -> Result<ArrowMessage, FlightFault> {
        let unread = || FlightFault::malformed("an Arrow message cannot be read");
        let mut reader = self.reader.take().ok_or_else(unread)?;
        let FlightData {
            data_header,
            data_body,
            ..
        } = message;
        let is_small = data_body.len() <= BYTES_INLINE;
        let work = move || {
            let read = reader.read(&data_header, data_body);
            (reader, read)
        };
        let (reader, read): (_, Result<_, ArrowMessageError>) = if is_small {
            work()
        } else {
            // A fault of Arrow's reader must not end more than the call.
            marigram_service::run_blocking(work)
                .await
                .map_err(|_| unread())?
        };
        self.reader = Some(reader);
        Ok(read?)
    }
}

/// The error of a stream that broke off, or of a message that is too large.
fn of_stream(status: Status) -> FlightFault {
    let sqlstate = match status.code() {
        Code::Cancelled | Code::Unknown => "08006",
        Code::OutOfRange | Code::ResourceExhausted => "54000",
        _ => "08P01",
    };
    let message = match status.code() {
        Code::OutOfRange => format!("{}; body_limit sets the limit", status.message()),
        _ => status.message().to_owned(),
    };
    FlightFault::new(status.code(), sqlstate, message)
}
