//! PostgreSQL's binary `numeric`: digits of base 10,000, the weight of the first, a sign and the
//! number of decimals (`numeric_send` in PostgreSQL's `numeric.c`).

use bytes::{Buf, BufMut, BytesMut};

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;

/// Appends the binary format of a decimal number in the notation of [`decode`]:
/// `-?[0-9]+(\.[0-9]*)?`.
pub(super) fn encode(text: &str, out: &mut BytesMut) {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    // Complete groups of four on both sides of the point.
    let lead = whole.len().next_multiple_of(4) - whole.len();
    let trail = decimals.len().next_multiple_of(4) - decimals.len();
    let all: Vec<u8> = std::iter::repeat_n(b'0', lead)
        .chain(whole.bytes())
        .chain(decimals.bytes())
        .chain(std::iter::repeat_n(b'0', trail))
        .collect();
    let mut groups: Vec<u16> = all
        .chunks(4)
        .map(|group| {
            group
                .iter()
                .fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'))
        })
        .collect();
    let mut weight = (whole.len() + lead) as i16 / 4 - 1;
    let zeros = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..zeros);
    weight -= zeros as i16;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    out.put_u16(groups.len() as u16);
    out.put_i16(weight);
    out.put_u16(if negative && !groups.is_empty() {
        NEGATIVE
    } else {
        0
    });
    out.put_u16(decimals.len() as u16);
    for group in groups {
        out.put_u16(group);
    }
}

/// The number as decimal text; `None` if the bytes are not a number. At most 1,000 groups on either
/// side of the point.
pub(super) fn decode(mut bytes: &[u8]) -> Option<String> {
    if bytes.len() < 8 {
        return None;
    }
    let count = bytes.get_u16() as usize;
    let weight = i32::from(bytes.get_i16());
    let sign = bytes.get_u16();
    let scale = bytes.get_u16() as usize;
    if sign == NAN {
        return Some("NaN".to_owned());
    }
    if bytes.len() != count * 2 || sign & !NEGATIVE != 0 || weight.abs() > 1000 || scale > 4000 {
        return None;
    }
    let groups: Vec<u16> = (0..count).map(|_| bytes.get_u16()).collect();
    if groups.iter().any(|group| *group > 9999) {
        return None;
    }
    let group = |at: i32| {
        usize::try_from(at)
            .ok()
            .and_then(|at| groups.get(at))
            .copied()
    };
    let mut text = String::new();
    for at in 0..=weight {
        push_group(&mut text, group(at).unwrap_or(0));
    }
    let whole = text.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let mut decimals = String::new();
    let mut at = weight + 1;
    if weight < -1 {
        // Groups of zeros between the point and the first group.
        decimals.push_str(&"0000".repeat((-1 - weight) as usize));
        at = 0;
    }
    while decimals.len() < scale {
        push_group(&mut decimals, group(at).unwrap_or(0));
        at += 1;
    }
    decimals.truncate(scale);
    let sign = if sign == NEGATIVE { "-" } else { "" };
    let point = if decimals.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{decimals}"))
}

/// Appends the four digits of a group.
fn push_group(text: &mut String, group: u16) {
    for power in [1000, 100, 10, 1] {
        text.push((b'0' + (group / power % 10) as u8) as char);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_bytes() {
        let mut out = BytesMut::new();
        encode("12345.678", &mut out);
        // As PostgreSQL 16 sends it.
        assert_eq!(&out[..], b"\0\x03\0\x01\0\0\0\x03\0\x01\x09\x29\x1a\x7c");
        out.clear();
        encode("0", &mut out);
        assert_eq!(&out[..], b"\0\0\0\0\0\0\0\0");
        assert_eq!(
            decode(b"\0\x01\xff\xfe\x40\0\0\x08\0\x01"),
            Some("-0.00000001".to_owned())
        );
        assert_eq!(decode(b"\0\x02\0\0"), None);
    }

    proptest! {
        #[test]
        fn numbers_come_back(whole in 0u64.., decimals in "[0-9]{0,12}", negative: bool) {
            let point = if decimals.is_empty() { "" } else { "." };
            let zero = whole == 0 && decimals.bytes().all(|digit| digit == b'0');
            let sign = if negative && !zero { "-" } else { "" };
            let text = format!("{sign}{whole}{point}{decimals}");
            let mut out = BytesMut::new();
            encode(&text, &mut out);
            prop_assert_eq!(decode(&out), Some(text));
        }

        #[test]
        fn any_bytes_are_a_number_or_none(bytes: Vec<u8>) {
            if let Some(text) = decode(&bytes) {
                prop_assert!(text.len() < 10_000);
            }
        }
    }
}
