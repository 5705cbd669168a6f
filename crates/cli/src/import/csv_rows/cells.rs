//! Cells that are written in a way of their own: truth values and bytes.

use marigram_tabular::cell::read_bool;

/// In a column that is BOOLEAN in the table, 0 and 1 are truth values as well.
pub(crate) fn truth(cell: &str) -> Option<bool> {
    match cell {
        "0" => Some(false),
        "1" => Some(true),
        other => read_bool(other),
    }
}

/// Bytes, written as `\x` and two hexadecimal digits for each byte.
pub(crate) fn bytes(cell: &str) -> Option<Vec<u8>> {
    let digits = cell.strip_prefix("\\x")?.as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let text = std::str::from_utf8(pair)
            .ok()
            .filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(text, 16).ok()
    });
    pairs.collect()
}
