//! Compressors of encoded bytes, and the decision whether one is worth its cost.

use crate::error::{CodecError, Result};
use crate::kinds::{Compressor, EncodingGoal};
use std::cell::RefCell;
use std::io::{Read, Write};

/// Bytes that are compressed to estimate the saving.
const SAMPLE_BYTES: usize = 16 << 10;
/// Bytes below which no compressor pays.
const BODY_BYTES_MIN: usize = 64;

/// Compression level of Zstandard.
fn zstd_level(goal: EncodingGoal) -> i32 {
    match goal {
        EncodingGoal::Fast => 1,
        EncodingGoal::Small => 9,
    }
}

thread_local! {
    /// Contexts of the fast level, which are reused: creating one takes longer than a page.
    static PACKER: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static UNPACKER: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Compresses `body` with Zstandard.
fn zstd_pack(goal: EncodingGoal, body: &[u8]) -> std::io::Result<Vec<u8>> {
    if goal == EncodingGoal::Small {
        // Such a context takes megabytes, and few pages need one.
        return zstd::bulk::compress(body, zstd_level(goal));
    }
    PACKER.with_borrow_mut(|kept| {
        let packer = match kept.take() {
            Some(packer) => packer,
            None => zstd::bulk::Compressor::new(zstd_level(goal))?,
        };
        kept.insert(packer).compress(body)
    })
}

/// Decompresses Zstandard to at most `len` bytes.
fn zstd_unpack(packed: &[u8], len: usize) -> std::io::Result<Vec<u8>> {
    UNPACKER.with_borrow_mut(|kept| {
        let unpacker = match kept.take() {
            Some(unpacker) => unpacker,
            None => zstd::bulk::Decompressor::new()?,
        };
        kept.insert(unpacker).decompress(packed, len)
    })
}

/// Compression level of Gzip.
fn gzip_level(goal: EncodingGoal) -> flate2::Compression {
    match goal {
        EncodingGoal::Fast => flate2::Compression::new(6),
        EncodingGoal::Small => flate2::Compression::new(9),
    }
}

/// Appends the compressed `body`.
///
/// # Errors
/// If the compressor does not support a body of this size; `out` may then contain a part.
pub(crate) fn compress(
    compressor: Compressor,
    goal: EncodingGoal,
    body: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let refused = || CodecError::Unsupported(compressor.name(), "a body of this size");
    match compressor {
        Compressor::Uncompressed => out.extend_from_slice(body),
        Compressor::Snappy => {
            let packed = snap::raw::Encoder::new().compress_vec(body);
            out.extend_from_slice(&packed.map_err(|_| refused())?);
        }
        Compressor::Lz4 => out.extend_from_slice(&lz4_flex::block::compress(body)),
        Compressor::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(out, gzip_level(goal));
            encoder.write_all(body).map_err(|_| refused())?;
            encoder.finish().map_err(|_| refused())?;
        }
        Compressor::Zstd => {
            let packed = zstd_pack(goal, body);
            out.extend_from_slice(&packed.map_err(|_| refused())?);
        }
    }
    Ok(())
}

/// Inverts [`compress`]; `len` is the exact length of the result, which the caller has limited.
pub(crate) fn decompress(compressor: Compressor, packed: &[u8], len: usize) -> Result<Vec<u8>> {
    const WRONG: CodecError = CodecError::Damaged("its compressed bytes are damaged");
    let body = match compressor {
        Compressor::Uncompressed => packed.to_vec(),
        Compressor::Snappy => {
            // Compare the length in the bytes before relying on it.
            if snap::raw::decompress_len(packed).map_err(|_| WRONG)? != len {
                return Err(WRONG);
            }
            let mut body = vec![0; len];
            let done = snap::raw::Decoder::new().decompress(packed, &mut body);
            body.truncate(done.map_err(|_| WRONG)?);
            body
        }
        Compressor::Lz4 => lz4_flex::block::decompress(packed, len).map_err(|_| WRONG)?,
        Compressor::Gzip => gunzip(packed, len).map_err(|_| WRONG)?,
        Compressor::Zstd => zstd_unpack(packed, len).map_err(|_| WRONG)?,
    };
    if body.len() == len {
        Ok(body)
    } else {
        Err(WRONG)
    }
}

