//! Converts values to bytes and back: the one place that knows which encoding handles which type.
//!
//! Invariant: [`decode`] returns exactly the values that [`encode`] was given, or an error. It
//! never panics, whatever the bytes, and its allocations are at most proportional to its
//! [`DecodeLimits`].

use crate::bytes::ByteReader;
use crate::choose::{choose, may_repeat};
use crate::compress::{choose_compressor, compress, decompress};
use crate::error::Result;
use crate::grid::{NumberGrids, put_grid, read_grid_within, read_grids};
use crate::kinds::{Compressor, Encoding, EncodingChoice, EncodingGoal, ValueType};
use crate::progressions::{Progression, read_progressions};
use crate::smallest::smallest;
use crate::values::{DecodeLimits, OwnedValues, PageValues};

use std::ops::Range;

mod dispatch;

/// Bytes below which an entropy coder does not pay.
const PLANES_BYTES_MIN: usize = 256;

/// Average number of equidistant numbers from which on they are better stored as such.
const REGULAR_LEN: usize = 16;

/// The data, in addition to the bytes, that decoding needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyHeader {
    /// How the values are encoded.
    pub encoding: Encoding,
    /// How the encoded bytes are compressed.
    pub compressor: Compressor,
    /// Encoded bytes before compression.
    pub body_bytes: u32,
}

/// Appends `values` as `choice` asks; what it leaves open is chosen to suit the values. If an
/// encoding cannot hold these values exactly, or does not support the type, `PLAIN` replaces it.
///
/// # Panics
/// If the encoded values take 4 GiB or more: callers limit their pages far below that.
pub fn encode(values: PageValues<'_>, choice: EncodingChoice, out: &mut Vec<u8>) -> BodyHeader {
    if choice.encoding.is_none() && choice.goal == EncodingGoal::Small {
        let put = |encoding, out: &mut Vec<u8>| dispatch::put(values, encoding, out).is_ok();
        let form = smallest(values, choice.compressor, put);
        out.extend_from_slice(&form.bytes);
        return BodyHeader {
            encoding: form.encoding,
            compressor: form.compressor,
            body_bytes: page_bytes(form.body_bytes),
        };
    }
    let start = out.len();
    let mut encoding = choice.encoding.unwrap_or_else(|| choose(values));
    if dispatch::put(values, encoding, out).is_err() {
        out.truncate(start);
        encoding = Encoding::Plain;
        dispatch::put(values, encoding, out).expect("PLAIN holds every value of every type");
    }
    let body_bytes = page_bytes(out.len() - start);
    let compressor = choice.compressor.unwrap_or_else(|| match encoding {
        // Packed bits do not compress; bytes and raw floats may.
        Encoding::For
        | Encoding::Delta
        | Encoding::Alp
        | Encoding::AlpDelta
        | Encoding::AlpRd
        | Encoding::Grid
        | Encoding::Pco
        | Encoding::Fsst => Compressor::Uncompressed,
        _ => choose_compressor(&out[start..]),
    });
    let compressor = compress_in_place(compressor, choice, start, out);
    let header = BodyHeader {
        encoding,
        compressor,
        body_bytes,
    };
    match encoding {
        _ if choice.compressor.is_some() => header,
        Encoding::Entries => in_planes(values, header, start, out),
        Encoding::AlpRd if choice.encoding.is_none() => as_entries(values, header, start, out),
        _ => header,
    }
}

/// Like [`encode`], for times. If no encoding is requested and the times are not regular, they are
/// stored on grids if that takes at most twice the size of differences: for times on a grid,
/// counting bits is enough to tell how many are before a given time.
///
/// # Panics
/// As [`encode`].
pub fn encode_times(times: &[i64], choice: EncodingChoice, out: &mut Vec<u8>) -> BodyHeader {
    let start = out.len();
    let header = encode(PageValues::I64(times), choice, out);
    if choice != EncodingChoice::default() || header.encoding != Encoding::Delta {
        return header;
    }
    let most = times.len().div_ceil(REGULAR_LEN);
    if !matches!(
        read_progressions(&mut ByteReader::new(&out[start..]), times.len(), most),
        Ok(None)
    ) {
        return header;
    }
    let known = out.len() - start;
    let mut body = Vec::new();
    if !put_grid(times, 2 * known, &mut body) {
        return header;
    }
    out.truncate(start);
    out.extend_from_slice(&body);
    BodyHeader {
        encoding: Encoding::Grid,
        compressor: Compressor::Uncompressed,
        body_bytes: page_bytes(body.len()),
    }
}

