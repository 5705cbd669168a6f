//! Numbers of names, as OpenTSDB has them. Here they follow from the names: nothing stores them.

use std::fmt::Write;

/// FNV-1a, 64 bits.
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// The number of a name: eight bytes in hexadecimal digits. `kind` is `metric`, `tagk` or `tagv`.
pub fn uid(kind: &str, name: &str) -> String {
    let bytes = kind.bytes().chain([0]).chain(name.bytes());
    let hash = bytes.fold(FNV_BASIS, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
    });
    format!("{hash:016X}")
}

/// The number of a series: those of its metric and of its tags, in the order of the numbers of their
/// names.
pub fn series_uid<'a>(metric: &str, tags: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let tags = tags.into_iter();
    let mut pairs: Vec<(String, String)> = tags
        .map(|(key, value)| (uid("tagk", key), uid("tagv", value)))
        .collect();
    pairs.sort();
    let mut text = uid("metric", metric);
    for (key, value) in pairs {
        // Writing to a String cannot fail.
        let _ = write!(text, "{key}{value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_from_names() {
        assert_eq!(uid("metric", "m").len(), 16);
        assert_ne!(uid("metric", "a"), uid("tagk", "a"));
        let one = series_uid("m", [("host", "a"), ("cpu", "0")]);
        let other = series_uid("m", [("cpu", "0"), ("host", "a")]);
        assert_eq!(one, other);
        assert_eq!(one.len(), 16 * 5);
    }
}