/// Decompresses a single member that makes up all of `packed`: up to `len` bytes and one more,
/// which reveals an excess.
fn gunzip(packed: &[u8], len: usize) -> std::io::Result<Vec<u8>> {
    let mut decoder = flate2::bufread::GzDecoder::new(packed);
    let mut body = Vec::with_capacity(len + 1);
    decoder
        .by_ref()
        .take(len as u64 + 1)
        .read_to_end(&mut body)?;
    if decoder.into_inner().is_empty() {
        Ok(body)
    } else {
        Err(std::io::ErrorKind::InvalidData.into())
    }
}

/// Estimated bytes of a body for each compressor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompressedSizes {
    pub(crate) lz4: usize,
    pub(crate) zstd: usize,
}

impl CompressedSizes {
    /// The smaller one.
    pub(crate) fn best(self) -> usize {
        self.lz4.min(self.zstd)
    }
}

/// Estimates from a section in the middle of `body`.
pub(crate) fn sampled(body: &[u8]) -> CompressedSizes {
    let sample = middle(body);
    let lz4 = lz4_flex::block::compress(sample).len();
    let zstd = zstd_pack(EncodingGoal::Fast, sample);
    let zstd = zstd.map_or(sample.len(), |packed| packed.len());
    let whole = |bytes: usize| (bytes * body.len()).div_ceil(sample.len().max(1));
    CompressedSizes {
        lz4: whole(lz4),
        zstd: whole(zstd),
    }
}

fn middle(body: &[u8]) -> &[u8] {
    let from = body.len().saturating_sub(SAMPLE_BYTES) / 2;
    &body[from..(from + SAMPLE_BYTES).min(body.len())]
}

/// Which compressor is worth its time for `body`, judged by a sample from its middle. LZ4 must save
/// a twelfth; Zstandard, which takes several times as long to read, must save an eighth of what LZ4
/// leaves.
pub(crate) fn choose_compressor(body: &[u8]) -> Compressor {
    if body.len() < BODY_BYTES_MIN {
        return Compressor::Uncompressed;
    }
    let sampled = sampled(body);
    let fast = if sampled.lz4 + body.len() / 12 < body.len() {
        (Compressor::Lz4, sampled.lz4)
    } else {
        (Compressor::Uncompressed, body.len())
    };
    if sampled.zstd < fast.1 - fast.1 / 8 {
        Compressor::Zstd
    } else {
        fast.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1u64;
        std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(len)
        .collect()
    }

    #[test]
    fn compressed_bytes_come_back_and_damage_is_an_error() {
        let body: Vec<u8> = (0..5000u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        for compressor in Compressor::ALL {
            for goal in [EncodingGoal::Fast, EncodingGoal::Small] {
                let mut packed = Vec::new();
                compress(compressor, goal, &body, &mut packed).unwrap();
                assert_eq!(decompress(compressor, &packed, body.len()).unwrap(), body);
                assert!(decompress(compressor, &packed, body.len() - 1).is_err());
                assert!(decompress(compressor, &packed, body.len() + 1).is_err());
                let cut = &packed[..packed.len() - 1];
                assert!(decompress(compressor, cut, body.len()).is_err());
                packed.push(0);
                let more = decompress(compressor, &packed, body.len());
                assert!(more.is_err(), "{} with a byte more", compressor.name());
            }
            let mut packed = Vec::new();
            compress(compressor, EncodingGoal::Fast, &[], &mut packed).unwrap();
            assert_eq!(decompress(compressor, &packed, 0).unwrap(), []);
        }
    }

    #[test]
    fn a_compressor_must_earn_its_cost() {
        assert_eq!(choose_compressor(&noise(30_000)), Compressor::Uncompressed);
        assert_ne!(
            choose_compressor(&vec![7; 30_000]),
            Compressor::Uncompressed
        );
        assert_eq!(choose_compressor(&[7; 10]), Compressor::Uncompressed);
    }
}
