//! Compressors of pages.

use crate::error::{PartError, PartResult};
use crate::kinds::ChunkCompression;
use std::io::Read;

/// Largest size of a page before compression.
pub(crate) const PAGE_BYTES_MAX: usize = 64 << 20;

const WRONG: PartError = PartError::Wrong("its compressed bytes are damaged");

/// Decompresses a page of exactly `len` bytes. Refuses a length that so few compressed bytes cannot
/// have, before it allocates memory.
pub(crate) fn decompress(
    compression: ChunkCompression,
    packed: &[u8],
    len: usize,
) -> PartResult<Vec<u8>> {
    // The most bytes that one compressed byte can expand to.
    let ratio = match compression {
        ChunkCompression::Uncompressed => 1,
        ChunkCompression::Snappy => 64,
        ChunkCompression::Lz4 => 255,
        // These are decompressed piece by piece.
        ChunkCompression::Gzip | ChunkCompression::Zstd => usize::MAX,
    };
    if len > PAGE_BYTES_MAX {
        return Err(PartError::Wrong("a page is larger than 64 MiB"));
    }
    if len > packed.len().saturating_add(16).saturating_mul(ratio) {
        return Err(WRONG);
    }
    let bytes = match compression {
        ChunkCompression::Uncompressed => packed.to_vec(),
        ChunkCompression::Snappy => {
            if snap::raw::decompress_len(packed).map_err(|_| WRONG)? != len {
                return Err(WRONG);
            }
            snap::raw::Decoder::new()
                .decompress_vec(packed)
                .map_err(|_| WRONG)?
        }
        ChunkCompression::Lz4 => lz4_flex::block::decompress(packed, len).map_err(|_| WRONG)?,
        ChunkCompression::Gzip => read_all(flate2::read::MultiGzDecoder::new(packed), len)?,
        ChunkCompression::Zstd => {
            let decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(|_| WRONG)?;
            read_all(decoder, len)?
        }
    };
    if bytes.len() == len {
        Ok(bytes)
    } else {
        Err(WRONG)
    }
}

fn read_all(reader: impl Read, len: usize) -> PartResult<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut reader = reader.take(len as u64 + 1);
    reader.read_to_end(&mut bytes).map_err(|_| WRONG)?;
    Ok(bytes)
}

/// Compresses the bytes of a page as LZ4, which every reader supports.
pub(crate) fn compress(bytes: &[u8]) -> Vec<u8> {
    lz4_flex::block::compress(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn pages_come_back_from_every_compressor() {
        let page = b"marigram marigram marigram marigram marigram".repeat(20);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&page).unwrap();
        let packed = [
            (ChunkCompression::Uncompressed, page.clone()),
            (
                ChunkCompression::Snappy,
                snap::raw::Encoder::new().compress_vec(&page).unwrap(),
            ),
            (ChunkCompression::Gzip, gzip.finish().unwrap()),
            (ChunkCompression::Lz4, compress(&page)),
            (
                ChunkCompression::Zstd,
                zstd::bulk::compress(&page, 1).unwrap(),
            ),
        ];
        for (compression, packed) in packed {
            assert_eq!(
                decompress(compression, &packed, page.len()).as_deref(),
                Ok(&page[..])
            );
            for wrong in [
                0,
                page.len() - 1,
                page.len() + 1,
                PAGE_BYTES_MAX,
                usize::MAX,
            ] {
                assert!(
                    decompress(compression, &packed, wrong).is_err(),
                    "{compression:?}"
                );
            }
            let cut = &packed[..packed.len() - 9];
            assert!(
                decompress(compression, cut, page.len()).is_err(),
                "{compression:?}"
            );
        }
    }
}
