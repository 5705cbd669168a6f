//! Pcodec (crate `pco`; Loncaric, Jeppesen, Zinberg: Pcodec, 2025): numbers as bins and offsets,
//! after a mode and a delta that are chosen for each page. Smallest of all, and slower than
//! packing.
//!
//! ```text
//! u8       0: a chunk of the values
//!          1: a chunk of f32: doubles that all are such
//!          2: varint entries; varint bytes; the entries as 0 or 1 in so many bytes; a chunk of u32
//! chunk:
//! [u8; 2]  version of Pcodec's format
//! ...      one chunk's metadata, and its one page
//! ```
//!
//! Under 2, the entries are the distinct values in ascending order, and each value is its index
//! among them. Readings with uneven steps (because the instrument converted and rounded them) then
//! have even steps, which Pcodec needs to find differences and bins.
//!
//! Invariant: every size in a damaged page is compared with the number of values before memory is
//! allocated for it. The crate itself refuses most damage; this module checks two sizes that the
//! crate would trust.

use crate::bytes::{ByteReader, put_varint};
use crate::entries::numbers::{NumberEntry, ascending, number};
use crate::error::{CodecError, Result};
use ::pco::data_types::Number;
use ::pco::metadata::DeltaEncoding;
use ::pco::wrapped::{FileCompressor, FileDecompressor};
use ::pco::{ChunkConfig, PagingSpec};

/// Compression level: the crate's default. Higher levels gain next to nothing on pages.
const LEVEL: usize = 8;
/// Smallest limit on how many latents a page may look back, whatever its number of values.
const WINDOW_MIN: usize = 1 << 15;
/// Number of the mode that begins with a dictionary of distinct values.
const MODE_DICTIONARY: u8 = 4;

/// First bytes of a page.
const VALUES: u8 = 0;
const SINGLES: u8 = 1;
const PLACES: u8 = 2;
/// How often a value must occur on average before indices are tried.
const REPEATED_MIN: usize = 4;

const REFUSED: CodecError = CodecError::Unsupported("PCO", "these values");

/// Number types that Pcodec supports.
pub(crate) trait PcoNumber: Number + NumberEntry {
    /// The values as singles, if all values of a wider type are singles. Pcodec recognizes decimals
    /// that were once singles only in this form.
    fn narrowed(_: &[Self]) -> Option<Vec<f32>> {
        None
    }
    /// The inverse.
    fn widened(_: Vec<f32>) -> Option<Vec<Self>> {
        None
    }
}

impl PcoNumber for i32 {}
impl PcoNumber for i64 {}
impl PcoNumber for u64 {}
impl PcoNumber for f32 {}

impl PcoNumber for f64 {
    fn narrowed(values: &[f64]) -> Option<Vec<f32>> {
        let narrow = |value: &f64| {
            let single = *value as f32;
            (f64::from(single).to_bits() == value.to_bits()).then_some(single)
        };
        values.iter().map(narrow).collect()
    }
    fn widened(values: Vec<f32>) -> Option<Vec<f64>> {
        Some(values.into_iter().map(f64::from).collect())
    }
}

/// Appends `values`.
///
/// # Errors
/// If the crate refuses them, such as more than 2^24.
pub(crate) fn put_pco<T: PcoNumber>(values: &[T], out: &mut Vec<u8>) -> Result<()> {
    if values.is_empty() {
        return Ok(());
    }
    let start = out.len();
    put_values(values, out)?;
    let (entries, indices) = number(values);
    if entries.len() * REPEATED_MIN < values.len() {
        let mut places = Vec::new();
        put_places(&entries, &indices, &mut places)?;
        if places.len() < out.len() - start {
            out.truncate(start);
            out.extend_from_slice(&places);
        }
    }
    Ok(())
}

fn put_values<T: PcoNumber>(values: &[T], out: &mut Vec<u8>) -> Result<()> {
    if let Some(singles) = T::narrowed(values) {
        out.push(SINGLES);
        return put_chunk(&singles, out);
    }
    out.push(VALUES);
    put_chunk(values, out)
}

fn put_places<T: PcoNumber>(entries: &[T], indices: &[u32], out: &mut Vec<u8>) -> Result<()> {
    let (sorted, places) = ascending(entries, indices);
    let mut packed = Vec::new();
    put_values(&sorted, &mut packed)?;
    out.push(PLACES);
    put_varint(sorted.len() as u64, out);
    put_varint(packed.len() as u64, out);
    out.extend_from_slice(&packed);
    put_chunk(&places, out)
}

fn put_chunk<T: Number>(values: &[T], out: &mut Vec<u8>) -> Result<()> {
    let config = ChunkConfig::default()
        .with_compression_level(LEVEL)
        .with_paging_spec(PagingSpec::Exact(vec![values.len()]));
    let mut put = || {
        let file = FileCompressor::default();
        file.write_header(&mut *out)?;
        let mut chunk = file.chunk_compressor(values, &config)?;
        chunk.write_meta(&mut *out)?;
        chunk.write_page(0, &mut *out).map(drop)
    };
    put().map_err(|_: ::pco::errors::PcoError| REFUSED)
}

/// Reads `count` values from all of `bytes`.
pub(crate) fn read_pco<T: PcoNumber>(bytes: &[u8], count: usize) -> Result<Vec<T>> {
    if count == 0 {
        ByteReader::new(bytes).end()?;
        return Ok(Vec::new());
    }
    match bytes.split_first() {
        Some((&PLACES, rest)) => read_places(rest, count),
        _ => read_values(bytes, count),
    }
}

