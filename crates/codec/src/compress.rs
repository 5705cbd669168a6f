//! Compressors of encoded bytes, and the decision whether one earns its cost.

use crate::error::{CodecError, Result};
use crate::kinds::Compressor;

/// Level of Zstandard: higher ones cost far more time than they save space on pages.
const ZSTD_LEVEL: i32 = 1;
/// Bytes that are compressed to see what that would save.
const SAMPLE_BYTES: usize = 16 << 10;

/// Appends `body`, compressed.
pub(crate) fn compress(compressor: Compressor, body: &[u8], out: &mut Vec<u8>) -> Result<()> {
    match compressor {
        Compressor::Uncompressed => out.extend_from_slice(body),
        Compressor::Lz4 => out.extend_from_slice(&lz4_flex::block::compress(body)),
        Compressor::Zstd => {
            let packed = zstd::bulk::compress(body, ZSTD_LEVEL)
                .map_err(|_| CodecError::Unsupported("ZSTD", "a body of this size"))?;
            out.extend_from_slice(&packed);
        }
        other => return Err(CodecError::Unsupported(other.name(), "writing")),
    }
    Ok(())
}

/// Undoes [`compress`]; `len` is the exact length of the result, which the caller has bounded.
pub(crate) fn decompress(compressor: Compressor, packed: &[u8], len: usize) -> Result<Vec<u8>> {
    const WRONG: CodecError = CodecError::Damaged("its compressed bytes are damaged");
    let body = match compressor {
        Compressor::Uncompressed => packed.to_vec(),
        Compressor::Lz4 => lz4_flex::block::decompress(packed, len).map_err(|_| WRONG)?,
        Compressor::Zstd => zstd::bulk::decompress(packed, len).map_err(|_| WRONG)?,
        other => return Err(CodecError::Unsupported(other.name(), "reading")),
    };
    if body.len() == len {
        Ok(body)
    } else {
        Err(WRONG)
    }
}

/// Which compressor is worth its time for `body`: judged by a sample from its middle. LZ4 must save
/// a twelfth; Zstandard, which takes several times as long to read, an eighth of what LZ4 leaves.
pub(crate) fn choose_compressor(body: &[u8]) -> Compressor {
    if body.len() < 64 {
        return Compressor::Uncompressed;
    }
    let from = body.len().saturating_sub(SAMPLE_BYTES) / 2;
    let sample = &body[from..(from + SAMPLE_BYTES).min(body.len())];
    let lz4 = lz4_flex::block::compress(sample).len();
    let zstd = zstd::bulk::compress(sample, ZSTD_LEVEL).map_or(usize::MAX, |packed| packed.len());
    let fast = if lz4 + sample.len() / 12 < sample.len() {
        (Compressor::Lz4, lz4)
    } else {
        (Compressor::Uncompressed, sample.len())
    };
    if zstd < fast.1 - fast.1 / 8 {
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
        for compressor in [Compressor::Uncompressed, Compressor::Lz4, Compressor::Zstd] {
            let mut packed = Vec::new();
            compress(compressor, &body, &mut packed).unwrap();
            assert_eq!(decompress(compressor, &packed, body.len()).unwrap(), body);
            assert!(decompress(compressor, &packed, body.len() - 1).is_err());
            assert!(decompress(compressor, &packed, body.len() + 1).is_err());
            assert!(decompress(compressor, &packed[..packed.len() - 1], body.len()).is_err());
        }
        assert!(compress(Compressor::Gzip, &body, &mut Vec::new()).is_err());
        assert!(decompress(Compressor::Snappy, &body, 1).is_err());
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
