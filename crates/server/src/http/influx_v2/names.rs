//! Names of buckets, and identifiers made of names.

/// The database of a bucket, and the retention policy that it names.
pub(crate) fn parts(bucket: &str) -> (&str, Option<&str>) {
    match bucket.split_once('/') {
        Some((database, policy)) => (database, Some(policy).filter(|policy| !policy.is_empty())),
        None => (bucket, None),
    }
}

/// The identifier of what has this name: 16 hexadecimal digits, the same in every run of the server.
pub(super) fn id_of(name: &str) -> String {
    // FNV-1a.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Whether a text has the form of an identifier.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == 16
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A name as InfluxQL quotes it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", escaped(name, '"'))
}

/// A text as InfluxQL quotes it.
pub(super) fn quoted_text(text: &str) -> String {
    format!("'{}'", escaped(text, '\''))
}

fn escaped(text: &str, quote: char) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\n' => escaped.push_str("\\n"),
            char if char == quote || char == '\\' => escaped.extend(['\\', char]),
            char => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_identifiers() {
        assert_eq!(parts("plant"), ("plant", None));
        assert_eq!(parts("plant/"), ("plant", None));
        assert_eq!(parts("plant/week/x"), ("plant", Some("week/x")));
        assert_eq!(id_of(""), "cbf29ce484222325");
        assert_eq!(id_of("a"), "af63dc4c8601ec8c");
        assert!(is_id(&id_of("plant")) && !is_id("plant"));
        assert_eq!(quoted("a\"b\\\n"), r#""a\"b\\\n""#);
        assert_eq!(quoted_text("it's \"x\""), r#"'it\'s "x"'"#);
    }
}
