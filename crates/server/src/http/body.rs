//! Reads a request's body within the limits, and decompresses it.
//!
//! Invariant: a body never holds more bytes than the limits allow, whatever its `Content-Length` or
//! gzip header says.

use crate::admission::{BodyLimit, MemoryPermit};
use crate::http::error::HttpError;
use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use futures::StreamExt;
use std::io::Read;
use std::time::{Duration, Instant};

/// How long a client may pause between two parts of a body: it holds memory meanwhile.
const PART_WAIT_MAX: Duration = Duration::from_secs(30);

/// How long a body of any size may take, and the rate in bytes per second that it must reach after
/// that: a client that sends a byte now and then holds memory, too.
const BODY_TIME: Duration = Duration::from_mins(1);
const BODY_RATE_MIN: u64 = 256;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentEncoding {
    /// Not at all.
    Plain,
    /// gzip (RFC 1952), of one or more members.
    Gzip,
}

impl ContentEncoding {
    /// What `Content-Encoding` says.
    ///
    /// # Errors
    /// 415 for a coding other than gzip.
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Self, HttpError> {
        let Some(value) = headers.get(header::CONTENT_ENCODING) else {
            return Ok(Self::Plain);
        };
        match value
            .to_str()
            .unwrap_or("?")
            .trim()
            .to_ascii_lowercase()
            .as_str()
        {
            "" | "identity" => Ok(Self::Plain),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            other => Err(HttpError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "invalid",
                format!("Content-Encoding '{other}' is not understood; send gzip or nothing"),
            )),
        }
    }
}

/// Reads a whole body within `limit`.
///
/// # Errors
/// 413 if it is larger, 503 if the memory for bodies is full, 400 if the client went away.
pub(super) async fn read(
    body: Body,
    headers: &HeaderMap,
    limit: BodyLimit,
    lease: &mut MemoryPermit,
) -> Result<Bytes, HttpError> {
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok());
    let length = length.and_then(|text| text.parse::<usize>().ok());
    let mut stream = body.into_data_stream();
    if length.is_some_and(|length| length > limit.bytes) {
        return Err(HttpError::too_large("the body", limit));
    }
    let mut whole = BytesMut::new();
    let begin = Instant::now();
    while let Some(part) = next_part(&mut stream).await? {
        if is_too_slow(begin.elapsed(), whole.len()) {
            let message = "the body comes too slowly; send it in smaller parts".to_owned();
            return Err(HttpError::new(
                StatusCode::REQUEST_TIMEOUT,
                "timeout",
                message,
            ));
        }
        let part = part.map_err(|error| {
            HttpError::bad_request(format!("the body could not be read to its end: {error}"))
        })?;
        if whole.len() + part.len() > limit.bytes {
            return Err(HttpError::too_large("the body", limit));
        }
        if !lease.grow_in_time(part.len()).await {
            return Err(HttpError::buffers_full());
        }
        whole.extend_from_slice(&part);
    }
    Ok(whole.freeze())
}

/// Whether a body that delivered `bytes` in `elapsed` is too slow to wait for.
fn is_too_slow(elapsed: Duration, bytes: usize) -> bool {
    let seconds = elapsed.saturating_sub(BODY_TIME).as_secs();
    seconds.saturating_mul(BODY_RATE_MIN) > bytes as u64
}

/// The next part of a body; `None` at its end.
async fn next_part(
    stream: &mut BodyDataStream,
) -> Result<Option<Result<Bytes, axum::Error>>, HttpError> {
    let next = tokio::time::timeout(PART_WAIT_MAX, stream.next()).await;
    next.map_err(|_| {
        let message = format!("no more of the body came for {} s", PART_WAIT_MAX.as_secs());
        HttpError::new(StatusCode::REQUEST_TIMEOUT, "timeout", message)
    })
}

/// Decompresses a body, up to `limit`. CPU-bound, and waits for memory: if the body is compressed,
/// call it on a thread that may block.
///
/// # Errors
/// 400 if it is not gzip, 413 if it is larger, 503 if the memory for bodies is full.
pub(super) fn unpack(
    body: Bytes,
    packing: ContentEncoding,
    limit: BodyLimit,
    lease: &mut MemoryPermit,
) -> Result<Bytes, HttpError> {
    if packing == ContentEncoding::Plain {
        return Ok(body);
    }
    let mut decoder = MultiGzDecoder::new(&body[..]);
    let mut whole = Vec::new();
    let mut part = vec![0; 64 << 10];
    loop {
        let length = decoder.read(&mut part).map_err(|error| {
            HttpError::bad_request(format!(
                "the body is not complete gzip, although Content-Encoding says so: {error}"
            ))
        })?;
        if length == 0 {
            return Ok(Bytes::from(whole));
        }
        if whole.len() + length > limit.bytes {
            return Err(HttpError::too_large("the decompressed body", limit));
        }
        if !lease.grow_blocking(length) {
            return Err(HttpError::buffers_full());
        }
        whole.extend_from_slice(&part[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::tests::gate;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn limit(bytes: usize) -> BodyLimit {
        BodyLimit {
            bytes,
            setting: "unpacked_limit",
        }
    }

    fn gzip(bytes: &[u8]) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        Bytes::from(encoder.finish().unwrap())
    }

    #[test]
    fn a_body_that_trickles_is_too_slow_and_a_long_one_is_not() {
        let seconds = Duration::from_secs;
        assert!(!is_too_slow(seconds(59), 0));
        assert!(is_too_slow(seconds(62), 60));
        assert!(!is_too_slow(seconds(3600), 1 << 20));
        assert!(is_too_slow(Duration::MAX, 1 << 30));
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let bomb = gzip(&vec![0; 1 << 20]);
        assert!(bomb.len() < 10_000);
        let mut lease = gate(1 << 30).lease();
        let error = unpack(
            bomb.clone(),
            ContentEncoding::Gzip,
            limit(100_000),
            &mut lease,
        )
        .unwrap_err();
        assert_eq!(error.status, StatusCode::PAYLOAD_TOO_LARGE);
        let mut lease = gate(100_000).lease();
        let error = unpack(bomb, ContentEncoding::Gzip, limit(1 << 30), &mut lease).unwrap_err();
        assert_eq!(error.status, StatusCode::SERVICE_UNAVAILABLE);
    }

    #[test]
    fn members_follow_one_another_and_a_cut_is_an_error() {
        let mut two = gzip(b"ab").to_vec();
        two.extend_from_slice(&gzip(b"cd"));
        let mut lease = gate(1000).lease();
        let whole = unpack(
            Bytes::from(two.clone()),
            ContentEncoding::Gzip,
            limit(10),
            &mut lease,
        )
        .unwrap();
        assert_eq!(&whole[..], b"abcd");
        two.truncate(two.len() - 3);
        let error = unpack(
            Bytes::from(two),
            ContentEncoding::Gzip,
            limit(10),
            &mut lease,
        )
        .unwrap_err();
        assert_eq!(error.status, StatusCode::BAD_REQUEST);
    }
}