fn read_values<T: PcoNumber>(bytes: &[u8], count: usize) -> Result<Vec<T>> {
    match bytes.split_first() {
        Some((&VALUES, chunk)) => read_chunk(chunk, count),
        Some((&SINGLES, chunk)) => {
            let values = T::widened(read_chunk(chunk, count)?);
            values.ok_or(CodecError::Damaged("only doubles can have been singles"))
        }
        _ => Err(CodecError::Damaged("it has flags that are not known")),
    }
}

fn read_places<T: PcoNumber>(bytes: &[u8], count: usize) -> Result<Vec<T>> {
    const MISSING: CodecError = CodecError::Damaged("a value refers to a missing entry");
    let mut reader = ByteReader::new(bytes);
    let entries = reader.count(count)?;
    let len = reader.count(reader.remaining())?;
    if entries == 0 {
        return Err(MISSING);
    }
    let entries: Vec<T> = read_values(reader.take(len)?, entries)?;
    let places: Vec<u32> = read_chunk(reader.take(reader.remaining())?, count)?;
    let value = |place: &u32| entries.get(*place as usize).copied().ok_or(MISSING);
    places.iter().map(value).collect()
}

fn read_chunk<T: Number>(bytes: &[u8], count: usize) -> Result<Vec<T>> {
    const DAMAGED: CodecError = CodecError::Damaged("Pcodec cannot read it");
    check_dictionary(bytes, count)?;
    let (file, rest) = FileDecompressor::new(bytes).map_err(|_| DAMAGED)?;
    let (mut chunk, rest) = file.chunk_decompressor::<T, _>(rest).map_err(|_| DAMAGED)?;
    if let DeltaEncoding::Lookback { config, .. } = &chunk.meta().delta_encoding {
        let window = 1usize << config.window_n_log;
        if window > WINDOW_MIN.max(count.next_power_of_two()) {
            return Err(CodecError::Damaged("it looks back further than it is long"));
        }
    }
    let mut values = vec![T::default(); count];
    let mut page = chunk.page_decompressor(rest, count).map_err(|_| DAMAGED)?;
    let progress = page.read(&mut values).map_err(|_| DAMAGED)?;
    if progress.n_processed != count || !progress.finished || !page.into_src().is_empty() {
        return Err(DAMAGED);
    }
    Ok(values)
}

/// The crate allocates a dictionary before it checks whether there can be one. Its mode (four bits)
/// and length (25 bits, lowest first) follow the two bytes of the version.
fn check_dictionary(bytes: &[u8], count: usize) -> Result<()> {
    let Some((head, _)) = bytes.split_first_chunk::<6>() else {
        return Err(CodecError::Damaged("it ends early"));
    };
    if head[0] < 4 {
        return Err(CodecError::Damaged(
            "its version of Pcodec was never written",
        ));
    }
    let word = u32::from_le_bytes([head[2], head[3], head[4], head[5]]);
    let entries = word >> 4 & ((1 << 25) - 1);
    if word as u8 & 0xf == MODE_DICTIONARY && entries as usize > count {
        return Err(CodecError::Damaged("a dictionary has too many entries"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(count: u32) -> Vec<u8> {
        let values: Vec<i64> = (0..i64::from(count)).map(|n| n * n % 9973).collect();
        let mut out = Vec::new();
        put_pco(&values, &mut out).unwrap();
        assert_eq!(read_pco::<i64>(&out, values.len()).unwrap(), values);
        out
    }

    #[test]
    fn the_number_of_values_is_checked() {
        let bytes = page(1000);
        assert!(read_pco::<i64>(&bytes, 1001).is_err() || read_pco::<i64>(&bytes, 999).is_err());
        assert!(read_pco::<i64>(&bytes[..bytes.len() - 1], 1000).is_err());
        assert!(read_pco::<i64>(&[&bytes[..], &[0]].concat(), 1000).is_err());
        assert!(read_pco::<i64>(&[0], 0).is_err());
    }

    #[test]
    fn a_claimed_dictionary_is_not_believed() {
        let mut bytes = page(1000);
        bytes[3..7].copy_from_slice(&(4u32 | ((1 << 25) - 1) << 4).to_le_bytes());
        let wrong = CodecError::Damaged("a dictionary has too many entries");
        assert_eq!(read_pco::<i64>(&bytes, 1000), Err(wrong));
    }

    #[test]
    fn uneven_steps_are_even_as_places() {
        let step = |n: f64| f64::from((n.sin() * 40.0).round() as f32 * 0.067).fract() * 1e3;
        let values: Vec<f64> = (0..8192).map(|n| step(f64::from(n) / 500.0)).collect();
        let mut out = Vec::new();
        put_pco(&values, &mut out).unwrap();
        assert_eq!(out[0], PLACES);
        assert_eq!(read_pco::<f64>(&out, values.len()).unwrap(), values);
        for cut in 0..out.len() {
            assert!(
                read_pco::<f64>(&out[..cut], values.len()).is_err(),
                "cut at {cut}"
            );
        }
    }

    proptest! {
        #[test]
        fn damaged_places_never_panic(
            levels in 1i32..50,
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let values: Vec<i32> = (0..1000).map(|n| n * n % levels * 1_000_003).collect();
            let mut bytes = Vec::new();
            put_pco(&values, &mut bytes).unwrap();
            assert_eq!(read_pco::<i32>(&bytes, 1000).unwrap(), values);
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let _ = read_pco::<i32>(&bytes, 1000);
            let _ = read_pco::<f64>(&bytes, 1000);
        }

        #[test]
        fn damage_never_panics(
            count in 1u32..3000,
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut bytes = page(count);
            for (at, byte) in changes {
                let at = at.index(bytes.len().min(80));
                bytes[at] = byte;
            }
            let _ = read_pco::<i64>(&bytes, count as usize);
            let _ = read_pco::<f32>(&bytes, count as usize);
            let _ = read_pco::<f64>(&bytes, count as usize / 2 + 1);
        }
    }
}
