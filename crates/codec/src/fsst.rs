//! Fast static symbol table for strings (Boncz, Neumann, Leis: FSST, VLDB 2020): up to 255 symbols
//! of one to eight bytes, each encoded as one byte. The crate `fsst-rs` finds the symbols and
//! encodes. Decoding is implemented here, in safe code, because the crate trusts its table.
//!
//! ```text
//! u8          number of symbols
//! [u8]        length of each symbol, 1 to 8
//! [u8]        the symbols' bytes, one after the other
//! FOR         u32 length of each value
//! [u8]        codes: a symbol's number, or 255 and a byte that stands for itself
//! ```
//!
//! All values are encoded as one string; their lengths say where each one ends.

use crate::bytes::ByteReader;
use crate::error::{CodecError, Result};
use crate::integer::{put_for, read_for};
use crate::plain::{lengths, offsets_of};
use crate::values::DecodeLimits;

/// The code before a literal byte.
const ESCAPE: u8 = 255;
/// Length of the longest symbol, in bytes.
const SYMBOL_BYTES: usize = 8;
/// Bytes that are encoded to estimate the total.
const SAMPLE_BYTES: usize = 4 << 10;

/// Appends strings.
pub(crate) fn put_fsst(offsets: &[i32], data: &[u8], out: &mut Vec<u8>) {
    let (Some(first), Some(last)) = (offsets.first(), offsets.last()) else {
        return;
    };
    let text = &data[*first as usize..*last as usize];
    let table = fsst::Compressor::train(&vec![text]);
    put_table(&table, out);
    put_for(&lengths(offsets), out);
    out.extend_from_slice(&table.compress(text));
}

fn put_table(table: &fsst::Compressor, out: &mut Vec<u8>) {
    let (symbols, lengths) = (table.symbol_table(), table.symbol_lengths());
    out.push(symbols.len() as u8);
    out.extend_from_slice(lengths);
    for (symbol, len) in symbols.iter().zip(lengths) {
        out.extend_from_slice(&symbol.to_u64().to_le_bytes()[..usize::from(*len)]);
    }
}

/// Reads `count` strings, whose codes make up the rest of `reader`.
pub(crate) fn read_fsst(
    reader: &mut ByteReader<'_>,
    count: usize,
    limits: DecodeLimits,
) -> Result<(Vec<i32>, Vec<u8>)> {
    let number = usize::from(reader.byte()?);
    let lengths = reader.take(number)?;
    if number == usize::from(ESCAPE) + 1 || lengths.iter().any(|len| !(1..=8).contains(len)) {
        return Err(CodecError::Damaged("a symbol has no or too many bytes"));
    }
    let mut symbols = [([0; SYMBOL_BYTES], 0); 256];
    for (symbol, len) in symbols.iter_mut().zip(lengths) {
        let len = usize::from(*len);
        symbol.0[..len].copy_from_slice(reader.take(len)?);
        symbol.1 = len;
    }
    let lengths = read_for::<u32>(reader, count)?;
    let (offsets, total) = offsets_of(&lengths, limits)?;
    let codes = reader.take(reader.remaining())?;
    Ok((offsets, expand(codes, &symbols, total)?))
}

/// Expands `codes` to `total` bytes. A code without a symbol expands to nothing.
fn expand(
    codes: &[u8],
    symbols: &[([u8; SYMBOL_BYTES], usize); 256],
    total: usize,
) -> Result<Vec<u8>> {
    const WRONG: CodecError = CodecError::Damaged("strings are not as long as they should be");
    // Symbols are copied with their full width and then overwritten by the next; the last one needs
    // room.
    let mut data = vec![0; total + SYMBOL_BYTES];
    let (mut at, mut codes) = (0, codes.iter());
    while let Some(code) = codes.next() {
        let place = data.get_mut(at..at + SYMBOL_BYTES).ok_or(WRONG)?;
        if *code == ESCAPE {
            place[0] = *codes.next().ok_or(WRONG)?;
            at += 1;
            continue;
        }
        let (symbol, len) = &symbols[usize::from(*code)];
        if *len == 0 {
            return Err(CodecError::Damaged("a code has no symbol"));
        }
        place.copy_from_slice(symbol);
        at += len;
    }
    if at != total {
        return Err(WRONG);
    }
    data.truncate(total);
    Ok(data)
}

/// Estimates the bytes of `text`, without the lengths of its strings, from a section in its middle.
pub(crate) fn estimate(text: &[u8]) -> usize {
    let from = text.len().saturating_sub(SAMPLE_BYTES) / 2;
    let sample = &text[from..(from + SAMPLE_BYTES).min(text.len())];
    let table = fsst::Compressor::train(&vec![sample]);
    let mut fixed = Vec::new();
    put_table(&table, &mut fixed);
    let codes = table.compress(sample).len();
    fixed.len() + (codes * text.len()).div_ceil(sample.len().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: DecodeLimits = DecodeLimits {
        values: 10_000,
        bytes: 1 << 20,
    };

    fn check(texts: &[Vec<u8>]) -> usize {
        let mut offsets = vec![0];
        for text in texts {
            offsets.push(offsets[offsets.len() - 1] + text.len() as i32);
        }
        let data = texts.concat();
        let mut out = Vec::new();
        put_fsst(&offsets, &data, &mut out);
        let mut reader = ByteReader::new(&out);
        let back = read_fsst(&mut reader, texts.len(), LIMITS).unwrap();
        reader.end().unwrap();
        assert_eq!(back, (offsets, data));
        out.len()
    }

    #[test]
    fn repeated_parts_are_found() {
        let texts: Vec<Vec<u8>> = (0..2000)
            .map(|n| format!("https://example.org/device/{n}/status?unit=celsius").into_bytes())
            .collect();
        let raw: usize = texts.iter().map(Vec::len).sum();
        assert!(check(&texts) < raw / 3, "{} of {raw}", check(&texts));
    }

    #[test]
    fn every_byte_comes_back() {
        check(&[]);
        check(&[Vec::new()]);
        check(&[vec![0], vec![255; 3], Vec::new(), (0..=255).collect()]);
        check(&vec![vec![0; 100]; 50]);
    }

    proptest! {
        #[test]
        fn any_strings_come_back(
            texts in proptest::collection::vec(
                prop_oneof!["[a-c]{0,20}".prop_map(String::into_bytes),
                    proptest::collection::vec(any::<u8>(), 0..20)],
                0..200,
            ),
        ) {
            check(&texts);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            count in 0usize..3000,
        ) {
            let _ = read_fsst(&mut ByteReader::new(&bytes), count, LIMITS);
        }
    }
}