/// Stores repetitive floats as ENTRIES if that is smaller by an eighth than the bytes of `out` from
/// `start` on. How close the entries are to one another, and so how small they become, is not
/// estimated but tried.
fn as_entries(
    values: PageValues<'_>,
    header: BodyHeader,
    start: usize,
    out: &mut Vec<u8>,
) -> BodyHeader {
    let known = out.len() - start;
    if !may_repeat(values) {
        return header;
    }
    let choice = EncodingChoice {
        encoding: Some(Encoding::Entries),
        compressor: None,
        goal: EncodingGoal::Fast,
    };
    let mut other = Vec::new();
    let entries = encode(values, choice, &mut other);
    if other.len() >= known - known / 8 {
        return header;
    }
    out.truncate(start);
    out.extend_from_slice(&other);
    entries
}

/// Stores ENTRIES, which `out` holds from `start` on, in planes under Zstandard. They are slower to
/// read, so they must be smaller by an eighth.
fn in_planes(
    values: PageValues<'_>,
    header: BodyHeader,
    start: usize,
    out: &mut Vec<u8>,
) -> BodyHeader {
    let known = out.len() - start;
    let mut body = Vec::new();
    if known < PLANES_BYTES_MIN || !dispatch::put_in_planes(values, &mut body) {
        return header;
    }
    let mut packed = Vec::new();
    let done = compress(Compressor::Zstd, EncodingGoal::Fast, &body, &mut packed);
    if done.is_err() || packed.len() >= known - known / 8 {
        return header;
    }
    out.truncate(start);
    out.extend_from_slice(&packed);
    BodyHeader {
        compressor: Compressor::Zstd,
        body_bytes: page_bytes(body.len()),
        ..header
    }
}

fn page_bytes(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a page is far smaller than 4 GiB")
}

/// Compresses the bytes of `out` from `start` on if that makes them smaller: by a sixteenth, if the
/// caller leaves the compressor open. Returns the compressor used.
fn compress_in_place(
    compressor: Compressor,
    choice: EncodingChoice,
    start: usize,
    out: &mut Vec<u8>,
) -> Compressor {
    if compressor == Compressor::Uncompressed {
        return compressor;
    }
    let mut packed = Vec::new();
    let done = compress(compressor, choice.goal, &out[start..], &mut packed);
    let margin = choice.compressor.map_or(packed.len() / 16, |_| 0);
    if done.is_err() || packed.len() + margin >= out.len() - start {
        return Compressor::Uncompressed;
    }
    out.truncate(start);
    out.extend_from_slice(&packed);
    compressor
}

/// Appends `values` with the given encoding and compressor.
///
/// # Errors
/// If the encoding does not support this type, or is only reserved.
///
/// # Panics
/// If the encoded values take 4 GiB or more.
pub fn encode_as(
    values: PageValues<'_>,
    encoding: Encoding,
    compressor: Compressor,
    out: &mut Vec<u8>,
) -> Result<BodyHeader> {
    let mut body = Vec::new();
    dispatch::put(values, encoding, &mut body)?;
    let body_bytes = page_bytes(body.len());
    compress(compressor, EncodingGoal::Fast, &body, out)?;
    Ok(BodyHeader {
        encoding,
        compressor,
        body_bytes,
    })
}

/// Decodes `count` values of type `kind` from all of `bytes`.
///
/// # Errors
/// If the bytes are damaged, contain more than `limits` allow, or use an encoding that this version
/// does not know.
pub fn decode(
    kind: ValueType,
    header: BodyHeader,
    count: usize,
    bytes: &[u8],
    limits: DecodeLimits,
) -> Result<OwnedValues> {
    limits.check_values(count)?;
    if header.compressor == Compressor::Uncompressed {
        return read(kind, header.encoding, count, bytes, limits);
    }
    let len = limits.check_bytes(u64::from(header.body_bytes))?;
    let body = decompress(header.compressor, bytes, len)?;
    read(kind, header.encoding, count, &body, limits)
}

