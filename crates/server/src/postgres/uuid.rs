//! UUIDs as texts, and as the number that the binary form is.

/// The number of a UUID in any form that PostgreSQL reads: with or without braces, and with or without a
/// hyphen after each group of four digits. `None` for other texts.
pub(super) fn number(text: &str) -> Option<u128> {
    let text = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let (mut number, mut digits) = (0_u128, 0_u32);
    let mut after_hyphen = false;
    for character in text.chars() {
        if character == '-' {
            let may_stand = digits > 0 && digits < 32 && digits.is_multiple_of(4);
            if after_hyphen || !may_stand {
                return None;
            }
            after_hyphen = true;
            continue;
        }
        let digit = character.to_digit(16).filter(|_| digits < 32)?;
        number = number << 4 | u128::from(digit);
        digits += 1;
        after_hyphen = false;
    }
    (digits == 32).then_some(number)
}

/// The text that PostgreSQL writes.
pub(super) fn text(number: u128) -> String {
    let hex = format!("{number:032x}");
    let groups = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    groups.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_read_in_every_form() {
        let own = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for form in [
            own,
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
        ] {
            assert_eq!(number(form).map(text).as_deref(), Some(own), "{form}");
        }
        for wrong in [
            "",
            "{}",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11",
            "-a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11-",
            "a0eebc9-99c0b-4ef8-bb6d-6bb9bd380a11",
            "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
    }
}
