//! The body of an answer that is made while it is sent: piece by piece, perhaps packed with gzip.
//!
//! Invariant: bytes that were made and not sent are counted as the client's, and dropping the body
//! drops its source, which stops the statement.

use super::client_share::{ClientShare, WAIT_MAX};
use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream::unfold;
use marigram_service::{InlinePolicy, ServiceError, run_inline_if};
use std::io::Write;

/// Bytes that are packed on the thread that serves the connection.
const BYTES_INLINE: usize = InlinePolicy::DEFAULT.body_inline_bytes;

/// Makes the bytes of a body.
pub(super) trait BodySource: Send + 'static {
    /// The next bytes. There may be none, although more follow.
    fn make(&mut self) -> impl Future<Output = Result<Vec<u8>, ServiceError>> + Send;

    /// Whether the last bytes were made.
    fn has_ended(&self) -> bool;

    /// Ends the body where it is.
    fn give_up(&mut self);

    /// What the client may hold of the server.
    fn share(&mut self) -> &mut ClientShare;
}

/// Whether the client takes gzip.
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT_ENCODING).iter().any(|list| {
        list.to_str().unwrap_or("").split(',').any(|item| {
            let mut parts = item.split(';').map(str::trim);
            let is_gzip = matches!(parts.next(), Some("gzip" | "x-gzip" | "*"));
            is_gzip && !parts.any(|part| matches!(part, "q=0" | "q=0.0"))
        })
    })
}

/// The body that begins with `head`, the bytes that `source` made first.
///
/// # Errors
/// `Busy` where there is no memory for the first bytes.
pub(super) async fn streamed(
    head: Vec<u8>,
    source: impl BodySource,
    is_packed: bool,
) -> Result<Body, ServiceError> {
    let packer = is_packed.then(|| GzEncoder::new(Vec::new(), Compression::fast()));
    let mut sending = StreamedBody { source, packer };
    let head = sending.pack(head).await?;
    let head = sending.source.share().count(head, WAIT_MAX).await?;
    if sending.source.has_ended() {
        return Ok(Body::from(head));
    }
    let parts = unfold((Some(head), sending), |(head, mut sending)| async move {
        if let Some(head) = head {
            return Some((Ok(head), (None, sending)));
        }
        let part = sending.part().await?;
        if let Err(error) = &part {
            tracing::warn!(%error, "an answer ended with an error after its first rows");
            sending.source.give_up();
            // Let the bytes before the error be sent, so that the client sees where it broke off.
            tokio::task::yield_now().await;
        }
        Some((part, (None, sending)))
    });
    Ok(Body::from_stream(parts))
}

struct StreamedBody<S> {
    source: S,
    packer: Option<GzEncoder<Vec<u8>>>,
}

impl<S: BodySource> StreamedBody<S> {
    /// The next bytes; `None` after the end, or after an error.
    async fn part(&mut self) -> Option<Result<Bytes, ServiceError>> {
        // A format may have nothing ready yet (Parquet, gzip).
        loop {
            if self.source.has_ended() {
                return None;
            }
            let packed = match self.source.make().await {
                Ok(bytes) => self.pack(bytes).await,
                Err(error) => Err(error),
            };
            let bytes = match packed {
                Ok(bytes) if bytes.is_empty() => continue,
                Ok(bytes) => bytes,
                Err(error) => return Some(Err(error)),
            };
            let share = self.source.share();
            let wait_max = share.wait_max();
            return Some(share.count(bytes, wait_max).await);
        }
    }

    /// The bytes as they are sent.
    async fn pack(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>, ServiceError> {
        let is_last = self.source.has_ended();
        let Some(mut packer) = self.packer.take() else {
            return Ok(bytes);
        };
        let is_short = bytes.len() <= BYTES_INLINE;
        let work = move || {
            packer.write_all(&bytes)?;
            if is_last {
                return Ok((packer.finish()?, None));
            }
            packer.flush()?;
            Ok((std::mem::take(packer.get_mut()), Some(packer)))
        };
        let packed: std::io::Result<_> = run_inline_if(is_short, work).await?;
        let (bytes, packer) = packed.map_err(|error| ServiceError::Internal(error.to_string()))?;
        self.packer = packer;
        Ok(bytes)
    }
}
