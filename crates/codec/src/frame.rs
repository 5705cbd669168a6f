//! Frames the records of logs (WAL, manifest, catalog, series log): length, checksum, payload.
//!
//! ```text
//! u32 LE  length of the payload
//! u32 LE  crc32c of the four length bytes and the payload
//! [u8]    payload
//! ```
//!
//! Invariant: a frame that is truncated, or in which any byte changed, is never accepted, except
//! for a collision of the checksum.

use crate::checksum::crc32c;

/// Bytes of a frame before its payload.
pub const HEADER_BYTES: usize = 8;

/// Appends one frame: payload length u32 LE, crc32c (u32 LE) of length and payload, payload.
///
/// # Panics
/// If the payload has 4 GiB or more: callers limit their records far below that.
pub fn write(payload: &[u8], out: &mut Vec<u8>) {
    out.reserve(HEADER_BYTES + payload.len());
    write_with(out, |out| out.extend_from_slice(payload));
}

/// Appends one frame whose payload `fill` appends in place, which saves copying large payloads.
///
/// # Panics
/// As [`write()`].
pub fn write_with(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    fill(out);
    let (header, payload) = out[start..].split_at_mut(HEADER_BYTES);
    let len = u32::try_from(payload.len()).expect("a record is far smaller than 4 GiB");
    let len = len.to_le_bytes();
    header[..4].copy_from_slice(&len);
    header[4..].copy_from_slice(&checksum(len, payload).to_le_bytes());
}

/// The content at the start of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRead<'a> {
    /// A complete frame.
    Frame {
        /// The payload.
        payload: &'a [u8],
        /// Length of the whole frame, header and payload.
        len: usize,
    },
    /// There are no bytes.
    End,
    /// No complete, undamaged frame: it is truncated, or its checksum is wrong. The text is for the
    /// log.
    Damaged(&'static str),
}

/// Reads the frame at the start of `bytes`.
pub fn read(bytes: &[u8]) -> FrameRead<'_> {
    if bytes.is_empty() {
        return FrameRead::End;
    }
    let Some((len, rest)) = bytes.split_first_chunk::<4>() else {
        return FrameRead::Damaged("the record's header is cut off");
    };
    let Some((expected, rest)) = rest.split_first_chunk::<4>() else {
        return FrameRead::Damaged("the record's header is cut off");
    };
    let Some(payload) = rest.get(..u32::from_le_bytes(*len) as usize) else {
        return FrameRead::Damaged("the record is cut off, or its length is damaged");
    };
    if checksum(*len, payload) != u32::from_le_bytes(*expected) {
        return FrameRead::Damaged("the record's checksum is wrong");
    }
    FrameRead::Frame {
        payload,
        len: HEADER_BYTES + payload.len(),
    }
}

fn checksum(len: [u8; 4], payload: &[u8]) -> u32 {
    crc32c([&len, payload])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_one_after_the_other() {
        let mut log = Vec::new();
        write(b"first", &mut log);
        write(b"", &mut log);
        let FrameRead::Frame {
            payload: b"first",
            len,
        } = read(&log)
        else {
            panic!("first frame")
        };
        let FrameRead::Frame {
            payload: b"",
            len: second,
        } = read(&log[len..])
        else {
            panic!("second frame")
        };
        assert_eq!(read(&log[len + second..]), FrameRead::End);
    }

    #[test]
    fn cut_or_changed_frames_are_damaged() {
        let mut log = Vec::new();
        write(b"payload", &mut log);
        for len in 1..log.len() {
            assert!(
                matches!(read(&log[..len]), FrameRead::Damaged(_)),
                "cut at {len}"
            );
        }
        for bit in 0..log.len() * 8 {
            log[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(read(&log), FrameRead::Damaged(_)), "bit {bit}");
            log[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(matches!(read(&log), FrameRead::Frame { .. }));
        // All-zero bytes, as in a preallocated or torn file, are not a frame.
        assert!(matches!(read(&[0; 16]), FrameRead::Damaged(_)));
    }
}
