//! Lines of InfluxDB's protocol as TDengine extends it, as lines of InfluxDB's protocol.
//!
//! TDengine's clients may write the types of numbers behind them (`1.5f32`, `3i64`, `7u8`), and a letter before
//! texts that says their type (`L"…"`, `B"…"`).

use std::borrow::Cow;

/// The suffixes of numbers that InfluxDB does not have, and what stands for them.
const SUFFIXES: [(&[u8], &[u8]); 10] = [
    (b"i8", b"i"),
    (b"i16", b"i"),
    (b"i32", b"i"),
    (b"i64", b"i"),
    (b"u8", b"u"),
    (b"u16", b"u"),
    (b"u32", b"u"),
    (b"u64", b"u"),
    (b"f32", b""),
    (b"f64", b""),
];

/// Lines without the extensions. What is malformed stays so.
#[must_use]
pub fn plain_lines(lines: &[u8]) -> Cow<'_, [u8]> {
    let mut out = Vec::new();
    // What follows was not copied.
    let mut copied = 0;
    let mut at = 0;
    while at < lines.len() {
        at = skip_key(lines, at);
        if lines.get(at) != Some(&b' ') {
            at += 1;
            continue;
        }
        at += 1;
        loop {
            // The name of a field, then its value.
            at = skip_name(lines, at);
            if lines.get(at) != Some(&b'=') {
                break;
            }
            at += 1;
            let is_text =
                matches!(lines.get(at), Some(b'L' | b'B')) && lines.get(at + 1) == Some(&b'"');
            if is_text {
                out.extend_from_slice(lines.get(copied..at).unwrap_or_default());
                copied = at + 1;
                at += 1;
            }
            let begin = at;
            at = skip_value(lines, at);
            let value = lines.get(begin..at).unwrap_or_default();
            if let Some((number, suffix)) = plain_number(value) {
                let end = begin + number.len();
                out.extend_from_slice(lines.get(copied..end).unwrap_or_default());
                out.extend_from_slice(suffix);
                copied = at;
            }
            if lines.get(at) != Some(&b',') {
                break;
            }
            at += 1;
        }
        let rest = lines.get(at..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == b'\n');
        at += end.map_or(rest.len(), |end| end + 1);
    }
    if copied == 0 {
        return Cow::Borrowed(lines);
    }
    out.extend_from_slice(lines.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

/// The end of a measurement and its tags: a space that is not escaped, or the end of the line.
fn skip_key(lines: &[u8], from: usize) -> usize {
    skip_until(lines, from, b" \n")
}

/// The end of the name of a field.
fn skip_name(lines: &[u8], from: usize) -> usize {
    skip_until(lines, from, b"= \n")
}

fn skip_until(lines: &[u8], from: usize, ends: &[u8]) -> usize {
    let mut at = from;
    while let Some(byte) = lines.get(at) {
        match byte {
            b'\\' => at += 2,
            byte if ends.contains(byte) => return at,
            _ => at += 1,
        }
    }
    lines.len()
}

/// The end of a value: a text with its quotes, or all before a comma, a space or the end of the line.
fn skip_value(lines: &[u8], from: usize) -> usize {
    if lines.get(from) != Some(&b'"') {
        let rest = lines.get(from..).unwrap_or_default();
        let end = rest.iter().position(|byte| b", \r\n".contains(byte));
        return from + end.unwrap_or(rest.len());
    }
    let mut at = from + 1;
    while let Some(byte) = lines.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    lines.len()
}

/// A number without the suffix that InfluxDB does not have, and what stands for it.
fn plain_number(value: &[u8]) -> Option<(&[u8], &'static [u8])> {
    let first = value.first()?;
    if !first.is_ascii_digit() && !matches!(first, b'-' | b'+' | b'.') {
        return None;
    }
    SUFFIXES
        .into_iter()
        .find_map(|(suffix, plain)| Some((value.strip_suffix(suffix)?, plain)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(lines: &str) -> String {
        String::from_utf8(plain_lines(lines.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn types_behind_numbers_and_before_texts_are_taken_away() {
        let lines = "st,t1=3i64,t2=L\"a\" c1=3i64,c3=L\"pass,it 2i8\",c2=false,c4=4f64,c5=-1.5e3f32 1626006833639000000\n\
                     a\\ b v=7u8,w=1i,x=2.5,y=\"3i64\",z=B\"q\\\"r\"\n# c v=1i8\n\nbroken\nc v=5i16";
        let expected = "st,t1=3i64,t2=L\"a\" c1=3i,c3=\"pass,it 2i8\",c2=false,c4=4,c5=-1.5e3 1626006833639000000\n\
                     a\\ b v=7u,w=1i,x=2.5,y=\"3i64\",z=\"q\\\"r\"\n# c v=1i8\n\nbroken\nc v=5i";
        assert_eq!(plain(lines), expected);
        let same = b"cpu,host=a idle=1.5,n=3i 1000";
        assert!(matches!(plain_lines(same), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn no_lines_panic(lines in "([a-z ,=\\\\\"\n]|[0-9]i64|L\"|f32){0,40}") {
            let once = plain(&lines);
            prop_assert!(once.len() <= lines.len());
        }
    }
}