/// Integers in a form that does not list each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegularIntegers {
    /// Mostly equidistant.
    Progressions(Vec<Progression>),
    /// On grids.
    Grids(NumberGrids),
}

impl RegularIntegers {
    /// Number of integers.
    pub fn len(&self) -> u64 {
        match self {
            Self::Progressions(all) => all.iter().map(|one| u64::from(one.len)).sum(),
            Self::Grids(grids) => grids.len() as u64,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the integers.
    pub fn each(&self) -> Box<dyn Iterator<Item = i64> + '_> {
        match self {
            Self::Progressions(all) => {
                let each = |one: &Progression| {
                    (0..one.len).map({
                        let one = *one;
                        move |at| one.get(at)
                    })
                };
                Box::new(all.iter().flat_map(each))
            }
            Self::Grids(grids) => {
                let parts = grids.parts(0, grids.len() as u32);
                Box::new(parts.flat_map(|part| part.rows().map(move |row| part.get(row))))
            }
        }
    }
}

/// Decodes the `count` integers in `bytes` to a form that is shorter than a list. `None` if they
/// are stored neither on grids nor as differences, or if their progressions are too short: then
/// [`decode`] must read them, and they have not been checked for damage.
///
/// # Errors
/// If the bytes are damaged, or contain more than `limits` allow.
pub fn decode_regular(
    header: BodyHeader,
    count: usize,
    bytes: &[u8],
    limits: DecodeLimits,
) -> Result<Option<RegularIntegers>> {
    limits.check_values(count)?;
    if header.compressor != Compressor::Uncompressed {
        return Ok(None);
    }
    let mut reader = ByteReader::new(bytes);
    let found = match header.encoding {
        Encoding::Delta => {
            let most = count.div_ceil(REGULAR_LEN);
            read_progressions(&mut reader, count, most)?.map(RegularIntegers::Progressions)
        }
        Encoding::Grid => Some(RegularIntegers::Grids(read_grids(&mut reader, count)?)),
        _ => None,
    };
    if found.is_some() {
        reader.end()?;
    }
    Ok(found)
}

/// Decodes the integers in `rows` (which must ascend) out of `count` that are from `min` to `max`:
/// which they are, and their values. `None` for an encoding or a compressor with which this is no
/// faster than [`decode_part`]. Skipped bytes are not checked.
///
/// # Errors
/// If the decoded bytes are damaged, or contain more than `limits` allow.
pub fn decode_within(
    header: BodyHeader,
    count: usize,
    bytes: &[u8],
    limits: DecodeLimits,
    rows: &Range<usize>,
    (min, max): (i64, i64),
) -> Result<Option<(Range<usize>, Vec<i64>)>> {
    limits.check_values(count)?;
    if (header.encoding, header.compressor) != (Encoding::Grid, Compressor::Uncompressed) {
        return Ok(None);
    }
    read_grid_within(&mut ByteReader::new(bytes), count, rows, (min, max)).map(Some)
}

/// Decodes the values in `rows` out of `count` without decoding all others; `None` for an encoding
/// or a compressor that cannot do so. Skipped bytes are not checked.
///
/// # Errors
/// If the decoded bytes are damaged, or contain more than `limits` allow.
///
/// # Panics
/// If `rows` is out of bounds of `count`.
pub fn decode_part(
    kind: ValueType,
    header: BodyHeader,
    count: usize,
    bytes: &[u8],
    limits: DecodeLimits,
    rows: &Range<usize>,
) -> Result<Option<OwnedValues>> {
    assert!(
        rows.start <= rows.end && rows.end <= count,
        "rows of the page"
    );
    limits.check_values(count)?;
    if header.compressor != Compressor::Uncompressed {
        return Ok(None);
    }
    dispatch::read_part(
        kind,
        header.encoding,
        count,
        &mut ByteReader::new(bytes),
        rows,
    )
}

fn read(
    kind: ValueType,
    encoding: Encoding,
    count: usize,
    body: &[u8],
    limits: DecodeLimits,
) -> Result<OwnedValues> {
    let mut reader = ByteReader::new(body);
    let values = dispatch::read(kind, encoding, count, &mut reader, limits)?;
    reader.end()?;
    Ok(values)
}

#[cfg(test)]
mod tests;
